// The pair sums as Lee & Lin (2014) compute them: a sweep and a selection tree per query, in double,
// on one thread. The reference that the production sweeps are measured and tested against.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "pair_sweep.hpp"

namespace linrank {

class SelectionTreePoint {
public:
    SelectionTreePoint(const PairProblem &problem, std::span<const double> z);

    double value = 0, sum_of_slacks = 0, n_violations = 0;
    std::vector<double> gradient;

    /// out = ∇²L(z)·v, reusing the order of the scores.
    void multiply(std::span<const double> v, std::span<double> out) const;

private:
    /// Σ of `inserted` over the violators above and below each row, by the two sweeps of Algorithm 2.
    void sweep(std::int64_t q, std::span<const double> inserted, std::span<double> above,
               std::span<double> below) const;

    PairProblem problem_;
    std::vector<double> z_, degree_;
    std::vector<std::int64_t> order_;
};

}  // namespace linrank
