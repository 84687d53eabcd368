// Algorithm 2 of Lee & Lin: sweep the scores, keep the levels of the rows passed in a tree.
#pragma once
#include "counting.hpp"

namespace linrank::published {

/// A Tree is a multiset of (level, v): insert(level, v), larger(level), smaller(level). It costs two
/// insertions and two lookups a row.
template <class Tree>
void sweep_by_score(const SortedQuery &query, std::span<const double> v, std::span<double> above,
                    std::span<double> below) {
    const std::size_t n = query.n_rows();
    Tree ascending(query.n_levels), descending(query.n_levels);
    for (std::size_t i = 0, next = 0; i < n; ++i) {
        for (; next < n && query.violates(next, i); ++next)
            ascending.insert(query.level[next], v[next]);
        above[i] = ascending.larger(query.level[i]);
    }
    for (std::size_t i = n, next = n; i-- > 0;) {
        for (; next > 0 && query.violates(i, next - 1); --next)
            descending.insert(query.level[next - 1], v[next - 1]);
        below[i] = descending.smaller(query.level[i]);
    }
}

}  // namespace linrank::published
