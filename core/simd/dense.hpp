// Products with dense rows. A row whose length is not a multiple of eight ends with an overlapping
// vector whose repeated lanes count for nothing, so rows need no padding.
#pragma once
#include "vector.hpp"

namespace linrank::LINRANK_ISA {
namespace {

/// Asks for four rows ahead where rows are taken by index: no hardware foresees these.
template <class Value>
inline void prefetch(const DenseBlock<Value> &x, Index t) {
    if (!x.index || t + 12 > x.n_rows) return;
    for (Index r = t + 8; r < t + 12; ++r) {
        const char *row = reinterpret_cast<const char *>(x.row(r));
        for (Index byte = 0; byte < x.n_columns * Index(sizeof(Value)); byte += 64)
            prefetch_line(row + byte);
    }
}

template <class Value>
double dot_short(const Value *x, const double *w, Index n) {
    double sum = 0;
    for (Index c = 0; c < n; ++c) sum += double(x[c]) * w[c];
    return sum;
}

/// The last eight of w, with zeros where the whole vectors before have counted already.
inline F64x8 tail_of(const double *w, Index n) {
    F64x8 tail = load8<double>(w + n - 8);
    for (int lane = 0; lane < 8 - int(n % 8); ++lane) tail[lane] = 0;
    return tail;
}

/// out[t] = the sum of the lanes of lanes_of(row_of(t)); a row's bits do not depend on the rows around it.
template <class RowOf, class LanesOf>
[[gnu::always_inline]] inline void sum_rows(Index n_rows, const RowOf &row_of, const LanesOf &lanes_of,
                                            double *out) {
    Index t = 0;
    for (; t + 4 <= n_rows; t += 4) {
        // One row behind the other, as they lie: as arguments of store_sums GCC takes the last one first,
        // and the hardware, which looks ahead where addresses rise, reads at a quarter of the speed.
        const auto s0 = lanes_of(row_of(t)), s1 = lanes_of(row_of(t + 1));
        const auto s2 = lanes_of(row_of(t + 2)), s3 = lanes_of(row_of(t + 3));
        store_sums(s0, s1, s2, s3, out + t);
    }
    for (; t < n_rows; ++t) out[t] = sum_lanes(lanes_of(row_of(t)));
}

/// The same for the rows of a block, in a loop for rows that follow each other and in one for an index:
/// the choice in every row costs as much as a row of eight numbers.
template <class Value, class LanesOf>
[[gnu::always_inline]] inline void dot_rows(const DenseBlock<Value> &block, const LanesOf &lanes_of,
                                            double *out) {
    const DenseBlock<Value> x = block;  // which nothing that is written to can be part of
    if (x.index) {
        const auto row_of = [x](Index t) {
            if (t % 4 == 0) prefetch(x, t);
            return x.values + x.index[t] * x.stride;
        };
        sum_rows(x.n_rows, row_of, lanes_of, out);
    } else {
        const Value *const first = x.values + x.first * x.stride;
        const auto row_of = [first, stride = x.stride](Index t) { return first + t * stride; };
        sum_rows(x.n_rows, row_of, lanes_of, out);
    }
}

/// Rows of n_whole vectors, perhaps with a tail: the weights stay in registers and the loop over the
/// columns is gone, a third of the time of a row of eight. The sums are those of `dot`, bit for bit.
template <int n_whole, bool has_tail, class Value>
void dot_narrow(const DenseBlock<Value> &x, const double *w, double *out) {
    const Index last = x.n_columns - 8;
    F64x8 weights[n_whole], tail{};
    for (int k = 0; k < n_whole; ++k) weights[k] = load8<double>(w + 8 * k);
    if constexpr (has_tail) tail = tail_of(w, x.n_columns);
    dot_rows(x, [&](const Value *r) {
        F64x8 even{}, odd{};
        for (int k = 0; k < n_whole; ++k) (k % 2 == 0 ? even : odd) += load8<double>(r + 8 * k) * weights[k];
        if constexpr (has_tail) odd += load8<double>(r + last) * tail;
        return even + odd;
    }, out);
}

inline constexpr int widest_narrow = 2;  // vectors: beyond, the loop over the columns costs little

/// dot_narrow for as many vectors as the rows have, at most n_whole.
template <int n_whole, class Value>
void dot_as_narrow(const DenseBlock<Value> &x, const double *w, double *out) {
    if (x.n_columns / 8 != n_whole) {
        if constexpr (n_whole > 1) dot_as_narrow<n_whole - 1>(x, w, out);
    } else if (x.n_columns % 8 != 0) {
        dot_narrow<n_whole, true>(x, w, out);
    } else {
        dot_narrow<n_whole, false>(x, w, out);
    }
}

template <class Value>
void dot(const DenseBlock<Value> &x, const double *w, double *out) {
    const Index n = x.n_columns, whole = n / 8 * 8;
    if (n < 8) {
        for (Index t = 0; t < x.n_rows; ++t) out[t] = dot_short(x.row(t), w, n);
        return;
    }
    if (n / 8 <= widest_narrow) return dot_as_narrow<widest_narrow>(x, w, out);
    const bool has_tail = whole < n;
    const F64x8 tail = has_tail ? tail_of(w, n) : F64x8{};
    dot_rows(x, [&](const Value *r) {
        F64x8 even{}, odd{};
        Index c = 0;
        for (; c + 16 <= whole; c += 16) {
            even += load8<double>(r + c) * load8<double>(w + c);
            odd += load8<double>(r + c + 8) * load8<double>(w + c + 8);
        }
        if (c < whole) even += load8<double>(r + c) * load8<double>(w + c);
        if (has_tail) odd += load8<double>(r + n - 8) * tail;
        return even + odd;
    }, out);
}

/// Rows that come from memory are taken one by one: several in step are no pattern that the hardware
/// looks ahead in, and cost half of the bandwidth. Cached ones go four at a time, for fewer loads and
/// stores of the total.
template <bool are_cached, class T, class Value>
void add_rows(const DenseBlock<Value> &x, const double *a, T *total) {
    const Index n = x.n_columns, whole = n / 8 * 8;
    if (n < 8) {
        for (Index t = 0; t < x.n_rows; ++t)
            for (Index c = 0; c < n; ++c) total[c] += T(a[t]) * T(x.row(t)[c]);
        return;
    }
    const bool has_tail = whole < n;
    Vec8<T> tail{};
    Index t = 0;
    if constexpr (are_cached)
        for (; t + 4 <= x.n_rows; t += 4) {
            const Value *r0 = x.row(t), *r1 = x.row(t + 1), *r2 = x.row(t + 2), *r3 = x.row(t + 3);
            const T a0 = T(a[t]), a1 = T(a[t + 1]), a2 = T(a[t + 2]), a3 = T(a[t + 3]);
            const auto sum = [&](Index c) {
                return (load8<T>(r0 + c) * a0 + load8<T>(r1 + c) * a1) +
                       (load8<T>(r2 + c) * a2 + load8<T>(r3 + c) * a3);
            };
            for (Index c = 0; c < whole; c += 8)
                store8(total + c, load8<T>(total + c) + sum(c));
            if (has_tail) tail += sum(n - 8);
        }
    for (; t < x.n_rows; ++t) {
        if (!are_cached && t % 4 == 0) prefetch(x, t);
        const Value *r = x.row(t);
        const T at = T(a[t]);
        for (Index c = 0; c < whole; c += 8)
            store8(total + c, load8<T>(total + c) + load8<T>(r + c) * at);
        if (has_tail) tail += load8<T>(r + n - 8) * at;
    }
    for (Index c = whole; c < n; ++c) total[c] += tail[c - (n - 8)];
}

// ---- products of columns -----------------------------------------------------------------------

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
