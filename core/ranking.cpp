#include "ranking.hpp"

#include <algorithm>
#include <limits>
#include <stdexcept>

#include "parallel.hpp"

namespace linrank {
namespace {

bool before(const RankKey &a, const RankKey &b) {
    if (a.score != b.score) return a.score > b.score;
    if (a.second != b.second) return a.second < b.second;
    return a.place < b.place;
}

std::int32_t size_of(const QueryView &queries, std::int64_t q) {
    const auto at = static_cast<std::size_t>(q);
    const std::int64_t size = queries.offsets[at + 1] - queries.offsets[at];
    if (size > std::numeric_limits<std::int32_t>::max())
        throw std::invalid_argument("a query has more than 2147483647 rows");
    return static_cast<std::int32_t>(size);
}

void fill_keys(const RankInput &in, std::int64_t begin, Ties ties, std::vector<RankKey> &keys) {
    for (std::size_t i = 0; i < keys.size(); ++i) {
        const std::int64_t t = begin + static_cast<std::int64_t>(i);
        const std::int64_t row = in.queries.row(t);
        const auto r = static_cast<std::size_t>(row);
        std::int64_t second = 0;
        if (ties == Ties::pessimistic) second = in.levels[static_cast<std::size_t>(t)];
        if (ties == Ties::docid) second = in.docid.empty() ? -row : -in.docid[r];
        keys[i] = {in.scores[r], second, static_cast<std::int32_t>(i)};
    }
}

void fill_levels(const RankInput &in, std::int64_t q, std::int64_t begin, RankedQuery &out) {
    const auto k = static_cast<std::size_t>(in.n_levels[static_cast<std::size_t>(q)]);
    out.label.assign(k, 0.0);
    out.n_at.assign(k, 0);
    for (std::int64_t t = begin; t < begin + out.n_rows(); ++t) {
        const auto level = static_cast<std::size_t>(in.levels[static_cast<std::size_t>(t)]);
        out.label[level] = in.labels[static_cast<std::size_t>(in.queries.row(t))];
        ++out.n_at[level];
    }
}

}  // namespace

void rank_query(const RankInput &in, std::int64_t q, Ties ties, std::vector<RankKey> &keys,
                RankedQuery &out) {
    const std::int64_t begin = in.queries.offsets[static_cast<std::size_t>(q)];
    const std::int32_t n_rows = size_of(in.queries, q);
    const std::int32_t n =
        in.n_ranked.empty() ? n_rows
                            : static_cast<std::int32_t>(in.n_ranked[static_cast<std::size_t>(q)]);
    keys.resize(static_cast<std::size_t>(n));
    fill_keys(in, begin, ties, keys);
    std::sort(keys.begin(), keys.end(), before);

    out.n_ranked = n;
    out.level.resize(static_cast<std::size_t>(n_rows));
    out.score_end.clear();
    out.open_end.clear();
    for (std::int32_t i = 0; i < n; ++i) {
        const RankKey &key = keys[static_cast<std::size_t>(i)];
        out.level[static_cast<std::size_t>(i)] =
            in.levels[static_cast<std::size_t>(begin + key.place)];
        const bool last = i + 1 == n || keys[static_cast<std::size_t>(i) + 1].score != key.score;
        if (last) out.score_end.push_back(i + 1);
        if (last || ties != Ties::average) out.open_end.push_back(i + 1);
    }
    for (std::int32_t i = n; i < n_rows; ++i)
        out.level[static_cast<std::size_t>(i)] = in.levels[static_cast<std::size_t>(begin + i)];
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
        std::vector<RankKey> keys;
        const auto c = static_cast<std::size_t>(chunk);
        for (std::int64_t q = cuts[c]; q < cuts[c + 1]; ++q) {
            const std::int64_t begin = queries.offsets[static_cast<std::size_t>(q)];
            keys.resize(static_cast<std::size_t>(size_of(queries, q)));
            for (std::size_t i = 0; i < keys.size(); ++i) {
                const std::int64_t row = queries.row(begin + static_cast<std::int64_t>(i));
                keys[i] = {scores[static_cast<std::size_t>(row)], 0, static_cast<std::int32_t>(i)};
            }
            std::sort(keys.begin(), keys.end(), before);
            for (std::size_t i = 0; i < keys.size(); ++i) {
                const std::int64_t row = queries.row(begin + keys[i].place);
                ranks[static_cast<std::size_t>(row)] = static_cast<std::int64_t>(i) + 1;
            }
        }
    });
}

std::vector<std::int64_t> cut_queries(std::span<const std::int64_t> offsets, std::int64_t target) {
    std::vector<std::int64_t> cuts{0};
    std::int64_t begin = 0;
    for (std::size_t q = 1; q < offsets.size(); ++q) {
        if (offsets[q] - begin < target && q + 1 < offsets.size()) continue;
        cuts.push_back(static_cast<std::int64_t>(q));
        begin = offsets[q];
    }
    return cuts;
}

}  // namespace linrank
