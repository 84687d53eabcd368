// Every instruction set that this processor has gives the sums of the plain loops.
#include "simd.hpp"

#include <array>
#include <limits>
#include <string>

#include "problem.hpp"

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
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw"))
        tables.push_back(&avx512::table);
#endif
    return tables;
}

template <class Value>
struct Block {
    std::vector<Value> x;
    std::vector<std::int64_t> index;
    DenseBlock<Value> view;
    Block(Rng &rng, std::int64_t n_rows, std::int64_t n, bool indexed) {
        const std::vector<double> values = draw_normal(rng, (n_rows + 3) * (n + 1));
        x.assign(values.begin(), values.end());
        for (std::int64_t t = 0; t < n_rows; ++t) index.push_back(draw(rng, 0, n_rows + 2));
        view = {x.data(), n + 1, n, indexed ? index.data() : nullptr, 2, n_rows};
    }
};

/// `Total` is the type in which `add` sums.
template <class Total, class Value>
void check_block(Rng &rng, double tolerance,
                 void (*dot)(const DenseBlock<Value> &, const double *, double *),
                 void (*add)(const DenseBlock<Value> &, const double *, Total *)) {
    for (int repetition = 0; repetition < 60; ++repetition) {
        const std::int64_t n = draw(rng, 1, 70), l = draw(rng, 0, 20);
        const Block<Value> block(rng, l, n, repetition % 2 == 0);
        const std::vector<double> w = draw_normal(rng, n), a = draw_normal(rng, l);
        std::vector<double> out(static_cast<std::size_t>(l)), sums(w.size());
        std::vector<Total> total(w.size());
        dot(block.view, w.data(), out.data());
        add(block.view, a.data(), total.data());
        for (std::int64_t t = 0; t < l; ++t) {
            double expected = 0;
            for (std::size_t c = 0; c < w.size(); ++c) {
                const double x = double(block.view.row(t)[c]);
                expected += x * w[c];
                sums[c] += a[std::size_t(t)] * x;
            }
            CHECK(close(out[std::size_t(t)], expected, 1e-12));
        }
        for (std::size_t c = 0; c < w.size(); ++c) CHECK(close(double(total[c]), sums[c], tolerance));
    }
}

void dense_kernels(const Simd &k, Rng &rng) {
    check_block<float>(rng, 2e-5, k.of_float.dot, k.of_float.add_cached);
    check_block<double>(rng, 1e-12, k.of_float.dot, k.of_float.add);
    check_block<double>(rng, 1e-12, k.of_double.dot, k.of_double.add);
    check_block<double>(rng, 1e-12, k.of_double.dot, k.of_double.add_cached);
}

template <class T>
void check_axpy(void (*axpy)(std::int64_t, T, const T *, T *), const std::vector<double> &x,
                const std::vector<double> &y, double tolerance) {
    const std::vector<T> from(x.begin(), x.end());
    std::vector<T> to(y.begin(), y.end());
    axpy(std::int64_t(x.size()), T(0.5), from.data(), to.data());
    for (std::size_t c = 0; c < x.size(); ++c)
        CHECK(close(double(to[c]), 0.5 * x[c] + y[c], tolerance));
}

void exponentials_at_the_ends(const Simd &k) {
    std::vector<double> x{0.0, -0.0, 1.0, 700.0, -699.9, -701.0, -1e300,
                          -std::numeric_limits<double>::infinity(),
                          std::numeric_limits<double>::quiet_NaN(),
                          709.39, 709.5, 710.0, 1e5, 1e300, std::numeric_limits<double>::infinity()};
    const std::vector<double> exponents = x;
    k.exp_vector(std::int64_t(x.size()), x.data());
    CHECK(x[0] == 1.0 && x[1] == 1.0);
    for (std::size_t i = 2; i < 5; ++i)
        CHECK(std::abs(x[i] / std::exp(exponents[i]) - 1.0) <= 4e-16);
    CHECK(x[5] == 0.0 && x[6] == 0.0 && x[7] == 0.0);
    CHECK(x[8] != x[8]);
    CHECK(std::abs(x[9] / std::exp(exponents[9]) - 1.0) <= 4e-16);
    for (std::size_t i = 10; i < x.size(); ++i) CHECK(x[i] == std::numeric_limits<double>::infinity());
}

void vector_kernels(const Simd &k, Rng &rng) {
    exponentials_at_the_ends(k);
    for (std::int64_t n = 0; n < 70; ++n) {
        const std::vector<double> x = draw_normal(rng, n), y = draw_normal(rng, n);
        double expected = 0;
        for (std::size_t c = 0; c < x.size(); ++c) expected += x[c] * y[c];
        CHECK(close(k.dot_vectors(n, x.data(), y.data()), expected, 1e-12));
        std::vector<double> powers(x.size());
        for (std::size_t c = 0; c < x.size(); ++c) powers[c] = -200.0 * x[c] * x[c];
        const std::vector<double> exponents = powers;
        k.exp_vector(n, powers.data());
        for (std::size_t c = 0; c < x.size(); ++c) {
            const double truth = exponents[c] < -700.0 ? 0.0 : std::exp(exponents[c]);
            CHECK(std::abs(powers[c] - truth) <= 4e-16 * truth);
        }
    }
    for (const std::int64_t n : {0, 16, 48}) {  // rows of a cross product: whole vectors
        const std::vector<double> x = draw_normal(rng, n), y = draw_normal(rng, n);
        check_axpy<float>(k.of_float.axpy, x, y, 1e-6);
        check_axpy<double>(k.of_double.axpy, x, y, 1e-14);
    }
}

