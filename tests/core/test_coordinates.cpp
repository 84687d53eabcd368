// Coordinate descent: slopes agree with the loss at given scores, sweeps descend, sums stay exact.
#include "coordinates.hpp"

#include <algorithm>
#include <numeric>

#include "check.hpp"
#include "domination.hpp"

using namespace linrank;
using namespace linrank_test;

namespace {

std::shared_ptr<const Layering> draw_layers(Rng &rng) {
    auto l = std::make_shared<Layering>();
    l->offsets = {0};
    l->first_cell = {0};
    for (std::int64_t q = draw(rng, 1, 5); q > 0; --q) {
        const std::int64_t n = draw(rng, 1, 90), k = draw(rng, 1, std::min<std::int64_t>(n, 6));
        for (std::int64_t t = 0; t < n; ++t)
            l->levels.push_back(std::int32_t(t < k ? t : draw(rng, 0, k - 1)));
        std::shuffle(l->levels.end() - n, l->levels.end(), rng);
        l->n_levels.push_back(std::int32_t(k));
        l->offsets.push_back(std::int64_t(l->levels.size()));
        l->first_cell.push_back(l->first_cell.back() + k);
    }
    if (draw(rng, 0, 1)) l->shift = draw_normal(rng, l->n_rows(), 30.0);
    if (draw(rng, 0, 1))
        for (std::int64_t t = 0; t < l->n_rows(); ++t) l->row_weight.push_back(0.5 * double(draw(rng, 0, 4)));
    if (draw(rng, 0, 1)) {
        l->n_grades = 3;
        l->table = draw_normal(rng, 9, 2.0);
        for (std::int64_t c = 0; c < l->n_cells(); ++c) l->grades.push_back(std::int32_t(draw(rng, 0, 2)));
    }
    return l;
}

/// The matrix by rows; about one entry in three is zero.
struct Matrix {
    std::int64_t n, m;
    std::vector<double> values;
    Matrix(Rng &rng, std::int64_t n_rows, std::int64_t n_columns)
        : n(n_rows), m(n_columns), values(draw_normal(rng, n_rows * n_columns, 1.0)) {
        for (double &x : values)
            if (draw(rng, 0, 2) == 0) x = 0.0;
    }
    Columns dense() const { return columns_of({DenseRows<double>{values.data(), m, n, m}}, 2); }
    Columns sparse() const {
        std::vector<std::int32_t> columns;
        std::vector<std::int64_t> offsets{0};
        std::vector<double> kept;
        for (std::int64_t i = 0; i < n; ++i) {
            for (std::int64_t c = 0; c < m; ++c) {  // zeros that are written down are no entries
                columns.push_back(std::int32_t(c));
                kept.push_back(values[std::size_t(i * m + c)]);
            }
            offsets.push_back(std::int64_t(kept.size()));
        }
        return columns_of({CsrRows<double>{kept.data(), columns.data(), offsets.data(), n, m}}, 1);
    }
    std::vector<double> scores(const std::vector<double> &w) const {
        std::vector<double> z(std::size_t(n), 0.0);
        for (std::size_t i = 0; i < z.size(); ++i)
            for (std::size_t c = 0; c < std::size_t(m); ++c) z[i] += values[i * std::size_t(m) + c] * w[c];
        return z;
    }
};

double objective(const Layering &l, const Matrix &X, const std::vector<double> &w) {
    const DominationPoint point(l, X.scores(w), 1);
    double norm = 0;
    for (const double x : w) norm += std::abs(x);
    return point.value + 0.5 * norm;
}

void check_descent(Rng &rng) {
    const auto layering = draw_layers(rng);
    const Matrix X(rng, layering->n_rows(), draw(rng, 1, 6));
    std::vector<std::int64_t> features(std::size_t(X.m));
    std::iota(features.begin(), features.end(), 0);
    std::vector<double> found[2];
    for (const bool is_sparse : {false, true}) {
        const Columns columns = is_sparse ? X.sparse() : X.dense();
        Coordinates state(columns, *layering, {});
        std::vector<double> w(std::size_t(X.m), 0.0);
        double before = objective(*layering, X, w);
        for (int sweep = 0; sweep < 8; ++sweep) {
            const Sweep done = state.sweep(w, features, Penalty::l1, 0.5, Curvature::local);
            const double after = objective(*layering, X, w);
            check(before - after >= done.decrease - 1e-9 * (1.0 + std::abs(before)), "a sweep keeps its promise");
            before = after;
        }
        const auto bounds = state.measure(features, Curvature::local, 2);
        const DominationPoint point(*layering, X.scores(w), 1);
        for (std::size_t c = 0; c < features.size(); ++c) {
            double slope = 0;
            for (std::size_t i = 0; i < std::size_t(X.n); ++i)
                slope += X.values[i * std::size_t(X.m) + c] * point.gradient[i];
            check(close(bounds[c].gradient, bounds[c].bound > 0 ? slope : 0.0, 1e-7), "the slope along a column");
        }
        found[is_sparse] = w;
    }
    for (std::size_t c = 0; c < found[0].size(); ++c)
        check(close(found[0][c], found[1][c], 1e-5), "storage does not matter");
}

/// Layers with weights and margins over many orders of magnitude.
std::shared_ptr<const Layering> draw_extreme_layers(Rng &rng) {
    auto l = std::make_shared<Layering>(*draw_layers(rng));
    const auto decades = [&](std::int64_t low, std::int64_t high) {
        return draw(rng, 0, 3) ? std::pow(10.0, double(draw(rng, low, high))) : 0.0;
    };
    if (draw(rng, 0, 2) == 0) l->shift = draw_normal(rng, l->n_rows(), 300.0);
    if (draw(rng, 0, 2) == 0) {
        l->row_weight.clear();
        for (std::int64_t t = 0; t < l->n_rows(); ++t) l->row_weight.push_back(decades(-9, 4));
    }
    if (draw(rng, 0, 2) == 0)
        for (std::int64_t q = 0; q < l->n_queries(); ++q) l->query_weight.push_back(decades(-6, 3));
    return l;
}

/// The same with columns of every scale, with offsets, with next to no range, with next to no entries.
Matrix draw_extreme_matrix(Rng &rng, std::int64_t n) {
    Matrix X(rng, n, draw(rng, 1, 6));
    for (std::int64_t c = 0; c < X.m; ++c) {
        const double scale = std::pow(10.0, double(draw(rng, -4, 2)));
        const double offset = draw(rng, 0, 1) ? std::pow(10.0, double(draw(rng, 0, 3))) : 0.0;
        const std::int64_t missing = draw(rng, 0, 2) * draw(rng, 0, 50);
        for (std::int64_t i = 0; i < n; ++i) {
            double &x = X.values[std::size_t(i * X.m + c)];
            x = draw(rng, 0, 99) < missing ? 0.0 : offset + scale * x;
        }
    }
    return X;
}

struct Truth {  // along one column
    double gradient = 0, hessian = 0;
    Truth(const Layering &l, const Matrix &X, const DominationPoint &point, std::size_t c) {
        std::vector<double> x(std::size_t(X.n)), product(x.size());
        for (std::int64_t q = 0; q < l.n_queries(); ++q)  // an offset of the query changes nothing
            for (auto i = std::size_t(l.offsets[std::size_t(q)]); i < std::size_t(l.offsets[std::size_t(q) + 1]); ++i)
                x[i] = X.values[i * std::size_t(X.m) + c] -
                       X.values[std::size_t(l.offsets[std::size_t(q)] * X.m) + c];
        point.multiply(x, product, 1);
        for (std::size_t i = 0; i < x.size(); ++i) {
            gradient += x[i] * point.gradient[i];
            hessian += x[i] * product[i];
        }
    }
};

/// Single steps from anywhere: no second derivative is taken for less than it is, and every step lowers the
/// objective by what it says, though sums are kept up and not summed afresh.
void check_promises(Rng &rng) {
    const auto layering = draw_extreme_layers(rng);
    const Layering &l = *layering;
    const Matrix X = draw_extreme_matrix(rng, l.n_rows());
    const Columns columns = draw(rng, 0, 1) ? X.sparse() : X.dense();
    Coordinates state(columns, *layering, {});
    const Penalty penalty = std::vector{Penalty::none, Penalty::l1, Penalty::l2}[std::size_t(draw(rng, 0, 2))];
    const double alpha = std::pow(10.0, double(draw(rng, -6, 2)));
    std::vector<double> w(std::size_t(X.m), 0.0);
    if (draw(rng, 0, 1)) state.restart(w = draw_normal(rng, X.m));
    double weight = 0;
    for (std::int64_t q = 0; q < l.n_queries(); ++q)
        for (std::int64_t t = l.offsets[std::size_t(q)]; t < l.offsets[std::size_t(q) + 1]; ++t)
            weight += l.c(q) * l.u(t);
    const auto value = [&](const DominationPoint &point) {
        double sum = 0;
        for (const double x : w)
            sum += penalty == Penalty::l1 ? std::abs(x) : penalty == Penalty::l2 ? x * x : 0.0;
        return point.value + alpha * sum;
    };
    for (int k = 0; k < 40; ++k) {
        const std::vector<std::int64_t> feature{draw(rng, 0, X.m - 1)};
        const DominationPoint point(l, X.scores(w), 1);
        const CoordinateBound b = state.measure(feature, Curvature::local, 1)[0];
        if (b.bound > 0) {
            const Truth truth(l, X, point, std::size_t(feature[0]));
            check(std::abs(b.gradient - truth.gradient) <= 1e-6 * b.range * weight, "the slope of a step");
            check(b.hessian >= (1.0 - 1e-9) * truth.hessian - 1e-8 * b.bound, "no curvature is missed");
            check(b.bound >= (1.0 - 1e-6) * truth.hessian, "the bound holds");
        }
        const double before = value(point);
        const Sweep done = state.sweep(w, feature, penalty, alpha, Curvature::local);
        const double after = value(DominationPoint(l, X.scores(w), 1));
        double terms = 100.0;  // what scores are sums of, and lose digits to
        for (std::size_t i = 0; i < X.values.size(); ++i)
            terms = std::max(terms, std::abs(X.values[i] * w[i % w.size()]));
        check(before - after >= done.decrease - 1e-10 * before - 1e-15 * terms * weight,
              "a step keeps its promise");
    }
}

/// With a ridge the step solves an equation: also where the curvature may grow by ten orders of magnitude.
void check_ridge_steps(Rng &rng) {
    const auto decades = [&](double low, double high) {
        return std::pow(10.0, std::uniform_real_distribution<double>(low, high)(rng));
    };
    for (int k = 0; k < 20000; ++k) {
        const double bound = decades(-3, 3), y = decades(-12, 4), ridge = decades(-10, 3);
        const CoordinateBound b{0, bound * decades(-10, 0), bound, decades(-4, 4)};
        const double t = b.reach(y, ridge);
        check(std::abs(b.slope(t) + ridge * t - y) <= 1e-9 * y, "the step with a ridge");
    }
}

void check_no_curvature() {
    const std::vector<double> H{0.0, 0.0, 0.0, 2.0}, g{-1.0, 0.0}, w{3.0, 1.0};
    const std::vector<double> v = sparse_quadratic(H, g, w, 0.5, 0.0, 100);
    check(v[0] == 3.0 && std::abs(v[1] - 0.75) < 1e-12, "what has no curvature stays");
}

void check_quadratic(Rng &rng) {
    const std::size_t n = std::size_t(draw(rng, 1, 8));
    const std::vector<double> a = draw_normal(rng, std::int64_t(n * n)), g = draw_normal(rng, std::int64_t(n), 3.0);
    const std::vector<double> w = draw_normal(rng, std::int64_t(n));
    std::vector<double> H(n * n, 0.0);
    for (std::size_t i = 0; i < n; ++i)
        for (std::size_t j = 0; j < n; ++j) {
            for (std::size_t k = 0; k < n; ++k) H[i * n + j] += a[i * n + k] * a[j * n + k];
            H[i * n + j] += i == j ? 0.1 : 0.0;
        }
    const std::vector<double> v = sparse_quadratic(H, g, w, 0.7, 1e-16, 100000);
    for (std::size_t i = 0; i < n; ++i) {
        double slope = g[i];
        for (std::size_t j = 0; j < n; ++j) slope += H[i * n + j] * (v[j] - w[j]);
        const double off = v[i] == 0.0 ? std::max(std::abs(slope) - 0.7, 0.0)
                                       : std::abs(slope + std::copysign(0.7, v[i]));
        check(off < 1e-5, "the conditions of the optimum");
    }
}

}  // namespace

int main() {
    Rng rng(20100517);
    for (int trial = 0; trial < 150; ++trial) check_descent(rng);
    for (int trial = 0; trial < 150; ++trial) check_promises(rng);
    for (int trial = 0; trial < 100; ++trial) check_quadratic(rng);
    check_ridge_steps(rng);
    check_no_curvature();
}
