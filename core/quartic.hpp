// The lowest point of a polynomial of degree four on [0, 1].
#pragma once
#include <cmath>
#include <utility>

namespace linrank {

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

}  // namespace linrank
