// Solving with a symmetric positive definite matrix.
#pragma once
#include <cstdint>
#include <span>

namespace linrank {

/// Overwrites the lower triangle of the row-major n × n matrix by its Cholesky factor; false if the
/// matrix is not positive definite to working precision.
bool cholesky_factor(std::span<double> matrix, std::int64_t n);

/// Overwrites b by the solution of L Lᵀ x = b.
void cholesky_solve(std::span<const double> factor, std::int64_t n, std::span<double> b);

}  // namespace linrank
