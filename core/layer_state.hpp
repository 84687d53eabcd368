// The domination loss at some scores, kept while they move: the sums of every layer of every query.
#pragma once

#include "layering.hpp"
#include "pages.hpp"

namespace linrank {

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
