// An independent judge of small problems, in long double: what F is at given weights, and a point that is
// about as low as F gets. It shares no line with linrank: pairs are listed, and optima found by an
// interior-point method (pair losses) or a barrier method (domination loss).
//
//   g++ -O2 -std=c++20 -shared -fPIC optimum.cpp -o optimum.so
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

using Real = long double;
using Vector = std::vector<Real>;

namespace {

constexpr Real infinity = std::numeric_limits<Real>::infinity();

Real dot(const Vector &a, const Vector &b) {
    Real sum = 0;
    for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
    return sum;
}

/// Solves A x = b for a positive definite A, scaled to a unit diagonal; false if it is none.
bool solve(std::vector<Vector> A, Vector b, Vector &x) {
    const std::size_t n = b.size();
    Vector d(n);
    for (std::size_t i = 0; i < n; ++i) {
        if (!(A[i][i] > 0)) return false;
        d[i] = 1 / std::sqrt(A[i][i]);
    }
    for (std::size_t i = 0; i < n; ++i) {
        b[i] *= d[i];
        for (std::size_t j = 0; j < n; ++j) A[i][j] *= d[i] * d[j];
    }
    for (std::size_t j = 0; j < n; ++j) {
        for (std::size_t k = 0; k < j; ++k) A[j][j] -= A[j][k] * A[j][k];
        if (!(A[j][j] > 0)) A[j][j] = 1e-30L;  // dependent to the last digit
        A[j][j] = std::sqrt(A[j][j]);
        for (std::size_t i = j + 1; i < n; ++i) {
            for (std::size_t k = 0; k < j; ++k) A[i][j] -= A[i][k] * A[j][k];
            A[i][j] /= A[j][j];
        }
    }
    for (std::size_t i = 0; i < n; ++i) {
        for (std::size_t k = 0; k < i; ++k) b[i] -= A[i][k] * b[k];
        b[i] /= A[i][i];
    }
    for (std::size_t i = n; i-- > 0;) {
        for (std::size_t k = i + 1; k < n; ++k) b[i] -= A[k][i] * b[k];
        b[i] /= A[i][i];
    }
    x.resize(n);
    for (std::size_t i = 0; i < n; ++i) {
        x[i] = d[i] * b[i];
        if (!std::isfinite(x[i])) return false;
    }
    return true;
}

/// min ½‖w‖² + Σ c_p l(1 - w·δ_p) on a box, l the hinge or its square.
struct PairProblem {
    std::size_t n;
    bool is_squared;
    std::vector<Vector> delta;
    Vector c, lower, upper;

    Real value(const Vector &w) const {
        Real sum = 0;
        for (std::size_t p = 0; p < c.size(); ++p) {
            const Real slack = 1 - dot(delta[p], w);
            if (slack > 0) sum += c[p] * (is_squared ? slack * slack : slack);
        }
        return dot(w, w) / 2 + sum;
    }

    Vector clipped(Vector w) const {
        for (std::size_t j = 0; j < n; ++j) w[j] = std::min(std::max(w[j], lower[j]), upper[j]);
        return w;
    }

