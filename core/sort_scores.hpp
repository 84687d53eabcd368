// The order of the scores of a query.
#pragma once
#include <cstdint>
#include <vector>

namespace linrank {

struct SortScratch {
    std::vector<std::uint64_t> keys, spare;
};

/// order[t] = index of the t-th smallest score; equal scores keep their order of index.
void sort_scores(const double *scores, std::int64_t n, std::int32_t *order, SortScratch &scratch);

/// The same on several threads, for one long query; the result does not depend on their number.
void sort_scores_parallel(const double *scores, std::int64_t n, std::int32_t *order, int n_threads);

}  // namespace linrank
