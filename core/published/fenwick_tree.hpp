// A Fenwick tree over the levels: half the memory of a selection tree, the same O(log k).
#pragma once
#include <cstdint>
#include <vector>

namespace linrank::published {

/// Node m >= 1 is the sum of the levels m - lowbit(m) .. m - 1.
class FenwickTree {
public:
    explicit FenwickTree(std::int32_t n_levels) : nodes_(std::size_t(n_levels) + 1) {}
    void insert(std::int32_t level, double v) {
        total_ += v;
        for (std::size_t m = std::size_t(level) + 1; m < nodes_.size(); m += m & (~m + 1))
            nodes_[m] += v;
    }
    double larger(std::int32_t level) const { return total_ - smaller(level + 1); }
    double smaller(std::int32_t level) const {
        double sum = 0;
        for (std::size_t m = std::size_t(level); m > 0; m &= m - 1) sum += nodes_[m];
        return sum;
    }

private:
    std::vector<double> nodes_;
    double total_ = 0;
};

}  // namespace linrank::published
