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

// The concordance index of times of which some are only known to be longer.

/// The comparable pairs (i, j): i has an event, and j is known to last longer: time_j > time_i, or the
/// same time and no event.
struct CensoredCounts {
    std::int64_t concordant = 0;  // risk_i > risk_j
    std::int64_t discordant = 0;
    std::int64_t tied = 0;       // |risk_i - risk_j| <= tolerance
    std::int64_t tied_time = 0;  // of all of these, those with the same time
};

/// The pairs of every stratum [offsets[q], offsets[q+1]), in O(n log n). No time or risk is NaN.
CensoredCounts censored_concordance(std::span<const std::int64_t> offsets,
                                    std::span<const bool> event, std::span<const double> time,
                                    std::span<const double> risk, double tolerance);

}  // namespace linrank
