// Kernel matrices and symmetric products against the formulas, on every instruction set and storage.
#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "check.hpp"
#include "kernel_matrix.hpp"
#include "simd.hpp"
#include "products.hpp"

namespace linrank {
namespace baseline { extern const Simd table; }
#ifdef LINRANK_X86
namespace avx2 { extern const Simd table; }
namespace avx512 { extern const Simd table; }
#endif
}  // namespace linrank

using namespace linrank;
using namespace linrank_test;

namespace {

std::vector<const Simd *> available() {
    std::vector<const Simd *> tables{&baseline::table};
#ifdef LINRANK_X86
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) tables.push_back(&avx2::table);
    if (std::string(simd().name) == "avx512") tables.push_back(&avx512::table);
#endif
    return tables;
}

// ---- the vector kernels of each table ------------------------------------------------------------

/// Value c of row i of panels.
double at(const std::vector<double> &panels, std::int64_t width, std::int64_t i, std::int64_t c) {
    return panels[std::size_t(8 * (i / 8 * width + c) + i % 8)];
}

void panels(const Simd &k, Rng &rng) {
    for (int repetition = 0; repetition < 40; ++repetition) {
        const std::int64_t width = draw(rng, 0, 20), n = draw(rng, 1, 5), stride = 8 * n + draw(rng, 0, 3);
        const std::vector<double> a = draw_normal(rng, 8 * width), b = draw_normal(rng, 8 * n * width);
        std::vector<double> distances(std::size_t(8 * stride)), products(distances);
        k.panel_distances(width, n, a.data(), b.data(), -0.5, distances.data(), stride);
        k.panel_products(width, n, a.data(), b.data(), 2.0, 3.0, products.data(), stride);
        for (std::int64_t r = 0; r < 8; ++r)
            for (std::int64_t j = 0; j < 8 * n; ++j) {
                long double distance = 0, product = 0;
                for (std::int64_t c = 0; c < width; ++c) {
                    const long double x = at(a, width, r, c), y = at(b, width, j, c);
                    distance += (x - y) * (x - y);
                    product += x * y;
                }
                CHECK(close(distances[std::size_t(r * stride + j)], double(-0.5L * distance), 1e-14));
                CHECK(close(products[std::size_t(r * stride + j)], double(2 * product + 3), 1e-13));
            }
    }
}

void powers(const Simd &k, Rng &rng) {
    for (int degree = 1; degree < 12; ++degree) {
        std::vector<double> x = draw_normal(rng, 24);
        const std::vector<double> bases = x;
        k.power_vector(24, degree, x.data());
        for (std::size_t i = 0; i < x.size(); ++i)
            CHECK(std::abs(x[i] - std::pow(bases[i], degree)) <= 1e-14 * std::abs(x[i]));
    }
}

void symmetric_rows(const Simd &k, Rng &rng) {
    for (int repetition = 0; repetition < 60; ++repetition) {
        const std::int64_t n_rows = draw(rng, 0, 11), n = draw(rng, 0, 40), stride = n + draw(rng, 0, 3);
        const std::vector<double> q = draw_normal(rng, n_rows * stride), u = draw_normal(rng, n_rows),
                                  v = draw_normal(rng, n);
        std::vector<double> sums(u.size(), 1.0), total(v.size(), 2.0), s = sums, t = total;
        k.add_symmetric(n_rows, n, q.data(), stride, u.data(), v.data(), sums.data(), total.data());
        for (std::int64_t r = 0; r < n_rows; ++r)
            for (std::int64_t j = 0; j < n; ++j) {
                s[std::size_t(r)] += q[std::size_t(r * stride + j)] * v[std::size_t(j)];
                t[std::size_t(j)] += q[std::size_t(r * stride + j)] * u[std::size_t(r)];
            }
        for (std::size_t r = 0; r < s.size(); ++r) CHECK(close(sums[r], s[r], 1e-13));
        for (std::size_t j = 0; j < t.size(); ++j) CHECK(close(total[j], t[j], 1e-13));
    }
}

// ---- matrices and products -----------------------------------------------------------------------

/// The same matrix in all ways of storage.
struct Stored {
    std::int64_t n, width;
    std::vector<double> wide;  // row-major, without gaps
    std::vector<float> dense32, values32;
    std::vector<double> dense64, values64;
    std::vector<std::int32_t> columns;
    std::vector<std::int64_t> offsets{0};
    std::vector<Rows> all;