template <class T>
void check_cross_product(Rng &rng, double tolerance,
                         void (*add)(std::int64_t, std::int64_t, std::int64_t, std::int64_t, const T *,
                                     const T *, double *)) {
    for (const auto &[n, first, last] : std::vector<std::array<std::int64_t, 3>>{
             {16, 0, 16}, {32, 0, 32}, {48, 0, 48}, {144, 0, 144}, {48, 16, 32}, {144, 64, 144}}) {
        const std::int64_t l = draw(rng, 0, 50), width = last - first;
        const std::vector<double> x = draw_normal(rng, l * n), y = draw_normal(rng, l * width);
        const std::vector<T> a(x.begin(), x.end()), b(y.begin(), y.end());
        std::vector<double> product(static_cast<std::size_t>(n * n), 1.0);
        add(l, n, first, last, a.data(), b.data(), product.data());
        for (std::int64_t r = 0; r < n; ++r)
            for (std::int64_t c = r; c < n; ++c) {  // the upper half is what it promises
                double expected = 1.0;
                for (std::int64_t t = 0; t < l && c >= first && c < last; ++t)
                    expected += double(a[std::size_t(t * n + r)]) * double(b[std::size_t(t * width + c - first)]);
                CHECK(close(product[std::size_t(r * n + c)], expected, tolerance));
            }
    }
}

/// Sums of v over the windows of each row, straight from their meaning.
void window_sums(const Windows &q, const double *v, double *above, double *below) {
    for (std::int32_t t = 0; t < q.n; ++t) {
        double &up = above[q.order[t]], &down = below[q.order[t]];
        up = down = 0.0;
        for (std::int32_t j = 0; j < q.upto[t]; ++j)
            if (q.level[j] > q.level[t]) up += v[q.order[j]];
        for (std::int32_t j = q.from[t]; j < q.n; ++j)
            if (q.level[j] < q.level[t]) down += v[q.order[j]];
    }
}

void sweeps(const Simd &k, Rng &rng) {
    for (int repetition = 0; repetition < 100; ++repetition) {
        Problem problem;
        problem.add_query(draw_labels(rng, draw(rng, 2, 200), repetition % 2 == 0 ? 6 : 90));
        problem.finish();
        const PairProblem p = problem.view();
        if (!p.has_pairs(0)) continue;
        const PairPoint point(p, {}, draw_normal(rng, p.n_rows()), nullptr, 1);
        const Windows q = point.windows(0);
        const std::size_t n = std::size_t(q.n);
        const std::vector<double> v = draw_normal(rng, 2 * q.n);  // two vectors
        std::vector<double> above(2 * n), below(2 * n), up(2 * n), down(2 * n), scratch;
        window_sums(q, v.data(), up.data(), down.data());
        window_sums(q, v.data() + n, up.data() + n, down.data() + n);
        const auto compare = [&](std::size_t length) {
            for (std::size_t i = 0; i < length; ++i)
                CHECK(close(above[i], up[i], 1e-12) && close(below[i], down[i], 1e-12));
        };
        const RadixTree by_level(q.n_levels), by_place(q.n + 1);
        std::vector<double> in(n), a(n, 1.0), b(n, 1.0);  // by place; sums are added to what is there
        for (std::size_t t = 0; t < n; ++t) in[t] = v[std::size_t(q.order[t])];
        scratch.assign(std::size_t(by_level.size), 0.0);
        k.radix_sums[true](q, in.data(), 0, q.n, scratch.data(), 1.0, a.data());
        scratch.assign(std::size_t(by_level.size), 0.0);
        k.radix_sums[false](q, in.data(), 0, q.n, scratch.data(), -1.0, b.data());
        for (std::size_t t = 0; t < n; ++t) {
            above[std::size_t(q.order[t])] = a[t] - 1.0;
            below[std::size_t(q.order[t])] = 1.0 - b[t];
        }
        compare(n);
        const bool few = q.n_levels <= prefix_table_levels;
        scratch.resize(2 * (8 * (n + 1) + std::size_t(by_place.size)));
        const auto one = few ? k.prefix_table[0] : k.ranked_sums[0];
        one(q, v.data(), above.data(), below.data(), scratch.data());
        compare(n);
        const auto two = few ? k.prefix_table[1] : k.ranked_sums[1];
        two(q, v.data(), above.data(), below.data(), scratch.data());
        compare(2 * n);
    }
}

}  // namespace

int main() {
    for (const Simd *table : available()) {
        Rng rng(3);
        dense_kernels(*table, rng);
        vector_kernels(*table, rng);
        check_cross_product<float>(rng, 2e-5, table->of_float.add_cross_product);
        check_cross_product<double>(rng, 1e-12, table->of_double.add_cross_product);
        sweeps(*table, rng);
    }
    CHECK(std::string(simd().name) == available().back()->name);
}
