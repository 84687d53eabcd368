// Every entry is one chain of multiply-adds in the order of the columns, whichever of its two rows is
// broadcast, so that a kernel matrix is symmetric to the bit.
#pragma once
#include "vector.hpp"

namespace linrank::LINRANK_ISA {
namespace {

// The widest vector that is one register or two (Twin), and how many rows of a and vectors of b have their
// sums in registers at once: of 32, 16 and 16 there are.
#if defined(__AVX512F__)
typedef F64x8 Part;
constexpr int n_rows_held = 8, n_parts_held = 2;
#elif defined(__AVX2__)
typedef F64x8 Part;
constexpr int n_rows_held = 4, n_parts_held = 1;
#else
typedef Register<double>::type Part;
constexpr int n_rows_held = 2, n_parts_held = 4;
#endif
constexpr int part_width = int(sizeof(Part) / sizeof(double));

inline Part load_part(const double *p) { return Memory<Part>::load(p); }

/// n_parts vectors of b, `gap` apart from each other, against some rows of a.
template <int n_parts, class Add>
[[gnu::always_inline]] inline void fill_block(Index n_columns, const double *a, const double *b,
                                              Index gap, double factor, double term, double *out,
                                              Index stride, const Add &add) {
    Part sums[n_rows_held * n_parts]{};
    for (Index c = 0; c < n_columns; ++c)
#pragma GCC unroll 8
        for (int k = 0; k < n_parts; ++k) {
            const Part y = load_part(b + 8 * c + k * gap);
#pragma GCC unroll 8
            for (int r = 0; r < n_rows_held; ++r)
                sums[r * n_parts + k] = add(sums[r * n_parts + k], a[8 * c + r], y);
        }
#pragma GCC unroll 8
    for (int r = 0; r < n_rows_held; ++r)
#pragma GCC unroll 8
        for (int k = 0; k < n_parts; ++k)
            Memory<Part>::store(out + r * stride + k * part_width,
                                sums[r * n_parts + k] * factor + term);
}

template <class Add>
[[gnu::always_inline]] inline void fill_panels(Index n_columns, Index n_panels, const double *a,
                                               const double *b, double factor, double term,
                                               double *out, Index stride, const Add &add) {
    // Parts of one panel lie side by side; where a part is a panel, the next one is a panel further.
    const Index gap = part_width == 8 ? 8 * n_columns : part_width;
    const auto fill = [&]<int n_parts>(Index part) __attribute__((always_inline)) {
        const double *from = b + part * part_width / 8 * 8 * n_columns + part * part_width % 8;
        for (int r = 0; r < 8; r += n_rows_held)
            fill_block<n_parts>(n_columns, a + r, from, gap, factor, term,
                                out + r * stride + part * part_width, stride, add);
    };
    const Index n = n_panels * 8 / part_width;
    Index part = 0;
    for (; part + n_parts_held <= n; part += n_parts_held) fill.template operator()<n_parts_held>(part);
    for (; part < n; ++part) fill.template operator()<1>(part);
}

void panel_distances(Index n_columns, Index n_panels, const double *a, const double *b,
                     double factor, double *out, Index stride) {
    fill_panels(n_columns, n_panels, a, b, factor, 0.0, out, stride,
                [](Part sum, double x, Part y) __attribute__((always_inline)) {
                    const Part difference = x - y;
                    return sum + difference * difference;
                });
}

void panel_products(Index n_columns, Index n_panels, const double *a, const double *b,
                    double factor, double term, double *out, Index stride) {
    fill_panels(n_columns, n_panels, a, b, factor, term, out, stride,
                [](Part sum, double x, Part y) __attribute__((always_inline)) {
                    return sum + x * y;
                });
}

void power_vector(Index n, int degree, double *x) {
    for (Index i = 0; i < n; i += part_width) {
        Part square = load_part(x + i), power = Part{} + 1.0;
        for (int left = degree; left > 0; left >>= 1) {
            if (left & 1) power = power * square;
            square = square * square;
        }
        Memory<Part>::store(x + i, power);
    }
}

/// Rows whose sums are in registers at once in add_symmetric.
constexpr int n_rows_summed = part_width == 8 && n_parts_held == 2 ? 8 : 4;

template <int n_rows>
[[gnu::always_inline]] inline void add_symmetric_rows(Index n, const double *q, Index stride,
                                            const double *u, const double *v, double *sums,
                                            double *total) {
    Part s[n_rows]{};
    Index j = 0;
    for (; j + part_width <= n; j += part_width) {
        const Part x = load_part(v + j);
        Part sum = load_part(total + j);
#pragma GCC unroll 8
        for (int r = 0; r < n_rows; ++r) {
            const Part y = load_part(q + r * stride + j);
            s[r] += x * y;
            sum += u[r] * y;
        }
        Memory<Part>::store(total + j, sum);
    }
    for (int r = 0; r < n_rows; ++r) {
        double rest = 0;
        for (int k = 0; k < part_width; ++k) rest += s[r][k];
        for (Index k = j; k < n; ++k) {
            rest += q[r * stride + k] * v[k];
            total[k] += u[r] * q[r * stride + k];
        }
        sums[r] += rest;
    }
}

void add_symmetric(Index n_rows, Index n, const double *q, Index stride,
                   const double *u, const double *v, double *sums, double *total) {
    Index r = 0;
    for (; r + n_rows_summed <= n_rows; r += n_rows_summed)
        add_symmetric_rows<n_rows_summed>(n, q + r * stride, stride, u + r, v, sums + r, total);
    for (; r < n_rows; ++r) add_symmetric_rows<1>(n, q + r * stride, stride, u + r, v, sums + r, total);
}

// ---- exponentials ------------------------------------------------------------------------------

// 1.5·2⁵²: added to a number below 2⁵¹, it leaves the nearest integer in the low bits.
constexpr double magic = 6755399441055744.0;
constexpr double per_log2 = 1.4426950408889634;
// log 2 in two parts, the first of so few bits that its product with an exponent is exact.
constexpr double log2_high = 6.93147180369123816490e-01, log2_low = 1.90821492927058770002e-10;

typedef Register<double>::type Numbers;
typedef Register<std::uint64_t>::type Bits;
constexpr int width = int(sizeof(Numbers) / sizeof(double));

/// e^x = 2^k e^r, |r| <= ½ log 2, with the Taylor polynomial of e^r: what it leaves out is below 2⁻⁵⁷.
/// In vectors, for GCC 12 makes none of a loop over numbers with AVX2: 3.7 ns each, and 1.0 so.
[[gnu::always_inline]] inline Numbers exponential(Numbers x) {
    const Numbers shifted = x * per_log2 + magic, k = shifted - magic;
    const Numbers r = (x - k * log2_high) - k * log2_low;
    Numbers p = r * (1.0 / 6227020800) + 1.0 / 479001600;
    p = p * r + 1.0 / 39916800;
    p = p * r + 1.0 / 3628800;
    p = p * r + 1.0 / 362880;
    p = p * r + 1.0 / 40320;
    p = p * r + 1.0 / 5040;
    p = p * r + 1.0 / 720;
    p = p * r + 1.0 / 120;
    p = p * r + 1.0 / 24;
    p = p * r + 1.0 / 6;
    p = p * r + 0.5;
    p = p * r * r + r;
    const Bits bits = (Bits(shifted) << 52) + (std::uint64_t(1023) << 52);
    const Numbers power = Numbers(bits), value = power + power * p;
    // From 709.4 on k is 1024, which no exponent can be: e^x is infinite, or almost.
    return x < -700.0 ? Numbers{} : x > 709.4 ? Numbers{} + std::numeric_limits<double>::infinity() : value;
}

void exp_vector(Index n, double *x) {
    Index i = 0;
    for (; i + width <= n; i += width)
        Memory<Numbers>::store(x + i, exponential(Memory<Numbers>::load(x + i)));
    if (i == n) return;
    Numbers last{};
    for (int k = 0; k < int(n - i); ++k) last[k] = x[i + k];
    last = exponential(last);
    for (int k = 0; k < int(n - i); ++k) x[i + k] = last[k];
}

}  // namespace
}  // namespace linrank::LINRANK_ISA
