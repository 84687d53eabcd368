// Xᵀ ∇²L(z) X: as a product, as a matrix, as a diagonal.
#pragma once
#include <span>
#include <vector>

#include "pair_sweep.hpp"
#include "products.hpp"

namespace linrank {

/// out = Xᵀ∇²L(z)X·v and image = X v, in one pass over the rows: the scores of a query, its sweep and
/// the accumulation happen while its rows are in cache. Positions of queries without pairs get image 0.
/// The image is exact to double, since scores are made of it; the product of dense float32 rows is
/// summed in float32, which is enough for a search direction.
void hessian_product(const Rows &rows, Order order, const PairPoint &point,
                     std::span<const double> v, std::span<double> out, std::span<double> image,
                     int n_threads);

/// Xᵀ∇²L(z)X in full, n_columns × n_columns, from rows in float32 centred per query.
std::vector<double> hessian_matrix(const Rows &rows, Order order, const PairPoint &point,
                                   int n_threads);

/// The diagonal of Xᵀ∇²L(z)X, with the violated pairs of a query taken as if spread in proportion to
/// the degrees of their rows: Σ_q [Σ_i d_i x_i² - (Σ_i d_i x_i)² / Σ_i d_i]. One pass over the
/// non-zeros, exact when the violated pairs do have that form; for preconditioning only.
std::vector<double> hessian_diagonal(const Rows &rows, Order order, const PairPoint &point,
                                     int n_threads);

}  // namespace linrank
