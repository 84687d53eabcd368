#include "metrics.hpp"

#include "parallel.hpp"

namespace linrank {

namespace {

bool discounted(const Measure &m) { return m.kind == Kind::ndcg || m.kind == Kind::mean_ndcg; }

/// Discounts by kind, as deep as some measure looks; logarithms are taken once, not per query.
std::array<std::vector<double>, 2> discount_tables(std::span<const Measure> measures,
                                                   Integers offsets) {
    Index longest = 0;
    for (std::size_t q = 1; q < offsets.size(); ++q)
        longest = std::max(longest, offsets[q] - offsets[q - 1]);
    std::array<Index, 2> depth{};
    for (const Measure &m : measures) {
        if (!discounted(m)) continue;
        auto &d = depth[int(m.discount)];
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

void count_rows(const RankedQuery &query, std::span<Index> out) {
    auto to = out.begin();
    for (const RowCounts &counts : {dominating_counts(query), dominated_counts(query)})
        for (const Index n : {counts.total, counts.wrong, counts.tied}) *to++ = n;
}

}  // namespace

MetricValues evaluate_queries(const RankInput &input, std::span<const Measure> measures, Ties ties,
                              Counted counted, int n_threads) {
    const auto n_queries = std::size_t(input.queries.n_queries());
    const auto tables = discount_tables(measures, input.queries.offsets);
    MetricValues out;
    out.values.resize(measures.size() * n_queries);
    const bool with_pairs =
        counted.pairs || std::any_of(measures.begin(), measures.end(), needs_pairs);
    if (counted.pairs) out.pairs.resize(3 * n_queries);
    if (counted.rows) out.rows.resize(6 * n_queries);

    const std::vector<Index> cuts = cut_queries(input.queries.offsets);
    parallel_for(Index(cuts.size()) - 1, n_threads, [&](Index chunk) {
        RankScratch scratch;
        FenwickTree<Index> higher;
        RankedQuery query;
        const auto c = std::size_t(chunk);
        for (Index q = cuts[c]; q < cuts[c + 1]; ++q) {
            rank_query(input, q, ties, scratch, query);
            const auto at = std::size_t(q);
            const PairCounts counts = with_pairs ? pair_counts(query, higher) : PairCounts{};
            for (std::size_t m = 0; m < measures.size(); ++m)
                out.values[m * n_queries + at] =
                    measure_query(measures[m], query, tables[int(measures[m].discount)], counts);
            if (counted.pairs) {
                auto to = out.pairs.begin() + std::ptrdiff_t(3 * at);
                for (const Index n : {counts.concordant, counts.discordant, counts.tied}) *to++ = n;
            }
            if (counted.rows) count_rows(query, std::span(out.rows).subspan(6 * at, 6));
        }
    });
    for (std::size_t m = 0; m < measures.size(); ++m)
        out.means.push_back(mean_in_order(std::span(out.values).subspan(m * n_queries, n_queries)));
    return out;
}

PairCounts pair_counts(const RankedQuery &query, FenwickTree<Index> &higher) {
    const auto k = std::size_t(query.n_levels());
    PairCounts counts;
    const Index n = query.n_rows();
    Index n_pairs = n * n;
    for (const Index c : query.n_at) n_pairs -= c * c;
    n_pairs /= 2;
    // The rows with higher scores, by level: a row is in the wrong order with those of a lower level.
    higher.reset(query.n_levels());
    std::vector<Index> here(k, 0);
    std::int32_t begin = 0;
    for (const std::int32_t end : query.score_end) {
        Index equal = 0;
        for (std::int32_t i = begin; i < end; ++i) {
            const auto r = std::size_t(query.level[i]);
            counts.discordant += higher.sum_below(Index(r));
            equal += here[r]++;  // pairs of the group in the same level
        }
        const Index size = end - begin;
        counts.tied += size * (size - 1) / 2 - equal;
        for (std::int32_t i = begin; i < end; ++i) {
            const auto r = std::size_t(query.level[i]);
            here[r] = 0;
            higher.add(Index(r), 1);
        }
        begin = end;
    }
    counts.concordant = n_pairs - counts.discordant - counts.tied;
    return counts;
}

namespace {

/// From the top score down: `lowest` is the least level of the rows above a group of equal scores, so that
/// max_{D(i)} f_j > f_i exactly when the row's own level is larger. From the bottom up the same of levels counted
/// down from the highest.
template <bool from_top>
RowCounts count_outranked(const RankedQuery &query) {
    const auto level = [&](std::int32_t i) {
        return from_top ? query.level[i] : query.n_levels() - 1 - query.level[i];
    };
    const auto n_groups = Index(query.score_end.size());
    RowCounts counts;
    counts.total = query.n_rows() - (query.n_at.empty() ? 0 : from_top ? query.n_at.front() : query.n_at.back());
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

RowCounts dominating_counts(const RankedQuery &query) { return count_outranked<true>(query); }
RowCounts dominated_counts(const RankedQuery &query) { return count_outranked<false>(query); }

}  // namespace linrank
