// Features divided by their range within a query.
#pragma once

#include "rows.hpp"

namespace linrank {

/// Writes x_ij / (max_q x_j - min_q x_j), where q is the query of row i; 0 where the range is 0.
///
/// Query q is the rows order[t] (or t where `order` is empty) for t in [offsets[q], offsets[q+1]).
/// `out` has the layout of the stored entries: n_rows x n_columns without gaps for dense rows, one
/// number per stored entry for CSR.
template <class Value>
void divide_by_query_range(const Rows &rows, std::span<const std::int64_t> offsets,
                           std::span<const std::int64_t> order, Value *out, int n_threads);

}  // namespace linrank
