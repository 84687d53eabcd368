// What all pair losses know at one vector of scores.
#pragma once

#include "loss.hpp"
#include "pages.hpp"

namespace linrank {

struct LossPoint : PairSums {
    explicit LossPoint(std::size_t n_rows) : gradient(n_rows, huge_pages) {}

    PageArray<double> gradient;
    // How far rounding may have taken these from their exact values at the scores as they are given; and
    // both sums of slacks, n_violations and the gradient, from those of a point of the dual.
    double value_error = 0;
    double slacks_error = 0;    // of sum_of_slacks
    double dual_error = 0;      // of both sums of slacks, and of n_violations
    double gradient_error = 0;  // 2-norm

protected:
    void set_sums(const PairSums &sums) { static_cast<PairSums &>(*this) = sums; }
    /// From the errors of the terms; each sum is made of at most `depth` additions one after the other. The
    /// slopes, and what they sum to, are a point of the dual whatever they are.
    void set_errors(double of_values, double of_slacks, double depth) {
        value_error = of_values + unit_roundoff * depth * value;
        dual_error = unit_roundoff * depth * (sum_of_slacks + inner_slacks + n_violations);
        slacks_error = of_slacks + dual_error;
    }
};

}  // namespace linrank
