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
    QueryRows(const Rows &rows, std::vector<Index> order, std::vector<Index> offsets,
              std::vector<double> scale);
    QueryRows(QueryRows &&) = default;
    QueryRows(const QueryRows &) = delete;  // rows_ looks at local_

    Index n_columns() const { return n_columns_; }
    Index n_queries() const { return Index(offsets_.size()) - 1; }
    Index first(Index q) const { return offsets_[q]; }
    Index n_rows(Index q) const { return first(q + 1) - first(q); }
    /// Length of a local vector of query q.
    Index width(Index q) const;
    /// Bytes that a pass over the rows of query q reads, about.
    Index bytes(Index q) const;

    /// out[i] = D x_i·w for the rows of q, w over all columns.
    void scores(Index q, const std::vector<double> &w, std::vector<double> &scratch,
                std::vector<double> &out) const;
    /// out = Σ a[i] D x_i, local.
    void combine(Index q, const std::vector<double> &a, std::vector<double> &out) const;

    // Of two local vectors at once: what costs is to find their columns in the global one.
    /// Σ a·global and Σ b·global over the columns of q.
    std::pair<double, double> inner(Index q, const std::vector<double> &a, const std::vector<double> &b,
                                    const std::vector<double> &global) const;
    /// global += s a + t b.
    void scatter(Index q, double s, const std::vector<double> &a, double t, const std::vector<double> &b,
                 std::vector<double> &global) const;
    /// global += a.
    void scatter(Index q, const std::vector<double> &a, std::vector<double> &global) const;

private:
    template <class Value>
    void renumber(const CsrRows<Value> &rows);
    bool is_dense() const { return first_column_.empty(); }
    /// visit(c, column of c) for each element of a local vector.
    template <class Visit>
    void each_column(Index q, const Visit &visit) const;
    const Index *columns(Index q) const {
        return columns_.data() + first_column_[q];
    }

    Index n_columns_;
    std::vector<Index> order_, offsets_;
    std::vector<double> scale_;
    Rows rows_;
    std::vector<std::int32_t> local_;         // column of each entry, counted in its query
    std::vector<Index> first_column_;  // of each query, in columns_; empty for dense rows
    std::vector<Index> columns_;       // their numbers in the matrix
};

}  // namespace linrank