    Stored(Rng &rng, std::int64_t n_rows, std::int64_t n_columns, double density)
        : n(n_rows), width(n_columns) {
        const std::int64_t stride = width + 2;
        dense32.assign(std::size_t(n * stride), std::numeric_limits<float>::quiet_NaN());
        dense64.assign(std::size_t(n * stride), std::numeric_limits<double>::quiet_NaN());
        const std::vector<double> draws = draw_normal(rng, n * width);
        for (std::int64_t i = 0; i < n; ++i) {
            for (std::int64_t c = 0; c < width; ++c) {
                const bool kept = i % 7 != 3 && double(draw(rng, 0, 999)) < 1000 * density;
                const double x = kept ? double(float(draws[std::size_t(i * width + c)])) : 0.0;
                wide.push_back(x);
                dense64[std::size_t(i * stride + c)] = x;
                dense32[std::size_t(i * stride + c)] = float(x);
                if (!kept) continue;
                values64.push_back(x);
                values32.push_back(float(x));
                columns.push_back(std::int32_t(c));
            }
            offsets.push_back(std::int64_t(values64.size()));
        }
        all = {DenseRows<float>{dense32.data(), stride, n, width},
               DenseRows<double>{dense64.data(), stride, n, width},
               CsrRows<float>{values32.data(), columns.data(), offsets.data(), n, width},
               CsrRows<double>{values64.data(), columns.data(), offsets.data(), n, width}};
    }
};

double kernel_of(const KernelFunction &f, const double *x, const double *y, std::int64_t n) {
    long double distance = 0, product = 0;
    for (std::int64_t c = 0; c < n; ++c) {
        distance += (static_cast<long double>(x[c]) - y[c]) * (static_cast<long double>(x[c]) - y[c]);
        product += static_cast<long double>(x[c]) * y[c];
    }
    switch (f.kind) {
    case KernelKind::rbf: return double(std::exp(-f.gamma * distance));
    case KernelKind::poly: return double(std::pow(f.gamma * product + f.coef0, f.degree));
    case KernelKind::sigmoid: return double(std::tanh(f.gamma * product + f.coef0));
    default: return double(product);
    }
}

std::vector<KernelFunction> functions() {
    return {{KernelKind::rbf, 0.07, 3, 0.0}, {KernelKind::poly, 0.2, 3, 0.5},
            {KernelKind::sigmoid, 0.1, 3, -0.2}, {KernelKind::linear, 9.0, 3, 9.0}};
}

using Numbers = std::vector<double>;

Numbers matrix(const KernelFunction &f, const Rows &a, const Rows &b, int n_threads = 1) {
    const PageArray<double> out = kernel_matrix(f, a, b, n_threads);
    return {out.data(), out.data() + out.size()};
}

Numbers product(const KernelFunction &f, const Rows &a, const Rows &b, const Numbers &v,
                int n_threads = 1) {
    return kernel_product(f, a, b, v, n_threads);
}

void check_pair(const KernelFunction &f, const Stored &a, const Stored &b, const Rows &rows_a,
                const Rows &rows_b, const Numbers &v) {
    const Numbers k = matrix(f, rows_a, rows_b), back = matrix(f, rows_b, rows_a);
    const Numbers image = product(f, rows_a, rows_b, v);
    for (std::int64_t i = 0; i < a.n; ++i) {
        double sum = 0;
        for (std::int64_t j = 0; j < b.n; ++j) {
            const double expected = kernel_of(f, a.wide.data() + i * a.width, b.wide.data() + j * a.width,
                                              a.width);
            CHECK(close(k[std::size_t(i * b.n + j)], expected, 1e-13));
            CHECK(k[std::size_t(i * b.n + j)] == back[std::size_t(j * a.n + i)]);
            sum += expected * v[std::size_t(j)];
        }
        CHECK(close(image[std::size_t(i)], sum, 1e-11));
    }
    CHECK(matrix(f, rows_a, rows_b, 3) == k);
    CHECK(product(f, rows_a, rows_b, v, 3) == image);
}