    /// Mehrotra's predictor and corrector. With s = ξ + w·δ - 1 >= 0 and its multiplier α, and of the hinge
    /// ξ >= 0 with β = c - α; of the squared hinge ξ = α/2c.
    Vector interior() const {
        const std::size_t m = c.size();
        Vector w(n), alpha(m), s(m), xi(m), low(n), high(n);
        for (std::size_t j = 0; j < n; ++j) {
            const bool has_low = lower[j] > -infinity, has_high = upper[j] < infinity;
            if (has_low && has_high) w[j] = (lower[j] + upper[j]) / 2;
            else if (has_low) w[j] = lower[j] + 1e-3L * std::max<Real>(std::abs(lower[j]), 1e-3L);
            else if (has_high) w[j] = upper[j] - 1e-3L * std::max<Real>(std::abs(upper[j]), 1e-3L);
            low[j] = has_low ? 1 : 0;
            high[j] = has_high ? 1 : 0;
        }
        for (std::size_t p = 0; p < m; ++p) {
            alpha[p] = is_squared ? 2 * c[p] : c[p] / 2;
            const Real reach = dot(delta[p], w) - 1;
            xi[p] = is_squared ? alpha[p] / (2 * c[p]) : std::max<Real>(1, -reach + 1);
            s[p] = std::max<Real>(1, xi[p] + reach);
        }
        Vector best = clipped(w);
        Real lowest = value(best);
        for (int round = 0; round < 200; ++round) {
            Real mu = 0, count = 0;
            for (std::size_t p = 0; p < m; ++p) {
                mu += alpha[p] * s[p];
                ++count;
                if (!is_squared) mu += (c[p] - alpha[p]) * xi[p], ++count;
            }
            for (std::size_t j = 0; j < n; ++j) {
                if (lower[j] > -infinity) mu += low[j] * (w[j] - lower[j]), ++count;
                if (upper[j] < infinity) mu += high[j] * (upper[j] - w[j]), ++count;
            }
            mu /= std::max<Real>(1, count);
            const Vector trial = clipped(w);
            const Real now = value(trial);
            if (now < lowest) lowest = now, best = trial;
            if (!(mu > 1e-26L * (std::abs(lowest) + 1e-300L)) || !std::isfinite(mu)) break;
            Vector dw(n), dalpha(m), dxi(m), ds(m), dlow(n), dhigh(n);
            Real sigma = 0, step_p = 1, step_d = 1;
            for (int pass = 0; pass < 2; ++pass) {  // predictor, then corrector
                std::vector<Vector> A(n, Vector(n));
                Vector b(n), k(m), q(m), r1(m), r2(m);
                for (std::size_t j = 0; j < n; ++j) b[j] = -w[j] + low[j] - high[j];
                for (std::size_t p = 0; p < m; ++p) {
                    const Real beta = is_squared ? 0 : c[p] - alpha[p];
                    const Real x = is_squared ? alpha[p] / (2 * c[p]) : xi[p];
                    const Real rs = s[p] - (x + dot(delta[p], w) - 1);
                    r1[p] = sigma * mu - alpha[p] * s[p] - (pass ? dalpha[p] * ds[p] : 0);
                    r2[p] = is_squared ? 0 : sigma * mu - beta * xi[p] + (pass ? dalpha[p] * dxi[p] : 0);
                    q[p] = is_squared ? s[p] + alpha[p] / (2 * c[p]) : s[p] + alpha[p] * xi[p] / beta;
                    k[p] = r1[p] + alpha[p] * rs - (is_squared ? 0 : alpha[p] * r2[p] / beta);
                    for (std::size_t i = 0; i < n; ++i) {
                        b[i] += (alpha[p] + k[p] / q[p]) * delta[p][i];
                        for (std::size_t j = 0; j < n; ++j)
                            A[i][j] += alpha[p] / q[p] * delta[p][i] * delta[p][j];
                    }
                }
                Vector rl(n), rh(n);
                for (std::size_t j = 0; j < n; ++j) {
                    A[j][j] += 1;
                    if (lower[j] > -infinity) {
                        rl[j] = sigma * mu - low[j] * (w[j] - lower[j]) - (pass ? dlow[j] * dw[j] : 0);
                        A[j][j] += low[j] / (w[j] - lower[j]);
                        b[j] += rl[j] / (w[j] - lower[j]);
                    }
                    if (upper[j] < infinity) {
                        rh[j] = sigma * mu - high[j] * (upper[j] - w[j]) + (pass ? dhigh[j] * dw[j] : 0);
                        A[j][j] += high[j] / (upper[j] - w[j]);
                        b[j] -= rh[j] / (upper[j] - w[j]);
                    }
                }
                if (!solve(A, b, dw)) return best;
                for (std::size_t p = 0; p < m; ++p) {
                    const Real beta = c[p] - alpha[p], along = dot(delta[p], dw);
                    const Real x = is_squared ? alpha[p] / (2 * c[p]) : xi[p];
                    const Real rs = s[p] - (x + dot(delta[p], w) - 1);
                    dalpha[p] = (k[p] - alpha[p] * along) / q[p];
                    dxi[p] = is_squared ? dalpha[p] / (2 * c[p]) : (r2[p] + xi[p] * dalpha[p]) / beta;
                    ds[p] = dxi[p] + along - rs;
                }
                for (std::size_t j = 0; j < n; ++j) {
                    if (lower[j] > -infinity) dlow[j] = (rl[j] - low[j] * dw[j]) / (w[j] - lower[j]);
                    if (upper[j] < infinity) dhigh[j] = (rh[j] + high[j] * dw[j]) / (upper[j] - w[j]);
                }
                step_p = step_d = 1;
                const auto limit = [](Real x, Real dx, Real &step) {
                    if (dx < 0) step = std::min(step, -x / dx);
                };
                for (std::size_t p = 0; p < m; ++p) {
                    limit(s[p], ds[p], step_p);
                    limit(alpha[p], dalpha[p], step_d);
                    if (!is_squared) {
                        limit(xi[p], dxi[p], step_p);
                        limit(c[p] - alpha[p], -dalpha[p], step_d);
                    }
                }
                for (std::size_t j = 0; j < n; ++j) {
                    if (lower[j] > -infinity) limit(w[j] - lower[j], dw[j], step_p), limit(low[j], dlow[j], step_d);
                    if (upper[j] < infinity) limit(upper[j] - w[j], -dw[j], step_p), limit(high[j], dhigh[j], step_d);
                }
                if (pass == 0) {
                    const Real t = std::min(step_p, step_d);
                    sigma = std::pow(1 - t, Real(3));
                }
            }
            // One length for both: ξ of the squared hinge is both primal and dual.
            const Real t = std::min<Real>(1, 0.9995L * std::min(step_p, step_d));
            for (std::size_t j = 0; j < n; ++j) {
                w[j] += t * dw[j];
                low[j] += t * dlow[j];
                high[j] += t * dhigh[j];
            }
            for (std::size_t p = 0; p < m; ++p) {
                alpha[p] += t * dalpha[p];
                s[p] += t * ds[p];
                xi[p] += t * dxi[p];
            }
        }
        return best;
    }
};

/// Σ_i ω_i log(1 + Σ_{j in D(i)} u_j e^{m_j - m_i}) + penalty, at weights; with its derivatives.
struct DominationProblem {
    std::size_t n;
    bool is_l1;
    Real alpha;
    std::vector<Vector> x;
    std::vector<std::vector<std::size_t>> below;
    Vector omega, u;

