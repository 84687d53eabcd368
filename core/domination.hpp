// The domination loss at given scores: value, gradient, curvature and a bound from its dual.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "layering.hpp"
#include "pages.hpp"

namespace linrank {

/// The loss at one vector of scores z, by position; see Layering for the formula.
///
/// With k the layer of row i, ω_i = c_q u_i and Z_k the weighted sum of e^{m_j + Δ} over lower layers,
/// L = Σ_i ω_i log(1 + Z_k e^{-m_i}), and ρ_i = Z_k / (Z_k + e^{m_i}) is the probability mass that row i
/// leaves to the rows that it should dominate. All that is kept is bounded: ρ and the share
/// π_j = u_j e^{m_j} / E_κ of each row in its layer κ. One exponential a row.
class DominationPoint {
public:
    DominationPoint(const Layering &layering, std::span<const double> z, int n_threads);

    double value = 0;            // L
    double slope = 0;            // ∇L·z
    double total_curvature = 0;  // trace of ∇²L
    PageArray<double> gradient;  // ∇L
    // How far rounding may have taken these from their exact values at the scores as they are given.
    double value_error = 0;
    double slope_error = 0;
    double gradient_error = 0;  // 2-norm

    /// out = ∇²L(z)·v.
    void multiply(std::span<const double> v, std::span<double> out, int n_threads) const;
    /// D(t), 0 <= t <= 1: a lower bound of L(z') - t ∇L(z)·z' for every z'; at t = 1 the bound L - ∇L·z
    /// of the tangent plane. Its rounding is below 4·value_error + slope_error.
    double dual(double t, int n_threads) const;

    const Layering &layering() const { return layering_; }
    const LayerShares &shares() const { return shares_; }
    /// π and ρ, by position; 0 in queries of one layer.
    std::span<const double> share() const { return share_.view(); }
    std::span<const double> rho() const { return rho_.view(); }
    /// By cell: T_κ = Σ_{k>κ} share(k, κ) Σ_{i in k} ω_i ρ_i, so that ∇L_j = π_j T_κ - ω_j ρ_j.
    std::span<const double> pull() const { return pull_; }
    /// By cell: Σ ω_i ρ_i and Σ ω_i ρ_i² over the layer.
    std::span<const double> risk() const { return risk_; }
    std::span<const double> square_risk() const { return square_risk_; }

private:
    friend class DominationSweep;

    const Layering &layering_;
    LayerShares shares_;
    PageArray<double> share_, rho_;
    std::vector<double> pull_, risk_, square_risk_;
    double linear_ = 0;  // D(t) = Σ ω h(tρ) + t·linear, h the binary entropy
};

// The domination loss of one query.

struct DominationSums {
    double value = 0;  // L
    double slope = 0;  // ∇L·z
    double odds = 0;   // Σ ω ρ (log Z - m)
    double trace = 0;  // of ∇²L
    // Bounds of rounding: of L, of ∇L·z, and of ∇L (2-norm, squared).
    double value_error = 0, slope_error = 0, squared_error = 0;

    DominationSums &operator+=(const DominationSums &other) {
        value += other.value;
        slope += other.slope;
        odds += other.odds;
        trace += other.trace;
        value_error += other.value_error;
        slope_error += other.slope_error;
        squared_error += other.squared_error;
        return *this;
    }
};

/// Sums by layer, of one thread: their memory serves many queries.
struct LayerScratch {
    std::vector<double> peak, mass;        // max m, Σ u e^{m - peak}
    std::vector<double> log_below, below;  // log Z, Z e^{-peak}; of a product the mean below
    std::vector<double> sums, other;
    double largest = 0, weight = 0, slope_size = 0;  // max |m|, Σ ω, Σ (|parts of ∇L|·|z|)
};

/// What loops over the rows of a query look at: as a local copy, which no store to an array can touch.
struct RowView {
    const std::int32_t *levels;
    const double *u;  // by position, null for ones
    const double *s;  // by position, null for zeros
    double c;
    std::int64_t n_layers, last_lane;
    double origin = 0;  // of the scores: the loss sees differences only, and an offset would cost digits

    std::size_t level(std::int64_t t) const { return std::size_t(levels[t]); }
    double m(const double *z, std::int64_t t) const {
        return s ? (z[t] - origin) - s[t] : z[t] - origin;
    }
    /// ω.
    double weight(std::int64_t t) const { return u ? c * u[t] : c; }
    bool is_void(std::int64_t t) const { return u && !(u[t] > 0.0); }
    /// The cell of position t; see QueryParts::gather.
    std::int64_t cell(std::int64_t t, int n_sums) const {
        return (t & last_lane) * n_sums * n_layers + levels[t];
    }
};

/// The rows of a query in parts, each of which adds to sums by layer of its own: one part for all but
/// long queries, whose parts the threads share.
class QueryParts {
public:
    QueryParts(const Layering &layering, std::int64_t q, int n_threads, LayerScratch &scratch);

protected:
    /// Calls body(part, first, last) with ranges of positions.
    template <class Body>
    void for_each_part(const Body &body) const;
    /// Calls body(first, last, cells), where cells hold n_sums numbers by layer one after the other, all
    /// `start`, several times over: position t adds to RowView::cell, for sums into the same cell row by row
    /// would wait for each other; leaves those of all parts in out, joined by join(total, part) in the order of the parts.
    template <class Body, class Join>
    void gather(std::vector<double> &out, int n_sums, double start, const Body &body,
                const Join &join) const;
    template <class Body>
    void sum(std::vector<double> &out, int n_sums, const Body &body) const;

    /// The part that begins at position `first`.
    std::size_t part_of(std::int64_t first) const {
        return std::size_t(((first - begin_ + 1) * n_parts_ - 1) / (end_ - begin_));
    }
    bool is_void() const { return n_layers_ < 2; }
    const std::int64_t q_, begin_, end_, n_layers_, n_parts_;
    const int n_threads_;
    RowView rows_;
    const std::size_t cell_;  // of layer 0
    LayerScratch &scratch_;
};

/// Fills what a point keeps of a query.
class DominationSweep : QueryParts {
public:
    DominationSweep(DominationPoint &point, std::int64_t q, int n_threads, LayerScratch &scratch);
    DominationSums evaluate(const double *z);

private:
    void find_peaks();
    void find_masses();
    DominationSums find_risks();
    DominationSums add_risks(std::int64_t first, std::int64_t last, double *risk, double &largest,
                             double &weight) const;
    DominationSums find_gradient();
    void bound_rounding(DominationSums &sums) const;

    DominationPoint &point_;
    const double *z_ = nullptr;
};

/// ∇²L·v of one query.
///
/// With v̄_k the mean of v over the lower layers, weighted as in Z_k, row i expects
/// e_i = (1 - ρ_i) v_i + ρ_i v̄_k, and
///
///   (∇²L·v)_j = π_j (T_κ v_j - Σ_{k>κ} share(k, κ) Σ_{i in k} ω_i ρ_i e_i) + ω_j ρ_j (1 - ρ_j)(v_j - v̄_κ).
class DominationProduct : QueryParts {
public:
    DominationProduct(const DominationPoint &point, std::int64_t q, int n_threads,
                      LayerScratch &scratch);
    void multiply(const double *v, double *out) const;

private:
    const DominationPoint &point_;
};

}  // namespace linrank
