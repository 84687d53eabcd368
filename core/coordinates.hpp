// Coordinate descent for the domination loss: the state of all queries, and sweeps over columns.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "columns.hpp"
#include "coordinate_step.hpp"
#include "layering.hpp"

namespace linrank {

/// What a sweep did.
struct Sweep {
    double decrease = 0;       // of the objective, at least
    std::int64_t n_moved = 0;  // weights that changed
};

/// The domination loss at some w, kept so that the derivative along a column costs its non-zeros.
///
/// With m = XDw - s and layers κ < k of a query, Z_k = Σ_{κ<k} Σ_{j in κ} u_j e^{m_j + Δ(k,κ)}, a dominating row
/// has ρ_i = Z_k/(Z_k + e^{m_i}), and with x̄_k the mean of x under the weights in Z_k,
///
///   ∂L/∂w = Σ_k (R_k x̄_k - Σ_{i in k} ω_i ρ_i x_i),   R_k = Σ_{i in k} ω_i ρ_i,   ω_i = c_q u_i:
///
/// rows with x = 0 are in R_k alone. R_k changes with Z_k for all rows of the layer at once; it is kept as a
/// polynomial of second degree in log Z_k, whose remainder below |ε| <= drift is R_k ε³/6, and summed afresh
/// beyond. All exponentials are relative to the largest of their layer when the query was last rebuilt, so
/// that none overflows and no layer vanishes beside another.
class Coordinates {
public:
    /// `factors` is the diagonal of D; empty for ones. Starts at w = 0.
    Coordinates(std::shared_ptr<const Columns> columns, std::shared_ptr<const Layering> layering,
                std::vector<double> factors);

    /// Moves the weights of `features`, one after the other, each to the minimum of its bound.
    Sweep sweep(std::span<double> w, std::span<const std::int64_t> features, Penalty penalty, double alpha,
                Curvature curvature);

    /// The bounds along single columns at the current w.
    void measure(std::span<const std::int64_t> features, Curvature curvature,
                 std::span<CoordinateBound> out, int n_threads);

    /// Everything anew at w: scores from the columns, sums from the scores.
    void restart(std::span<const double> w);

    /// XDw by position, as it has been carried along; not of queries with one layer, which have no part in
    /// the loss.
    std::vector<double> scores() const;

    std::int64_t n_features() const { return n_columns(*columns_); }

private:
    struct Row {
        double m;  // score less margin
        double e;  // u e^{m - top of its layer}; 0 in the top layer, which nobody is below
        std::int64_t level;
    };
    /// Where the state of a position is.
    struct Spot {
        std::int32_t place, query;
    };
    struct Query {
        std::int64_t begin, end;  // of its positions
        std::int64_t first_cell;
        std::int64_t n_layers;
        std::int64_t n_rows() const { return end - begin; }
    };
    /// A layer of a query; the first line of cache has what the slope along a column needs.
    struct alignas(64) Cell {
        double Z, Z_ref;      // now, and where the polynomial of R was expanded
        double r0, r1, r2;    // R and its derivatives in log Z, at Z_ref
        double carry, fresh;  // Z_k = carry Z_{k-1} + fresh Σe_{k-1}
        double base;          // what Z and the rows' q are relative to: the largest top below, with its margin
        double top;           // largest m at the last rebuild: what the rows' e are relative to
        double sum, peak;     // Σ e, and its largest value since the last rebuild
        double weight;        // Σ ω of the rows
    };
    /// Sums over the entries of one column in one query, by layer.
    struct Sums {
        double ex, exx;  // Σ e x, Σ e x²
        double rx;       // Σ ω ρ x
        double vx, vxx;  // Σ ω ρ(1-ρ) x, Σ ω ρ(1-ρ) x²
    };
    struct Extent {
        double low, high;
        std::int64_t n;
        double weight;
    };
    struct Scratch {
        std::vector<Sums> sums;
        std::vector<Extent> extents;
    };
    struct Known {  // of a column, computed when it is first asked for
        double bound = -1, range = 0, largest = 0;
    };

    template <class Storage>
    Sweep sweep_columns(const Storage &, std::span<double>, std::span<const std::int64_t>, Penalty, double,
                        Curvature);
    template <class Storage>
    CoordinateBound bound_of(const Storage &, std::int64_t column, Curvature, Scratch &);
    template <class Storage>
    void know(const Storage &, std::int64_t column, Scratch &);
    template <class Entries>
    void add_known(std::int64_t q, const Entries &, Scratch &, Known &) const;
    template <class Entries>
    void add_slope(std::int64_t q, const Entries &, Scratch &, CoordinateBound &) const;
    template <class Storage>
    void move(const Storage &, std::int64_t column, double change);
    template <class Entries>
    void move_query(std::int64_t q, const Entries &, double change);
    template <class Storage, class Body>
    void for_each_query(const Storage &, std::int64_t column, const Body &) const;

    void place_rows();
    void rebuild(std::int64_t q);
    void settle_tops(std::int64_t q);
    void update_Z(std::int64_t q);
    void expand(std::int64_t q, std::int64_t k);
    void refresh_drifted(std::int64_t q);
    void exponentials(std::int64_t q, const std::int64_t *places, std::int64_t n, double *e, double *above) const;
    void sum_layer(std::int64_t q, std::int64_t k);
    void ask_ahead(const std::int32_t *positions, std::int64_t n) const;
    template <class Own, class Set>
    void accumulate(std::int64_t q, const Own &own, const Set &set) const;

    double factor(std::int64_t c) const { return factors_.empty() ? 1.0 : factors_[std::size_t(c)]; }
    double omega(std::int64_t q, std::int64_t place) const;
    std::int64_t n_layers(std::int64_t q) const { return queries_[std::size_t(q)].n_layers; }
    std::int64_t first_cell(std::int64_t q) const { return queries_[std::size_t(q)].first_cell; }
    std::size_t place_of(std::int64_t position) const {
        return std::size_t(spots_[std::size_t(position)].place);
    }
    Cell *cells(std::int64_t q) { return cells_.data() + first_cell(q); }
    const Cell *cells(std::int64_t q) const { return cells_.data() + first_cell(q); }

    std::shared_ptr<const Columns> columns_;
    std::shared_ptr<const Layering> layering_;
    std::vector<double> factors_;
    std::vector<Spot> spots_;                // by position: rows lie layer by layer, so that sums run straight
    std::vector<std::int32_t> position_of_;  // by place
    std::vector<Query> queries_;
    std::vector<std::int64_t> first_place_;  // by cell
    std::vector<std::int64_t> n_weighted_;   // by cell: rows of weight > 0
    std::vector<Row> rows_;                  // by place
    std::vector<double> q_;                  // by place: e^{m - base of its layer}, what Z is compared with
    std::vector<double> u_;                  // by place; empty for ones
    std::vector<Cell> cells_;
    std::vector<double> table_;              // e^{top_κ + Δ(k,κ) - base_k}, K × K a query; empty without Δ
    std::vector<std::int64_t> first_table_;  // by query
    std::vector<Known> known_;
    Scratch scratch_;
    double total_weight_ = 0;  // Σ ω over the dominating rows
    std::int64_t largest_ = 0;  // layers of a query
    std::int64_t n_touched_ = 0;  // entries since the last restart
};

}  // namespace linrank