    Real loss(const Vector &w, Vector *gradient, std::vector<Vector> *hessian) const {
        Vector m(x.size());
        for (std::size_t i = 0; i < x.size(); ++i) m[i] = dot(x[i], w);
        Real value = 0;
        for (std::size_t i = 0; i < x.size(); ++i) {
            if (below[i].empty() || omega[i] == 0) continue;
            Real top = 0;
            for (const std::size_t j : below[i]) top = std::max(top, std::log(u[j]) + m[j] - m[i]);
            Real sum = std::exp(-top);
            for (const std::size_t j : below[i]) sum += std::exp(std::log(u[j]) + m[j] - m[i] - top);
            value += omega[i] * (top + std::log(sum));
            if (!gradient) continue;
            Vector mean(n);
            std::vector<std::pair<Real, const Vector *>> parts;
            for (const std::size_t j : below[i])
                parts.push_back({std::exp(std::log(u[j]) + m[j] - m[i] - top) / sum, &x[j]});
            Vector difference(n);
            for (const auto &[p, row] : parts)
                for (std::size_t k = 0; k < n; ++k) mean[k] += p * ((*row)[k] - x[i][k]);
            for (std::size_t k = 0; k < n; ++k) (*gradient)[k] += omega[i] * mean[k];
            for (const auto &[p, row] : parts) {
                for (std::size_t k = 0; k < n; ++k) difference[k] = (*row)[k] - x[i][k];
                for (std::size_t k = 0; k < n; ++k)
                    for (std::size_t l = 0; l < n; ++l)
                        (*hessian)[k][l] += omega[i] * p * difference[k] * difference[l];
            }
            for (std::size_t k = 0; k < n; ++k)
                for (std::size_t l = 0; l < n; ++l) (*hessian)[k][l] -= omega[i] * mean[k] * mean[l];
        }
        return value;
    }

