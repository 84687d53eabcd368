// Duals of low rank, α_ij = <v_i, v_j> over the pairs of one query, by sums over levels: never a pair.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

namespace linrank {

/// Where the factors of a row may lie, beside v >= 0: every component at most b/√K, or the norm at most b.
enum class Constraint { box, ball };

/// The rows of one query: their levels, and the b_i that bound their factors.
struct FactorQuery {
    std::span<const std::int32_t> levels;
    std::span<const double> bound;
    std::int64_t n_levels;
    std::int64_t n_factors;  // K

    std::int64_t n_rows() const { return std::int64_t(levels.size()); }
};

/// Sums of K numbers a row over the rows of each level, and over those below it less those above it.
class LevelTotals {
public:
    /// Of values[i*K .. i*K + K) times weight[i]; an empty weight stands for ones.
    void compute(const FactorQuery &query, const double *values, const double *weight = nullptr);

    const double *of(std::int64_t level) const { return of_.data() + level * n_factors_; }
    const double *below(std::int64_t level) const { return below_.data() + level * n_factors_; }
    /// Σ_below - Σ_above.
    const double *difference(std::int64_t level) const { return difference_.data() + level * n_factors_; }
    const double *all() const { return all_.data(); }

private:
    std::int64_t n_factors_ = 0;
    std::vector<double> of_, below_, difference_, all_, scratch_;
};

/// Σ over pairs (i above j) of <a_i, b_j>, from the totals of both.
double pair_sum(const FactorQuery &query, const LevelTotals &a, const LevelTotals &b);

/// out[i] = <a_i, Σ_below b - Σ_above b>: what the pairs <a_i, b_j> add to the coefficient of row i.
void add_coefficients(const FactorQuery &query, const double *a, const LevelTotals &b, double *out);

/// The nearest point of the feasible set, row by row.
void project(const FactorQuery &query, Constraint constraint, double *factors);

/// The gradient of f(V) = ½‖β‖² - Σ <v_i, v_j>, with t = Xβ:
///
///   ∂f/∂v_i = t_i S_i - T_i - (Σ_below v + Σ_above v),   S = Σ_below v - Σ_above v,  T = Σ_below t v - Σ_above t v.
void factor_gradient(const FactorQuery &query, const double *factors, const double *t, const LevelTotals &v,
                     LevelTotals &tv, double *out);

/// How much a linear function with this gradient can fall within the feasible set: Σ max <g_i, v_i - v>.
double linear_decrease(const FactorQuery &query, Constraint constraint, const double *factors,
                       const double *gradient);

}  // namespace linrank
