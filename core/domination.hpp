// The domination loss at given scores: value, gradient, curvature and a bound from its dual.
#pragma once

#include "layering.hpp"
#include "pages.hpp"
#include "products.hpp"

namespace linrank {

/// The loss at one vector of scores z, by position; see Layering for the formula.
///
/// With k the layer of row i, ω_i = c_q u_i and Z_k the weighted sum of e^{m_j + Δ} over lower layers,
/// L = Σ_i ω_i log(1 + Z_k e^{-m_i}), and ρ_i = Z_k / (Z_k + e^{m_i}) is the probability mass that row i
/// leaves to the rows that it should dominate. All that is kept is bounded: ρ and the share
/// π_j = u_j e^{m_j} / E_κ of each row in its layer κ. One exponential a row.
struct DominationPoint {
    DominationPoint(const Layering &layering, Doubles z, int n_threads);

    double value = 0;            // L
    double slope = 0;            // ∇L·z
    double total_curvature = 0;  // trace of ∇²L
    PageArray<double> gradient;  // ∇L
    // How far rounding may have taken these from their exact values at the scores as they are given.
    double value_error = 0;
    double slope_error = 0;
    double gradient_error = 0;  // 2-norm

    /// out = ∇²L(z)·v.
    void multiply(Doubles v, std::span<double> out, int n_threads) const;
    /// D(t), 0 <= t <= 1: a lower bound of L(z') - t ∇L(z)·z' for every z'; at t = 1 the bound L - ∇L·z
    /// of the tangent plane. Its rounding is below 4·value_error + slope_error.
    double dual(double t, int n_threads) const;

    const Layering &layering;
    LayerShares shares;
    PageArray<double> share, rho;  // π and ρ, by position; 0 in queries of one layer
    // By cell: T_κ = Σ_{k>κ} share(k, κ) Σ_{i in k} ω_i ρ_i, so that ∇L_j = π_j T_κ - ω_j ρ_j; then
    // Σ ω_i ρ_i and Σ ω_i ρ_i² over the layer.
    std::vector<double> pull, risk, square_risk;
    double linear = 0;  // D(t) = Σ ω h(tρ) + t·linear, h the binary entropy
};

/// Xᵀ∇²L(z)X in full, n_columns × n_columns, with sums over rows in the precision of the data.
std::vector<double> hessian_matrix(const Positions &x, const DominationPoint &point, int n_threads);

/// Its diagonal, in one pass over the entries: exact but for queries of more than 64 layers, whose rows
/// are taken as if spread about one mean, for preconditioning.
std::vector<double> hessian_diagonal(const Positions &x, const DominationPoint &point,
                                     int n_threads);

}  // namespace linrank