    Real value(const Vector &w) const {
        Real penalty = 0;
        for (const Real one : w) penalty += is_l1 ? std::abs(one) : one * one;
        return loss(w, nullptr, nullptr) + alpha * penalty;
    }

    /// Newton's method on L(a - b) + alpha Σ(a + b) - t Σ log ab for falling t, w = a - b; of l2 on F itself.
    Vector minimum() const {
        const std::size_t N = is_l1 ? 2 * n : n;
        Vector v(N, is_l1 ? 1 : 0), best(n);
        Real lowest = value(best);
        const auto weights = [&](const Vector &a) {
            Vector w(n);
            for (std::size_t k = 0; k < n; ++k) w[k] = is_l1 ? a[k] - a[n + k] : a[k];
            return w;
        };
        Real barrier = is_l1 ? alpha : 0;
        for (int round = 0; round < (is_l1 ? 90 : 1); ++round, barrier *= 0.3L) {
            const auto total = [&](const Vector &a) {
                Real sum = loss(weights(a), nullptr, nullptr);
                for (std::size_t k = 0; k < N; ++k)
                    sum += is_l1 ? alpha * a[k] - barrier * std::log(a[k]) : alpha * a[k] * a[k];
                return sum;
            };
            for (int step = 0; step < 60; ++step) {
                Vector g(n), G(N), d;
                std::vector<Vector> h(n, Vector(n)), H(N, Vector(N));
                const Vector w = weights(v);
                loss(w, &g, &h);
                const Real now = value(w);
                if (now < lowest) lowest = now, best = w;
                for (std::size_t k = 0; k < N; ++k) {
                    const Real sign = k < n ? 1 : -1;
                    G[k] = -(sign * g[k % n] + (is_l1 ? alpha - barrier / v[k] : 2 * alpha * v[k]));
                    for (std::size_t l = 0; l < N; ++l)
                        H[k][l] = sign * (l < n ? 1 : -1) * h[k % n][l % n];
                    H[k][k] += is_l1 ? barrier / (v[k] * v[k]) : 2 * alpha;
                }
                if (!solve(H, G, d)) break;
                const Real decrement = dot(G, d);
                Real t = 1;
                if (is_l1)
                    for (std::size_t k = 0; k < N; ++k)
                        if (d[k] < 0) t = std::min(t, -0.95L * v[k] / d[k]);
                const Real before = total(v);
                Vector trial = v;
                for (int halving = 0; halving < 60; ++halving, t /= 2) {
                    for (std::size_t k = 0; k < N; ++k) trial[k] = v[k] + t * d[k];
                    if (total(trial) <= before - 1e-4L * t * decrement || decrement < 1e-25L * std::abs(before)) break;
                }
                v = trial;
                if (!(decrement > 1e-22L * (std::abs(before) + 1e-300L))) break;
            }
        }
        // Weights that the barrier keeps a little off 0 are tried at 0.
        if (is_l1)
            for (const Real small : {1e-15L, 1e-12L, 1e-9L, 1e-6L, 1e-4L}) {
                Vector w = weights(v);
                Real largest = 0;
                for (const Real one : w) largest = std::max(largest, std::abs(one));
                for (Real &one : w)
                    if (std::abs(one) <= small * largest) one = 0;
                const Real now = value(w);
                if (now < lowest) lowest = now, best = w;
            }
        return best;
    }
};

}  // namespace

