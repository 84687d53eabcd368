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

/// Row i has values[k] in column columns[k] for k in [offsets[i], offsets[i+1]). 32 bits are enough for a column:
/// the weights of 2^31 of them would take 16 GB.
template <class Value>
struct CsrRows {
    using value_type = Value;
    const Value *values;
    const std::int32_t *columns;
    const std::int64_t *offsets;
    std::int64_t n_rows;
    std::int64_t n_columns;
};

using Rows = std::variant<DenseRows<float>, DenseRows<double>, CsrRows<float>, CsrRows<double>>;

inline std::int64_t n_rows(const Rows &rows) {
    return std::visit([](const auto &r) { return r.n_rows; }, rows);
}
inline std::int64_t n_columns(const Rows &rows) {
    return std::visit([](const auto &r) { return r.n_columns; }, rows);
}

}  // namespace linrank
