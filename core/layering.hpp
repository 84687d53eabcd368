// Which rows of a query are to dominate which others, by how much and how heavily.
#pragma once

#include "pages.hpp"
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

// The loss at some scores, kept while they move: the sums of every layer of every query.

/// With m = XDw - s and layers κ < k of a query, Z_k = Σ_{κ<k} Σ_{j in κ} u_j e^{m_j + Δ(k,κ)}, and
/// a dominating row has ρ_i = Z_k/(Z_k + e^{m_i}). R_k = Σ_{i in k} ω_i ρ_i, ω_i = c_q u_i, changes
/// with Z_k for all rows of the layer at once; it is kept as a polynomial of second degree in log
/// Z_k, whose remainder below |ε| <= drift is R_k ε³/6, and summed afresh beyond. All exponentials
/// are relative to the largest of their layer when the query was last rebuilt, so that none
/// overflows and no layer vanishes beside another.
class LayerState {
public:
    /// All scores are zero; nothing is summed until `rebuild`.
    explicit LayerState(const Layering &layering);

    // of log Z before R is summed afresh: exact to 1.4e-9
    static constexpr double drift = 2e-3;
    // growth of a score beyond its layer's top that calls for a rebuild
    static constexpr double overflow = 30;
    // share of its peak below which a layer's sum is mostly rounding
    static constexpr double fallen = 1e-6;
    static constexpr Index block = 64;  // rows whose exponentials are computed together

    struct Row {
        double m;  // score less margin
        double e;  // u e^{m - top of its layer}; 0 in the top layer, which nobody is below
        Index level;
    };
    /// Where the state of a position is.
    struct Spot {
        std::int32_t place, query;
    };
    struct Query {
        Index begin, end;  // of its positions
        Index first_cell;
        Index n_layers;
        Index n_rows() const { return end - begin; }
    };
    /// A layer of a query; the first line of cache has what the slope along a column needs.
    struct alignas(64) Cell {
        double Z, Z_ref;      // now, and where the polynomial of R was expanded
        double r0, r1, r2;    // R and its derivatives in log Z, at Z_ref
        double carry, fresh;  // Z_k = carry Z_{k-1} + fresh Σe_{k-1}
        // what Z and the rows' q are relative to: the largest top below, with its margin
        double base;
        double top;           // largest m at the last rebuild: what the rows' e are relative to
        double sum, peak;     // Σ e, and its largest value since the last rebuild
        double weight;        // Σ ω of the rows
    };

    /// Everything of a query from its scores.
    void rebuild(Index q);
    /// Σ e of one layer, afresh.
    void sum_layer(Index q, Index k);
    /// Z of all layers from their sums.
    void update_Z(Index q);
    /// R and its derivatives at the present Z.
    void expand(Index q, Index k);
    /// The same for the layers whose Z has moved too far.
    void refresh_drifted(Index q);
    /// What rows of a query weigh as dominated ones, u e^{m - top}, and what Z is compared with for
    /// them as dominating ones, e^{m - base}; at most `block` of them.
    void exponentials(Index q, const Index *places, Index n, double *e, double *above) const;
    /// set(k, Σ_{κ<k} own(κ)·e^{...}), relative to the base of layer k, for every layer but the
    /// lowest.
    template <class Own, class Set>
    void accumulate(Index q, const Own &own, const Set &set) const;

    double omega(Index q, Index place) const {
        return layering.c(q) * (u.empty() ? 1.0 : u[place]);
    }
    Index n_layers(Index q) const { return queries[q].n_layers; }
    Index first_cell(Index q) const { return queries[q].first_cell; }
    std::size_t place_of(Index position) const {
        return std::size_t(spots[position].place);
    }
    Cell *cells_of(Index q) { return cells.data() + first_cell(q); }
    const Cell *cells_of(Index q) const { return cells.data() + first_cell(q); }

    const Layering &layering;
    // by position: rows lie layer by layer, so that sums run straight
    LargeVector<Spot> spots;
    std::vector<std::int32_t> position_of;  // by place
    LargeVector<Query> queries;
    std::vector<Index> first_place;  // by cell
    std::vector<Index> n_weighted;   // by cell: rows of weight > 0
    LargeVector<Row> rows;                  // by place
    // by place: e^{m - base of its layer}, what Z is compared with
    LargeVector<double> above;
    std::vector<double> u;                  // by place; empty for ones
    LargeVector<Cell> cells;

private:
    void place_rows();
    void find_tops(Index q);

    // e^{top_κ + Δ(k,κ) - base_k}, K × K a query; empty without Δ
    std::vector<double> table_;
    std::vector<Index> first_table_;  // by query
};

template <class Own, class Set>
void LayerState::accumulate(Index q, const Own &own, const Set &set) const {
    const Index K = n_layers(q);
    const Cell *cell = cells_of(q);
    if (table_.empty()) {
        auto sum = own(0) * 0.0;
        for (Index k = 1; k < K; ++k) {
            sum = sum * cell[k].carry + own(k - 1) * cell[k].fresh;
            set(k, sum);
        }
        return;
    }
    const double *table = table_.data() + first_table_[q];
    for (Index k = 1; k < K; ++k) {
        auto sum = own(0) * table[k * K];
        for (Index j = 1; j < k; ++j) sum = sum + own(j) * table[k * K + j];
        set(k, sum);
    }
}

}  // namespace linrank
