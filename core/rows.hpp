// How rows are stored: all that a kernel may know of storage.
#pragma once
#include <cstdint>
#include <variant>

namespace linrank {

/// Row i is values[i*stride .. i*stride + n_columns).
template <class Value>
struct DenseRows {
    using value_type = Value;
    const Value *values;
    std::int64_t stride;
    std::int64_t n_rows;
    std::int64_t n_columns;
};

/// Row i has values[k] in column columns[k] for k in [offsets[i], offsets[i+1]).
template <class Value, class Index>
struct CsrRows {
    using value_type = Value;
    using index_type = Index;
    const Value *values;
    const Index *columns;
    const std::int64_t *offsets;
    std::int64_t n_rows;
    std::int64_t n_columns;
};

using Rows = std::variant<DenseRows<float>, DenseRows<double>,
                          CsrRows<float, std::int32_t>, CsrRows<double, std::int32_t>,
                          CsrRows<float, std::int64_t>, CsrRows<double, std::int64_t>>;

inline std::int64_t n_rows(const Rows &rows) {
    return std::visit([](const auto &r) { return r.n_rows; }, rows);
}
inline std::int64_t n_columns(const Rows &rows) {
    return std::visit([](const auto &r) { return r.n_columns; }, rows);
}

}  // namespace linrank
