// The domination loss: value, gradient, curvature, Hessians and dual agree with the sum over rows.
#include "domination.hpp"

#include <algorithm>
#include <numeric>

#include "check.hpp"

using namespace linrank;
using namespace linrank_test;

namespace {

/// Queries of every shape: empty layers of weight, one layer, one row, as many layers as rows.
Layering draw_layering(Rng &rng) {
    Layering l;
    l.offsets = {0};
    l.first_cell = {0};
    const std::int64_t n_queries = draw(rng, 1, 6);
    for (std::int64_t q = 0; q < n_queries; ++q) {
        const std::int64_t n = draw(rng, 1, 12), k = draw(rng, 1, n);
        for (std::int64_t t = 0; t < n; ++t)
            l.levels.push_back(std::int32_t(t < k ? t : draw(rng, 0, k - 1)));
        std::shuffle(l.levels.end() - n, l.levels.end(), rng);
        l.n_levels.push_back(std::int32_t(k));
        l.offsets.push_back(std::int64_t(l.levels.size()));
        l.first_cell.push_back(l.first_cell.back() + k);
    }
    if (draw(rng, 0, 1)) l.shift = draw_normal(rng, l.n_rows(), 3.0);
    if (draw(rng, 0, 1))
        for (std::int64_t t = 0; t < l.n_rows(); ++t)
            l.row_weight.push_back(0.5 * double(draw(rng, 0, 4)));
    if (draw(rng, 0, 1))
        for (std::int64_t q = 0; q < n_queries; ++q)
            l.query_weight.push_back(0.25 * double(draw(rng, 0, 8)));
    if (draw(rng, 0, 1)) {
        l.n_grades = 3;
        l.table = draw_normal(rng, 9, 2.0);
        for (std::int64_t c = 0; c < l.n_cells(); ++c)
            l.grades.push_back(std::int32_t(draw(rng, 0, 2)));
    }
    return l;
}

struct Definition {
    double value = 0;
    std::vector<double> gradient, hessian;

