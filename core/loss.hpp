// The losses of one pair, as functions of its slack ξ = 1 - z_i + z_j.
#pragma once

namespace linrank {

inline constexpr double unit_roundoff = 0x1p-53;  // μ, of double precision

/// l(ξ) of a pair with slack ξ = 1 - z_i + z_j.
struct PairLoss {
    enum Kind {
        squared_hinge,  // max(0, ξ)²
        hinge,          // max(0, ξ): a sub-gradient, no curvature
        huber,          // [max(0, ξ)² - max(0, ξ - ε)²] / 2ε: the hinge, smooth within ε of its kink
    } kind = squared_hinge;
    double epsilon = 1.0;
};

/// Sums over pairs of weight ω and slack ξ.
struct PairSums {
    double value = 0;            // Σ ω l(ξ)
    double sum_of_slacks = 0;    // Σ ω max(0, ξ), whatever the loss
    double inner_slacks = 0;     // Σ ω max(0, ξ - ε) of huber, else 0
    double n_violations = 0;     // Σ ω over the pairs with ξ > 0
    double total_curvature = 0;  // Σ ω l''(ξ)
};

/// l, l' and (generalized) l'' at one slack.
struct LossOfPair { double value, slope, curvature; };

inline LossOfPair loss_of_pair(PairLoss loss, double slack) {
    if (!(slack > 0.0)) return {0.0, 0.0, 0.0};  // the slope of the hinge at its kink is taken as 0
    if (loss.kind == PairLoss::squared_hinge) return {slack * slack, 2.0 * slack, 2.0};
    if (loss.kind == PairLoss::hinge) return {slack, 1.0, 0.0};
    if (slack >= loss.epsilon) return {slack - 0.5 * loss.epsilon, 1.0, 0.0};
    return {0.5 * slack * slack / loss.epsilon, slack / loss.epsilon, 1.0 / loss.epsilon};
}

}  // namespace linrank
