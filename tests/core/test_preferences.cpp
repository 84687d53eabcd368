// Listed preferences: value, gradient, curvature and Hessians agree with the sum over the list.
#include "preferences.hpp"

#include <algorithm>
#include <numeric>
#include <tuple>

#include "check.hpp"

using namespace linrank;
using namespace linrank_test;

namespace {

struct Case {
    std::int64_t n_rows, n_columns, n_pairs;
    std::vector<std::int64_t> winners, losers, order, offsets{0};
    std::vector<double> weight, dense, values;
    std::vector<std::int32_t> columns;

    explicit Case(Rng &rng)
        : n_rows(draw(rng, 2, 40)), n_columns(draw(rng, 1, 20)), n_pairs(draw(rng, 1, 200)) {
        for (std::int64_t t = 0; t < n_pairs; ++t) {
            const std::int64_t i = draw(rng, 0, n_rows - 1), step = draw(rng, 1, n_rows - 1);
            winners.push_back(i);
            losers.push_back((i + step) % n_rows);
            weight.push_back(0.25 * double(draw(rng, 0, 8)));
        }
        order.resize(std::size_t(n_rows));
        std::iota(order.begin(), order.end(), 0);
        std::shuffle(order.begin(), order.end(), rng);
        for (std::int64_t i = 0; i < n_rows; ++i) {
            for (std::int64_t c = 0; c < n_columns; ++c) {
                const double x = draw(rng, 0, 2) == 0 ? double(draw(rng, -8, 8)) / 8 : 0.0;
                dense.push_back(x);
                if (x == 0.0) continue;
                values.push_back(x);
                columns.push_back(std::int32_t(c));
            }
            offsets.push_back(std::int64_t(values.size()));
        }
    }
    std::vector<Rows> storages() const {
        return {DenseRows<double>{dense.data(), n_columns, n_rows, n_columns},
                CsrRows<double>{values.data(), columns.data(), offsets.data(), n_rows,
                                              n_columns}};
    }
    double entry(std::int64_t position, std::int64_t c) const {
        return dense[std::size_t(order[std::size_t(position)] * n_columns + c)];
    }
};

void check_hessians(const Case &x, const PreferencePoint &point, int n_threads) {
    const std::size_t n = std::size_t(x.n_columns);
    std::vector<double> truth(n * n);
    for (std::int64_t t = 0; t < x.n_pairs; ++t)
        for (std::size_t r = 0; r < n; ++r)
            for (std::size_t c = 0; c < n; ++c) {
                const auto d = [&](std::size_t k) {
                    return x.entry(point.list().winner(t), std::int64_t(k)) -
                           x.entry(point.list().loser(t), std::int64_t(k));
                };
                truth[r * n + c] += point.curvature(t) * d(r) * d(c);
            }
    for (const Rows &rows : x.storages()) {
        const std::vector<double> matrix = hessian_matrix({rows, x.order}, point, n_threads);
        const std::vector<double> diagonal = hessian_diagonal({rows, x.order}, point, n_threads);
        for (std::size_t k = 0; k < n * n; ++k) CHECK(close(matrix[k], truth[k], 1e-11));
        for (std::size_t c = 0; c < n; ++c) CHECK(close(diagonal[c], truth[c * n + c], 1e-11));
        CHECK(hessian_matrix({rows, x.order}, point, 1) == matrix);
        CHECK(hessian_diagonal({rows, x.order}, point, 1) == diagonal);
    }
}

void check_case(Rng &rng, PairLoss loss) {
    const Case x(rng);
    const PreferenceList list(x.winners, x.losers, x.weight, x.n_rows);
    const std::vector<double> z = draw_normal(rng, x.n_rows), v = draw_normal(rng, x.n_rows);
    const PreferencePoint point(list, loss, z, 3), alone(list, loss, z, 1);
    double value = 0, slacks = 0, inner = 0, violations = 0, curved = 0;
    std::vector<double> gradient(z.size()), product(z.size()), out(z.size());
    for (std::size_t t = 0; t < x.winners.size(); ++t) {
        const auto i = std::size_t(x.winners[t]), j = std::size_t(x.losers[t]);
        const double slack = 1.0 - z[i] + z[j], e = loss.epsilon, w = x.weight[t];
        const double outer = std::max(0.0, slack), beyond = std::max(0.0, slack - e);
        double l = outer * outer, slope = 2 * outer, curvature = slack > 0 ? 2.0 : 0.0;
        if (loss.kind == PairLoss::hinge) l = outer, slope = slack > 0, curvature = 0.0;
        if (loss.kind == PairLoss::huber) {
            l = (outer * outer - beyond * beyond) / (2 * e);
            slope = (outer - beyond) / e;
            curvature = slack > 0 && slack < e ? 1 / e : 0.0;
            inner += w * beyond;
        }
        value += w * l;
        slacks += w * outer;
        violations += w * (slack > 0);
        curved += w * curvature;
        gradient[i] -= w * slope;
        gradient[j] += w * slope;
        product[i] += w * curvature * (v[i] - v[j]);
        product[j] -= w * curvature * (v[i] - v[j]);
    }
    CHECK(close(point.value, value, 1e-12) && close(point.sum_of_slacks, slacks, 1e-12));
    CHECK(close(point.inner_slacks, inner, 1e-12) && close(point.total_curvature, curved, 1e-12));
    CHECK(close(point.n_violations, violations, 1e-12) && point.value == alone.value);
    point.multiply(v, out, 3);
    for (std::size_t i = 0; i < z.size(); ++i) {
        CHECK(close(point.gradient[i], gradient[i], 1e-12));
        CHECK(point.gradient[i] == alone.gradient[i]);
        CHECK(close(out[i], product[i], 1e-12));
    }
    check_hessians(x, point, 3);
}

/// The list is the one given, sorted.
void check_order(Rng &rng) {
    const Case x(rng);
    using Entry = std::tuple<std::int64_t, std::int64_t, double>;
    std::vector<Entry> given, kept;
    const PreferenceList list(x.winners, x.losers, x.weight, x.n_rows);
    CHECK(list.n_pairs() == x.n_pairs && list.n_rows() == x.n_rows);
    for (std::int64_t t = 0; t < x.n_pairs; ++t) {
        const auto k = std::size_t(t);
        given.emplace_back(x.winners[k], x.losers[k], x.weight[k]);
        kept.emplace_back(list.winner(t), list.loser(t), list.weight(t));
    }
    const auto is_before = [](const Entry &a, const Entry &b) {
        return std::pair(std::get<0>(a), std::get<1>(a)) < std::pair(std::get<0>(b), std::get<1>(b));
    };
    std::stable_sort(given.begin(), given.end(), is_before);
    CHECK(given == kept);
}

/// Parts cover the rows without overlap, however few preferences there are.
void check_parts() {
    const std::vector<std::int64_t> winners(50, 3), losers(50, 7);
    const PreferenceList list(winners, losers, {}, 10);
    for (const std::int64_t n : {1, 2, 7, 64, 1000}) {
        const std::vector<std::int64_t> bounds = list.row_parts(n);
        CHECK(bounds.front() == 0 && bounds.back() == 10);
        CHECK(std::int64_t(bounds.size()) <= n + 1);
        for (std::size_t k = 1; k < bounds.size(); ++k) CHECK(bounds[k - 1] < bounds[k]);
    }
    CHECK(list.of_row(3).size() == 50 && list.of_row(0).empty());
}

}  // namespace

int main() {
    Rng rng(20140401);
    for (int k = 0; k < 60; ++k) {
        check_case(rng, {PairLoss::squared_hinge, 1.0});
        check_case(rng, {PairLoss::hinge, 1.0});
        check_case(rng, {PairLoss::huber, 0.01 + 0.99 * double(draw(rng, 0, 100)) / 100});
    }
    for (int k = 0; k < 20; ++k) check_order(rng);
    check_parts();
    return 0;
}
