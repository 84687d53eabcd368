// Coordinate descent for the domination loss: the state of all queries, and sweeps over columns.
#pragma once

#include "columns.hpp"
#include "coordinate_step.hpp"
#include "layer_state.hpp"

namespace linrank {

/// What a sweep did.
struct Sweep {
    double decrease = 0;       // of the objective, at least
    Index n_moved = 0;  // weights that changed
};

/// The domination loss at some w, kept so that the derivative along a column costs its non-zeros.
///
/// With the sums of `LayerState`, and x̄_k the mean of x under the weights in Z_k,
///
///   ∂L/∂w = Σ_k (R_k x̄_k - Σ_{i in k} ω_i ρ_i x_i):
///
/// rows with x = 0 are in R_k alone.
class Coordinates {
public:
    /// `factors` is the diagonal of D; empty for ones. Starts at w = 0.
    Coordinates(const Columns &columns, const Layering &layering, std::vector<double> factors);

    /// Moves the weights of `features`, one after the other, each to the minimum of its bound.
    Sweep sweep(std::span<double> w, Integers features, Penalty penalty, double alpha,
                Curvature curvature);

    /// The bounds along single columns at the current w.
    void measure(Integers features, Curvature curvature,
                 std::span<CoordinateBound> out, int n_threads);

    /// Everything anew at w: scores from the columns, sums from the scores.
    void restart(Doubles w);

    /// XDw by position, as it has been carried along; not of queries with one layer, which have no
    /// part in the loss.
    std::vector<double> scores() const;

    Index n_features() const { return n_columns(columns_); }

private:
    /// Sums over the entries of one column in one query, by layer.
    struct Sums {
        double ex, exx;  // Σ e x, Σ e x²
        double rx;       // Σ ω ρ x
        double vx, vxx;  // Σ ω ρ(1-ρ) x, Σ ω ρ(1-ρ) x²
    };
    struct Extent {
        double low, high;
        Index n;
        double weight;
    };
    struct Scratch {
        std::vector<Sums> sums;
        std::vector<Extent> extents;
    };
    struct ColumnBound {  // of a column, computed when it is first asked for
        double bound = -1, range = 0, largest = 0;
    };

    CoordinateBound bound_of(Index column, Curvature, Scratch &);
    template <class Entries>
    void add_to_column_bound(Index q, const Entries &, Scratch &, ColumnBound &) const;
    template <class Entries>
    void add_slope(Index q, const Entries &, Scratch &, CoordinateBound &) const;
    template <class Entries>
    void move_query(Index q, const Entries &, double change);
    template <class Body>
    void for_each_query(Index column, const Body &) const;

    void prefetch_ahead(const std::int32_t *positions, Index n) const;
    template <class Entries>
    void prefetch_ahead(const Entries &entries, Index k) const;

    double factor(Index c) const { return factors_.empty() ? 1.0 : factors_[c]; }

    LayerState state_;
    const Columns &columns_;
    std::vector<double> factors_;
    std::vector<ColumnBound> column_bounds_;
    Scratch scratch_;
    double total_weight_ = 0;  // Σ ω over the dominating rows
    Index largest_ = 0;  // layers of a query
    Index n_touched_ = 0;  // entries since the last restart
};

}  // namespace linrank
