// Which rows of a query are to dominate which others, by how much and how heavily.
#pragma once

#include "queries.hpp"

namespace linrank {

// the logarithm of no mass
inline constexpr double nothing = -std::numeric_limits<double>::infinity();

/// The domination loss of scores z, with m = z - shift and D(i) the rows of lower layers in i's
/// query:
///
///   L(z) = Σ_q c_q Σ_{i in q} u_i log(1 + Σ_{j in D(i)} u_j e^{m_j - m_i + Δ(i, j)}).
///
/// Δ depends on the layers of i and j alone; margins that are differences s(i) - s(j) are in
/// `shift`. The levels are the layers. Empty vectors stand for zeros (shift, table).
struct Layering : QueryArrays<Owned> {
    std::vector<Index> first_cell{};     // cell of layer k of query q: first_cell[q] + k
    std::vector<double> shift{};         // s, by position
    std::vector<double> table{};         // Δ, n_grades × n_grades, row: the dominating layer
    Index n_grades = 0;
    std::vector<std::int32_t> grades{};  // by cell: its row and column of the table

    Index n_cells() const { return first_cell.back(); }
    double s(Index t) const { return shift.empty() ? 0.0 : shift[t]; }
    /// Δ between two layers of a query, given by their cells; only where there is a table.
    double margin(Index above, Index below) const {
        return table[grades[above] * n_grades + grades[below]];
    }
};

// What each layer of a query contributes to the sums over all lower layers.

/// With E_κ = Σ u_j e^{m_j} over layer κ, and Z_k = Σ_{κ<k} E_κ e^{Δ(k, κ)} of layer k, the share
/// of κ in Z_k is E_κ e^{Δ(k, κ)} / Z_k <= 1. Sums weighted by shares take O(K) for the K layers of
/// a query without a table of margins, by recursions in which every factor is a share, and O(K²)
/// with one. Arrays are by layer of query q; nothing overflows, and a layer without weight has log
/// E = -∞.
class LayerShares {
public:
    explicit LayerShares(const Layering &layering);

    /// log E of the layers of query q has been set: everything else of q follows.
    void update(Index q);
    double *log_mass(Index q) { return log_mass_.data() + cell(q); }
    const double *log_mass(Index q) const { return log_mass_.data() + cell(q); }
    /// log Z, -∞ for layer 0.
    const double *log_below(Index q) const { return log_below_.data() + cell(q); }

    /// out[k] = Σ_{κ<k} share(k, κ) x[κ], or of the squares of the shares, 0 where Z_k is; x and
    /// out hold n numbers for each layer.
    template <bool squared = false>
    void average_below(Index q, const double *x, double *out, Index n = 1) const;
    /// out[κ] = Σ_{k>κ} share(k, κ) x[k].
    void sum_above(Index q, const double *x, double *out) const;

private:
    Index cell(Index q) const { return layering_.first_cell[q]; }
    Index n_layers(Index q) const { return layering_.n_levels[q]; }
    double share(Index q, Index k, Index below) const;

    const Layering &layering_;
    std::vector<double> log_mass_, log_below_;
    // Without a table, by layer κ: Z_κ / Z_{κ+1} and E_κ / Z_{κ+1}.
    std::vector<double> kept_, added_;
};

}  // namespace linrank
