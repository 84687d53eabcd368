// Query ids to offsets, labels to levels.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

namespace linrank {

/// codes[i] numbers the distinct ids by first appearance; first[c] is the row where code c appears first.
struct Codes {
    std::vector<std::int64_t> codes;
    std::vector<std::int64_t> first;
};

/// Query q is positions offsets[q] .. offsets[q+1); position t is row order[t].
/// An empty `order` with is_identity says that the rows already lie query by query.
struct Grouping {
    std::vector<std::int64_t> order;
    std::vector<std::int64_t> offsets;
    bool is_identity;
};

/// levels[t] in [0, n_levels[q]) is the dense rank of the label at position t inside its query q.
struct Levels {
    std::vector<std::int32_t> levels;
    std::vector<std::int32_t> n_levels;
};

Codes factorise(std::span<const std::int64_t> ids);

/// Stable counting sort by code: rows of a query keep their order. Codes lie in [0, n_queries).
Grouping group_rows(std::span<const std::int64_t> codes, std::int64_t n_queries);

/// `order` is empty when positions are rows. Labels are free of NaN. Throws std::invalid_argument
/// for a query of more than 2³¹ - 1 levels.
Levels rank_levels(std::span<const double> labels, std::span<const std::int64_t> offsets,
                   std::span<const std::int64_t> order, int n_threads);

/// p_q = number of (i, j) in query q with levels[i] > levels[j]; exact below 4.2·10⁹ rows per query.
std::vector<std::int64_t> count_pairs(std::span<const std::int32_t> levels,
                                      std::span<const std::int64_t> offsets,
                                      std::span<const std::int32_t> n_levels);

}  // namespace linrank
