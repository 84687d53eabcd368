// Xᵀ∇²L(z)X of the domination loss: as a matrix, as a diagonal.
#pragma once

#include "domination.hpp"
#include "products.hpp"

namespace linrank {

/// Xᵀ∇²L(z)X in full, n_columns × n_columns, with sums over rows in the precision of the data.
std::vector<double> hessian_matrix(const Rows &rows, Order order, const DominationPoint &point,
                                   int n_threads);

/// Its diagonal, in one pass over the entries: exact but for queries of more than 64 layers, whose rows
/// are taken as if spread about one mean, for preconditioning.
std::vector<double> hessian_diagonal(const Rows &rows, Order order, const DominationPoint &point,
                                     int n_threads);

}  // namespace linrank
