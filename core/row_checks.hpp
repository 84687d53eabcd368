// The checks that a matrix passes once, when it enters.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <utility>

#include "rows.hpp"

namespace linrank {

/// Throws std::invalid_argument unless the arrays are CSR rows of n_columns columns. The first n_checked rows are
/// known to be: an earlier view has checked them, and nobody has changed them.
void check_csr(std::size_t n_values, std::span<const std::int32_t> columns, std::span<const std::int64_t> offsets,
               std::int64_t n_columns, std::int64_t n_checked);

/// The first NaN or infinity in row order, as (row, column).
std::optional<std::pair<std::int64_t, std::int64_t>> first_non_finite(const Rows &rows,
                                                                      int n_threads);

/// Whether the columns of every row increase strictly: no duplicates, sorted. True for dense rows.
bool columns_increase(const Rows &rows, int n_threads);

}  // namespace linrank
