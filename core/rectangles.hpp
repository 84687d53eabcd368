// Dual variables of pairs, one dense rectangle a query.
//
// The pairs (i, j) of a query have i among the rows above its lowest level and j among those below
// its highest. Both sorted by level, the pairs of a row are a prefix of the columns: a staircase in
// a rectangle of zeros.
#pragma once
#include "queries.hpp"

namespace linrank {

/// max over 0 <= a <= bound of Σ a (1 - z_i + z_j) - rho/2 (a - y)² + rho/2 y², attained at
/// a = clip(y + (1 - z_i + z_j) / rho): a smooth convex loss of the scores, >= 0.
struct ProximalLoss {
    double value = 0.0;
    double curvature = 0.0;        // Σ 1/rho over the pairs strictly inside their bounds
    // in the scores, by position: minus the row sums, plus the column sums
    std::vector<double> gradient;
};

/// What `settle` makes of the matrix M in y and of a correction S.
struct Mixture {
    double a_of_m = 1.0, a_of_s = 0.0, y_of_m = 0.0, y_of_s = 0.0;
};

/// Sums over one rectangle, with Z = rho (a - y) and g_ij = z_i - z_j - 1 + Z_ij.
struct CoupledSums {
    double sum = 0.0;       // Σ alpha
    double distance = 0.0;  // ‖alpha - a‖²
    double slope = 0.0;     // <Z, alpha - a>
    double square = 0.0;    // ‖Z‖²
    double lowest = 0.0;    // Σ bound max(0, -g): minus the minimum of <g, alpha> over the box
    double residual = 0.0;  // Σ (alpha - clip(alpha - g))²
};

/// The rectangles of some queries in one flat buffer, row by row.
///
/// Scores are by position, rho has one element a rectangle, y, a and alpha one an entry:
/// std::invalid_argument for arrays of other lengths. The same bits on any number of threads, since
/// a rectangle is one task and sums over rectangles run in order.
struct Rectangles {
    /// `chosen` are queries of two levels or more, in ascending order: alpha_ij <= C c_q u_i u_j.
    /// Positions are rows.
    Rectangles(const Queries &queries, Integers chosen, double C);

    // positions of the rows and columns, query after query
    std::vector<Index> upper, lower;
    std::vector<Index> n_pairs;                 // by row: columns of a lower level, a prefix
    std::vector<Index> first_row, first_column;     // by rectangle, and the end
    std::vector<Index> offsets;                 // of the rectangles in the buffer, and the end
    std::vector<double> row_bound, column_bound;  // 0 <= alpha_ij <= row_bound_i * column_bound_j
    Index n_positions;

    Index size() const { return std::ssize(offsets) - 1; }
    Index n_entries() const { return offsets.back(); }

    ProximalLoss loss(Doubles z, Doubles y, Doubles rho, int n_threads) const;
    /// The second derivative of that loss in the scores, times v.
    std::vector<double> curvature(Doubles z, Doubles y, Doubles rho, Doubles v,
                                  int n_threads) const;
    /// alpha = the maximizer; entries that are no pairs become 0.
    void point(Doubles z, Doubles y, Doubles rho, std::span<double> alpha, int n_threads) const;
    /// Row sums less column sums, by position: c with Σ alpha_ij (x_i - x_j) = Xᵀc.
    std::vector<double> coefficients(Doubles alpha, int n_threads) const;
    /// y <- over * alpha + (2 - over) * a - y; returns the squared Frobenius norm of each rectangle
    /// of y then.
    std::vector<double> relax(Doubles alpha, Doubles a, std::span<double> y, double over,
                              int n_threads) const;
    /// Squared Frobenius norms of the rectangles.
    std::vector<double> squared_norms(Doubles values, int n_threads) const;
    /// a <- a_of_m M + a_of_s S and y <- y_of_m M + y_of_s S for one rectangle; no S is zero.
    /// Returns the squared change of a.
    double settle(Index rectangle, std::optional<Doubles> s, const Mixture &mixture,
                  std::span<double> a, std::span<double> y) const;
    std::vector<CoupledSums> sums(Doubles z, Doubles alpha, Doubles a, Doubles y, Doubles rho,
                                  int n_threads) const;

private:
    void check(Doubles z, Doubles y, Doubles rho) const;
};

}  // namespace linrank
