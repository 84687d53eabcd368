// The order of the scores of a query.
#pragma once
#include "basics.hpp"

namespace linrank {

struct SortScratch {
    struct Row {
        double score;
        std::int32_t index;
    };
    std::vector<Row> rows;
    std::vector<std::int32_t> bucket, start;  // of each score, of each bucket
    std::vector<std::uint64_t> keys, spare;
};

/// order[t] = index of the t-th smallest score; equal scores keep their order of index. `guess`, an
/// order that may be nearly right, saves time where it is, and may be null. With a NaN among the scores
/// the order is some permutation. At most 2³¹ - 1 scores.
void sort_scores(const double *scores, Index n, const std::int32_t *guess,
                 std::int32_t *order, SortScratch &scratch);

/// The same on several threads, for one long query; the result does not depend on their number.
void sort_scores_parallel(const double *scores, Index n, std::int32_t *order, int n_threads);

}  // namespace linrank
