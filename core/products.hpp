// z = X w and g = Xᵀ r for rows taken in the order of their positions.
#pragma once

#include <functional>

#include "pages.hpp"
#include "parallel.hpp"
#include "simd.hpp"

namespace linrank {

/// out[t] = x_{row(t)}·w, sums in double.
void multiply(const Positions &x, Doubles w, std::span<double> out, int n_threads);

/// Σ_t r[t] x_{row(t)}, sums in double; the same bits for any number of threads.
std::vector<double> multiply_transposed(const Positions &x, Doubles r, int n_threads);

/// The longest sums that products are made of, whatever the order: of a score, and of a slope in w.
/// With μ the unit roundoff, a sum of n products is off by at most (n + 1)μ Σ |terms|.
struct LongestSums {
    Index score, slope;
};
LongestSums longest_sums(const Rows &rows);

/// x + a·y.
PageArray<double> add_scaled(Doubles x, double a, Doubles y, int n_threads);
/// y += a x
void add_to(std::span<double> y, double a, Doubles x, int n_threads);
/// x·y, of long vectors by parts.
double dot(Doubles x, Doubles y, int n_threads);

/// How many accumulators of n_columns numbers a reduction may use: enough to share the work, never
/// much memory beside the matrix. Depends on the data only.
Index n_accumulators(const Rows &rows);

/// Σ_k parts[k][c] for each of the n places c, in order of k.
std::vector<double> reduce(const std::vector<std::vector<double>> &parts, std::size_t n,
                           int n_threads);

/// part(storage, k) of the tasks k < n, one vector each.
template <class Part>
std::vector<std::vector<double>> parts_of(const Rows &rows, Index n, int n_threads,
                                          const Part &part) {
    std::vector<std::vector<double>> parts(n);
    std::visit([&](const auto &storage) {
        parallel_for(n, n_threads, [&](Index k) { parts[k] = part(storage, k); });
    }, rows);
    return parts;
}

/// The sum of part(storage, k) over k < n, of a diagonal that is nowhere negative, though rounding
/// may leave less than nothing.
template <class Part>
std::vector<double> sum_diagonal(const Rows &rows, Index n, int n_threads, const Part &part) {
    std::vector<double> out = reduce(parts_of(rows, n, n_threads, part), n_columns(rows),
                                     n_threads);
    for (double &d : out) d = std::max(d, 0.0);
    return out;
}

/// A symmetric n × n matrix, computed on and above the diagonal with its side padded for the
/// kernels.
struct PaddedSquare {
    const Index n, padded;

    /// Throws std::bad_alloc for a side whose square no address space holds.
    explicit PaddedSquare(Index n_columns);
    /// How many such matrices a reduction may use: some 64 MB of them, and at least two.
    Index n_parts() const;
    /// factor · Σ parts in full, without the padding.
    std::vector<double> sum(const std::vector<std::vector<double>> &parts, double factor,
                            int n_threads) const;
};

// A range of positions of a matrix, dense or CSR, behind one set of operations.

/// The rows of positions [first, first + n) with the operations that kernels are made of: dot, add
/// and unpack, and add_cached, for Hessian products, whose sums are in the precision of the data.
template <class Storage>
struct RowRange;

template <class Value>
struct RowRange<DenseRows<Value>> {
    DenseBlock<Value> block;

    RowRange(const DenseRows<Value> &rows, Order order, Index first, Index n)
        : block{rows.values, rows.stride, rows.n_columns,
                order.empty() ? nullptr : order.data() + first, first, n} {}

    void dot(const double *w, double *out) const { simd().of<Value>().dot(block, w, out); }
    void add(const double *a, double *total) const { simd().of<Value>().add(block, a, total); }
    // For rows in cache, summed in the precision of the data.
    void add_cached(const double *a, Value *total) const {
        simd().of<Value>().add_cached(block, a, total);
    }
    /// out = columns [begin, end) of row t.
    template <class T>
    void unpack(Index t, Index begin, Index end, T *out) const {
        const Value *x = block.row(t);
        for (Index c = begin; c < end; ++c) out[c - begin] = T(x[c]);
    }
};

template <class Value>
struct RowRange<CsrRows<Value>> {
    CsrRows<Value> rows;
    const Index *index;
    Index first, n_rows;

    RowRange(const CsrRows<Value> &r, Order order, Index begin, Index n)
        : rows(r), index(order.empty() ? nullptr : order.data() + begin), first(begin), n_rows(n) {}

    Index row(Index t) const { return index ? index[t] : first + t; }

