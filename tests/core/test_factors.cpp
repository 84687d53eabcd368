// Duals of low rank: sums over levels equal those over pairs, epochs descend, threads change nothing.
#include "factor_descent.hpp"

#include <algorithm>
#include <limits>
#include <numeric>
#include <stdexcept>

#include "check.hpp"

using namespace linrank;
using namespace linrank_test;

namespace {

void quartics_are_minimized(Rng &rng) {
    for (int round = 0; round < 2000; ++round) {
        const auto c = draw_normal(rng, 4, 3.0);
        Quartic q{c[0], c[1], c[2], std::abs(c[3])};
        if (round % 5 == 0) q.d = 0;
        if (round % 10 == 0) q.c = 0;
        if (round % 20 == 0) q.b = 0;
        const double t = lowest_in_unit(q);
        CHECK(t >= 0.0 && t <= 1.0 && q(t) <= 0.0);
        double least = 0;
        for (int i = 0; i <= 1000; ++i) least = std::min(least, q(i / 1000.0));
        CHECK(q(t) <= least + 1e-12);
    }
    CHECK(lowest_in_unit({1, 0, 0, 0}) == 0.0);
    CHECK(lowest_in_unit({-1, 0, 0, 0}) == 1.0);
    CHECK(close(lowest_in_unit({0, -1, 0, 1}), std::sqrt(0.5), 1e-12));
    CHECK(lowest_in_unit({0, 0, 0, 0}) == 0.0);
    CHECK(lowest_in_unit({-1e300, 1e300, 1e300, 1e300}) > 0.0);
    CHECK(lowest_in_unit({-1e-310, 1e-310, 0, 5e-324}) >= 0.0);
    const double nan = std::numeric_limits<double>::quiet_NaN();
    CHECK(lowest_in_unit({nan, nan, nan, nan}) == 0.0);
}

/// Queries with rows, levels, bounds and factors; some queries have one level.
struct Case {
    std::int64_t n_columns, K;
    std::vector<std::int64_t> offsets{0};
    std::vector<std::int32_t> levels, n_levels;
    std::vector<double> bound, factors, x, scale;
    Constraint constraint;

