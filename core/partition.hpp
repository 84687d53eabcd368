// Work cut into tasks. Every cut depends on the data alone, never on the number of threads, so that sums
// over tasks have the same bits with any number of them.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

namespace linrank {

/// From this length on a query is cut into pieces that threads share.
inline constexpr std::int64_t long_query = 1 << 17;

/// Consecutive queries [first, last), all without pairs or shorter than long_query, or one long query.
struct QueryChunk {
    std::int64_t first, last;
    bool is_long;
};

/// The queries in chunks of at least 1/n_target of all rows each, long ones alone; a query has pairs where
/// it has more than one level.
std::vector<QueryChunk> chunk_queries(std::span<const std::int64_t> offsets,
                                      std::span<const std::int32_t> n_levels, std::int64_t n_target);

/// Whole queries in runs of about `target` rows: run c is queries [cuts[c], cuts[c+1]).
std::vector<std::int64_t> cut_queries(std::span<const std::int64_t> offsets,
                                      std::int64_t target = 1 << 14);

/// Bounds of at most n_parts ranges of 0..n with about the same cost, `cost(k)` being that of the first k.
template <class Cost>
std::vector<std::int64_t> equal_parts(std::int64_t n, std::int64_t n_parts, const Cost &cost) {
    std::vector<std::int64_t> bounds{0};
    for (std::int64_t k = 1; k < n_parts; ++k) {
        const double goal = double(cost(n)) * double(k) / double(n_parts);
        std::int64_t low = bounds.back(), high = n;
        while (low < high) {
            const std::int64_t middle = (low + high) / 2;
            if (double(cost(middle)) < goal) low = middle + 1;
            else high = middle;
        }
        if (low > bounds.back()) bounds.push_back(low);
    }
    if (bounds.back() < n) bounds.push_back(n);
    return bounds;
}

}  // namespace linrank
