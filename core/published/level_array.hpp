// Direct counting: a sum for each level, O(1) to insert and O(k) to look up.
#pragma once
#include <cstdint>
#include <numeric>
#include <vector>

namespace linrank::published {

class LevelArray {
public:
    explicit LevelArray(std::int32_t n_levels) : sums_(n_levels) {}
    void insert(std::int32_t level, double v) { sums_[level] += v; }
    double larger(std::int32_t level) const {
        return std::accumulate(sums_.begin() + level + 1, sums_.end(), 0.0);
    }
    double smaller(std::int32_t level) const {
        return std::accumulate(sums_.begin(), sums_.begin() + level, 0.0);
    }

private:
    std::vector<double> sums_;
};

}  // namespace linrank::published
