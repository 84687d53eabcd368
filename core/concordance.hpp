// Weighted pairwise accuracy of all queries.
#pragma once
#include <cstdint>
#include <span>

namespace linrank {

/// Total weight u_i·u_j of the pairs of one query, by what the scores say of them.
struct Concordance {
    double right = 0.0;
    double wrong = 0.0;
    double tied = 0.0;
};

/// The pairs (i above j) of every query, in O(n log n); all arrays are by position, no score is NaN.
Concordance weighted_concordance(std::span<const std::int64_t> offsets,
                                 std::span<const std::int32_t> levels,
                                 std::span<const double> scores, std::span<const double> weight);

}  // namespace linrank
