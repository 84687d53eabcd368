// Xᵀ ∇²L(z) X: as a product, as a matrix, as a diagonal.
#pragma once

#include "pair_sweep.hpp"
#include "products.hpp"

namespace linrank {

/// Xᵀ∇²L(z)X·v, and image = X v, in one pass over the rows: the scores of a query, its sweep
/// and the accumulation happen while its rows are in cache. Positions of queries without pairs get
/// image 0. The image is exact to double, since scores are made of it; the product of dense float32
/// rows is summed in float32, which is enough for a search direction.
std::vector<double> hessian_product(const Positions &x, const PairPoint &point, Doubles v,
                                    std::span<double> image, int n_threads);

/// Xᵀ∇²L(z)X in full, n_columns × n_columns, with sums in the precision of the data.
std::vector<double> hessian_matrix(const Positions &x, const PairPoint &point, int n_threads);

/// The diagonal of Xᵀ∇²L(z)X, with the violated pairs of a query taken as if spread in proportion
/// to the degrees of their rows: Σ_q [Σ_i d_i x_i² - (Σ_i d_i x_i)² / Σ_i d_i]. One pass over the
/// non-zeros, exact when the violated pairs do have that form; for preconditioning only.
std::vector<double> hessian_diagonal(const Positions &x, const PairPoint &point, int n_threads);

// The explicit Hessian of the pair loss, gathered query by query.

/// XᵀAᵀAX, one query at a time, gathered in blocks of rows for add_cross_product.
///
/// With d_i the degree of row i, and γ⁺_i, γ⁻_i the sums of u_j x_j over the violators above and
/// below it, XᵀAᵀAX = Σ_i x_i (d_i x_i - c u_i (γ⁺_i + γ⁻_i))ᵀ. It is symmetric: half of it is
/// computed. With gains γ⁺_i = Σ u_j g_j x_j - g_i Σ u_j x_j, and γ⁻_i the same with the other
/// sign: a cell of a tree holds both sums. Rows are centered per query, which changes nothing and
/// saves float32 from large offsets; the sums of a block are in the type of the data.
///
/// The trees have a cell a level, and would be three times the rows where all labels of a query
/// differ: then only as many columns are swept at a time as keep them within `most_bytes`, 16 at
/// least.
template <class Storage>
class GramAccumulator {
    using Real = typename Storage::value_type;

public:
    explicit GramAccumulator(const Storage &storage, Index most_bytes = Index(1) << 24)
        : product(sum, padded(storage.n_columns)), storage_(storage),
          padded_(padded(storage.n_columns)), x_(padded_), last_(padded_), most_bytes_(most_bytes) {}

    std::vector<double> sum;  // XᵀAᵀAX
    CrossProduct<Real> product;

    /// The terms of a query, or one of n_parts shares of them: some of the columns.
    void add(Order order, const PairPoint &point, Index q, Index part = 0, Index n_parts = 1) {
        const PairProblem &problem = point.problem();
        const Index begin = problem.begin(q), n = problem.length(q);
        const CenteredRows<Storage> rows(storage_, order, begin, n);
        const Windows w = point.windows(q);
        adjacent_ = w.adjacent;
        u_ = problem.row_weight.empty() ? nullptr : problem.row_weight.data() + begin;
        g_ = problem.gain.empty() ? nullptr : problem.gain.data() + begin;
        const Index n_swept = columns_at_a_time(w.n_levels);
        const Index n_bands = (padded_ + n_swept - 1) / n_swept;
        const Index band = n_bands * part / n_parts, end = n_bands * (part + 1) / n_parts;
        if (band == end) return;
        pack(rows, n);
        if (n_bands == 1) return sweep(rows, w, point, q);
        for (first_ = band * n_swept; first_ < std::min(end * n_swept, padded_); first_ = last_) {
            last_ = std::min(first_ + n_swept, padded_);
            product.set_columns(first_, last_);
            sweep(rows, w, point, q);
        }
        first_ = 0, last_ = padded_;
        product.set_columns(first_, last_);
    }

private:
    static Index padded(Index n) { return (n + 15) / 16 * 16; }

    Index columns_at_a_time(Index n_levels) const {
        const Index a_column = 3 * (n_levels + 1) * (g_ ? 2 : 1) * Index(sizeof(Real));
        return std::max<Index>(16, most_bytes_ / a_column / 16 * 16);
    }
    /// Columns [first_, last_) of the terms of all rows of a query.
    void sweep(const CenteredRows<Storage> &rows, const Windows &w, const PairPoint &point,
               Index q) {
        const PairProblem &problem = point.problem();
        const Index k = w.n_levels, width = last_ - first_;
        cell_ = (g_ ? 2 : 1) * width;
        if (!w.from_inner) sum_levels(rows, w);
        above_.assign((k + 1) * cell_, Real(0));
        passed_.assign((k + 1) * cell_, Real(0));
        Index n_above = 0, n_left = 0, n_passed = 0, n_reached = 0;
        for (Index t = 0; t < w.n; ++t) {
            const Index i = w.order[t], level = w.level[t];
            enter<true>(rows, w, n_above, w.upto[t], Real(1));
            enter<false>(rows, w, n_passed, w.from[t], Real(1));
            if (w.upto_inner) enter<true>(rows, w, n_left, w.upto_inner[t], Real(-1));
            // A band of lower rows lies between the passed ones of its two ends.
            if (w.from_inner) enter<false>(rows, w, n_reached, w.from_inner[t], Real(-1));
            const double degree = point.degree(q)[i];
            if (degree == 0.0) continue;
            Real *a = product.a(), *b = product.b();
            const Real weight = Real(problem.c(q) * u(i)), g = g_ ? Real(g_[i]) : Real(0);
            if (is_packed_) std::copy_n(packed_.data() + i * padded_, last_, a);
            else rows.unpack(i, 0, last_, a);
            for (Index c = 0; c < width; ++c) b[c] = Real(degree) * a[first_ + c];
            const Real down = g_ ? -weight : weight;  // |g_j - g_i| below is g_i - g_j
            add_prefix(above_, k - 1 - level, -weight, g, b);
            // γ⁻ = all rows of lower levels, less those that lie before the window.
            if (!w.from_inner) add_cell(below_.data() + level * cell_, -down, g, b);
            add_prefix(passed_, level, down, g, b);
            product.add();
        }
    }

