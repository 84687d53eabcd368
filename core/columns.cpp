#include "columns.hpp"

#include <stdexcept>
#include <string>

namespace linrank {
namespace {

template <class Value>
Columns transpose(const DenseRows<Value> &rows, Order order, std::int64_t n, int n_threads) {
    const std::int64_t m = rows.n_columns;
    DenseColumns<Value> out{std::vector<Value>(n * m), n, m};
    // Blocks of rows that stay in cache while every column takes its share of them.
    constexpr std::int64_t block = 64;
    parallel_for((n + block - 1) / block, n_threads, [&](std::int64_t b) {
        const std::int64_t begin = b * block, end = std::min(n, begin + block);
        for (std::int64_t c = 0; c < m; ++c) {
            Value *column = out.values.data() + c * n;
            for (std::int64_t t = begin; t < end; ++t)
                column[t] = rows.values[row_at(order, t) * rows.stride + c];
        }
    });
    return out;
}

template <class Value>
Columns transpose(const CsrRows<Value> &rows, Order order, std::int64_t n, int) {
    const std::int64_t m = rows.n_columns;
    CscColumns<Value> out{std::vector<std::int64_t>(m + 1, 0), {}, {}, n, m};
    const auto for_each_nonzero = [&](const auto &body) {
        for (std::int64_t t = 0; t < n; ++t)
            for_each_entry(rows, row_at(order, t), [&](std::int64_t c, Value x) {
                if (x != Value(0)) body(t, c, x);
            });
    };
    for_each_nonzero([&](std::int64_t, std::int64_t c, Value) { ++out.offsets[c + 1]; });
    for (std::int64_t c = 0; c < m; ++c) out.offsets[c + 1] += out.offsets[c];
    out.positions.resize(out.offsets.back());
    out.values.resize(out.offsets.back());
    std::vector<std::int64_t> next(out.offsets.begin(), out.offsets.end() - 1);
    for_each_nonzero([&](std::int64_t t, std::int64_t c, Value x) {
        if (next[c] == out.offsets[c + 1]) return;  // it was 0 when counted: somebody writes to the values
        const std::int64_t k = next[c]++;
        out.positions[k] = std::int32_t(t);
        out.values[k] = x;
    });
    return out;
}

template <class Value>
double product(const DenseColumns<Value> &columns, std::size_t c, std::span<const double> r) {
    const Value *x = columns.values.data() + c * r.size();
    double sum = 0.0;
    for (std::size_t t = 0; t < r.size(); ++t) sum += double(x[t]) * r[t];
    return sum;
}

template <class Value>
double product(const CscColumns<Value> &columns, std::size_t c, std::span<const double> r) {
    double sum = 0.0;
    const auto end = std::size_t(columns.offsets[c + 1]);
    for (auto k = std::size_t(columns.offsets[c]); k < end; ++k)
        sum += double(columns.values[k]) * r[columns.positions[k]];
    return sum;
}

}  // namespace

std::vector<double> column_products(const Columns &columns, std::span<const std::int64_t> wanted,
                                    std::span<const double> r, int n_threads) {
    constexpr std::int64_t block = 64;
    const auto n = std::int64_t(wanted.size());
    std::vector<double> out(wanted.size());
    std::visit([&](const auto &x) {
        parallel_for((n + block - 1) / block, n_threads, [&](std::int64_t b) {
            const std::int64_t end = std::min(n, (b + 1) * block);
            for (std::int64_t i = b * block; i < end; ++i)
                out[i] = product(x, std::size_t(wanted[i]), r);
        });
    }, columns);
    return out;
}

Columns columns_of(const Rows &rows, Order order, int n_threads) {
    const std::int64_t n = n_positions(rows, order);
    if (n > INT32_MAX)
        throw std::invalid_argument("columns of " + std::to_string(n) +
                                    " rows: at most 2^31 - 1 can be told apart");
    return std::visit([&](const auto &r) { return transpose(r, order, n, n_threads); }, rows);
}

template <class Value>
NarrowRows<Value> narrow_rows(const CscColumns<Value> &columns, std::span<const std::int64_t> features) {
    NarrowRows<Value> out;
    out.offsets.assign(columns.n_rows + 1, 0);
    const auto entries = [&](std::int64_t c) {
        return std::pair{std::size_t(columns.offsets[c]), std::size_t(columns.offsets[c + 1])};
    };
    for (const std::int64_t c : features)
        for (auto [k, end] = entries(c); k < end; ++k) ++out.offsets[columns.positions[k] + 1];
    for (std::size_t i = 1; i < out.offsets.size(); ++i) out.offsets[i] += out.offsets[i - 1];
    out.values.resize(out.offsets.back());
    out.columns.resize(out.offsets.back());
    std::vector<std::int64_t> next(out.offsets.begin(), out.offsets.end() - 1);
    for (std::size_t number = 0; number < features.size(); ++number)
        for (auto [k, end] = entries(features[number]); k < end; ++k) {
            const auto at = std::size_t(next[columns.positions[k]]++);
            out.values[at] = columns.values[k];
            out.columns[at] = std::int32_t(number);
        }
    return out;
}

template <class Value>
std::vector<Value> narrow_rows(const DenseColumns<Value> &columns, std::span<const std::int64_t> features) {
    const std::size_t n = std::size_t(columns.n_rows), m = features.size();
    std::vector<Value> out(n * m);
    for (std::size_t c = 0; c < m; ++c) {
        const Value *column = columns.values.data() + std::size_t(features[c]) * n;
        for (std::size_t t = 0; t < n; ++t) out[t * m + c] = column[t];
    }
    return out;
}

template std::vector<float> narrow_rows(const DenseColumns<float> &, std::span<const std::int64_t>);
template std::vector<double> narrow_rows(const DenseColumns<double> &, std::span<const std::int64_t>);
template NarrowRows<float> narrow_rows(const CscColumns<float> &, std::span<const std::int64_t>);
template NarrowRows<double> narrow_rows(const CscColumns<double> &, std::span<const std::int64_t>);

}  // namespace linrank
