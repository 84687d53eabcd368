// Sums of a vector over the pairs that each row violates, for one query.
#pragma once
#include "pair_sweep.hpp"

namespace linrank {

/// Whether level_sums will want PairProblem::by_level and the places of the rows; not for neighbouring
/// levels.
bool sums_by_rank(std::int64_t n, std::int64_t n_levels);

/// above[i], below[i] as in Simd, by the way of counting that is fastest for this query; v holds
/// n_vectors vectors one after the other, and so do above and below.
void level_sums(const Windows &q, int n_vectors, const double *v, double *above, double *below,
                SweepScratch &scratch);

/// The same for one vector of a long query, by all threads, with v and the sums by place and added to
/// what is there: above[t] += Σ, below[t] += sign Σ. Both may be the same array.
void add_level_sums(const Windows &q, const double *v, double *above, double sign, double *below,
                    int n_threads);

}  // namespace linrank
