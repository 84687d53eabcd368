// A table of running sums: O(l k) to fill without a branch that depends on the scores, O(1) a lookup.
#include "counting.hpp"

namespace linrank::published {

void count_by_prefix_table(const SortedQuery &query, std::span<const double> v,
                           std::span<double> above, std::span<double> below) {
    // Line t, column r: Σ v over the first t places and the levels >= r.
    const std::size_t n = query.n_rows(), width = std::size_t(query.n_levels) + 1;
    std::vector<double> table((n + 1) * width);
    for (std::size_t t = 0; t < n; ++t) {
        const double *line = table.data() + t * width;
        double *next = table.data() + (t + 1) * width;
        const std::size_t level = std::size_t(query.level[t]);
        for (std::size_t r = 0; r <= level; ++r) next[r] = line[r] + v[t];
        for (std::size_t r = level + 1; r < width; ++r) next[r] = line[r];
    }
    const ViolationWindows windows = violation_windows(query);
    const double *all = table.data() + n * width;
    for (std::size_t i = 0; i < n; ++i) {
        const std::size_t level = std::size_t(query.level[i]);
        above[i] = table[windows.upto[i] * width + level + 1];
        const double *before = table.data() + windows.from[i] * width;
        below[i] = (all[0] - all[level]) - (before[0] - before[level]);
    }
}

}  // namespace linrank::published
