#include "metrics.hpp"

namespace linrank {

namespace {

// ---- one query in the order of its scores ------------------------------------------------------

std::int32_t size_of(const Queries &queries, Index q) {
    require(queries.length(q) <= INT32_MAX, "a query has more than 2147483647 rows");
    return std::int32_t(queries.length(q));
}

/// The places of `n` positions from `begin` on, by descending score; equal scores keep their order.
void sort_places(const Queries &queries, Doubles scores, Index begin, std::int32_t n,
                 RankScratch &scratch) {
    scratch.negative.resize(n);
    scratch.order.resize(n);
    for (std::int32_t i = 0; i < n; ++i) scratch.negative[i] = -scores[queries.row(begin + i)];
    sort_scores(scratch.negative.data(), n, nullptr, scratch.order.data(), scratch.sort);
}

/// The places [first, last) of equal scores, by the rule for ties.
void break_ties(const RankInput &in, Index begin, Ties ties, std::int32_t *first,
                std::int32_t *last) {
    const auto id = [&](std::int32_t place) {
        const Index row = in.row(begin + place);
        return in.docid.empty() ? row : in.docid[row];
    };
    const auto level = [&](std::int32_t place) { return in.levels[begin + place]; };
    // The places ascend, so that a stable sort leaves ties of ties in the order of the input.
    if (ties == Ties::pessimistic) std::ranges::stable_sort(first, last, {}, level);
    if (ties == Ties::docid) std::ranges::stable_sort(first, last, std::greater(), id);
}

void fill_levels(const RankInput &in, Index q, RankedQuery &out) {
    out.label.assign(in.n_levels[q], 0.0);
    out.n_at.assign(in.n_levels[q], 0);
    for (Index t = in.begin(q); t < in.begin(q + 1); ++t) {
        out.label[in.levels[t]] = in.labels[in.row(t)];
        ++out.n_at[in.levels[t]];
    }
}

// ---- all queries -------------------------------------------------------------------------------

/// Discounts by kind, as deep as some measure looks; logarithms are taken once, not per query.
std::array<std::vector<double>, 2> discount_tables(std::span<const Measure> measures,
                                                   Integers offsets) {
    const Index longest = longest_range(offsets);
    Index depth[2] = {};
    for (const Measure &m : measures) {
        if (m.kind != Kind::ndcg && m.kind != Kind::mean_ndcg) continue;
        Index &d = depth[int(m.discount)];
        d = std::max(d, m.k > 0 ? std::min(m.k, longest) : longest);
    }
    return {discounts(Discount::standard, depth[0]), discounts(Discount::letor, depth[1])};
}

/// Mean of the values that are not NaN, summed in order with Neumaier's correction.
double mean_in_order(Doubles values) {
    double sum = 0.0, lost = 0.0;
    Index n = 0;
    for (const double v : values) {
        if (std::isnan(v)) continue;
        const double next = sum + v;
        lost += std::abs(sum) >= std::abs(v) ? (sum - next) + v : (v - next) + sum;
        sum = next;
        ++n;
    }
    if (n == 0) return std::numeric_limits<double>::quiet_NaN();
    return (sum + lost) / double(n);
}

/// From the top score down: `lowest` is the least level of the rows above a group of equal scores,
/// so that max_{D(i)} f_j > f_i exactly when the row's own level is larger. From the bottom up the
/// same of levels counted down from the highest.
template <bool from_top>
RowCounts count_outranked(const RankedQuery &query) {
    const auto level = [&](std::int32_t i) {
        return from_top ? query.level[i] : query.n_levels() - 1 - query.level[i];
    };
    const auto n_groups = Index(query.score_end.size());
    RowCounts counts;
    counts.total = query.n_rows() - (query.n_at.empty() ? 0 : from_top ? query.n_at.front()
                                     : query.n_at.back());
    std::int32_t lowest = query.n_levels();
    for (Index k = 0; k < n_groups; ++k) {
        const Index g = from_top ? k : n_groups - 1 - k;
        const std::int32_t begin = g == 0 ? 0 : query.score_end[g - 1], end = query.score_end[g];
        std::int32_t here = lowest;
        for (std::int32_t i = begin; i < end; ++i) here = std::min(here, level(i));
        for (std::int32_t i = begin; i < end; ++i) {
            counts.wrong += level(i) > lowest;
            counts.tied += level(i) <= lowest && level(i) > here;
        }
        lowest = here;
    }
    return counts;
}

// ---- pairs, weighted or censored ---------------------------------------------------------------

/// The positions [begin, end) from the highest value down, equal ones as they come.
std::vector<Index> descending(Doubles values, Index begin, Index end) {
    std::vector<Index> positions(end - begin);
    std::iota(positions.begin(), positions.end(), begin);
    std::ranges::stable_sort(positions, std::greater(), [&](Index t) { return values[t]; });
    return positions;
}

Concordance concordance_of_query(const Queries &queries, Index q, Doubles scores) {
    const std::vector<Index> by_score = descending(scores, queries.begin(q), queries.begin(q + 1));
    const Levels levels = queries.levels;
    std::int32_t top = 0;
    for (const Index t : by_score) top = std::max(top, levels[t]);
    // The rows with higher scores, from the lowest level up and from the highest down.
    FenwickTree<double> up(top + 1), down(top + 1);
    std::vector<double> at_level(top + 1);  // of the group of equal scores; zero between groups
    Concordance result;
    for (auto begin = by_score.begin(), end = begin; begin != by_score.end(); begin = end) {
        double group = 0.0;
        for (; end != by_score.end() && scores[*end] == scores[*begin]; ++end) {
            const double u = queries.u(*end);
            const std::int32_t r = levels[*end];
            result.right += u * down.sum_below(top - r);
            result.wrong += u * up.sum_below(r);
            result.tied += u * std::max(0.0, group - at_level[r]);
            group += u;
            at_level[r] += u;
        }
        for (const Index t : std::span(begin, end)) {
            up.add(levels[t], queries.u(t));
            down.add(top - levels[t], queries.u(t));
            at_level[levels[t]] = 0.0;
        }
    }
    return result;
}

/// The positions [begin, end) of a stratum.
class Stratum {
public:
    Stratum(const Times &times, Index begin, Index end)
        : times_(times), by_time_(descending(times.time, begin, end)), longer_(end - begin),
          risks_(times.risk.begin() + begin, times.risk.begin() + end) {
        std::ranges::sort(risks_);
    }

