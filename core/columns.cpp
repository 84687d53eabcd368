#include "columns.hpp"

namespace linrank {
namespace {

/// Entries sorted by key, those of a key in the order in which they come: each(put) calls put(key,
/// index, value) for all of them.
template <class Value, class Each>
SparseLines<Value> sort_entries(Index n_keys, const Each &each) {
    SparseLines<Value> out;
    out.offsets.assign(n_keys + 1, 0);
    each([&](Index key, Index, Value) { ++out.offsets[key + 1]; });
    std::partial_sum(out.offsets.begin(), out.offsets.end(), out.offsets.begin());
    out.indices.resize(out.offsets.back());
    out.values.resize(out.offsets.back());
    std::vector<Index> next = out.offsets;
    each([&](Index key, Index index, Value x) {
        // What was not there when it was counted: somebody writes to the values.
        if (next[key] == out.offsets[key + 1]) return;
        const Index k = next[key]++;
        out.indices[k] = std::int32_t(index);
        out.values[k] = x;
    });
    return out;
}

template <class Value>
Columns transpose(const DenseRows<Value> &rows, Order order, Index n, int n_threads) {
    const Index m = rows.n_columns;
    DenseColumns<Value> out{std::vector<Value>(n * m), n, m};
    // Blocks of rows that stay in cache while every column takes its share of them.
    for_blocks(n, 64, n_threads, [&](Index begin, Index end) {
        for (Index c = 0; c < m; ++c) {
            Value *column = out.values.data() + c * n;
            for (Index t = begin; t < end; ++t)
                column[t] = rows.values[row_at(order, t) * rows.stride + c];
        }
    });
    return out;
}

template <class Value>
Columns transpose(const CsrRows<Value> &rows, Order order, Index n, int) {
    return CscColumns<Value>{sort_entries<Value>(rows.n_columns, [&](const auto &put) {
        for (Index t = 0; t < n; ++t)
            for_each_entry(rows, row_at(order, t), [&](Index c, Value x) {
                if (x != Value(0)) put(c, t, x);
            });
    }), n, rows.n_columns};
}

template <class Value>
double product(const DenseColumns<Value> &columns, Index c, Doubles r) {
    const Value *x = columns.values.data() + c * std::ssize(r);
    double sum = 0.0;
    for (std::size_t t = 0; t < r.size(); ++t) sum += double(x[t]) * r[t];
    return sum;
}

template <class Value>
double product(const CscColumns<Value> &columns, Index c, Doubles r) {
    double sum = 0.0;
    for (Index k = columns.offsets[c]; k < columns.offsets[c + 1]; ++k)
        sum += double(columns.values[k]) * r[columns.indices[k]];
    return sum;
}

template <class Value>
Narrowed narrow(const CscColumns<Value> &columns, Integers features) {
    return sort_entries<Value>(columns.n_rows, [&](const auto &put) {
        for (Index c = 0; c < std::ssize(features); ++c)
            for (Index k = columns.offsets[features[c]]; k < columns.offsets[features[c] + 1]; ++k)
                put(columns.indices[k], c, columns.values[k]);
    });
}

template <class Value>
Narrowed narrow(const DenseColumns<Value> &columns, Integers features) {
    const Index n = columns.n_rows, m = std::ssize(features);
    SparseLines<Value> out{std::vector<Value>(n * m), {}, {}};
    for (Index c = 0; c < m; ++c) {
        const Value *column = columns.values.data() + features[c] * n;
        for (Index t = 0; t < n; ++t) out.values[t * m + c] = column[t];
    }
    return out;
}

}  // namespace

std::vector<double> column_products(const Columns &columns, Integers wanted,
                                    Doubles r, int n_threads) {
    std::vector<double> out(wanted.size());
    std::visit([&](const auto &x) {
        for_blocks(Index(wanted.size()), 64, n_threads, [&](Index first, Index last) {
            for (Index i = first; i < last; ++i) out[i] = product(x, wanted[i], r);
        });
    }, columns);
    return out;
}

Columns columns_of(const Positions &x, int n_threads) {
    require(x.n <= INT32_MAX, "columns of ", x.n, " rows: at most 2^31 - 1 can be told apart");
    return std::visit([&](const auto &r) { return transpose(r, x.order, x.n, n_threads); }, x.rows);
}

Narrowed narrow_rows(const Columns &columns, Integers features) {
    return std::visit([&](const auto &storage) { return narrow(storage, features); }, columns);
}

}  // namespace linrank
