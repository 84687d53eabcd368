// Block descent for duals of low rank: a step a query, each to the lowest point of its line.
#pragma once

#include "products.hpp"
#include "random.hpp"

namespace linrank {

// The rows of each query, with vectors over the columns that it has entries in.

/// Rows D x by query, D = diag(scale).
///
/// A query of sparse rows meets few columns. They are numbered anew in each query, so that a vector over
/// them, called local, is short; it costs four bytes an entry. Dense rows keep all columns.
class QueryRows {
public:
    /// `order` is empty when positions are rows, else it names no row twice: an entry has one number.
    /// `scale` is empty for ones. The arrays of `rows` outlive this.
    QueryRows(const Rows &rows, std::vector<Index> order, std::vector<Index> offsets,
              std::vector<double> scale);
    QueryRows(QueryRows &&) = default;
    QueryRows(const QueryRows &) = delete;  // rows_ looks at local_

    Index n_columns() const { return n_columns_; }
    Index n_queries() const { return Index(offsets_.size()) - 1; }
    Index first(Index q) const { return offsets_[q]; }
    Index n_rows(Index q) const { return first(q + 1) - first(q); }
    /// Length of a local vector of query q.
    Index width(Index q) const {
        return is_dense() ? n_columns_ : first_column_[q + 1] - first_column_[q];
    }
    /// Bytes that a pass over the rows of query q reads, about. Of sparse rows without a look at each of
    /// them: the columns of a query are no more than its entries.
    Index bytes(Index q) const {
        return is_dense() ? 4 * n_rows(q) * n_columns_ : 8 * (width(q) + n_rows(q));
    }

    /// out[i] = D x_i·w for the rows of q, w over all columns.
    void scores(Index q, Doubles w, std::vector<double> &scratch, std::vector<double> &out) const;
    /// out = Σ a[i] D x_i, local.
    void combine(Index q, Doubles a, std::vector<double> &out) const;

    // Of two local vectors at once: what costs is to find their columns in the global one.
    /// Σ a·global and Σ b·global over the columns of q.
    std::pair<double, double> inner(Index q, Doubles a, Doubles b, Doubles global) const;
    /// global += s a + t b.
    void scatter(Index q, double s, Doubles a, double t, Doubles b, std::span<double> global) const;
    /// global += a.
    void scatter(Index q, Doubles a, std::span<double> global) const;

private:
    template <class Value>
    void renumber(const CsrRows<Value> &rows);
    bool is_dense() const { return first_column_.empty(); }
    /// visit(c, column of c) for each element of a local vector.
    template <class Visit>
    void each_column(Index q, const Visit &visit) const;

    Index n_columns_;
    std::vector<Index> order_, offsets_;
    std::vector<double> scale_;
    Rows rows_;
    std::vector<std::int32_t> local_;         // column of each entry, counted in its query
    std::vector<Index> first_column_;  // of each query, in columns_; empty for dense rows
    std::vector<Index> columns_;       // their numbers in the matrix
};

// Duals of low rank, α_ij = <v_i, v_j> over the pairs of one query, by sums over levels: never a pair.

/// Where the factors of a row may lie, beside v >= 0: every component at most b/√K, or the norm at most b.
enum class Constraint { box, ball };

/// The rows of one query: their levels, and the b_i that bound their factors.
struct FactorQuery {
    Levels levels;
    Doubles bound;
    Index n_levels;
    Index n_factors;  // K

    Index n_rows() const { return Index(levels.size()); }
};

/// Sums of K numbers a row over the rows of each level, and over those below it less those above it.
class LevelTotals {
public:
    /// Of values[i*K .. i*K + K) times weight[i]; an empty weight stands for ones.
    void compute(const FactorQuery &query, const double *values, const double *weight = nullptr);

    const double *of(Index level) const { return of_.data() + level * n_factors_; }
    const double *below(Index level) const { return below_.data() + level * n_factors_; }
    /// Σ_below - Σ_above.
    const double *difference(Index level) const { return difference_.data() + level * n_factors_; }
    const double *all() const { return all_.data(); }

private:
    Index n_factors_ = 0;
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

// The lowest point of a polynomial of degree four on [0, 1].

/// q(t) = a t + b t² + c t³ + d t⁴.
struct Quartic {
    double a, b, c, d;

