// The rows of each query, with vectors over the columns that it has entries in.
#pragma once

#include "products.hpp"

namespace linrank {

/// Rows D x by query, D = diag(scale).
///
/// A query of sparse rows meets few columns. They are numbered anew in each query, so that a vector over
/// them, called local, is short; it costs four bytes an entry. Dense rows keep all columns.
class QueryRows {
public:
    /// `order` is empty when positions are rows, else it names no row twice: an entry has one number.
    /// `scale` is empty for ones. The arrays of `rows` outlive this.
    QueryRows(const Rows &rows, std::vector<std::int64_t> order, std::vector<std::int64_t> offsets,
              std::vector<double> scale);
    QueryRows(QueryRows &&) = default;
    QueryRows(const QueryRows &) = delete;  // rows_ looks at local_

    std::int64_t n_columns() const { return n_columns_; }
    std::int64_t n_queries() const { return std::int64_t(offsets_.size()) - 1; }
    std::int64_t first(std::int64_t q) const { return offsets_[q]; }
    std::int64_t n_rows(std::int64_t q) const { return first(q + 1) - first(q); }
    /// Length of a local vector of query q.
    std::int64_t width(std::int64_t q) const;
    /// Bytes that a pass over the rows of query q reads, about.
    std::int64_t bytes(std::int64_t q) const;

    /// out[i] = D x_i·w for the rows of q, w over all columns.
    void scores(std::int64_t q, const std::vector<double> &w, std::vector<double> &scratch,
                std::vector<double> &out) const;
    /// out = Σ a[i] D x_i, local.
    void combine(std::int64_t q, const std::vector<double> &a, std::vector<double> &out) const;

    // Of two local vectors at once: what costs is to find their columns in the global one.
    /// Σ a·global and Σ b·global over the columns of q.
    std::pair<double, double> inner(std::int64_t q, const std::vector<double> &a, const std::vector<double> &b,
                                    const std::vector<double> &global) const;
    /// global += s a + t b.
    void scatter(std::int64_t q, double s, const std::vector<double> &a, double t, const std::vector<double> &b,
                 std::vector<double> &global) const;
    /// global += a.
    void scatter(std::int64_t q, const std::vector<double> &a, std::vector<double> &global) const;

private:
    template <class Value>
    void renumber(const CsrRows<Value> &rows);
    bool is_dense() const { return first_column_.empty(); }
    /// visit(c, column of c) for each element of a local vector.
    template <class Visit>
    void each_column(std::int64_t q, const Visit &visit) const;
    const std::int64_t *columns(std::int64_t q) const {
        return columns_.data() + first_column_[q];
    }

    std::int64_t n_columns_;
    std::vector<std::int64_t> order_, offsets_;
    std::vector<double> scale_;
    Rows rows_;
    std::vector<std::int32_t> local_;         // column of each entry, counted in its query
    std::vector<std::int64_t> first_column_;  // of each query, in columns_; empty for dense rows
    std::vector<std::int64_t> columns_;       // their numbers in the matrix
};

}  // namespace linrank