    void dot(const double *w, double *out) const {
        for (Index t = 0; t < n_rows; ++t) {
            double sum = 0;
            for_each_entry(rows, row(t), [&](Index c, double x) { sum += x * w[c]; });
            out[t] = sum;
        }
    }
    void add(const double *a, double *total) const {
        for (Index t = 0; t < n_rows; ++t)
            if (a[t] != 0.0) for_each_entry(rows, row(t), [&](Index c, double x) {
                total[c] += a[t] * x;
            });
    }
    // Sparse rows gain nothing from narrow sums.
    void add_cached(const double *a, double *total) const { add(a, total); }
    template <class T>
    void unpack(Index t, Index begin, Index end, T *out) const {
        std::fill(out, out + (end - begin), T(0));
        for_each_entry(rows, row(t), [&](Index c, Value x) {
            if (c >= begin && c < end) out[c - begin] += T(x);
        });
    }
};

/// The rows of one query less their mean, padded with zeros. It changes no difference of rows, and
/// saves float32 from large offsets.
template <class Storage>
class CenteredRows {
    using Real = typename Storage::value_type;

public:
    CenteredRows(const Storage &storage, Order order, Index first, Index n)
        : range_(storage, order, first, n), mean_(storage.n_columns) {
        const std::vector<double> share(n, 1.0 / double(n));
        range_.add(share.data(), mean_.data());
    }
    /// Columns [begin, end) of row t.
    void unpack(Index t, Index begin, Index end, Real *out) const {
        const Index known = std::min(end, Index(mean_.size()));
        range_.unpack(t, begin, known, out);
        for (Index c = begin; c < known; ++c)
            out[c - begin] = Real(double(out[c - begin]) - mean_[c]);
        std::fill(out + (known - begin), out + (end - begin), Real(0));
    }

private:
    RowRange<Storage> range_;
    std::vector<double> mean_;
};

/// Σ a bᵀ of pairs of padded rows, on and above the diagonal, gathered in blocks for
/// add_cross_product. Of b only columns [first, last) may be given at a time.
template <class Real>
class CrossProduct {
public:
    /// `sum` is side × side, or empty until something is added.
    CrossProduct(std::vector<double> &sum, Index side, Index block_rows = 96)
        : sum_(sum), side_(side), block_rows_(block_rows), last_(side) {}

    /// The next pair, to be filled; all zeros where a block is cleared.
    Real *a() {
        if (a_.empty()) {
            sum_.resize(side_ * side_);
            a_.resize(block_rows_ * side_);
            b_.resize(a_.size());
        }
        return a_.data() + filled_ * side_;
    }
    Real *b() { return b_.data() + filled_ * (last_ - first_); }
    void add() {
        if (++filled_ == block_rows_) flush();
    }
    void flush() {
        if (filled_ > 0)
            simd().of<Real>().add_cross_product(filled_, side_, first_, last_, a_.data(), b_.data(),
                                                sum_.data());
        filled_ = 0;
    }
    void set_columns(Index first, Index last) {
        flush();
        first_ = first;
        last_ = last;
    }
    void clear() {
        std::fill(a_.begin(), a_.end(), Real(0));
        std::fill(b_.begin(), b_.end(), Real(0));
    }
    bool is_at_start() const { return filled_ == 0; }

private:
    std::vector<double> &sum_;
    Index side_, block_rows_, filled_ = 0, first_ = 0, last_;
    std::vector<Real> a_, b_;
};

/// The type in which Hessian products are summed.
template <class Storage> struct FastSum { using type = double; };
template <> struct FastSum<DenseRows<float>> { using type = float; };

// Products with symmetric matrices of which every pair of entries is read, or computed, once.

/// The rows of an upper triangle of side n in parts of about the same area, by n alone: part t is
/// rows [first[t], first[t+1]), each first a multiple of `step`.
std::vector<Index> triangle_parts(Index n, Index step);

/// Σ_t totals of part t, where add(first, last, total) adds what the rows [first, last) of the
/// triangle contribute to total[i - first], i >= first. The same bits for any number of threads.
std::vector<double> sum_triangle(Index n, Index step, int n_threads,
                                 const std::function<void(Index, Index, double *)> &add);

/// Q v for a symmetric matrix with Q_ij at q[i·stride + j], of which only j >= i is read.
std::vector<double> symmetric_product(const double *q, Index stride, Doubles v, int n_threads);

// Solving with a symmetric positive definite matrix.

/// The Cholesky factor of the row-major n × n matrix, in its lower triangle; none if the matrix is
/// not positive definite to working precision.
std::optional<std::vector<double>> cholesky_factor(std::vector<double> matrix, Index n);

/// The solution of L Lᵀ x = b.
std::vector<double> cholesky_solve(Doubles factor, Index n, std::vector<double> b);

}  // namespace linrank
