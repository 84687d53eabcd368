#include "metrics.hpp"

namespace linrank {

namespace {

/// Discounts by kind, as deep as some measure looks; logarithms are taken once, not per query.
std::array<std::vector<double>, 2> discount_tables(std::span<const Measure> measures,
                                                   Integers offsets) {
    Index longest = 0, depth[2] = {};
    for (std::size_t q = 1; q < offsets.size(); ++q)
        longest = std::max(longest, offsets[q] - offsets[q - 1]);
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

}  // namespace

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

}  // namespace linrank
