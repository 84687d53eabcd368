// The selection tree of Lee & Lin's Tree-TRON: a complete binary tree over the levels, O(log k).
#pragma once
#include <cstdint>
#include <vector>

namespace linrank::published {

/// Leaves base..base+k-1 for the levels, node m the sum of nodes 2m and 2m+1. The root is odd but
/// nobody's right child, so climbing stops there.
class SelectionTree {
public:
    explicit SelectionTree(std::int32_t n_levels) {
        while (base_ < std::size_t(n_levels)) base_ *= 2;
        nodes_.assign(2 * base_, 0.0);
    }
    void insert(std::int32_t level, double v) {
        for (std::size_t m = base_ + std::size_t(level); m >= 1; m /= 2) nodes_[m] += v;
    }
    double larger(std::int32_t level) const {
        double sum = 0;
        for (std::size_t m = base_ + std::size_t(level); m > 1; m /= 2)
            if (m % 2 == 0) sum += nodes_[m + 1];
        return sum;
    }
    double smaller(std::int32_t level) const {
        double sum = 0;
        for (std::size_t m = base_ + std::size_t(level); m > 1; m /= 2)
            if (m % 2 == 1) sum += nodes_[m - 1];
        return sum;
    }

private:
    std::size_t base_ = 1;
    std::vector<double> nodes_;
};

}  // namespace linrank::published
