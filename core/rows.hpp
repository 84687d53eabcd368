// How rows are stored: all that a kernel may know of storage.
#pragma once
#include "basics.hpp"

namespace linrank {

/// Row i is values[i*stride .. i*stride + n_columns).
template <class Value>
struct DenseRows {
    using value_type = Value;
    const Value *values;
    Index stride;
    Index n_rows;
    Index n_columns;
};

/// Row i has values[k] in column columns[k] for k in [offsets[i], offsets[i+1]). 32 bits are enough
/// for a column: the weights of 2^31 of them would take 16 GB.
template <class Value>
struct CsrRows {
    using value_type = Value;
    const Value *values;
    const std::int32_t *columns;
    const Index *offsets;
    Index n_rows;
    Index n_columns;
};

using Rows = std::variant<DenseRows<float>, DenseRows<double>, CsrRows<float>, CsrRows<double>>;

/// Of a matrix, however it is stored.
template <class... Storage>
Index n_rows(const std::variant<Storage...> &matrix) {
    return std::visit([](const auto &m) { return m.n_rows; }, matrix);
}
template <class... Storage>
Index n_columns(const std::variant<Storage...> &matrix) {
    return std::visit([](const auto &m) { return m.n_columns; }, matrix);
}

/// Numbers that are stored, and how many of them lie before those of row i; of a dense matrix all.
template <class Value>
Index n_entries(const DenseRows<Value> &rows) { return rows.n_rows * rows.n_columns; }
template <class Value>
Index n_entries(const CsrRows<Value> &rows) { return rows.offsets[rows.n_rows]; }
inline Index n_entries(const Rows &rows) {
    return std::visit([](const auto &r) { return n_entries(r); }, rows);
}
template <class Value>
Index first_entry(const DenseRows<Value> &rows, Index i) { return i * rows.n_columns; }
template <class Value>
Index first_entry(const CsrRows<Value> &rows, Index i) { return rows.offsets[i]; }

/// Numbers of the type of a matrix.
using Values = std::variant<std::vector<float>, std::vector<double>>;

/// Calls visit(column, value) for the entries of row i that are stored, in the order in which they
/// are.
template <class Value, class Visit>
void for_each_entry(const DenseRows<Value> &rows, Index i, const Visit &visit) {
    for (Index c = 0; c < rows.n_columns; ++c) visit(c, rows.values[i * rows.stride + c]);
}
template <class Value, class Visit>
void for_each_entry(const CsrRows<Value> &rows, Index i, const Visit &visit) {
    for (Index k = rows.offsets[i]; k < rows.offsets[i + 1]; ++k)
        visit(Index(rows.columns[k]), rows.values[k]);
}

/// Position t is row order[t] of the matrix; an empty order means position = row.
using Order = Integers;

inline Index row_at(Order order, Index t) { return order.empty() ? t : order[t]; }

/// The positions [first, first + n) of a matrix, all of them by default.
struct Positions {
    Rows rows;
    Order order = {};
    Index first = 0, n = order.empty() ? n_rows(rows) : std::ssize(order);
};

/// Rows of a matrix that are compared; the winner is to be ranked above the loser.
struct RowPair {
    Index winner, loser;
};

/// Copies span order[0], then order[1], ... to `to`; span i is the elements offsets[i] to offsets[i
/// + 1] of `from`, each of `width` bytes. All indices have been checked.
inline void gather_spans(const std::uint8_t *from, std::size_t width, Integers offsets,
                         Integers order, std::uint8_t *to) {
    for (const Index i : order)
        to = std::copy(from + offsets[i] * width, from + offsets[i + 1] * width, to);
}

// The checks that a matrix passes once, when it enters.

/// Throws std::invalid_argument unless the arrays are CSR rows of n_columns columns. The first
/// n_checked rows are known to be: an earlier view has checked them, and nobody has changed them.
void check_csr(std::size_t n_values, Levels columns, Integers offsets,
               Index n_columns, Index n_checked);

/// The first NaN or infinity in row order, as (row, column).
std::optional<std::pair<Index, Index>> first_non_finite(const Rows &rows, int n_threads);

/// Whether the columns of every row increase strictly: no duplicates, sorted. True for dense rows.
bool columns_increase(const Rows &rows, int n_threads);

}  // namespace linrank
