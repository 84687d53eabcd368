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

// The explicit Hessian of the domination loss, gathered query by query.

/// By layer of one query: the mean row a_κ of the layer, weighted by π, and the mean row x̄_k of all
/// lower layers, weighted as in Z_k.
struct LayerMeans {
    std::int64_t n;
    std::vector<double> own, below;

    template <class Storage>
    LayerMeans(const Storage &storage, Order order, const DominationPoint &point, std::int64_t q,
               int n_threads);
    const double *of(std::size_t k) const { return own.data() + k * std::size_t(n); }
    const double *under(std::size_t k) const { return below.data() + k * std::size_t(n); }
};

/// XᵀHX with H = ∇²L(z), as a sum of squares but for a few vectors a layer.
///
/// p_i, the softmax of row i of layer k over itself and the rows below, has the covariance
/// ρ_i Cov(Z_k) + ρ_i (1 - ρ_i) (x_i - x̄_k)(x_i - x̄_k)ᵀ. Summed over i with b_i = ω_i ρ_i (1 - ρ_i), and
/// Cov(Z_k) taken apart into layers, row j of layer κ gets
///
///   π_j T_κ (x_j - a_κ)² + b_j (x_j - x̄_κ)² = d_j (x_j - μ_j)² + (π_j T_κ b_j / d_j) (a_κ - x̄_κ)²
///
/// with squares for outer products, d_j = π_j T_κ + b_j and μ_j the mean of a_κ and x̄_κ weighted so.
/// What is between layers, Σ_κ T_κ a_κ a_κᵀ - Σ_k R_k x̄_k x̄_kᵀ, is summed in double: there alone is a
/// difference. Nothing depends on the offset of a query.
template <class Storage>
class DominationGram {
    using Real = typename Storage::value_type;

public:
    DominationGram(const Storage &storage, Order order, const DominationPoint &point)
        : storage_(storage), order_(order), point_(point), n_(storage.n_columns),
          padded_((n_ + 15) / 16 * 16) {}

    std::vector<double> product;  // on and above the diagonal, padded; empty if nothing was added

    /// The positions [first, last) of query q.
    void add_rows(const LayerMeans &means, std::int64_t q, std::int64_t first, std::int64_t last);
    /// Every other term of query q but those that add_rows found.
    void add_layers(const LayerMeans &means, std::int64_t q);
    void flush();

private:
    static constexpr std::int64_t block_rows = 96, block_layers = 16;

    void open();
    void add_square(double factor, const double *x, const double *origin);
    void flush_layers();

    const Storage &storage_;
    const Order order_;
    const DominationPoint &point_;
    const std::int64_t n_, padded_;
    std::vector<Real> a_, b_;       // rows of the block at hand, and the same times d
    std::vector<double> la_, lb_;   // the same for vectors of layers
    std::vector<double> x_;
    std::vector<double> coupling_;  // by layer: Σ π_j T_κ b_j / d_j
    std::int64_t filled_ = 0, filled_layers_ = 0;
};

}  // namespace linrank
