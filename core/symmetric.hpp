// Products with symmetric matrices of which every pair of entries is read, or computed, once.
#pragma once
#include <functional>

#include "basics.hpp"

namespace linrank {

/// The rows of an upper triangle of side n in parts of about the same area, by n alone: part t is
/// rows [first[t], first[t+1]), each first a multiple of `step`.
std::vector<Index> triangle_parts(Index n, Index step);

/// Σ_t totals of part t, where add(first, last, total) adds what the rows [first, last) of the
/// triangle contribute to total[i - first], i >= first. The same bits for any number of threads.
std::vector<double> sum_triangle(Index n, Index step, int n_threads,
                                 const std::function<void(Index, Index, double *)> &add);

/// Q v for a symmetric matrix with Q_ij at q[i·stride + j], of which only j >= i is read.
std::vector<double> symmetric_product(const double *q, Index stride, Doubles v, int n_threads);

// Solving with a symmetric positive definite matrix.

/// The Cholesky factor of the row-major n × n matrix, in its lower triangle; none if the matrix is
/// not positive definite to working precision.
std::optional<std::vector<double>> cholesky_factor(std::vector<double> matrix, Index n);

/// The solution of L Lᵀ x = b.
std::vector<double> cholesky_solve(Doubles factor, Index n, std::vector<double> b);

}  // namespace linrank
