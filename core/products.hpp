// z = X w and g = Xᵀ r for rows taken in the order of their positions.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "rows.hpp"

namespace linrank {

/// Position t is row order[t] of the matrix; an empty order means position = row.
using Order = std::span<const std::int64_t>;

inline std::int64_t n_positions(const Rows &rows, Order order) {
    return order.empty() ? n_rows(rows) : std::int64_t(order.size());
}

/// out[t] = x_{row(t)}·w, sums in double.
void multiply(const Rows &rows, Order order, std::span<const double> w, std::span<double> out,
              int n_threads);

/// out = Σ_t r[t] x_{row(t)}, sums in double; the same bits for any number of threads.
void multiply_transposed(const Rows &rows, Order order, std::span<const double> r,
                         std::span<double> out, int n_threads);

/// The longest sums that products are made of, whatever the order: of a score, and of a slope in w. With μ the
/// unit roundoff, a sum of n products is off by at most (n + 1)μ Σ |terms|.
struct LongestSums {
    std::int64_t score, slope;
};
LongestSums longest_sums(const Rows &rows);

/// out = x + a·y.
void add_scaled(std::span<const double> x, double a, std::span<const double> y,
                std::span<double> out, int n_threads);

/// How many accumulators of n_columns numbers a reduction may use: enough to share the work, never
/// much memory beside the matrix. Depends on the data only.
std::int64_t n_accumulators(const Rows &rows);

/// out[c] = Σ_k parts[k][c], in order of k.
void reduce(const std::vector<std::vector<double>> &parts, std::span<double> out, int n_threads);

/// A symmetric n × n matrix, computed on and above the diagonal with its side padded for the kernels.
struct PaddedSquare {
    const std::int64_t n, padded;

    /// Throws std::bad_alloc for a side whose square no address space holds.
    explicit PaddedSquare(std::int64_t n_columns);
    /// How many such matrices a reduction may use: some 64 MB of them, and at least two.
    std::int64_t n_parts() const;
    /// factor · Σ parts in full, without the padding.
    std::vector<double> sum(const std::vector<std::vector<double>> &parts, double factor,
                            int n_threads) const;
};

/// The rows of positions [first, first + n) with the operations that kernels are made of: dot, add and
/// unpack, and add_cached, for Hessian products, whose sums are in the precision of the data.
template <class Storage>
struct RowRange;

}  // namespace linrank
