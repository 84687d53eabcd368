// What feature scaling must know of the columns: moments and ranges, over all rows or per query.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "rows.hpp"

namespace linrank {

/// Moments and range of every column over the rows of positive weight.
struct ColumnSummary {
    std::vector<double> mean;
    std::vector<double> variance;  // Σ w (x - mean)² / Σ w: no Bessel correction
    std::vector<double> minimum;
    std::vector<double> maximum;
};

/// One pass over the rows; the entries that a CSR row leaves out count as zeros.
///
/// `weight` is empty (every row counts once) or one number >= 0 per row. The chunks depend on the
/// shape alone and are summed in order, so the number of threads does not change a bit.
ColumnSummary summarise_columns(const Rows &rows, std::span<const double> weight, int n_threads);

/// How many values of every column are not 0.
std::vector<std::int64_t> count_nonzero(const Rows &rows, int n_threads);

/// Writes x_ij / (max_q x_j - min_q x_j), where q is the query of row i; 0 where the range is 0.
///
/// Query q is the rows order[t] (or t where `order` is empty) for t in [offsets[q], offsets[q+1]).
/// `out` has the layout of the stored entries: n_rows x n_columns without gaps for dense rows, one
/// number per stored entry for CSR.
template <class Value>
void divide_by_query_range(const Rows &rows, std::span<const std::int64_t> offsets,
                           std::span<const std::int64_t> order, Value *out, int n_threads);

}  // namespace linrank
