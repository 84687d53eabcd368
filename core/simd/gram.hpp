#pragma once
#include "simd.hpp"

#include "vector.hpp"

namespace linrank::LINRANK_ISA {
namespace {

// How many columns of a have their sums, two registers each, in registers at once: of 32, 16 and 16 there are.
constexpr int n_held = register_bytes == 64 ? 8 : 4;

/// Copies columns [0, width) of n_rows rows side by side, in panels of `panel` columns.
template <class T>
void pack_panels(Index n_rows, Index stride, const T *x, Index width, Index panel, T *out) {
    for (Index c = 0; c < width; c += panel)
        for (Index t = 0; t < n_rows; ++t, out += panel)
            __builtin_memcpy(out, x + t * stride + c, std::size_t(panel) * sizeof(T));
}

/// product += aᵀb for n_held columns of a and n_vectors registers of columns of b, both packed.
template <int n_vectors, class T>
[[gnu::always_inline]] inline void add_tile(Index n_rows, const T *a, const T *b, double *product,
                                            Index n) {
    using Vec = typename Register<T>::type;
    constexpr int width = int(sizeof(Vec) / sizeof(T));
    Vec sums[n_held * n_vectors]{};
    for (Index t = 0; t < n_rows; ++t, a += n_held, b += n_vectors * width)
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
void add_cross_product(Index n_rows, Index n, Index first, Index last,
                       const T *a, const T *b, double *product) {
    constexpr Index most_rows = 96, n_packed = 128;  // columns of a: a third of the second cache at most
    constexpr Index width = register_bytes / Index(sizeof(T));
    alignas(64) T left[most_rows * n_packed], right[most_rows * 2 * width];
    for (; n_rows > most_rows; n_rows -= most_rows, a += most_rows * n, b += most_rows * (last - first))
        add_cross_product(most_rows, n, first, last, a, b, product);
    for (Index begin = 0; begin < last; begin += n_packed) {
        const Index end = std::min(begin + n_packed, last);
        pack_panels(n_rows, n, a + begin, end - begin, n_held, left);
        const auto sweep = [&]<int n_vectors>(Index c) __attribute__((always_inline)) {
            pack_panels(n_rows, last - first, b + (c - first), n_vectors * width, n_vectors * width, right);
            const T *panel = left;
            for (Index r = begin; r < end && r < c + n_vectors * width; r += n_held, panel += n_held * n_rows)
                add_tile<n_vectors>(n_rows, panel, right, product + r * n + c, n);
        };
        Index c = std::max(first, begin);
        for (; c + 2 * width <= last; c += 2 * width) sweep.template operator()<2>(c);
        for (; c < last; c += width) sweep.template operator()<1>(c);
    }
}

template <class T>
void axpy(Index n, T a, const T *x, T *y) {
    using Part = Memory<Vector<T, 16>>;
    for (Index c = 0; c < n; c += 16) Part::store(y + c, Part::load(y + c) + Part::load(x + c) * a);
}

double dot_vectors(Index n, const double *x, const double *y) {
    F64x8 s0{}, s1{};
    Index c = 0;
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
