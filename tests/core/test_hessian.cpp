// Xᵀ∇²L X: the fused product, the matrix and the factor agree with the sum over pairs, for every storage.
#include "hessian.hpp"

#include <new>
#include <numeric>
#include <type_traits>

#include "products.hpp"
#include "problem.hpp"

using namespace linrank;
using namespace linrank_test;

namespace {

/// The same small matrix in all storages; a fifth of the entries is not zero.
struct Matrix {
    std::int64_t n_rows, n_columns;
    std::vector<double> dense;
    std::vector<float> dense_narrow;
    std::vector<double> values;
    std::vector<float> values_narrow;
    std::vector<std::int32_t> columns;
    std::vector<std::int64_t> offsets{0};

    Matrix(Rng &rng, std::int64_t rows, std::int64_t n) : n_rows(rows), n_columns(n) {
        for (std::int64_t i = 0; i < rows; ++i) {
            for (std::int64_t c = 0; c < n; ++c) {
                // Small integers over 8: exact in float32, so that storages differ in sums only.
                const double x = draw(rng, 0, 4) == 0 ? 0.125 * double(draw(rng, -8, 8)) : 0.0;
                dense.push_back(x);
                if (x == 0.0) continue;
                values.push_back(x);
                columns.push_back(std::int32_t(c));
            }
            offsets.push_back(std::int64_t(values.size()));
        }
        dense_narrow.assign(dense.begin(), dense.end());
        values_narrow.assign(values.begin(), values.end());
    }
    std::vector<Rows> storages() const {
        const std::int64_t l = n_rows, n = n_columns;
        return {DenseRows<float>{dense_narrow.data(), n, l, n}, DenseRows<double>{dense.data(), n, l, n},
                CsrRows<float>{values_narrow.data(), columns.data(), offsets.data(), l, n},
                CsrRows<double>{values.data(), columns.data(), offsets.data(), l, n}};
    }
};

/// Σ over violated pairs of l'' ω (x_i - x_j)(x_i - x_j)ᵀ.
std::vector<double> definition(const PairProblem &p, PairLoss loss, const std::vector<double> &z,
                               const Matrix &x, const std::vector<std::int64_t> &order) {
    const std::size_t n = std::size_t(x.n_columns);
    std::vector<double> h(n * n), d(n);
    for_each_violation(p, z, [&](std::size_t i, std::size_t j, double weight, double slack) {
        const double curve = of_slack(loss, slack).curve;
        if (curve == 0.0) return;
        for (std::size_t c = 0; c < n; ++c)
            d[c] = x.dense[std::size_t(order[i]) * n + c] - x.dense[std::size_t(order[j]) * n + c];
        for (std::size_t r = 0; r < n; ++r)
            for (std::size_t c = 0; c < n; ++c) h[r * n + c] += curve * weight * d[r] * d[c];
    });
    return h;
}

/// The sums of dense and CSR float rows are in float32, at least in part.
double tolerance_of(const Rows &rows) {
    return std::visit([]<class Storage>(const Storage &) {
        return std::is_same_v<typename Storage::value_type, float> ? 2e-5 : 1e-12;
    }, rows);
}

/// The same matrix where only 16 columns are swept at a time.
template <class Storage>
void check_narrow_sweeps(const Storage &storage, Order order, const PairPoint &point, double tolerance) {
    GramAccumulator<Storage> wide(storage), narrow(storage, 0);
    for (std::int64_t q = 0; q < point.problem().n_queries(); ++q) {
        if (!point.problem().has_pairs(q)) continue;
        wide.add(order, point, q);
        narrow.add(order, point, q);
    }
    wide.product.flush();
    narrow.product.flush();
    CHECK(wide.sum.size() == narrow.sum.size());
    if (wide.sum.empty()) return;  // no query has a pair
    const std::int64_t padded = (storage.n_columns + 15) / 16 * 16;
    double size = 1.0;
    for (const double entry : wide.sum) size = std::max(size, std::abs(entry));
    for (std::int64_t r = 0; r < padded; ++r)
        for (std::int64_t c = r; c < padded; ++c) {
            const auto at = std::size_t(r * padded + c);
            CHECK(std::abs(wide.sum[at] - narrow.sum[at]) <= tolerance * size);
        }
}

/// Shares of the columns of a query, each gathered by itself.
template <class Storage>
void check_shares(const Storage &storage, Order order, const PairPoint &point) {
    std::int64_t q = 0;
    while (q < point.problem().n_queries() && !point.problem().has_pairs(q)) ++q;
    if (q == point.problem().n_queries()) return;
    for (const std::int64_t most_bytes : {0, 1 << 24}) {
        GramAccumulator<Storage> whole(storage, most_bytes);
        whole.add(order, point, q);
        whole.product.flush();
        for (const std::int64_t n_parts : {2, 3, 7}) {
            std::vector<double> sum(whole.sum.size());
            for (std::int64_t part = 0; part < n_parts; ++part) {
                GramAccumulator<Storage> share(storage, most_bytes);
                share.add(order, point, q, part, n_parts);
                share.product.flush();
                for (std::size_t k = 0; k < share.sum.size(); ++k) sum[k] += share.sum[k];
            }
            CHECK(sum == whole.sum);
        }
    }
}

void check_storage(const Rows &rows, Order order, const PairPoint &point, const Matrix &x,
                   const std::vector<double> &h, const std::vector<double> &v) {
    const double tolerance = tolerance_of(rows);
    const std::size_t n = v.size();
    std::vector<double> image(std::size_t(x.n_rows)), image_again(image.size());
    const auto out = hessian_product({rows, order}, point, v, image, 1);
    const auto again = hessian_product({rows, order}, point, v, image_again, 3);
    CHECK(out == again && image == image_again);
    const std::vector<double> matrix = hessian_matrix({rows, order}, point, 2);
    CHECK(matrix == hessian_matrix({rows, order}, point, 1));
    std::visit([&](const auto &storage) {
        check_narrow_sweeps(storage, order, point, tolerance);
        check_shares(storage, order, point);
    }, rows);
    double size = 1.0;
    for (const double entry : h) size = std::max(size, std::abs(entry));
    for (std::size_t r = 0; r < n; ++r) {
        double product = 0;
        for (std::size_t c = 0; c < n; ++c) {
            product += h[r * n + c] * v[c];
            CHECK(std::abs(matrix[r * n + c] - h[r * n + c]) <= tolerance * size);
        }
        CHECK(std::abs(out[r] - product) <= tolerance * size * double(n));
    }
    for (const double d : hessian_diagonal({rows, order}, point, 2)) CHECK(d >= 0.0);
}

void products_equal_the_definition(Rng &rng) {
    for (int repetition = 0; repetition < 40; ++repetition) {
        Problem problem = draw_problem(rng, repetition % 2 == 1, 25);
        if (repetition % 4 == 3) problem.add_gains();
        if (repetition % 5 == 4) problem.adjacent = true;
        problem.finish();
        const PairLoss loss = losses[repetition % 7 < 3 ? 2 : 0];
        const PairProblem p = problem.view();
        const Matrix x(rng, p.n_rows(), draw(rng, 1, 35));
        std::vector<std::int64_t> order(static_cast<std::size_t>(p.n_rows()));
        std::iota(order.begin(), order.end(), 0);
        const bool in_order = repetition % 3 == 0;
        if (!in_order) std::shuffle(order.begin(), order.end(), rng);
        const std::vector<double> z = draw_scores(rng, p.n_rows()), v = draw_normal(rng, x.n_columns);
        const PairPoint point(p, loss, z, nullptr, 1);
        const std::vector<double> h = definition(p, loss, z, x, order);
        for (const Rows &rows : x.storages())
            check_storage(rows, in_order ? Order{} : Order(order), point, x, h, v);
    }
}

/// A higher level has lower scores by 3, and within a level they differ by 0 or 0.8: the windows of the two
/// ends of a band differ by rows that make no pair. What is left of the degrees is rounding of either sign,
/// and its sum may be 0; the one pair that is in the band must not suffer.
void queries_with_an_empty_band_leave_the_diagonal(Rng &rng) {
    for (int repetition = 0; repetition < 1000; ++repetition) {
        Problem problem = draw_problem(rng, true, 12);
        std::vector<double> z, x;
        for (const std::int32_t level : problem.levels)
            z.push_back(0.8 * double(draw(rng, 0, 1)) - 3.0 * level);
        for (std::size_t i = 0; i < z.size(); ++i) x.push_back(double(draw(rng, 1, 3)));
        problem.add_query({0, 1});
        problem.finish();
        problem.u.insert(problem.u.end(), {1.0, 1.0});
        problem.c.push_back(1.0);
        z.insert(z.end(), {0.0, 0.9});
        x.insert(x.end(), {1.0, 3.0});
        const PairProblem p = problem.view();
        const PairPoint point(p, losses[2], z, nullptr, 1);
        const DenseRows<double> rows{x.data(), 1, p.n_rows(), 1};
        // (1·1 + 1·9 - 4²/2) / ε
        CHECK(close(hessian_diagonal({rows}, point, 1)[0], 2.0 / losses[2].epsilon, 1e-9));
    }
}

void a_square_too_large_for_any_memory_is_refused() {
    const std::int64_t offset = 0;
    const CsrRows<double> rows{nullptr, nullptr, &offset, 0, std::int64_t(1) << 32};
    const Problem problem;
    const PairPoint point(problem.view(), {}, {}, nullptr, 1);
    bool is_refused = false;
    try {
        hessian_matrix({rows}, point, 1);
    } catch (const std::bad_alloc &) {
        is_refused = true;
    }
    CHECK(is_refused);
}

/// A query whose centered rows exceed the cache is unpacked row by row; few levels and many.
void an_unpacked_query_equals_the_definition(Rng &rng) {
    for (const std::int64_t n_labels : {3, 600}) {
        Problem problem;
        problem.add_query(draw_labels(rng, 40, 5));
        problem.add_query(draw_labels(rng, 900, n_labels));
        problem.finish();
        const PairProblem p = problem.view();
        const Matrix x(rng, p.n_rows(), 300);  // 900 x 304 numbers
        std::vector<std::int64_t> order(static_cast<std::size_t>(p.n_rows()));
        std::iota(order.begin(), order.end(), 0);
        // Some 10 in 1000 pairs are violated: the definition takes each of them times 300².
        std::vector<double> z(order.size());
        for (std::size_t i = 0; i < z.size(); ++i)
            z[i] = 1.5 * double(p.levels[i]) + (draw(rng, 0, 99) == 0 ? -5.0 : 0.0);
        const PairPoint point(p, {}, z, nullptr, 1);
        const std::vector<double> h = definition(p, {}, z, x, order), v = draw_normal(rng, x.n_columns);
        for (const Rows &rows : x.storages()) check_storage(rows, {}, point, x, h, v);
    }
}

/// The float32 sums of a query are poured into double every few hundred rows, however long it is: columns
/// far from zero, where long sums of one sign would lose digit after digit.
void sums_of_a_large_query_keep_their_precision(Rng &rng) {
    Problem problem;
    problem.add_query(draw_labels(rng, 100000, 2));
    problem.finish();
    const PairProblem p = problem.view();
    const std::int64_t n = 8;
    std::vector<float> narrow;
    for (const double value : draw_normal(rng, p.n_rows() * n)) narrow.push_back(float(100.0 + value));
    const std::vector<double> wide(narrow.begin(), narrow.end()), v = draw_normal(rng, n);
    std::vector<double> z(std::size_t(p.n_rows())), image(z.size());
    for (std::size_t i = 0; i < z.size(); ++i) z[i] = i < z.size() / 2 ? 0.0 : 0.5;
    const PairPoint point(p, {}, z, nullptr, 1);
    const auto truth = hessian_product({DenseRows<double>{wide.data(), n, p.n_rows(), n}}, point, v, image, 1);
    const auto got = hessian_product({DenseRows<float>{narrow.data(), n, p.n_rows(), n}}, point, v, image, 1);
    std::vector<double> curved(z.size());
    point.multiply(image, curved, 1);
    double size = 0;  // Σ |u x|: what rounding is relative to
    for (const double u : curved) size += 100.0 * std::abs(u);
    for (std::size_t c = 0; c < v.size(); ++c) CHECK(std::abs(got[c] - truth[c]) <= 5e-9 * size);
}

void the_factor_solves(Rng &rng) {
    for (const std::int64_t n : {1, 2, 17, 60}) {
        const std::size_t m = std::size_t(n);
        const std::vector<double> b = draw_normal(rng, n * n), x = draw_normal(rng, n);
        std::vector<double> a(m * m), right(m);
        for (std::size_t r = 0; r < m; ++r)
            for (std::size_t c = 0; c < m; ++c) {
                a[r * m + c] = r == c ? 1.0 : 0.0;
                for (std::size_t k = 0; k < m; ++k) a[r * m + c] += b[r * m + k] * b[c * m + k];
            }
        for (std::size_t r = 0; r < m; ++r)
            for (std::size_t c = 0; c < m; ++c) right[r] += a[r * m + c] * x[c];
        const auto factor = cholesky_factor(a, n);
        CHECK(factor.has_value());
        const std::vector<double> solution = cholesky_solve(*factor, n, right);
        for (std::size_t r = 0; r < m; ++r) CHECK(close(solution[r], x[r], 1e-8));
    }
    std::vector<double> indefinite{1.0, 2.0, 2.0, 1.0};
    CHECK(!cholesky_factor(indefinite, 2));
}

}  // namespace

int main() {
    Rng rng(2);
    products_equal_the_definition(rng);
    queries_with_an_empty_band_leave_the_diagonal(rng);
    a_square_too_large_for_any_memory_is_refused();
    an_unpacked_query_equals_the_definition(rng);
    sums_of_a_large_query_keep_their_precision(rng);
    the_factor_solves(rng);
}