void check_square(const KernelFunction &f, const Stored &b, const Rows &rows, const Numbers &v) {
    const Rows copy = rows;
    const Numbers q = matrix(f, rows, rows), image = product(f, rows, rows, v);
    CHECK(q == matrix(f, rows, copy));  // half computed, and all of it
    CHECK(matrix(f, rows, rows, 4) == q);
    CHECK(product(f, rows, rows, v, 4) == image);
    const Numbers whole = product(f, rows, copy, v);
    const Numbers diagonal = kernel_diagonal(f, rows, 2);
    const Numbers stored = symmetric_product(q.data(), b.n, v, 1);
    const Numbers threaded = symmetric_product(q.data(), b.n, v, 3);
    CHECK(stored == threaded);
    for (std::size_t i = 0; i < v.size(); ++i) {
        CHECK(diagonal[i] == q[i * v.size() + i]);
        CHECK(f.kind != KernelKind::rbf || diagonal[i] == 1.0);
        CHECK(close(image[i], whole[i], 1e-11));
        CHECK(close(stored[i], whole[i], 1e-11));
    }
}

void all_storages(Rng &rng) {
    const std::int64_t shapes[][3] = {{1, 1, 1}, {9, 70, 5}, {65, 31, 13}, {20, 40, 30}, {3, 40, 5000}};
    for (const auto &shape : shapes)
        for (const KernelFunction &f : functions()) {
            const double density = shape[2] > 20 ? 0.1 : 0.6;
            const Stored a(rng, shape[0], shape[2], density), b(rng, shape[1], shape[2], density);
            const Numbers v = draw_normal(rng, b.n);
            for (std::size_t s = 0; s < a.all.size(); ++s) {
                check_pair(f, a, b, a.all[s], b.all[(s + 1) % b.all.size()], v);
                check_square(f, b, b.all[s], v);
            }
        }
}

/// More parts of a triangle than one.
void larger(Rng &rng) {
    const Stored rows(rng, 700, 9, 0.15);
    const Numbers v = draw_normal(rng, 700);
    for (const std::size_t s : {std::size_t(1), std::size_t(3)})
        check_square(functions()[0], rows, rows.all[s], v);
}

void lower_triangle_is_not_read(Rng &rng) {
    for (const std::int64_t n : {0, 1, 7, 8, 9, 300}) {
        const std::int64_t stride = n + 5;
        Numbers q = draw_normal(rng, n * stride), v = draw_normal(rng, n), expected(v.size());
        for (std::int64_t i = 0; i < n; ++i)
            for (std::int64_t j = 0; j < stride; ++j)
                if (j < i || j >= n) q[std::size_t(i * stride + j)] = std::nan("");
        for (std::int64_t i = 0; i < n; ++i)
            for (std::int64_t j = 0; j < n; ++j)
                expected[std::size_t(i)] +=
                    q[std::size_t(std::min(i, j) * stride + std::max(i, j))] * v[std::size_t(j)];
        const Numbers out = symmetric_product(q.data(), stride, v, 2);
        for (std::size_t i = 0; i < v.size(); ++i) CHECK(close(out[i], expected[i], 1e-11));
    }
}

void parts_cover_the_triangle() {
    for (const std::int64_t n : {1, 100, 256, 1000, 100000}) {
        const std::vector<std::int64_t> first = triangle_parts(n, 8);
        CHECK(first.front() == 0 && first.back() == n && first.size() <= 33);
        for (std::size_t t = 0; t + 1 < first.size(); ++t)
            CHECK(first[t] < first[t + 1] && first[t] % 8 == 0);
    }
}

void empty_matrices(Rng &rng) {
    const Stored none(rng, 0, 4, 1.0), some(rng, 3, 4, 1.0);
    const KernelFunction f = functions()[0];
    CHECK(matrix(f, none.all[1], some.all[1]).empty());
    CHECK(product(f, some.all[3], none.all[3], {}) == Numbers(3, 0.0));
    CHECK(product(f, none.all[1], none.all[1], {}).empty());
}

}  // namespace

int main() {
    for (const Simd *table : available()) {
        Rng rng(5);
        panels(*table, rng);
        powers(*table, rng);
        symmetric_rows(*table, rng);
    }
    Rng rng(6);
    all_storages(rng);
    larger(rng);
    lower_triangle_is_not_read(rng);
    parts_cover_the_triangle();
    empty_matrices(rng);
}
