// PRSVM+ (Chapelle & Keerthi 2010, as Lee & Lin describe it): for each level r the problem of two
// levels {y > r} against {y = r}, by two pointers. Σ_r |{y >= r}| = O(l k) steps.
#include <algorithm>
#include <numeric>

#include "counting.hpp"

namespace linrank::published {
namespace {

/// All pairs of `higher` and `equal`, both places in ascending order of score.
void count_two_levels(const SortedQuery &query, std::span<const std::size_t> higher,
                      std::span<const std::size_t> equal, std::span<const double> v,
                      std::span<double> above, std::span<double> below) {
    double sum = 0;
    std::size_t next = 0;
    for (const std::size_t j : equal) {
        for (; next < higher.size() && query.violates(higher[next], j); ++next)
            sum += v[higher[next]];
        above[j] = sum;  // no other level of the outer loop meets j from above
    }
    sum = 0;
    next = equal.size();
    for (std::size_t t = higher.size(); t-- > 0;) {
        for (; next > 0 && query.violates(higher[t], equal[next - 1]); --next)
            sum += v[equal[next - 1]];
        below[higher[t]] += sum;
    }
}

}  // namespace

void count_by_two_pointers(const SortedQuery &query, std::span<const double> v,
                           std::span<double> above, std::span<double> below) {
    std::fill(above.begin(), above.end(), 0.0);
    std::fill(below.begin(), below.end(), 0.0);
    std::vector<std::size_t> higher(query.n_rows()), equal;
    std::iota(higher.begin(), higher.end(), std::size_t(0));
    for (std::int32_t r = 0; r + 1 < query.n_levels; ++r) {
        equal.clear();
        std::size_t n_higher = 0;
        for (const std::size_t i : higher)
            if (query.level[i] == r)
                equal.push_back(i);
            else
                higher[n_higher++] = i;
        higher.resize(n_higher);
        count_two_levels(query, higher, equal, v, above, below);
    }
}

}  // namespace linrank::published
