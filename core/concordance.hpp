// Weighted pairwise accuracy of all queries.
#pragma once
#include "queries.hpp"

namespace linrank {

/// Total weight u_i·u_j of the pairs of one query, by what the scores say of them.
struct Concordance {
    double right = 0.0;
    double wrong = 0.0;
    double tied = 0.0;
};

/// The pairs (i above j) of every query, in O(n log n); scores are by position, and none is NaN.
Concordance weighted_concordance(const Queries &queries, Doubles scores);

// The concordance index of times of which some are only known to be longer.

/// The comparable pairs (i, j): i has an event, and j is known to last longer: time_j > time_i, or
/// the same time and no event.
struct CensoredCounts {
    Index concordant = 0;  // risk_i > risk_j
    Index discordant = 0;
    Index tied = 0;       // |risk_i - risk_j| <= tolerance
    Index tied_time = 0;  // of all of these, those with the same time
};

/// By position; no time or risk is NaN.
struct Times {
    std::span<const bool> event;
    Doubles time, risk;
    double tolerance;
};

/// The pairs of every stratum [offsets[q], offsets[q+1]), in O(n log n).
CensoredCounts censored_concordance(Integers offsets, const Times &times);

}  // namespace linrank
