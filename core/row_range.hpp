// A range of positions of a matrix, dense or CSR, behind one set of operations.
#pragma once
#include <algorithm>
#include <type_traits>
#include <vector>

#include "products.hpp"
#include "simd.hpp"

namespace linrank {

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