    double operator()(double t) const { return t * (a + t * (b + t * (c + t * d))); }
    double slope(double t) const { return a + t * (2 * b + t * (3 * c + t * 4 * d)); }
    double curvature(double t) const { return 2 * b + t * (6 * c + t * 12 * d); }
};

/// Where the slope changes from negative to positive inside (low, high), given that it is monotone there:
/// Newton's method, by halves where a step would leave the bracket.
inline double crossing(const Quartic &q, double low, double high) {
    double t = 0.5 * (low + high);
    for (int i = 0; i < 60 && low < high; ++i) {
        const double slope = q.slope(t);
        (slope < 0 ? low : high) = t;
        const double next = t - slope / q.curvature(t);
        const double last = t;
        t = next > low && next < high ? next : 0.5 * (low + high);
        if (std::abs(t - last) <= 1e-15) break;
    }
    return t;
}

/// The t in [0, 1] with the least q(t); 0 where none is below q(0) = 0.
///
/// The slope is a cubic: between the two points where its own derivative, 2b + 6c t + 12d t², vanishes it is
/// monotone, so that each of at most three intervals holds at most one local minimum.
inline double lowest_in_unit(const Quartic &q) {
    double cuts[4] = {0.0, 1.0, 1.0, 1.0};
    int n = 1;
    const auto cut = [&](double t) {
        if (t > 0.0 && t < 1.0) cuts[n++] = t;
    };
    const double root = 9 * q.c * q.c - 24 * q.b * q.d;
    if (q.d != 0.0 && root > 0.0) {
        // Of the two equal forms of each root the one in which nothing cancels.
        const double s = -(3 * q.c + std::copysign(std::sqrt(root), q.c));
        cut(s / (12 * q.d));
        if (s != 0.0) cut(2 * q.b / s);
        if (n == 3 && cuts[1] > cuts[2]) std::swap(cuts[1], cuts[2]);
    } else if (q.d == 0.0 && q.c != 0.0) {
        cut(-q.b / (3 * q.c));
    }
    cuts[n] = 1.0;
    double best = 0.0, least = 0.0;
    const auto consider = [&](double t) {
        if (const double value = q(t); value < least) best = t, least = value;
    };
    for (int i = 0; i < n; ++i)
        if (q.slope(cuts[i]) < 0.0 && q.slope(cuts[i + 1]) > 0.0)
            consider(crossing(q, cuts[i], cuts[i + 1]));
    consider(1.0);
    return best;
}

/// Levels and bounds by position, and where the factors may lie.
struct FactorProblem {
    std::vector<std::int32_t> levels, n_levels;
    std::vector<double> bound;
    Index n_factors;
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
    /// How much f falls within the feasible set by its linearization, at most: 0 where V is stationary.
    double linear_decrease(int n_threads) const;

    Index n_columns() const { return rows_.n_columns(); }

private:
    struct Direction {  // of one query; along it β(τ) = β + τ first + τ² second
        Index query = 0;
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

    FactorQuery query(Index q) const;
    /// What the query adds to β at these factors; to Σ α, the return value.
    double weights_of(Index q, const double *factors, std::vector<double> &local, Scratch &) const;
    Index end_of_batch(Index first) const;
    /// The queries order_[first .. end), from the directions to the point where the next epoch starts.
    void batch(Index first, Index end, double momentum, int n_threads);
    /// ∂f/∂v of a query at v and β, into the scratch.
    void find_gradient(Index q, const double *v, Doubles weights, Scratch &) const;
    void find_direction(Direction &, Scratch &);
    void find_steps(std::span<Direction> batch);
    /// The best step along a direction, the others where they are.
    double best_step(const Direction &) const;
    void finish(Direction &, double momentum, Scratch &);
    double *at(std::vector<double> &factors, Index q) const {
        return factors.data() + rows_.first(q) * problem_.n_factors;
    }

    QueryRows rows_;
    FactorProblem problem_;
    Random random_;
    std::vector<Index> order_;  // the queries that have pairs
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
