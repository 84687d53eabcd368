// A matrix by columns: what a method that moves one weight at a time reads.
#pragma once

#include "products.hpp"

namespace linrank {

/// Line i, a row or a column, has values[k] at place indices[k] for k in [offsets[i], offsets[i+1]), in
/// increasing order.
template <class Value>
struct SparseLines {
    std::vector<Value> values;
    std::vector<std::int32_t> indices;
    std::vector<Index> offsets;
};

/// Sparse columns; no value is zero.
template <class Value>
struct CscColumns : SparseLines<Value> {
    Index n_rows, n_columns;
};

/// Column c is values[c*n_rows .. (c+1)*n_rows).
template <class Value>
struct DenseColumns {
    std::vector<Value> values;
    Index n_rows, n_columns;
};

using Columns = std::variant<DenseColumns<float>, DenseColumns<double>, CscColumns<float>,
                             CscColumns<double>>;

/// The columns of a matrix whose rows are taken in the order of their positions: the one copy that they
/// take. Throws std::invalid_argument for more than 2³¹ - 1 positions.
Columns columns_of(const Positions &x, int n_threads);

/// x_c·r for each of the columns named: a product Xᵀr of which only some entries are wanted.
std::vector<double> column_products(const Columns &columns, Integers wanted,
                                    Doubles r, int n_threads);

/// Some columns by rows again: row i has the entries of position i, its column c is features[c]. Rows of
/// a dense matrix lie one after the other, without indices and offsets.
using Narrowed = std::variant<SparseLines<float>, SparseLines<double>>;

Narrowed narrow_rows(const Columns &columns, Integers features);

}  // namespace linrank
