// The loss over all pairs of queries at given scores, as in core/pair_sweep.cpp, whose formulas these are: what
// short queries (short_queries.cu) and long ones (long_queries.cu) have in common.
//
// Everything is by position: query q is offsets[q] .. offsets[q + 1]. A *place* is a rank in the ascending order of
// the scores of a query. Pairs (i, j) with level_i > level_j weigh c u_i u_j (g_i - g_j).
#pragma once
#include "sums.cuh"

enum Kind { squared_hinge, hinge, huber };

// What a query says of its rows, and of one margin: sums over rows, with r = 1 + |s| and d the weight of a row's
// pairs. `summarize` makes of them what a point tells, rounding included.
enum RowMoments { m_spread_s, m_weight, m_ur, m_urr, m_uu, m_uur, m_uurr, m_gain, m_slopes, m_grid, n_row_moments };
enum MarginMoments {
    m_violations, m_dr, m_drr, m_active, m_largest, m_balance, m_balance_low, m_curl, m_curl_low, n_margin_moments
};
constexpr int n_moments = n_row_moments + 2 * n_margin_moments;
/// What a point tells, by query and in all: see core/loss.hpp; the slopes of the scores by their squared 2-norm.
enum Told {
    t_value, t_slacks, t_inner_slacks, t_violations, t_curvature, t_value_error, t_slacks_error, t_dual_error,
    t_slope_errors, t_slopes, n_told
};

struct Problem {
    const int *offsets, *levels, *n_levels;
    const double *u, *c, *gain;  // null: ones, ones, none
    bool adjacent;

    __device__ bool is_counted() const { return !u && !gain; }
    __device__ int n_vectors() const { return gain ? 2 : 1; }
};
#define PROBLEM const int *offsets, const int *levels, const int *n_levels, const double *u, const double *c, \
    const double *gain, i64 adjacent
#define PROBLEM_GIVEN Problem{offsets, levels, n_levels, u, c, gain, adjacent != 0}

/// How many e < n have (margin - s[e]) + other > 0, s ascending.
__device__ inline int upto_of(const double *s, int n, double margin, double other) {
    int low = 0, high = n;
    while (low < high) {
        const int middle = (low + high) / 2;
        if ((margin - s[middle]) + other > 0.0) low = middle + 1;
        else high = middle;
    }
    return low;
}

/// The first e with (margin - own) + s[e] > 0, or n: the exact inverse of `upto_of`.
__device__ inline int from_of(const double *s, int n, double margin, double own) {
    int low = 0, high = n;
    while (low < high) {
        const int middle = (low + high) / 2;
        if ((margin - own) + s[middle] > 0.0) high = middle;
        else low = middle + 1;
    }
    return low;
}

/// The grid on which sums over a band are exact, or 0: see PairPoint::put_on_grid.
__device__ inline double grid_of(i64 kind, bool is_counted, int n, double largest) {
    const double reach = 4.0 * n * (2.0 + largest);
    if (kind != huber || !is_counted || !(reach <= 0x1p-30 * 0x1p53)) return 0.0;
    int exponent;
    frexp(reach, &exponent);
    return ldexp(1.0, exponent - 53);
}

__device__ inline double put_on(double grid, double s) {
    const double magic = 0x1.8p52 * grid;
    return grid > 0.0 ? (s + magic) - magic : s;
}

// ---- one row: from the sums over its pairs to slope, degree and moments -----------------------------------------

/// Sums over the pairs of a row: weights and weighted scores of the violators above and below.
struct RowSums {
    double l_above, l_below, g_above, g_below;
};

/// Σ_j u_j |g_j - g_i| v_j from the sums of u v and u g v: + above, - below.
__device__ inline double combined(bool has_gain, double g, double sum, double sum_g, double sign) {
    return has_gain ? sign * (sum_g - g * sum) : sum;
}

struct MarginTotals {
    double violations = 0, dr = 0, drr = 0, active = 0, largest = 0;
    Twice balance = {0, 0}, curl = {0, 0};  // Σ u (l⁻ - l⁺) s, and Σ u ((AᵀA s) - 2 θ (l⁻ - l⁺)) s

    /// Adds a row of weight u; writes what its pairs weigh, and the slope of Σ ξ² (of Σ ξ for the hinge) over c u.
    __device__ void add(RowSums x, double s, double u, double c, double margin, bool is_hinge, double *degree,
                        double *slope) {
        const double laplacian = (x.l_above + x.l_below) * s - (x.g_above + x.g_below);
        const double balanced = x.l_below - x.l_above, curled = laplacian - 2.0 * margin * balanced;
        const double d = c * u * (x.l_above + x.l_below), r = 1.0 + fabs(s);
        *degree = d;
        *slope = is_hinge ? -balanced : 2.0 * (laplacian - margin * balanced);
        violations += u * x.l_above;
        balance.add_product(u * balanced, s);
        curl.add_product(u * curled, s);
        dr += d * r;
        drr += d * r * r;
        largest = fmax(largest, d * r);
        active += d != 0.0 ? 1.0 : 0.0;
    }

    /// Of a block; `scratch` has 64 numbers.
    __device__ void store(double *moments, double *scratch) const {
        const Twice b = block_sum(balance, scratch), k = block_sum(curl, scratch);
        const double sums[] = {block_sum(violations, scratch), block_sum(dr, scratch), block_sum(drr, scratch),
                               block_sum(active, scratch), block_max(largest, scratch),
                               b.high, b.low, k.high, k.low};
        if (threadIdx.x == 0)
            for (int j = 0; j < n_margin_moments; ++j) moments[j] = sums[j];
    }
};

struct RowTotals {
    double s = 0, u = 0, ur = 0, urr = 0, uu = 0, uur = 0, uurr = 0, slopes = 0, gain = 0;

    __device__ void add(double score, double weight, double largest_gain, double slope) {
        const double r = 1.0 + fabs(score);
        s += weight * fabs(score);
        u += weight;
        ur += weight * r;
        urr += weight * r * r;
        uu += weight * weight;
        uur += weight * weight * r;
        uurr += weight * weight * r * r;
        slopes += slope * slope;
        gain = fmax(gain, largest_gain);
    }

    __device__ void store(double grid, double *moments, double *scratch) const {
        const double sums[] = {block_sum(s, scratch), block_sum(u, scratch), block_sum(ur, scratch),
                               block_sum(urr, scratch), block_sum(uu, scratch), block_sum(uur, scratch),
                               block_sum(uurr, scratch), block_max(gain, scratch), block_sum(slopes, scratch), grid};
        if (threadIdx.x == 0)
            for (int j = 0; j < n_row_moments; ++j) moments[j] = sums[j];
    }
};
