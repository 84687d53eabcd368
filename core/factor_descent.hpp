// Block descent for duals of low rank: a step a query, each to the lowest point of its line.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "factors.hpp"
#include "query_rows.hpp"
#include "random.hpp"

namespace linrank {

/// Levels and bounds by position, and where the factors may lie.
struct FactorProblem {
    std::vector<std::int32_t> levels, n_levels;
    std::vector<double> bound;
    std::int64_t n_factors;
    Constraint constraint;
};

/// f(V) = ½‖β‖² - Σ_P <v_i, v_j>,  β = Σ c_i D x_i,  c_i = <v_i, Σ_below v - Σ_above v>.
///
/// An epoch visits every query once, in a random order, and moves all of its factors along
///
///   W = proj(V - E ∇f) - V,   E_i = b_i / max_j ‖∂f/∂v_j‖_∞
///
/// to the lowest point V + τW, 0 <= τ <= 1. (A row of weight u then moves as u copies of one of weight 1.)
/// Along a line f is a quartic, as β is quadratic in τ, so that no step raises f and there is no step size to
/// choose. Queries of one batch take their directions at the same β, side by side; then the τ of all of them
/// are found one after the other, each knowing of the others. Between epochs V is extrapolated, as Nesterov
/// does; the caller tells whether that went well.
class FactorDescent {
public:
    /// `factors` is V by position, one row after the other; it is projected first.
    FactorDescent(QueryRows rows, FactorProblem problem, std::vector<double> factors, std::uint64_t seed);

    /// One epoch; f at its end. It counts once it is accepted. `momentum` is how far beyond its end the epoch
    /// after it starts, in units of the way from the last accepted point.
    double epoch(double momentum, int n_threads);
    /// Throws std::invalid_argument where no epoch has ended since the last accept() or reject().
    void accept();
    /// The next epoch starts at the last accepted point.
    void reject();

    /// Takes V to its best multiple sV, s <= 1: f(sV) = ½s⁴‖β‖² - s²Σα is least at s² = Σα/‖β‖².
    void shrink();

    /// Of the last accepted point: f, V and β.
    double value() const;
    const std::vector<double> &factors() const { return accepted_; }
    const std::vector<double> &weights() const { return accepted_weights_; }
    /// How much f falls within the feasible set by its linearisation, at most: 0 where V is stationary.
    double linear_decrease(int n_threads) const;

    std::int64_t n_columns() const { return rows_.n_columns(); }

private:
    struct Direction {  // of one query; along it β(τ) = β + τ first + τ² second
        std::int64_t query = 0;
        std::vector<double> first, second;
        double sum_first = 0, sum_second = 0;  // the same for Σ α
        double first_first = 0, first_second = 0, second_second = 0;  // inner products
        double step = 0;
        std::vector<double> next;  // what the query adds to β where the next epoch starts, and to Σ α
        double sum_next = 0;
    };
    struct Scratch {
        LevelTotals v, w, tv;
        std::vector<double> local, t, gradient, coefficients;
    };

    FactorQuery query(std::int64_t q) const;
    /// What the query adds to β at these factors; to Σ α, the return value.
    double weights_of(std::int64_t q, const double *factors, std::vector<double> &local, Scratch &) const;
    std::int64_t end_of_batch(std::int64_t first) const;
    /// The queries order_[first .. end), from the directions to the point where the next epoch starts.
    void batch(std::int64_t first, std::int64_t end, double momentum, int n_threads);
    void find_direction(Direction &, Scratch &);
    void find_steps(std::span<Direction> batch);
    /// The best step along a direction, the others where they are.
    double best_step(const Direction &) const;
    void finish(Direction &, double momentum, Scratch &);
    double *at(std::vector<double> &factors, std::int64_t q) const {
        return factors.data() + rows_.first(q) * problem_.n_factors;
    }

    QueryRows rows_;
    FactorProblem problem_;
    Random random_;
    std::vector<std::int64_t> order_;  // the queries that have pairs
    // V: accepted, where an epoch starts, where it leads.
    std::vector<double> accepted_, start_, reached_;
    // β and Σ α: of the accepted point, of the epoch at work, where the epoch after it starts.
    std::vector<double> accepted_weights_, weights_, next_weights_;
    double accepted_sum_ = 0, sum_ = 0, next_sum_ = 0;
    bool has_reached_ = false;  // an epoch has ended, neither accepted nor rejected
    bool is_at_work_ = false;   // between the beginning and the end of an epoch
    std::vector<Direction> directions_;
    std::vector<Scratch> scratch_;
};

}  // namespace linrank
