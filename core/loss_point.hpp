// What all pair losses know at one vector of scores.
#pragma once

#include "loss.hpp"
#include "pages.hpp"

namespace linrank {

struct LossPoint {
    explicit LossPoint(std::size_t n_rows) : gradient(n_rows, PageArray<double>::huge) {}

    double value = 0;            // L
    double sum_of_slacks = 0;    // Σ ω max(0, ξ), whatever the loss
    double inner_slacks = 0;     // Σ ω max(0, ξ - ε) of huber, else 0
    double n_violations = 0;     // Σ ω over the pairs with ξ > 0
    double total_curvature = 0;  // Σ ω l''(ξ)
    PageArray<double> gradient;
    // How far rounding may have taken these from their exact values at the scores as they are given; and
    // both sums of slacks, n_violations and the gradient, from those of a point of the dual.
    double value_error = 0;
    double slacks_error = 0;    // of sum_of_slacks
    double dual_error = 0;      // of both sums of slacks, and of n_violations
    double gradient_error = 0;  // 2-norm
};

}  // namespace linrank
