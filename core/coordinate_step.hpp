// The best step along one weight, by a bound of the loss that holds everywhere.
#pragma once
#include "basics.hpp"

namespace linrank {

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

}  // namespace linrank
