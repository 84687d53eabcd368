// All that is asked of a matrix before training, found in one pass over its rows.
#pragma once

#include "queries.hpp"
#include "rows.hpp"

namespace linrank {

/// What is known of a column. A NaN is a missing value; the entries that a CSR row leaves out are
/// zeros.
///
/// Moments and ranges are over the values of rows of positive weight, all else over all rows.
struct ColumnFacts {
    double mean = 0, variance = 0;  // Σ w (x - mean)² / Σ w: no Bessel correction; 0 of no value
    double low, high;               // inf and -inf of no value
    double norm;                    // ‖x‖: not finite where a value is infinite, or its square is
    double largest;                 // max |x|
    Index n_nonzero, n_missing;     // a missing value is not 0
};

struct ColumnScan {
    std::vector<ColumnFacts> columns;
    // CRC-32C of the shape, then of the values; of CSR, offsets, columns, values
    std::uint32_t checksum;
};

/// Scans the rows. `weight` is empty (every row counts once) or one number >= 0 per row.
///
/// The chunks depend on the shape alone and are joined in order, so the number of threads does not
/// change a bit.
ColumnScan scan_columns(const Rows &rows, Doubles weight, int n_threads);

/// The values of a column that lie outside of a range, and those that are missing.
struct ColumnStrays {
    Index n_outside = 0;
    // how far outside the worst value lies, 0 where none does; that value
    double excess = 0, worst = 0;
    // its first row; -1 where there is none, or for a zero that CSR leaves out
    Index worst_row = -1;
    Index first_missing = -1;      // the first row without a value, or -1
};

/// Looks for values below floor[j] or above ceiling[j]; the number of threads does not matter.
std::vector<ColumnStrays> find_strays(const Rows &rows, Doubles floor, Doubles ceiling,
                                      int n_threads);

// Features divided by their range within a query.

/// Writes x_ij / (max_q x_j - min_q x_j), where q is the query of row i; 0 where the range is 0.
///
/// The result has the layout of the stored entries: n_rows x n_columns without gaps for dense rows,
/// one number per stored entry for CSR.
Values divide_by_query_range(const Rows &rows, const Queries &queries, int n_threads);

// CRC-32C (Castagnoli): the checksum of rows, and of the files of a store.

/// The checksum of the bytes, which continues that of what came before (0 at the start).
std::uint32_t crc32c(std::span<const std::uint8_t> bytes, std::uint32_t before);

/// The checksum of bytes followed by others, from the checksums of both and the number of the others.
std::uint32_t join_crc32c(std::uint32_t first, std::uint32_t second, std::uint64_t n_bytes);

/// The same as crc32c by tables alone, for processors without an instruction for it, and for tests.
std::uint32_t crc32c_by_tables(std::span<const std::uint8_t> bytes, std::uint32_t before);

}  // namespace linrank
