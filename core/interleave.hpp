// The columns of a table, each with its own type and missing values, as rows of one matrix.
#pragma once
#include "basics.hpp"

namespace linrank {

/// A column that holds `values[i]` for row i, unless bit `first_bit + i` of `valid`, where there is
/// one, is 0: then row i has no value. Bits are counted from the lowest of each byte.
struct TableColumn {
    using Values =
        std::variant<const float *, const double *, const std::int8_t *, const std::int16_t *,
                     const std::int32_t *, const std::int64_t *, const std::uint8_t *,
                     const std::uint16_t *, const std::uint32_t *, const std::uint64_t *>;
    Values values;
    const std::uint8_t *valid = nullptr;
    Index first_bit = 0;
};

/// What a matrix holds beside numbers.
struct Specials {
    bool missing = false;   // NaN, as a value or in place of none
    bool infinite = false;  // as a value, or too large for the type of the matrix
};

/// Writes value i of column j to out[i*stride + j], NaN where there is none, and says what is no number.
///
/// Values are rounded to double, then to `Value`: as text is read.
template <class Value>
Specials interleave_columns(std::span<const TableColumn> columns, Index n_rows, Value *out,
                            Index stride, int n_threads);

}  // namespace linrank