extern "C" {

/// Pairs (winner, loser) with weights c = Cω of rows x (n_rows × n, already scaled). Writes F at the k
/// vectors w, and the least of F that was found to `least`, its point to `best`.
void pair_optimum(std::int64_t n, std::int64_t n_pairs, const Real *delta, const Real *c, int is_squared,
                  const double *lower, const double *upper, std::int64_t k, const Real *w, Real *values,
                  Real *least, Real *best) {
    PairProblem problem{std::size_t(n), is_squared != 0, {}, Vector(c, c + n_pairs), {}, {}};
    for (std::int64_t p = 0; p < n_pairs; ++p) problem.delta.emplace_back(delta + p * n, delta + (p + 1) * n);
    for (std::int64_t j = 0; j < n; ++j) {
        problem.lower.push_back(lower[j]);
        problem.upper.push_back(upper[j]);
    }
    *least = infinity;
    const auto consider = [&](const Vector &point) {
        const Real value = problem.value(point);
        if (value < *least) *least = value, std::copy(point.begin(), point.end(), best);
        return value;
    };
    for (std::int64_t i = 0; i < k; ++i) values[i] = consider(Vector(w + i * n, w + (i + 1) * n));
    consider(problem.clipped(Vector(std::size_t(n))));
    // Variables that the box fixes are part of the constant terms.
    PairProblem free = problem;
    Vector fixed(static_cast<std::size_t>(n));
    std::vector<std::size_t> kept;
    for (std::size_t j = 0; j < std::size_t(n); ++j)
        if (problem.lower[j] < problem.upper[j]) kept.push_back(j);
        else fixed[j] = problem.lower[j];
    if (kept.size() == std::size_t(n)) {
        consider(problem.interior());
    } else if (!kept.empty()) {
        // Margins other than 1: scaled rows, c·(a - δ·w) = c a (1 - (δ/a)·w) where a > 0; pairs with a <= 0
        // cannot be written so and are left to the vectors that were given.
        bool can = true;
        free.n = kept.size();
        free.lower.clear();
        free.upper.clear();
        for (const std::size_t j : kept) free.lower.push_back(problem.lower[j]), free.upper.push_back(problem.upper[j]);
        for (std::size_t p = 0; p < problem.c.size(); ++p) {
            const Real a = 1 - dot(problem.delta[p], fixed);
            can = can && a > 0;
            Vector d;
            for (const std::size_t j : kept) d.push_back(problem.delta[p][j] / a);
            free.delta[p] = d;
            free.c[p] = problem.c[p] * (is_squared ? a * a : a);
        }
        if (can) {
            const Vector found = free.interior();
            for (std::size_t k2 = 0; k2 < kept.size(); ++k2) fixed[kept[k2]] = found[k2];
            consider(fixed);
        }
    }
}

/// The domination loss of rows with layers in queries, weights omega = c u outside the logarithm and u inside.
void domination_optimum(std::int64_t n, std::int64_t n_rows, const Real *x, const std::int64_t *query,
                        const std::int64_t *layer, const Real *omega, const Real *u, int is_l1, double alpha,
                        std::int64_t k, const Real *w, Real *values, Real *least, Real *best) {
    DominationProblem problem{std::size_t(n), is_l1 != 0, alpha, {}, {}, Vector(omega, omega + n_rows),
                              Vector(u, u + n_rows)};
    for (std::int64_t i = 0; i < n_rows; ++i) {
        problem.x.emplace_back(x + i * n, x + (i + 1) * n);
        std::vector<std::size_t> below;
        for (std::int64_t j = 0; j < n_rows; ++j)
            if (query[i] == query[j] && layer[j] < layer[i] && u[j] > 0) below.push_back(std::size_t(j));
        problem.below.push_back(below);
    }
    *least = infinity;
    const auto consider = [&](const Vector &point) {
        const Real value = problem.value(point);
        if (value < *least) *least = value, std::copy(point.begin(), point.end(), best);
        return value;
    };
    for (std::int64_t i = 0; i < k; ++i) values[i] = consider(Vector(w + i * n, w + (i + 1) * n));
    consider(problem.minimum());
}
}
