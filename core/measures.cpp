#include "metrics.hpp"

namespace linrank {
namespace {

constexpr double skipped = std::numeric_limits<double>::quiet_NaN();

/// f(begin, end) for each group of ranks whose inner order is open, while begin < depth and f, if it says
/// something, says true.
template <class F>
void for_each_group(Levels ends, Index depth, const F &f) {
    std::int32_t begin = 0;
    for (const std::int32_t end : ends) {
        if (begin >= depth) return;
        if constexpr (std::is_void_v<std::invoke_result_t<F, std::int32_t, std::int32_t>>) f(begin, end);
        else if (!f(begin, end)) return;
        begin = end;
    }
}

/// The ranks that are looked at: those of the list down to k.
Index depth_of(const Measure &m, const RankedQuery &query) {
    return m.k > 0 ? std::min<Index>(m.k, query.n_ranked) : query.n_ranked;
}

/// The ranks that the best list, of all rows, would fill down to k.
Index reach_of(const Measure &m, const RankedQuery &query) {
    return m.k > 0 ? std::min<Index>(m.k, query.n_rows()) : query.n_rows();
}

/// Mean of value[level] over ranks [begin, end).
double mean_of(const RankedQuery &query, Doubles value, std::int32_t begin, std::int32_t end) {
    if (end == begin + 1) return value[query.level[begin]];
    double sum = 0.0;
    for (std::int32_t i = begin; i < end; ++i) sum += value[query.level[i]];
    return sum / (end - begin);
}

/// Gains of the levels, up to a factor that a ratio of DCGs does not see; a negative label has none.
std::vector<double> gains(const Measure &m, const RankedQuery &query) {
    std::vector<double> gain(query.label.size(), 0.0);
    const double top = query.label.back();
    if (!(top > 0.0)) return gain;
    const int power = std::ilogb(top);  // a power of two changes no digit, and sums do not overflow
    for (std::size_t r = 0; r < gain.size(); ++r) {
        const double y = std::max(0.0, query.label[r]);
        gain[r] = m.gain == Gain::linear ? std::scalbn(y, -power) : scaled_gain(y, top);
    }
    return gain;
}

// ---- NDCG -------------------------------------------------------------------------------------

/// DCG@1, DCG@2, ... to `depth`: E[gain at rank i] · d(i), summed. The expectation over the orders
/// of tied rows is their mean gain at each of their ranks.
std::vector<double> running_dcg(const RankedQuery &query, Doubles gain,
                                Doubles discount, Index depth) {
    std::vector<double> dcg(depth);
    double sum = 0.0;
    for_each_group(query.open_end, depth, [&](std::int32_t begin, std::int32_t end) {
        const double mean = mean_of(query, gain, begin, end);
        for (Index i = begin; i < std::min<Index>(end, depth); ++i)
            dcg[i] = sum += mean * discount[i];
    });
    return dcg;
}

/// The same of the best order: levels from the top down.
std::vector<double> running_ideal(const RankedQuery &query, Doubles gain,
                                  Doubles discount, Index depth) {
    std::vector<double> dcg(depth);
    double sum = 0.0;
    std::size_t i = 0;
    for (std::size_t r = gain.size(); r-- > 0;)
        for (std::int32_t c = 0; c < query.n_at[r] && i < dcg.size(); ++c, ++i)
            dcg[i] = sum += gain[r] * discount[i];
    return dcg;
}

double ndcg(const Measure &m, const RankedQuery &query, Doubles discount) {
    const std::vector<double> gain = gains(m, query);
    if (!(gain.back() > 0.0)) return m.empty;
    if (m.short_is_zero && m.kind == Kind::ndcg && query.n_rows() < m.k) return 0.0;
    std::vector<double> dcg = running_dcg(query, gain, discount, depth_of(m, query));
    const std::vector<double> ideal = running_ideal(query, gain, discount, reach_of(m, query));
    // Behind the end of the list nothing is gained.
    dcg.resize(ideal.size(), dcg.empty() ? 0.0 : dcg.back());
    if (m.kind == Kind::ndcg) return dcg.back() / ideal.back();
    double sum = 0.0;
    for (std::size_t i = 0; i < dcg.size(); ++i) sum += dcg[i] / ideal[i];
    return sum / double(ideal.size());
}

// ---- relevant or not --------------------------------------------------------------------------

/// 1 for the relevant levels, 0 for the others, and how many rows are relevant.
struct Relevance {
    std::vector<double> flag;
    Index n = 0;
    Relevance(const Measure &m, const RankedQuery &query) : flag(query.label.size()) {
        for (std::size_t r = 0; r < flag.size(); ++r) {
            flag[r] = query.label[r] >= m.relevant_from ? 1.0 : 0.0;
            if (flag[r] > 0.0) n += query.n_at[r];
        }
    }
};

/// E[number of relevant rows among the first `depth`].
double expected_hits(const RankedQuery &query, const Relevance &rel, Index depth) {
    double hits = 0.0;
    for_each_group(query.open_end, depth, [&](std::int32_t begin, std::int32_t end) {
        const auto taken = double(std::min<Index>(end, depth) - begin);
        hits += mean_of(query, rel.flag, begin, end) * taken;
    });
    return hits;
}

/// Σ over the relevant rows of (relevant rows down to it)/rank, over the number of relevant rows.
///
/// A group of g tied rows, r of them relevant, follows s rows of which h are relevant. The row at
/// its place j = 1..g is relevant with probability r/g, and then h + 1 + (j-1)(r-1)/(g-1) relevant
/// rows are expected down to it.
double average_precision(const Measure &m, const RankedQuery &query, const Relevance &rel, Index depth) {
    double sum = 0.0, above = 0.0;
    const auto ends = m.step_precision ? std::span(query.score_end) : std::span(query.open_end);
    for_each_group(ends, depth, [&](std::int32_t begin, std::int32_t end) {
        if (end == begin + 1) {  // the same without a branch on what is relevant
            const double hit = mean_of(query, rel.flag, begin, end);
            above += hit;
            sum += hit * above / end;
            return;
        }
        const double size = end - begin;
        const double share = mean_of(query, rel.flag, begin, end);
        const double hits = share * size;
        const double slope = size > 1.0 ? (hits - 1.0) / (size - 1.0) : 0.0;
        for (Index i = begin; share > 0.0 && i < std::min<Index>(end, depth); ++i) {
            const double down = above + 1.0 + double(i - begin) * slope;
            sum += m.step_precision ? share * (above + hits) / end : share * down / double(i + 1);
        }
        above += hits;
    });
    const Index divisor = m.reachable ? std::min(rel.n, reach_of(m, query)) : rel.n;
    return sum / double(divisor);
}

/// E[1/rank of the first relevant row]: in the first group with r > 0 of its g rows relevant, it
/// stands at place j with probability r/(g-j+1) · Π_{t<j} (g-r-t+1)/(g-t+1).
double reciprocal_rank(const RankedQuery &query, const Relevance &rel, Index depth) {
    double value = 0.0;
    for_each_group(query.open_end, depth, [&](std::int32_t begin, std::int32_t end) {
        const double size = end - begin;
        const double hits = mean_of(query, rel.flag, begin, end) * size;
        if (!(hits > 0.0)) return true;
        double none_yet = 1.0;
        for (Index i = begin; i < std::min<Index>(end, depth); ++i) {
            const double left = double(end - i);
            value += none_yet * (hits / left) / double(i + 1);
            none_yet *= std::max(0.0, left - hits) / left;
        }
        return false;
    });
    return value;
}

/// (1 - p) Σ_{i<=k, relevant} p^(i-1). Tied rows are relevant with their share at each rank.
double rank_biased_precision(const Measure &m, const RankedQuery &query, const Relevance &rel, Index depth) {
    double sum = 0.0, looking = 1.0;
    for_each_group(query.open_end, depth, [&](std::int32_t begin, std::int32_t end) {
        const double share = mean_of(query, rel.flag, begin, end);
        for (Index i = begin; i < std::min<Index>(end, depth); ++i) {
            sum += looking * share;
            looking *= m.persistence;
        }
    });
    return (1.0 - m.persistence) * sum;
}

/// 1 if a relevant row is among the first k. Of g tied rows, r of them relevant, the first t are all
/// of the others with probability Π_{j<t} (g-r-j)/(g-j).
double success(const RankedQuery &query, const Relevance &rel, Index depth) {
    double none_yet = 1.0;
    for_each_group(query.open_end, depth, [&](std::int32_t begin, std::int32_t end) {
        const double hits = std::round(mean_of(query, rel.flag, begin, end) * (end - begin));
        for (Index i = begin; hits > 0.0 && i < std::min<Index>(end, depth); ++i) {
            const double left = double(end - i);
            none_yet *= std::max(0.0, left - hits) / left;
        }
    });
    return 1.0 - none_yet;
}

// ---- ERR --------------------------------------------------------------------------------------

/// survive[j] = mean over the j-subsets of the rows [begin, end) of Π (1 - R): the chance to be
/// still looking after j of these rows in random order. Adding the i-th row:
/// survive_j ← (1 - j/i) survive_j + (j/i)(1 - R_i) survive_{j-1}. O(rows · depth).
void mean_survival(const RankedQuery &query, Doubles stop, std::int32_t begin,
                   std::int32_t end, Index depth, std::vector<double> &survive) {
    survive.assign(depth + 1, 0.0);
    survive[0] = 1.0;
    for (std::int32_t i = begin; i < end; ++i) {
        const double count = i - begin + 1;
        const double chance = stop[query.level[i]];
        for (Index j = std::min<Index>(depth, i - begin + 1); j > 0; --j) {
            const double part = double(j) / count;
            survive[j] = (1.0 - part) * survive[j] + part * (1.0 - chance) * survive[j - 1];
        }
    }
}

/// How many rows of a group anyone looks at, when they stop at a row with this mean chance: by Maclaurin's
/// inequality survive[j] <= (1 - chance)^j, below 10^-18 from here on. A group of 10^6 tied rows would
/// otherwise take 10^12 steps.
Index looked_at(double chance) {
    if (chance >= 1.0) return 1;
    return Index(std::min(1e15, std::ceil(-41.5 / std::log1p(-chance))));
}

/// Σ_i (1/i) R_i Π_{t<i} (1 - R_t) = Σ_i (1/i)(survival before i - survival after i).
double expected_reciprocal_rank(const Measure &m, const RankedQuery &query) {
    std::vector<double> stop(query.label.size());
    for (std::size_t r = 0; r < stop.size(); ++r)
        stop[r] = scaled_gain(std::max(0.0, query.label[r]), m.y_max);
    if (!(query.label.back() > 0.0)) return std::isnan(m.empty) ? skipped : 0.0;
    const Index depth = depth_of(m, query);
    double value = 0.0, looking = 1.0;
    std::vector<double> survive;
    for_each_group(query.open_end, depth, [&](std::int32_t begin, std::int32_t end) {
        const double chance = mean_of(query, stop, begin, end);
        if (end == begin + 1) {
            value += looking * chance / end;
            looking *= 1.0 - chance;
            return;
        }
        if (chance == 0.0) return;  // nobody stops here
        const Index taken = std::min(std::min<Index>(end, depth) - begin, looked_at(chance));
        mean_survival(query, stop, begin, end, taken, survive);
        for (Index j = 0; j < taken; ++j)
            value += looking * (survive[j] - survive[j + 1]) / double(begin + j + 1);
        looking *= survive.back();
    });
    return value;
}

// ---- AUC --------------------------------------------------------------------------------------

/// Share of the pairs (relevant, other) in the right order, equal scores counting one half.
double auc(const RankedQuery &query, const Relevance &rel) {
    const Index n_other = query.n_rows() - rel.n;
    if (rel.n == 0 || n_other == 0) return skipped;
    Index relevant_above = 0, twice = 0;
    for_each_group(query.score_end, query.n_rows(), [&](std::int32_t begin, std::int32_t end) {
        Index hits = 0;
        for (Index i = begin; i < end; ++i) hits += rel.flag[query.level[i]] > 0.0;
        twice += (end - begin - hits) * (2 * relevant_above + hits);
        relevant_above += hits;
    });
    return 0.5 * double(twice) / (double(rel.n) * double(n_other));
}

/// A measure of relevant and other rows.
double relevance_measure(const Measure &m, const RankedQuery &query) {
    const Relevance rel(m, query);
    if (m.kind == Kind::auc) return auc(query, rel);
    const bool is_share = m.kind == Kind::recall || m.kind == Kind::average_precision;  // of the relevant rows
    if (rel.n == 0) return is_share || std::isnan(m.empty) ? m.empty : 0.0;
    const Index depth = depth_of(m, query);
    switch (m.kind) {
        case Kind::average_precision: return average_precision(m, query, rel, depth);
        case Kind::reciprocal_rank: return reciprocal_rank(query, rel, depth);
        case Kind::rbp: return rank_biased_precision(m, query, rel, depth);
        case Kind::success: return success(query, rel, depth);
        default: break;
    }
    const Index among = is_share ? rel.n : m.k > 0 && !m.reachable ? m.k : reach_of(m, query);
    return expected_hits(query, rel, depth) / double(among);  // recall, precision
}

// ---- Kendall's tau ----------------------------------------------------------------------------

/// τ_b = (n_c - n_d) / √(p · p_s), p the pairs with different labels, p_s those with different scores.
double kendall_tau(const RankedQuery &query, const PairCounts &pairs) {
    const Index n = query.n_rows();
    Index by_score = n * (n - 1) / 2;
    for_each_group(query.score_end, n, [&](Index begin, Index end) {
        by_score -= (end - begin) * (end - begin - 1) / 2;
    });
    const Index by_label = pairs.concordant + pairs.discordant + pairs.tied;
    if (by_score == 0 || by_label == 0) return skipped;
    // Two roots: the product of two numbers of pairs may be beyond 64 bits.
    return double(pairs.concordant - pairs.discordant) /
           std::sqrt(double(by_label)) / std::sqrt(double(by_score));
}

}  // namespace

bool needs_pairs(const Measure &m) { return m.kind == Kind::kendall_tau; }

std::vector<double> discounts(Discount kind, Index n) {
    std::vector<double> d(n);
    for (std::size_t i = 0; i < d.size(); ++i) {
        const double rank = double(i) + 1.0;
        d[i] = 1.0 / std::log2(kind == Discount::letor ? std::max(2.0, rank) : rank + 1.0);
    }
    return d;
}

double scaled_gain(double y, double y_max) {
    // Whole grades below the width of a double: both powers and their difference are exact.
    if (y == std::floor(y) && y_max == std::floor(y_max) && y_max <= 52.0) {
        // Beyond ±2000 a power is 0 or infinite, and may be too large for an int.
        const auto power = [](double e) { return std::ldexp(1.0, int(std::clamp(e, -2000.0, 2000.0))); };
        return power(y - y_max) - power(-y_max);
    }
    // 2^(y - y_max) (1 - 2^-y): no cancellation for small y.
    return -std::exp2(y - y_max) * std::expm1(-y * 0.6931471805599453);
}

double measure_query(const Measure &m, const RankedQuery &query,
                     Doubles discount, const PairCounts &pairs) {
    if (query.n_rows() == 0) return skipped;
    switch (m.kind) {
        case Kind::ndcg:
        case Kind::mean_ndcg: return ndcg(m, query, discount);
        case Kind::err: return expected_reciprocal_rank(m, query);
        case Kind::kendall_tau: return kendall_tau(query, pairs);
        default: return relevance_measure(m, query);
    }
}

}  // namespace linrank