    Case(Rng &rng, std::int64_t n_queries, std::int64_t longest)
        : n_columns(draw(rng, 1, 9)), K(draw(rng, 1, 6)),
          constraint(draw(rng, 0, 1) ? Constraint::box : Constraint::ball) {
        for (std::int64_t q = 0; q < n_queries; ++q) {
            const std::int64_t n = draw(rng, 1, longest), k = draw(rng, 1, std::min<std::int64_t>(n, 5));
            for (std::int64_t t = 0; t < n; ++t) levels.push_back(std::int32_t(t < k ? t : draw(rng, 0, k - 1)));
            std::shuffle(levels.end() - n, levels.end(), rng);
            n_levels.push_back(std::int32_t(k));
            offsets.push_back(std::int64_t(levels.size()));
        }
        x = draw_normal(rng, n_rows() * n_columns);
        for (double &value : x)
            if (draw(rng, 0, 2) == 0) value = 0.0;
        if (draw(rng, 0, 1)) scale = draw_normal(rng, n_columns);
        for (std::int64_t i = 0; i < n_rows(); ++i) bound.push_back(0.25 * double(draw(rng, 0, 4)));
        factors = draw_normal(rng, n_rows() * K, 0.3);
    }
    std::int64_t n_rows() const { return std::int64_t(levels.size()); }
    FactorQuery query(std::int64_t q) const {
        const auto first = std::size_t(offsets[std::size_t(q)]);
        const auto n = std::size_t(offsets[std::size_t(q) + 1]) - first;
        return {std::span(levels).subspan(first, n), std::span(bound).subspan(first, n),
                n_levels[std::size_t(q)], K};
    }
    Rows dense() const { return DenseRows<double>{x.data(), n_columns, n_rows(), n_columns}; }
    FactorDescent descent(const Rows &rows, std::uint64_t seed) const {
        return FactorDescent(QueryRows(rows, {}, offsets, scale), {levels, n_levels, bound, K, constraint},
                             factors, seed);
    }
    double entry(std::int64_t i, std::int64_t c) const {
        return x[std::size_t(i * n_columns + c)] * (scale.empty() ? 1.0 : scale[std::size_t(c)]);
    }
};

/// β and Σ α of factors V by the definition.
double by_pairs(const Case &p, const std::vector<double> &V, std::vector<double> &beta) {
    beta.assign(std::size_t(p.n_columns), 0.0);
    double sum = 0;
    for (std::size_t q = 0; q + 1 < p.offsets.size(); ++q)
        for (std::int64_t i = p.offsets[q]; i < p.offsets[q + 1]; ++i)
            for (std::int64_t j = p.offsets[q]; j < p.offsets[q + 1]; ++j) {
                if (p.levels[std::size_t(i)] <= p.levels[std::size_t(j)]) continue;
                double alpha = 0;
                for (std::int64_t k = 0; k < p.K; ++k) alpha += V[std::size_t(i * p.K + k)] * V[std::size_t(j * p.K + k)];
                sum += alpha;
                for (std::int64_t c = 0; c < p.n_columns; ++c)
                    beta[std::size_t(c)] += alpha * (p.entry(i, c) - p.entry(j, c));
            }
    return sum;
}

double objective(const Case &p, const std::vector<double> &V) {
    std::vector<double> beta;
    double value = -by_pairs(p, V, beta);
    for (const double b : beta) value += 0.5 * b * b;
    return value;
}

void gradient_is_the_difference_quotient(Rng &rng) {
    for (int round = 0; round < 40; ++round) {
        const Case p(rng, 2, 12);
        std::vector<double> beta;
        by_pairs(p, p.factors, beta);
        for (std::int64_t q = 0; q < 2; ++q) {
            const FactorQuery here = p.query(q);
            const std::int64_t first = p.offsets[std::size_t(q)], n = here.n_rows();
            std::vector<double> t(std::size_t(n), 0.0), g(std::size_t(n * p.K));
            for (std::int64_t i = 0; i < n; ++i)
                for (std::int64_t c = 0; c < p.n_columns; ++c) t[std::size_t(i)] += p.entry(first + i, c) * beta[std::size_t(c)];
            LevelTotals v, tv;
            v.compute(here, p.factors.data() + first * p.K);
            factor_gradient(here, p.factors.data() + first * p.K, t.data(), v, tv, g.data());
            for (std::int64_t e = 0; e < n * p.K; ++e) {
                const double h = 1e-5;
                auto up = p.factors, down = p.factors;
                up[std::size_t(first * p.K + e)] += h;
                down[std::size_t(first * p.K + e)] -= h;
                CHECK(close(g[std::size_t(e)], (objective(p, up) - objective(p, down)) / (2 * h), 1e-6));
            }
        }
    }
}

/// The same matrix by its entries, in int64 columns.
struct Sparse {
    std::vector<double> values;
    std::vector<std::int32_t> columns;
    std::vector<std::int64_t> offsets{0};
    explicit Sparse(const Case &p) {
        for (std::int64_t i = 0; i < p.n_rows(); ++i) {
            for (std::int64_t c = 0; c < p.n_columns; ++c)
                if (const double value = p.x[std::size_t(i * p.n_columns + c)]; value != 0.0) {
                    values.push_back(value);
                    columns.push_back(std::int32_t(c));
                }
            offsets.push_back(std::int64_t(values.size()));
        }
    }
    Rows rows(const Case &p) const {
        return CsrRows<double>{values.data(), columns.data(), offsets.data(), p.n_rows(), p.n_columns};
    }
};

void check_feasible(const Case &p, const std::vector<double> &V) {
    for (std::int64_t i = 0; i < p.n_rows(); ++i) {
        double square = 0, largest = 0;
        for (std::int64_t k = 0; k < p.K; ++k) {
            const double v = V[std::size_t(i * p.K + k)];
            CHECK(v >= 0.0);
            square += v * v;
            largest = std::max(largest, v);
        }
        const double b = p.bound[std::size_t(i)];
        if (p.constraint == Constraint::box) CHECK(largest <= b / std::sqrt(double(p.K)) * (1 + 1e-12));
        else CHECK(std::sqrt(square) <= b * (1 + 1e-12));
    }
}

void epochs_descend(Rng &rng, std::int64_t n_queries, std::int64_t longest) {
    const Case p(rng, n_queries, longest);
    const Sparse sparse(p);
    FactorDescent one = p.descent(p.dense(), 3), two = p.descent(p.dense(), 3), other = p.descent(sparse.rows(p), 3);
    double last = one.value();
    CHECK(close(last, objective(p, one.factors()), 1e-10));
    double momentum = 0;
    for (int epoch = 0; epoch < 12; ++epoch, momentum = 0.5) {
        double value = one.epoch(momentum, 1);
        CHECK(value == two.epoch(momentum, 3));
        const double sparse_value = other.epoch(momentum, 2);
        CHECK(epoch > 2 || close(value, sparse_value, 1e-9));  // later on rounding leads apart: f is not convex
        if (value > last + 1e-9 * (1 + std::abs(last))) {
            CHECK(epoch > 1);  // the first two start where the last one ended
            for (FactorDescent *d : {&one, &two, &other}) d->reject();
            momentum = 0;
            value = one.epoch(momentum, 1);
            two.epoch(momentum, 2);
            other.epoch(momentum, 1);
            CHECK(value <= last + 1e-9 * (1 + std::abs(last)));
        }
        for (FactorDescent *d : {&one, &two, &other}) d->accept();
        last = one.value();
        CHECK(close(last, value, 1e-12));
        CHECK(close(last, objective(p, one.factors()), 1e-9));
        CHECK(close(other.value(), objective(p, other.factors()), 1e-9));
        check_feasible(p, one.factors());
        CHECK(one.factors() == two.factors() && one.weights() == two.weights());
    }
    std::vector<double> beta;
    by_pairs(p, one.factors(), beta);
    for (std::size_t c = 0; c < beta.size(); ++c) CHECK(close(beta[c], one.weights()[c], 1e-9));
    CHECK(one.linear_decrease(1) >= -1e-9);
    CHECK(one.linear_decrease(1) == one.linear_decrease(3));
}

/// Rows stored backwards and named by an order are the same rows.
void order_is_followed(Rng &rng) {
    Case p(rng, 5, 15);
    const FactorDescent expected = p.descent(p.dense(), 1);
    const double value = expected.value();
    Case stored = p;
    for (std::int64_t i = 0; i < p.n_rows(); ++i)
        std::copy_n(p.x.begin() + i * p.n_columns, p.n_columns,
                    stored.x.begin() + (p.n_rows() - 1 - i) * p.n_columns);
    std::vector<std::int64_t> order(p.levels.size());
    std::iota(order.rbegin(), order.rend(), 0);
    const Sparse sparse(stored);
    for (const Rows &rows : {stored.dense(), sparse.rows(stored)}) {
        FactorDescent descent(QueryRows(rows, order, p.offsets, p.scale),
                              {p.levels, p.n_levels, p.bound, p.K, p.constraint}, p.factors, 1);
        CHECK(close(descent.value(), value, 1e-12));
        descent.epoch(0.0, 2);
        descent.accept();
        CHECK(close(descent.value(), objective(p, descent.factors()), 1e-10));
    }
}

bool accepts(FactorDescent &descent) {
    try {
        descent.accept();
        return true;
    } catch (const std::invalid_argument &) {
        return false;
    }
}

void an_epoch_is_accepted_once(Rng &rng) {
    const Case p(rng, 3, 10);
    FactorDescent descent = p.descent(p.dense(), 1);
    CHECK(!accepts(descent));
    descent.epoch(0.0, 1);
    CHECK(accepts(descent) && !accepts(descent));
    descent.epoch(0.0, 1);
    descent.reject();
    CHECK(!accepts(descent));
}

}  // namespace

int main() {
    Rng rng(20190401);
    quartics_are_minimized(rng);
    gradient_is_the_difference_quotient(rng);
    for (int round = 0; round < 30; ++round) epochs_descend(rng, draw(rng, 1, 6), 20);
    for (int round = 0; round < 5; ++round) order_is_followed(rng);
    an_epoch_is_accepted_once(rng);
    epochs_descend(rng, 300, 10);  // several queries a batch
    return 0;
}
