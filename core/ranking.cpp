#include "ranking.hpp"

#include <algorithm>
#include <limits>
#include <numeric>
#include <stdexcept>

#include "parallel.hpp"

namespace linrank {
namespace {

std::int32_t size_of(const QueryView &queries, std::int64_t q) {
    const auto at = static_cast<std::size_t>(q);
    const std::int64_t size = queries.offsets[at + 1] - queries.offsets[at];
    if (size > std::numeric_limits<std::int32_t>::max())
        throw std::invalid_argument("a query has more than 2147483647 rows");
    return static_cast<std::int32_t>(size);
}

/// Sorts rows that lie almost in order; equal scores keep theirs. Gives up after `budget` moves.
bool insertion_sort(std::span<RankScratch::Row> rows, std::int64_t budget) {
    for (std::size_t t = 1; t < rows.size(); ++t) {
        const RankScratch::Row row = rows[t];
        std::size_t slot = t;
        for (; slot > 0 && row.score < rows[slot - 1].score; --slot) rows[slot] = rows[slot - 1];
        rows[slot] = row;
        if ((budget -= static_cast<std::int64_t>(t - slot)) < 0) return false;
    }
    return true;
}

/// The rows by buckets of equal width, fewer than one a bucket, then by insertion: a single pass where a
/// radix sort takes four. False where scores crowd in few buckets or their range, from `low` to `high`, is
/// not finite.
bool sort_by_buckets(double low, double high, RankScratch &scratch) {
    const std::vector<double> &x = scratch.negative;
    const std::size_t n = x.size(), n_buckets = 4 * n;
    const double scale = static_cast<double>(n_buckets - 1) / (high - low);
    if (!(scale > 0.0 && scale <= std::numeric_limits<double>::max())) return false;
    scratch.bucket.resize(n);
    scratch.start.assign(n_buckets + 1, 0);
    // Rounding never turns two scores around, so that a bucket holds none that belongs before an earlier
    // one; that of the highest score may exceed the last by one unit of rounding, not by a bucket.
    for (std::size_t i = 0; i < n; ++i) {
        const auto bucket = static_cast<std::int32_t>((x[i] - low) * scale);
        scratch.bucket[i] = bucket;
        ++scratch.start[bucket + 1];
    }
    std::partial_sum(scratch.start.begin(), scratch.start.end(), scratch.start.begin());
    for (std::size_t i = 0; i < n; ++i) {
        const auto slot = scratch.start[scratch.bucket[i]]++;
        scratch.rows[slot] = {x[i], static_cast<std::int32_t>(i)};
    }
    return insertion_sort(scratch.rows, 4 * static_cast<std::int64_t>(n) + 64);
}

/// The places of `n` positions from `begin` on, by descending score; equal scores keep their order.
void sort_places(const QueryView &queries, std::span<const double> scores, std::int64_t begin,
                 std::int32_t n, RankScratch &scratch) {
    constexpr std::int32_t long_query = 1 << 13;  // beyond it the buckets leave the cache
    const auto size = static_cast<std::size_t>(n);
    scratch.negative.resize(size);
    scratch.rows.resize(size);
    double low = std::numeric_limits<double>::infinity(), high = -low;
    for (std::int32_t i = 0; i < n; ++i) {
        const double x = -scores[queries.row(begin + i)];
        scratch.negative[i] = x;
        low = std::min(low, x);
        high = std::max(high, x);
    }
    if (n < long_query && sort_by_buckets(low, high, scratch)) return;
    scratch.order.resize(size);
    sort_scores(scratch.negative.data(), n, nullptr, scratch.order.data(), scratch.sort);
    for (std::size_t i = 0; i < size; ++i)
        scratch.rows[i] = {scratch.negative[scratch.order[i]], scratch.order[i]};
}

/// The places [first, last) of equal scores, by the rule for ties.
void settle_ties(const RankInput &in, std::int64_t begin, Ties ties, RankScratch::Row *first,
                 RankScratch::Row *last) {
    const auto level = [&](const RankScratch::Row &row) {
        return in.levels[begin + row.place];
    };
    const auto id = [&](const RankScratch::Row &tied) {
        const std::int64_t row = in.queries.row(begin + tied.place);
        return in.docid.empty() ? row : in.docid[row];
    };
    // The places ascend, so that a stable sort leaves ties of ties in the order of the input.
    if (ties == Ties::pessimistic)
        std::stable_sort(first, last, [&](const auto &a, const auto &b) { return level(a) < level(b); });
    if (ties == Ties::docid)
        std::stable_sort(first, last, [&](const auto &a, const auto &b) { return id(a) > id(b); });
}

void fill_levels(const RankInput &in, std::int64_t q, std::int64_t begin, RankedQuery &out) {
    const auto k = static_cast<std::size_t>(in.n_levels[q]);
    out.label.assign(k, 0.0);
    out.n_at.assign(k, 0);
    for (std::int64_t t = begin; t < begin + out.n_rows(); ++t) {
        const auto level = static_cast<std::size_t>(in.levels[t]);
        out.label[level] = in.labels[in.queries.row(t)];
        ++out.n_at[level];
    }
}

}  // namespace

void rank_query(const RankInput &in, std::int64_t q, Ties ties, RankScratch &scratch,
                RankedQuery &out) {
    const std::int64_t begin = in.queries.offsets[q];
    const std::int32_t n_rows = size_of(in.queries, q);
    const std::int32_t n = in.n_ranked.empty() ? n_rows : static_cast<std::int32_t>(in.n_ranked[q]);
    sort_places(in.queries, in.scores, begin, n, scratch);
    RankScratch::Row *rows = scratch.rows.data();

    out.n_ranked = n;
    out.level.resize(n_rows);
    out.score_end.clear();
    for (std::int32_t first = 0, end = 0; first < n; first = end) {
        const double score = rows[first].score;
        while (end < n && rows[end].score == score) ++end;
        if (end - first > 1) settle_ties(in, begin, ties, rows + first, rows + end);
        out.score_end.push_back(end);
    }
    if (ties == Ties::average) {
        out.open_end = out.score_end;
    } else {
        out.open_end.resize(n);
        std::iota(out.open_end.begin(), out.open_end.end(), 1);
    }
    const std::int32_t *levels = in.levels.data() + begin;
    for (std::int32_t i = 0; i < n; ++i) out.level[i] = levels[rows[i].place];
    for (std::int32_t i = n; i < n_rows; ++i)
        out.level[i] = in.levels[begin + i];
    if (n < n_rows) {
        out.score_end.push_back(n_rows);
        out.open_end.push_back(n_rows);
    }
    fill_levels(in, q, begin, out);
}

void ranks_within_queries(const QueryView &queries, std::span<const double> scores, int n_threads,
                          std::span<std::int64_t> ranks) {
    const std::vector<std::int64_t> cuts = cut_queries(queries.offsets);
    parallel_for(static_cast<std::int64_t>(cuts.size()) - 1, n_threads, [&](std::int64_t chunk) {
        RankScratch scratch;
        const auto c = static_cast<std::size_t>(chunk);
        for (std::int64_t q = cuts[c]; q < cuts[c + 1]; ++q) {
            const std::int64_t begin = queries.offsets[q];
            const std::int32_t n = size_of(queries, q);
            sort_places(queries, scores, begin, n, scratch);
            for (std::int32_t i = 0; i < n; ++i) {
                const std::int64_t row = queries.row(begin + scratch.rows[i].place);
                ranks[row] = i + 1;
            }
        }
    });
}

}  // namespace linrank