    void axpy(Real a, const Real *x, Real *y) const { kernels_.axpy(last_ - first_, a, x, y); }
    /// The rows of a query, if they fit the second-level cache.
    void pack(const CenteredRows<Storage> &rows, Index n) {
        is_packed_ = n * padded_ <= 1 << 18;
        if (!is_packed_) return;
        packed_.resize(n * padded_);
        for (Index i = 0; i < n; ++i) rows.unpack(i, 0, padded_, packed_.data() + i * padded_);
    }
    /// Columns [first_, last_) of row i less the mean; valid until the next call.
    const Real *centered(const CenteredRows<Storage> &rows, Index i) {
        if (is_packed_) return packed_.data() + i * padded_ + first_;
        rows.unpack(i, first_, last_, x_.data());
        return x_.data();
    }
    double u(Index i) const { return u_ ? u_[i] : 1.0; }
    /// below_[r] = the cell of the rows of levels < r, or of level r - 1 where only neighbors
    /// count.
    void sum_levels(const CenteredRows<Storage> &rows, const Windows &w) {
        const Index k = w.n_levels;
        below_.assign((k + 1) * cell_, Real(0));
        for (Index t = 0; t < w.n; ++t)
            if (w.level[t] < k - 1)
                put(centered(rows, w.order[t]), w.order[t], Real(1),
                    below_.data() + (w.level[t] + 1) * cell_);
        if (!adjacent_)
            for (Index r = 1; r < k; ++r)
                for (Index c = 0; c < cell_; c += last_ - first_)
                    axpy(Real(1), below_.data() + (r - 1) * cell_ + c,
                         below_.data() + r * cell_ + c);
    }
    /// Adds sign·(u x, u g x) of row i to a cell.
    void put(const Real *x, Index i, Real sign, Real *cell) {
        axpy(sign * Real(u(i)), x, cell);
        if (g_) axpy(sign * Real(u(i) * g_[i]), x, cell + (last_ - first_));
    }
    /// b += factor·Σ u x, or with gains factor·(Σ u g x - g Σ u x).
    void add_cell(const Real *cell, Real factor, Real g, Real *b) {
        axpy(g_ ? -factor * g : factor, cell, b);
        if (g_) axpy(factor, cell + (last_ - first_), b);
    }
    /// The places [next, end) enter a tree, whose slots are levels counted from the highest or the
    /// lowest; nothing lies beyond those of the last slot.
    template <bool is_above>
    void enter(const CenteredRows<Storage> &rows, const Windows &w, Index &next, Index end,
               Real sign) {
        for (; next < end; ++next) {
            const Index slot = is_above ? w.n_levels - 1 - w.level[next] : w.level[next];
            if (slot < w.n_levels - 1)
                insert(is_above ? above_ : passed_, rows, w.order[next], sign, slot, w.n_levels);
        }
    }
    // Fenwick trees of cells: node m holds the last (m & -m) of the first m slots. Where only
    // neighbors count, node m is slot m - 1 itself.
    void insert(std::vector<Real> &tree, const CenteredRows<Storage> &rows, Index i, Real sign,
                Index slot, Index n_slots) {
        const Real *x = centered(rows, i);
        if (adjacent_) return put(x, i, sign, tree.data() + (slot + 1) * cell_);
        for (Index m = slot + 1; m <= n_slots; m += m & -m)
            put(x, i, sign, tree.data() + m * cell_);
    }
    void add_prefix(const std::vector<Real> &tree, Index slot, Real factor, Real g, Real *b) {
        for (Index m = slot; m > 0; m -= adjacent_ ? m : m & -m)
            add_cell(tree.data() + m * cell_, factor, g, b);
    }

    const RowKernels<Real> &kernels_ = simd().of<Real>();
    Storage storage_;
    Index padded_, cell_ = 0;
    bool adjacent_ = false;
    const double *u_ = nullptr, *g_ = nullptr;  // of the query at hand; null for ones, for no gains
    std::vector<Real> x_, packed_, above_, passed_, below_;
    bool is_packed_ = false;
    Index first_ = 0, last_;  // the columns that are swept
    Index most_bytes_;
};

}  // namespace linrank
