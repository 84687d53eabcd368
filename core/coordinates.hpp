// Coordinate descent for the domination loss: the state of all queries, and sweeps over columns.
#pragma once

#include "columns.hpp"
#include "layering.hpp"

namespace linrank {

// The best step along one weight, by a bound of the loss that holds everywhere.

enum class Penalty { none, l1, l2 };
enum class Curvature { local, range, paper };

/// The loss along one weight: L(t) <= L(0) + gradient·t + Φ(|t|), with Φ'' = min(bound, hessian·e^{range·t}).
///
/// `bound` holds everywhere (a variance is at most a quarter of the squared range, Popoviciu). The other part
/// is local: the third derivative of a log-sum-exp is a third central moment, at most range times the variance,
/// so that along the line the second derivative grows no faster than e^{range·|t|}.
struct CoordinateBound {
    double gradient = 0, hessian = 0, bound = 0, range = 0;

    /// Where Φ'' stops growing.
    double corner() const { return range > 0 ? std::log(bound / hessian) / range : 0.0; }

    /// Φ'(t), t >= 0.
    double slope(double t) const {
        if (hessian >= bound) return bound * t;
        const double at = corner();
        if (t <= at) return hessian * std::expm1(range * t) / range;
        return (bound - hessian) / range + bound * (t - at);
    }

    /// Φ(t), t >= 0.
    double rise(double t) const {
        if (hessian >= bound) return 0.5 * bound * t * t;
        const double at = corner(), s = std::min(t, at), x = range * s;
        // (e^x - 1 - x)/x² by its series where the difference would lose digits.
        const double head =
            x < 1e-3 ? hessian * s * s * (0.5 + x * (1.0 / 6.0 + x / 24.0))
                     : hessian * (std::expm1(x) - x) / (range * range);
        const double rest = t - s;
        return head + rest * ((rest > 0 ? slope(at) : 0.0) + 0.5 * bound * rest);
    }

    /// The t >= 0 with Φ'(t) = y.
    double reach(double y) const {
        if (hessian >= bound) return y / bound;
        const double most = (bound - hessian) / range;
        if (y <= most) return std::log1p(range * y / hessian) / range;
        return corner() + (y - most) / bound;
    }

    /// The t >= 0 with Φ'(t) + ridge·t = y. Φ' is convex, so Newton's iterates from the right stay there; from
    /// where neither part is beyond y, a few of them do (an exponential falls by e with each).
    double reach(double y, double ridge) const {
        double t = std::min(y / (std::min(hessian, bound) + ridge), reach(y));
        for (int i = 0; i < 8; ++i) {
            const double curved = std::min(bound, hessian * std::exp(std::min(range * t, 700.0)));
            const double change = (slope(t) + ridge * t - y) / (curved + ridge);
            t -= change;
            if (!(change > 1e-9 * t)) break;
        }
        return std::max(t, 0.0);
    }
};

/// The step that minimizes the bound plus the penalty alpha·|w| or alpha·w², and by how much, at least, it
/// lowers loss and penalty.
struct CoordinateStep {
    double step = 0, decrease = 0;

    CoordinateStep(const CoordinateBound &b, double w, Penalty penalty, double alpha) {
        if (!(b.bound > 0)) {  // a constant feature: the loss does not see it, the penalty does
            step = penalty == Penalty::none ? 0.0 : -w;
            decrease = penalty == Penalty::l1 ? alpha * std::abs(w) : penalty == Penalty::l2 ? alpha * w * w : 0.0;
            return;
        }
        const double t = penalty == Penalty::l1 ? sparse(b, w, alpha)
                         : penalty == Penalty::l2 ? ridge(b, w, alpha)
                                                  : -std::copysign(b.reach(std::abs(b.gradient)), b.gradient);
        const double after = w + t;
        const double gain = penalty == Penalty::l1   ? alpha * (std::abs(w) - std::abs(after))
                            : penalty == Penalty::l2 ? -alpha * t * (w + after)
                                                     : 0.0;
        const double found = gain - b.gradient * t - b.rise(std::abs(t));
        // Below rounding there is nothing to win; a step that sets a weight to zero is always taken.
        if (!(found > 0) && after != 0.0) return;
        step = t;
        decrease = std::max(found, 0.0);
    }

private:
    static double ridge(const CoordinateBound &b, double w, double alpha) {
        const double g = b.gradient + 2.0 * alpha * w;
        return -std::copysign(b.reach(std::abs(g), 2.0 * alpha), g);
    }

    static double sparse(const CoordinateBound &b, double w, double alpha) {
        // The slope to the right and to the left of w; between them lies 0 where w is the minimum.
        const double right = b.gradient + (w >= 0 ? alpha : -alpha);
        const double left = b.gradient + (w > 0 ? alpha : -alpha);
        if (right >= 0 && left <= 0) return 0.0;
        const double sign = right < 0 ? 1.0 : -1.0;  // where to go
        const double t = b.reach(right < 0 ? -right : left);
        const double room = -sign * w;  // to zero, if it lies ahead
        if (!(room > 0) || t < room) return sign * t;
        // At zero the penalty turns: from there on, it costs alpha where it gave alpha.
        const double beyond = -sign * b.gradient - alpha;
        if (b.slope(room) >= beyond) return -w;
        return sign * b.reach(beyond);
    }
};

// A quadratic with an l1 penalty, small enough that its matrix is written down.

/// Minimizes g·(v - w) + ½(v - w)ᵀH(v - w) + alpha‖v‖₁ over v by coordinate descent from w, H symmetric and
/// n × n, until no sweep lowers it by more than `enough`, or n_sweeps are done. A coordinate of no curvature
/// stays.
std::vector<double> sparse_quadratic(Doubles H, Doubles g, Doubles w, double alpha, double enough,
                                     Index n_sweeps);

// The state of all queries, and sweeps over columns.

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
    std::vector<CoordinateBound> measure(Integers features, Curvature curvature, int n_threads);

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