    void count(CensoredCounts &counts) {
        const auto &[event, time, risk, tolerance] = times_;
        for (auto begin = by_time_.begin(), end = begin; begin != by_time_.end(); begin = end) {
            Index n_censored = 0;
            for (; end != by_time_.end() && time[*end] == time[*begin]; ++end)
                if (!event[*end]) {
                    longer_.add(place(*end), 1);
                    ++n_censored;
                }
            for (const Index t : std::span(begin, end))
                if (event[t]) {
                    compare(risk[t], counts);
                    counts.tied_time += n_censored;
                }
            for (const Index t : std::span(begin, end))
                if (event[t]) longer_.add(place(t), 1);
        }
    }

private:
    Index place(Index t) const {
        return std::ranges::lower_bound(risks_, times_.risk[t]) - risks_.begin();
    }

    /// Compares a row of this risk with all that outlast it, counted by the places of their risks.
    /// The rounded difference to it grows with the risk, so the tied ones are a range of the sorted
    /// risks.
    void compare(double own, CensoredCounts &counts) const {
        const auto is_tied = [&](double other) {
            return other == own || std::abs(other - own) <= times_.tolerance;
        };
        const auto n_where = [&](const auto &holds) {  // it holds for the lowest risks
            return longer_.sum_below(std::ranges::partition_point(risks_, holds) - risks_.begin());
        };
        const Index below = n_where([&](double other) { return other < own && !is_tied(other); });
        const Index upto = n_where([&](double other) { return other <= own || is_tied(other); });
        counts.concordant += below;
        counts.tied += upto - below;
        counts.discordant += longer_.sum_below(std::ssize(risks_)) - upto;
    }

