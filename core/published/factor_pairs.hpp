// Factorized RankSVM as in Xu et al. (2019), Algorithm 1: α_ij = ⟨v_i, v_j⟩ by loops over the pairs.
//
//   min over 0 <= V <= largest of  f(V) = ½‖β‖² - Σ_P ⟨v_i, v_j⟩,   β = Σ_P ⟨v_i, v_j⟩ (x_i - x_j)
//
// with the misprints put right: the sign of the sum and of the step, -1 for -C in the gradient, and the
// old β_q, which line 6 computes, taken off β when line 11 adds the new one.
#pragma once

#include "../pair_sweep.hpp"
#include "../products.hpp"

namespace linrank::published {

/// What a pair costs. by_pair: n products, ⟨β, x_i - x_j⟩ and β_q += α_ij (x_i - x_j) for every pair, as
/// printed. by_row: K products; a query has its scores t = Xβ once, and β_q = Σ c_i x_i, c summed over pairs.
enum class PairWork { by_pair, by_row };

/// V and `largest`, the bound √(C/K) of each number of v_i, are by position; V is n_rows × n_factors.
struct FactorPairs {
    const Rows &rows;
    Order order;
    const PairProblem &pairs;
    Index n_factors;
    Doubles largest;
};

/// beta = β(V), line 3; returns Σ_P ⟨v_i, v_j⟩.
double factor_start(const FactorPairs &problem, Doubles V, std::span<double> beta);

/// Lines 5 to 12: a projected step v_i <- P(v_i - rate ∂f/∂v_i) for all rows of a query at one point (V, β),
/// query after query. Returns Σ_P ⟨v_i, v_j⟩ after it.
double factor_epoch(const FactorPairs &problem, PairWork work, double rate, std::span<double> V,
                    std::span<double> beta);

}  // namespace linrank::published
