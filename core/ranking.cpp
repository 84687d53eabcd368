#include "ranking.hpp"

namespace linrank {
namespace {

std::int32_t size_of(const Queries &queries, Index q) {
    if (queries.length(q) > std::numeric_limits<std::int32_t>::max())
        throw std::invalid_argument("a query has more than 2147483647 rows");
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

}  // namespace linrank