    const Times &times_;
    std::vector<Index> by_time_;
    FenwickTree<Index> longer_;
    std::vector<double> risks_;  // ascending
};

}  // namespace

void rank_query(const RankInput &in, Index q, Ties ties, RankScratch &scratch, RankedQuery &out) {
    const Index begin = in.begin(q);
    const std::int32_t n_rows = size_of(in, q);
    const std::int32_t n = in.n_ranked.empty() ? n_rows : std::int32_t(in.n_ranked[q]);
    sort_places(in, in.scores, begin, n, scratch);
    std::int32_t *order = scratch.order.data();
    const auto score = [&](std::int32_t rank) { return scratch.negative[order[rank]]; };

    out.n_ranked = n;
    out.level.resize(n_rows);
    out.score_end.clear();
    for (std::int32_t first = 0, end = 0; first < n; first = end) {
        for (const double own = score(first); end < n && score(end) == own;) ++end;
        if (end - first > 1) break_ties(in, begin, ties, order + first, order + end);
        out.score_end.push_back(end);
    }
    if (ties == Ties::average) {
        out.open_end = out.score_end;
    } else {
        out.open_end.resize(n);
        std::iota(out.open_end.begin(), out.open_end.end(), 1);
    }
    const std::int32_t *levels = in.levels.data() + begin;
    for (std::int32_t i = 0; i < n; ++i) out.level[i] = levels[order[i]];
    for (std::int32_t i = n; i < n_rows; ++i) out.level[i] = levels[i];
    if (n < n_rows) {
        out.score_end.push_back(n_rows);
        out.open_end.push_back(n_rows);
    }
    fill_levels(in, q, out);
}

std::vector<Index> ranks_within_queries(const Queries &queries, Doubles scores, int n_threads) {
    std::vector<Index> ranks(scores.size());
    for_each_query<RankScratch>(queries.offsets, n_threads, [&](Index q, RankScratch &scratch) {
        const std::int32_t n = size_of(queries, q);
        sort_places(queries, scores, queries.begin(q), n, scratch);
        for (std::int32_t i = 0; i < n; ++i)
            ranks[queries.row(queries.begin(q) + scratch.order[i])] = i + 1;
    });
    return ranks;
}

MetricValues evaluate_queries(const RankInput &input, std::span<const Measure> measures, Ties ties,
                              Counted counted, int n_threads) {
    const auto n_queries = std::size_t(input.n_queries());
    const auto tables = discount_tables(measures, input.offsets);
    MetricValues out;
    out.values.resize(measures.size() * n_queries);
    const bool with_pairs = counted.pairs || std::ranges::any_of(measures, needs_pairs);
    if (counted.pairs) out.pairs.resize(3 * n_queries);
    if (counted.rows) out.rows.resize(6 * n_queries);

    struct Scratch {
        RankScratch ranking;
        FenwickTree<Index> higher;
        RankedQuery query;
    };
    for_each_query<Scratch>(input.offsets, n_threads, [&](Index q, Scratch &scratch) {
        RankedQuery &query = scratch.query;
        rank_query(input, q, ties, scratch.ranking, query);
        const PairCounts counts = with_pairs ? pair_counts(query, scratch.higher) : PairCounts{};
        for (std::size_t m = 0; m < measures.size(); ++m)
            out.values[m * n_queries + q] =
                measure_query(measures[m], query, tables[int(measures[m].discount)], counts);
        if (counted.pairs) std::memcpy(&out.pairs[3 * q], &counts, sizeof counts);
        if (counted.rows) {
            const RowCounts rows[] = {dominating_counts(query), dominated_counts(query)};
            std::memcpy(&out.rows[6 * q], rows, sizeof rows);
        }
    });
    for (std::size_t m = 0; m < measures.size(); ++m)
        out.means.push_back(mean_in_order(std::span(out.values).subspan(m * n_queries, n_queries)));
    return out;
}

PairCounts pair_counts(const RankedQuery &query, FenwickTree<Index> &higher) {
    PairCounts counts;
    Index n_pairs = Index(query.n_rows()) * query.n_rows();
    for (const Index c : query.n_at) n_pairs -= c * c;
    // The rows with higher scores, by level: a row is in the wrong order with those of a lower
    // level.
    higher.reset(query.n_levels());
    std::vector<Index> here(query.n_levels());
    std::int32_t begin = 0;
    for (const std::int32_t end : query.score_end) {
        const std::span level = std::span(query.level).subspan(begin, end - begin);
        Index equal = 0;
        for (const std::int32_t r : level) {
            counts.discordant += higher.sum_below(r);
            equal += here[r]++;  // pairs of the group in the same level
        }
        counts.tied += Index(level.size()) * Index(level.size() - 1) / 2 - equal;
        for (const std::int32_t r : level) {
            here[r] = 0;
            higher.add(r, 1);
        }
        begin = end;
    }
    counts.concordant = n_pairs / 2 - counts.discordant - counts.tied;
    return counts;
}

RowCounts dominating_counts(const RankedQuery &query) { return count_outranked<true>(query); }
RowCounts dominated_counts(const RankedQuery &query) { return count_outranked<false>(query); }

Concordance weighted_concordance(const Queries &queries, Doubles scores) {
    Concordance total;
    for (Index q = 0; q < queries.n_queries(); ++q)
        add_sums(total, concordance_of_query(queries, q, scores));
    return total;
}

CensoredCounts censored_concordance(Integers offsets, const Times &times) {
    CensoredCounts counts;
    for (std::size_t q = 0; q + 1 < offsets.size(); ++q)
        Stratum(times, offsets[q], offsets[q + 1]).count(counts);
    return counts;
}

}  // namespace linrank
