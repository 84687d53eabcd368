#pragma once
#include "simd.hpp"

#include <algorithm>
#include <type_traits>

#include "vector.hpp"

namespace linrank::LINRANK_ISA {
namespace {

// How many columns of a have their sums, two registers each, in registers at once: of 32, 16 and 16 there are.
constexpr int n_held = register_bytes == 64 ? 8 : 4;

/// Copies columns [0, width) of n_rows rows side by side, in panels of `panel` columns.
template <class T>
void pack_panels(std::int64_t n_rows, std::int64_t stride, const T *x, std::int64_t width, std::int64_t panel,
                 T *out) {
    for (std::int64_t c = 0; c < width; c += panel)
        for (std::int64_t t = 0; t < n_rows; ++t, out += panel)
            __builtin_memcpy(out, x + t * stride + c, std::size_t(panel) * sizeof(T));
}

/// product += aᵀb for n_held columns of a and n_vectors registers of columns of b, both packed.
template <int n_vectors, class T>
[[gnu::always_inline]] inline void add_tile(std::int64_t n_rows, const T *a, const T *b, double *product,
                                            std::int64_t n) {
    using Vec = typename Register<T>::type;
    constexpr int width = int(sizeof(Vec) / sizeof(T));
    Vec sums[n_held * n_vectors]{};
    for (std::int64_t t = 0; t < n_rows; ++t, a += n_held, b += n_vectors * width)
#pragma GCC unroll 2
        for (int k = 0; k < n_vectors; ++k) {
            const Vec v = Memory<Vec>::load(b + k * width);
#pragma GCC unroll 8
            for (int r = 0; r < n_held; ++r) sums[r * n_vectors + k] += v * a[r];
        }
    for (int r = 0; r < n_held; ++r)
        for (int k = 0; k < n_vectors; ++k)
            for (int lane = 0; lane < width; ++lane)
                product[r * n + k * width + lane] += double(sums[r * n_vectors + k][lane]);
}

// Only the tiles that touch the upper triangle. The sums of a tile stay in registers while all rows pass; the
// product itself, in double, is touched once per call, so rounding grows with the rows of a call and not with
// those of the data. Both sides are packed first: where a row takes a multiple of 4 KB, one column of all rows
// would fall on one set of the cache.
template <class T>
void add_cross_product(std::int64_t n_rows, std::int64_t n, std::int64_t first, std::int64_t last,
                       const T *a, const T *b, double *product) {
    constexpr std::int64_t most_rows = 96, n_packed = 128;  // columns of a: a third of the second cache at most
    constexpr std::int64_t width = register_bytes / std::int64_t(sizeof(T));
    alignas(64) T left[most_rows * n_packed], right[most_rows * 2 * width];
    for (; n_rows > most_rows; n_rows -= most_rows, a += most_rows * n, b += most_rows * (last - first))
        add_cross_product(most_rows, n, first, last, a, b, product);
    for (std::int64_t begin = 0; begin < last; begin += n_packed) {
        const std::int64_t end = std::min(begin + n_packed, last);
        pack_panels(n_rows, n, a + begin, end - begin, n_held, left);
        const auto sweep = [&]<int n_vectors>(std::int64_t c) __attribute__((always_inline)) {
            pack_panels(n_rows, last - first, b + (c - first), n_vectors * width, n_vectors * width, right);
            const T *panel = left;
            for (std::int64_t r = begin; r < end && r < c + n_vectors * width; r += n_held, panel += n_held * n_rows)
                add_tile<n_vectors>(n_rows, panel, right, product + r * n + c, n);
        };
        std::int64_t c = std::max(first, begin);
        for (; c + 2 * width <= last; c += 2 * width) sweep.template operator()<2>(c);
        for (; c < last; c += width) sweep.template operator()<1>(c);
    }
}

template <class T>
void axpy(std::int64_t n, T a, const T *x, T *y) {
    using Part = Memory<Vector<T, 16>>;
    for (std::int64_t c = 0; c < n; c += 16) Part::store(y + c, Part::load(y + c) + Part::load(x + c) * a);
}

double dot_vectors(std::int64_t n, const double *x, const double *y) {
    F64x8 s0{}, s1{};
    std::int64_t c = 0;
    for (; c + 16 <= n; c += 16) {
        s0 += load8<double>(x + c) * load8<double>(y + c);
        s1 += load8<double>(x + c + 8) * load8<double>(y + c + 8);
    }
    double sum = sum_lanes(s0 + s1);
    for (; c < n; ++c) sum += x[c] * y[c];
    return sum;
}

}  // namespace
}  // namespace linrank::LINRANK_ISA
