// A Fenwick tree over the levels: half the memory of a selection tree, the same O(log k).
#pragma once
#include <cstdint>

#include "../fenwick.hpp"

namespace linrank::published {

class LevelFenwick {
public:
    explicit LevelFenwick(std::int32_t n_levels) : sums_(n_levels) {}
    void insert(std::int32_t level, double v) {
        total_ += v;
        sums_.add(level, v);
    }
    double larger(std::int32_t level) const { return total_ - smaller(level + 1); }
    double smaller(std::int32_t level) const { return sums_.sum_below(level); }

private:
    FenwickTree<double> sums_;
    double total_ = 0;
};

}  // namespace linrank::published
