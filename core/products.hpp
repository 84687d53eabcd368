// z = X w and g = Xᵀ r for rows taken in the order of their positions.
#pragma once
#include <algorithm>
#include <cstdint>
#include <span>
#include <type_traits>
#include <vector>

#include "rows.hpp"
#include "simd.hpp"

namespace linrank {

/// Position t is row order[t] of the matrix; an empty order means position = row.
using Order = std::span<const std::int64_t>;

inline std::int64_t n_positions(const Rows &rows, Order order) {
    return order.empty() ? n_rows(rows) : std::int64_t(order.size());
}

/// out[t] = x_{row(t)}·w, sums in double.
void multiply(const Rows &rows, Order order, std::span<const double> w, std::span<double> out,
              int n_threads);

/// out = Σ_t r[t] x_{row(t)}, sums in double; the same bits for any number of threads.
void multiply_transposed(const Rows &rows, Order order, std::span<const double> r,
                         std::span<double> out, int n_threads);

/// The longest sums that products are made of, whatever the order: of a score, and of a slope in w. With μ the
/// unit roundoff, a sum of n products is off by at most (n + 1)μ Σ |terms|.
struct LongestSums {
    std::int64_t score, slope;
};
LongestSums longest_sums(const Rows &rows);

/// out = x + a·y.
void add_scaled(std::span<const double> x, double a, std::span<const double> y,
                std::span<double> out, int n_threads);

/// How many accumulators of n_columns numbers a reduction may use: enough to share the work, never
/// much memory beside the matrix. Depends on the data only.
std::int64_t n_accumulators(const Rows &rows);

/// out[c] = Σ_k parts[k][c], in order of k.
void reduce(const std::vector<std::vector<double>> &parts, std::span<double> out, int n_threads);

/// A symmetric n × n matrix, computed on and above the diagonal with its side padded for the kernels.
struct PaddedSquare {
    const std::int64_t n, padded;

    /// Throws std::bad_alloc for a side whose square no address space holds.
    explicit PaddedSquare(std::int64_t n_columns);
    /// How many such matrices a reduction may use: some 64 MB of them, and at least two.
    std::int64_t n_parts() const;
    /// factor · Σ parts in full, without the padding.
    std::vector<double> sum(const std::vector<std::vector<double>> &parts, double factor,
                            int n_threads) const;
};

// A range of positions of a matrix, dense or CSR, behind one set of operations.

/// The rows of positions [first, first + n) with the operations that kernels are made of: dot, add and
/// unpack, and add_cached, for Hessian products, whose sums are in the precision of the data.
template <class Storage>
struct RowRange;

template <class Value>
struct RowRange<DenseRows<Value>> {
    DenseBlock<Value> block;

    RowRange(const DenseRows<Value> &rows, Order order, std::int64_t first, std::int64_t n)
        : block{rows.values, rows.stride, rows.n_columns,
                order.empty() ? nullptr : order.data() + first, first, n} {}

    void dot(const double *w, double *out) const {
        simd().of<Value>().dot(block, w, out);
    }
    void add(const double *a, double *total) const {
        simd().of<Value>().add(block, a, total);
    }
    // For rows in cache, summed in the precision of the data.
    void add_cached(const double *a, Value *total) const {
        simd().of<Value>().add_cached(block, a, total);
    }
    /// out = row t, in full.
    template <class T>
    void unpack(std::int64_t t, T *out) const { unpack(t, 0, block.n_columns, out); }
    /// out = columns [begin, end) of row t.
    template <class T>
    void unpack(std::int64_t t, std::int64_t begin, std::int64_t end, T *out) const {
        const Value *x = block.row(t);
        for (std::int64_t c = begin; c < end; ++c) out[c - begin] = T(x[c]);
    }
};

template <class Value>
struct RowRange<CsrRows<Value>> {
    CsrRows<Value> rows;
    const std::int64_t *index;
    std::int64_t first, n_rows;

    RowRange(const CsrRows<Value> &r, Order order, std::int64_t begin, std::int64_t n)
        : rows(r), index(order.empty() ? nullptr : order.data() + begin), first(begin), n_rows(n) {}

    std::int64_t row(std::int64_t t) const { return index ? index[t] : first + t; }

    void dot(const double *w, double *out) const {
        for (std::int64_t t = 0; t < n_rows; ++t) {
            const std::int64_t i = row(t);
            double sum = 0;
            for (std::int64_t k = rows.offsets[i]; k < rows.offsets[i + 1]; ++k)
                sum += double(rows.values[k]) * w[rows.columns[k]];
            out[t] = sum;
        }
    }
    void add(const double *a, double *total) const {
        for (std::int64_t t = 0; t < n_rows; ++t) {
            if (a[t] == 0.0) continue;
            const std::int64_t i = row(t);
            for (std::int64_t k = rows.offsets[i]; k < rows.offsets[i + 1]; ++k)
                total[rows.columns[k]] += a[t] * double(rows.values[k]);
        }
    }
    // Sparse rows gain nothing from narrow sums.
    void add_cached(const double *a, double *total) const { add(a, total); }
    template <class T>
    void unpack(std::int64_t t, T *out) const { unpack(t, 0, rows.n_columns, out); }
    template <class T>
    void unpack(std::int64_t t, std::int64_t begin, std::int64_t end, T *out) const {
        const std::int64_t i = row(t);
        for (std::int64_t c = begin; c < end; ++c) out[c - begin] = T(0);
        for (std::int64_t k = rows.offsets[i]; k < rows.offsets[i + 1]; ++k)
            if (rows.columns[k] >= begin && rows.columns[k] < end)
                out[rows.columns[k] - begin] += T(rows.values[k]);
    }
};

/// Calls visit(column, value) for the entries of row i that are stored.
template <class Value, class Visit>
void for_each_entry(const DenseRows<Value> &rows, std::int64_t i, const Visit &visit) {
    for (std::int64_t c = 0; c < rows.n_columns; ++c)
        visit(std::size_t(c), double(rows.values[i * rows.stride + c]));
}
template <class Value, class Visit>
void for_each_entry(const CsrRows<Value> &rows, std::int64_t i, const Visit &visit) {
    for (std::int64_t k = rows.offsets[i]; k < rows.offsets[i + 1]; ++k)
        visit(std::size_t(rows.columns[k]), double(rows.values[k]));
}

/// The type in which Hessian products are summed.
template <class Storage> struct FastSum { using type = double; };
template <> struct FastSum<DenseRows<float>> { using type = float; };

}  // namespace linrank
