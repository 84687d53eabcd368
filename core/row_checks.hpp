// The checks that a matrix passes once, when it enters.
#pragma once
#include <cstdint>
#include <optional>
#include <utility>

#include "rows.hpp"

namespace linrank {

/// The first NaN or infinity in row order, as (row, column).
std::optional<std::pair<std::int64_t, std::int64_t>> first_non_finite(const Rows &rows,
                                                                      int n_threads);

/// Whether the columns of every row increase strictly: no duplicates, sorted. True for dense rows.
bool columns_increase(const Rows &rows, int n_threads);

}  // namespace linrank
