#include "columns.hpp"

namespace linrank {
namespace {

/// Entries sorted by key, those of a key in the order in which they come: each(put) calls put(key, index, value) for
/// all of them.
template <class Value, class Each>
void sort_entries(Index n_keys, const Each &each, std::vector<Index> &offsets,
                  std::vector<std::int32_t> &indices, std::vector<Value> &values) {
    offsets.assign(n_keys + 1, 0);
    each([&](Index key, Index, Value) { ++offsets[key + 1]; });
    for (Index key = 0; key < n_keys; ++key) offsets[key + 1] += offsets[key];
    indices.resize(offsets.back());
    values.resize(offsets.back());
    std::vector<Index> next(offsets.begin(), offsets.end() - 1);
    each([&](Index key, Index index, Value x) {
        if (next[key] == offsets[key + 1]) return;  // it was not there when counted: somebody writes to the values
        const Index k = next[key]++;
        indices[k] = std::int32_t(index);
        values[k] = x;
    });
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
    CscColumns<Value> out{{}, {}, {}, n, rows.n_columns};
    sort_entries(rows.n_columns, [&](const auto &put) {
        for (Index t = 0; t < n; ++t)
            for_each_entry(rows, row_at(order, t), [&](Index c, Value x) {
                if (x != Value(0)) put(c, t, x);
            });
    }, out.offsets, out.positions, out.values);
    return out;
}

template <class Value>
double product(const DenseColumns<Value> &columns, std::size_t c, Doubles r) {
    const Value *x = columns.values.data() + c * r.size();
    double sum = 0.0;
    for (std::size_t t = 0; t < r.size(); ++t) sum += double(x[t]) * r[t];
    return sum;
}

template <class Value>
double product(const CscColumns<Value> &columns, std::size_t c, Doubles r) {
    double sum = 0.0;
    const auto end = std::size_t(columns.offsets[c + 1]);
    for (auto k = std::size_t(columns.offsets[c]); k < end; ++k)
        sum += double(columns.values[k]) * r[columns.positions[k]];
    return sum;
}

}  // namespace

std::vector<double> column_products(const Columns &columns, Integers wanted,
                                    Doubles r, int n_threads) {
    std::vector<double> out(wanted.size());
    std::visit([&](const auto &x) {
        for_blocks(Index(wanted.size()), 64, n_threads, [&](Index first, Index last) {
            for (Index i = first; i < last; ++i) out[i] = product(x, std::size_t(wanted[i]), r);
        });
    }, columns);
    return out;
}

Columns columns_of(const Positions &x, int n_threads) {
    if (x.n > INT32_MAX)
        throw std::invalid_argument("columns of " + std::to_string(x.n) +
                                    " rows: at most 2^31 - 1 can be told apart");
    return std::visit([&](const auto &r) { return transpose(r, x.order, x.n, n_threads); }, x.rows);
}

namespace {

template <class Value>
Narrowed narrow(const CscColumns<Value> &columns, Integers features) {
    NarrowRows<Value> out;
    sort_entries(columns.n_rows, [&](const auto &put) {
        for (std::size_t number = 0; number < features.size(); ++number)
            for (Index k = columns.offsets[features[number]]; k < columns.offsets[features[number] + 1]; ++k)
                put(columns.positions[k], Index(number), columns.values[k]);
    }, out.offsets, out.columns, out.values);
    return out;
}

template <class Value>
Narrowed narrow(const DenseColumns<Value> &columns, Integers features) {
    const std::size_t n = std::size_t(columns.n_rows), m = features.size();
    NarrowRows<Value> out{std::vector<Value>(n * m), {}, {}};
    for (std::size_t c = 0; c < m; ++c) {
        const Value *column = columns.values.data() + std::size_t(features[c]) * n;
        for (std::size_t t = 0; t < n; ++t) out.values[t * m + c] = column[t];
    }
    return out;
}

}  // namespace

Narrowed narrow_rows(const Columns &columns, Integers features) {
    return std::visit([&](const auto &storage) { return narrow(storage, features); }, columns);
}

}  // namespace linrank
