// Sums of a vector over the pairs that each row violates, for one query.
#pragma once
#include "pair_sweep.hpp"

namespace linrank {

/// above[t], below[t] as in Kernels::prefix_table; picks the way of counting that is fastest here.
void level_sums(const Windows &q, const double *v, double *above, double *below,
                SweepScratch &scratch);

/// The same for one long query: pieces of the score axis are swept by different threads.
void level_sums_parallel(const Windows &q, const double *v, double *above, double *below,
                         int n_threads);

}  // namespace linrank