    Definition(const Layering &l, const std::vector<double> &z)
        : gradient(z.size()), hessian(z.size() * z.size()) {
        for (std::int64_t q = 0; q < l.n_queries(); ++q)
            for (std::int64_t i = l.offsets[std::size_t(q)]; i < l.offsets[std::size_t(q) + 1]; ++i)
                add(l, z, q, i);
    }
    void add(const Layering &l, const std::vector<double> &z, std::int64_t q, std::int64_t i) {
        const auto m = [&](std::int64_t t) { return z[std::size_t(t)] - l.s(t); };
        const auto cell = [&](std::int64_t t) {
            return l.first_cell[std::size_t(q)] + l.levels[std::size_t(t)];
        };
        std::vector<double> p(z.size());
        double sum = 1.0;
        for (std::int64_t j = l.offsets[std::size_t(q)]; j < l.offsets[std::size_t(q) + 1]; ++j) {
            if (cell(j) >= cell(i)) continue;
            const double margin = l.table.empty() ? 0.0 : l.margin(cell(i), cell(j));
            sum += p[std::size_t(j)] = l.u(j) * std::exp(m(j) - m(i) + margin);
        }
        p[std::size_t(i)] = 1.0;
        const double weight = l.c(q) * l.u(i);
        value += weight * std::log(sum);
        for (double &x : p) x /= sum;
        for (std::size_t a = 0; a < p.size(); ++a) {
            gradient[a] += weight * (p[a] - double(a == std::size_t(i)));
            for (std::size_t b = 0; b < p.size(); ++b)
                hessian[a * p.size() + b] += weight * (p[a] * double(a == b) - p[a] * p[b]);
        }
    }
};

void check_hessians(Rng &rng, const Definition &truth, const DominationPoint &point) {
    const std::size_t l = truth.gradient.size(), n = std::size_t(draw(rng, 1, 20));
    std::vector<double> dense, values;
    std::vector<std::int32_t> columns;
    std::vector<std::int64_t> offsets{0}, order(l);
    std::iota(order.begin(), order.end(), 0);
    std::shuffle(order.begin(), order.end(), rng);
    for (std::size_t i = 0; i < l; ++i) {
        for (std::size_t c = 0; c < n; ++c) {
            dense.push_back(draw(rng, 0, 2) == 0 ? double(draw(rng, -8, 8)) / 8 : 0.0);
            if (dense.back() == 0.0) continue;
            values.push_back(dense.back());
            columns.push_back(std::int32_t(c));
        }
        offsets.push_back(std::int64_t(values.size()));
    }
    const std::int64_t rows_in_all = std::int64_t(l), width = std::int64_t(n);
    const std::vector<Rows> storages{
        DenseRows<double>{dense.data(), width, rows_in_all, width},
        CsrRows<double>{values.data(), columns.data(), offsets.data(), rows_in_all, width}};
    const auto x = [&](std::size_t t, std::size_t c) { return dense[std::size_t(order[t]) * n + c]; };
    std::vector<double> expected(n * n);
    for (std::size_t s = 0; s < l; ++s)
        for (std::size_t t = 0; t < l; ++t)
            if (const double h = truth.hessian[s * l + t]; h != 0.0)
                for (std::size_t a = 0; a < n; ++a)
                    for (std::size_t b = 0; b < n; ++b) expected[a * n + b] += x(s, a) * h * x(t, b);
    for (const Rows &rows : storages) {
        const std::vector<double> matrix = hessian_matrix({rows, order}, point, 3);
        const std::vector<double> diagonal = hessian_diagonal({rows, order}, point, 3);
        for (std::size_t k = 0; k < n * n; ++k) CHECK(close(matrix[k], expected[k], 1e-10));
        for (std::size_t c = 0; c < n; ++c) CHECK(close(diagonal[c], expected[c * n + c], 1e-10));
        CHECK(hessian_matrix({rows, order}, point, 1) == matrix);
        CHECK(hessian_diagonal({rows, order}, point, 1) == diagonal);
    }
}

void check_case(Rng &rng) {
    const Layering l = draw_layering(rng);
    const std::vector<double> z = draw_normal(rng, l.n_rows(), 2.0), v = draw_normal(rng, l.n_rows());
    const Definition truth(l, z);
    const DominationPoint point(l, z, 3), alone(l, z, 1);
    CHECK(point.value == alone.value && point.slope == alone.slope);
    CHECK(close(point.value, truth.value, 1e-12));
    std::vector<double> out(z.size());
    point.multiply(v, out, 3);
    double slope = 0, trace = 0;
    for (std::size_t a = 0; a < z.size(); ++a) {
        CHECK(close(point.gradient[a], truth.gradient[a], 1e-12));
        CHECK(point.gradient[a] == alone.gradient[a]);
        double product = 0;
        for (std::size_t b = 0; b < z.size(); ++b) product += truth.hessian[a * z.size() + b] * v[b];
        CHECK(close(out[a], product, 1e-11));
        slope += truth.gradient[a] * z[a];
        trace += truth.hessian[a * z.size() + a];
    }
    CHECK(close(point.slope, slope, 1e-11));
    CHECK(close(point.total_curvature, trace, 1e-11));
    CHECK(close(point.dual(1.0, 1), truth.value - slope, 1e-11));
    CHECK(point.dual(0.0, 1) == 0.0);
    for (const double t : {0.25, 0.75}) {
        const std::vector<double> far = draw_normal(rng, l.n_rows(), 2.0);
        double plane = point.dual(t, 3);
        CHECK(plane == point.dual(t, 1));
        for (std::size_t a = 0; a < z.size(); ++a) plane += t * truth.gradient[a] * far[a];
        CHECK(DominationPoint(l, far, 1).value >= plane - 1e-10 * (1.0 + point.value));
        CHECK(point.dual(t, 1) >= t * (point.value - point.slope) - 1e-10 * (1.0 + point.value));
    }
    check_hessians(rng, truth, point);
}

/// One query that threads share, and scores too far apart for any exponential.
void check_long_query(Rng &rng) {
    Layering l;
    const std::int64_t n = 140'000;
    l.offsets = {0, n};
    l.first_cell = {0, 3};
    l.n_levels = {3};
    for (std::int64_t t = 0; t < n; ++t) l.levels.push_back(std::int32_t(draw(rng, 0, 2)));
    std::vector<double> z = draw_normal(rng, n), out(z.size()), again(z.size());
    z[0] = 1e4;
    z[1] = -1e4;
    const DominationPoint point(l, z, 3), alone(l, z, 1);
    CHECK(point.value == alone.value && std::isfinite(point.value));
    point.multiply(z, out, 3);
    alone.multiply(z, again, 1);
    CHECK(out == again);
    CHECK(std::abs(std::accumulate(out.begin(), out.end(), 0.0)) < 1e-3);
}

}  // namespace

int main() {
    Rng rng(2010);
    for (int k = 0; k < 300; ++k) check_case(rng);
    check_long_query(rng);
}
