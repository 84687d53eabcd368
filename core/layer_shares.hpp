// What each layer of a query contributes to the sums over all lower layers.
#pragma once
#include <cstdint>
#include <vector>

#include "layering.hpp"

namespace linrank {

/// With E_κ = Σ u_j e^{m_j} over layer κ, and Z_k = Σ_{κ<k} E_κ e^{Δ(k, κ)} of layer k, the share of κ
/// in Z_k is E_κ e^{Δ(k, κ)} / Z_k <= 1. Sums weighted by shares take O(K) for the K layers of a query
/// without a table of margins, by recursions in which every factor is a share, and O(K²) with one.
/// Arrays are by layer of query q; nothing overflows, and a layer without weight has log E = -∞.
class LayerShares {
public:
    explicit LayerShares(const Layering &layering);

    /// log E of the layers of query q has been set: everything else of q follows.
    void update(std::int64_t q);
    double *log_mass(std::int64_t q) { return log_mass_.data() + cell(q); }
    const double *log_mass(std::int64_t q) const { return log_mass_.data() + cell(q); }
    /// log Z, -∞ for layer 0.
    const double *log_below(std::int64_t q) const { return log_below_.data() + cell(q); }

    /// out[k] = Σ_{κ<k} share(k, κ) x[κ], 0 where Z_k is; x and out hold n numbers for each layer.
    void average_below(std::int64_t q, const double *x, double *out, std::int64_t n = 1) const;
    /// The same with the squares of the shares.
    void average_below_squared(std::int64_t q, const double *x, double *out) const;
    /// out[κ] = Σ_{k>κ} share(k, κ) x[k].
    void sum_above(std::int64_t q, const double *x, double *out) const;

private:
    std::int64_t cell(std::int64_t q) const { return layering_.first_cell[q]; }
    std::int64_t n_layers(std::int64_t q) const { return layering_.n_levels[q]; }
    double share(std::int64_t q, std::int64_t k, std::int64_t below) const;
    template <bool squared>
    void average(std::int64_t q, const double *x, double *out, std::int64_t n) const;

    const Layering &layering_;
    std::vector<double> log_mass_, log_below_;
    // Without a table, by layer κ: Z_κ / Z_{κ+1} and E_κ / Z_{κ+1}.
    std::vector<double> kept_, added_;
};

}  // namespace linrank
