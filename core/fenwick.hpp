// Sums of numbers by place that change one at a time.
#pragma once
#include "basics.hpp"

namespace linrank {

/// Numbers at the places 0..n-1, at first 0. Adding to one and summing those below a place take O(log n)
/// additions each and no subtraction. Node m >= 1 holds the sum of the places m - (m & -m) .. m - 1.
template <class Number>
class FenwickTree {
public:
    explicit FenwickTree(Index n = 0) { reset(n); }
    void reset(Index n) { nodes_.assign(n + 1, Number(0)); }

    void add(Index place, Number number) {
        for (auto m = std::size_t(place) + 1; m < nodes_.size(); m += m & (~m + 1)) nodes_[m] += number;
    }

    Number sum_below(Index place) const {
        Number sum = 0;
        for (auto m = std::size_t(place); m > 0; m &= m - 1) sum += nodes_[m];
        return sum;
    }

private:
    std::vector<Number> nodes_;
};

}  // namespace linrank
