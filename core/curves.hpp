// Functions of one feature each, linear between knots: the columns and the scores of additive
// rankers.
//
// A product with the columns of all rows needs no matrix of them: with the piece that every value
// lies in, one byte each, it is a sum over the pieces.
#pragma once

#include "products.hpp"

namespace linrank {

/// Function c looks at one feature x and has the ascending knots t = knots[offsets[c] ..
/// offsets[c+1]).
///
/// With p = #{t_b < x} it is values[p] + slopes[p] (x - t_max(p-1, 0)), its pieces being those from
/// offsets[c] + c on, one more than it has knots. Without any knot, t is 0. It may jump at a knot.
struct Curves {
    Integers feature;
    Integers offsets;
    Doubles knots;
    Doubles values;
    Doubles slopes;

    Index size() const { return Index(feature.size()); }
};

// Rows are dense: std::invalid_argument for others.

/// f_c(x_i) at [i * curves.size() + c], in double and rounded once. NaN stays NaN.
Values map_rows(const Rows &rows, const Curves &curves, int n_threads);

/// Σ_c f_c(x_i) of every row, added in the order of the functions.
std::vector<double> sum_curves(const Rows &rows, const Curves &curves, int n_threads);

/// pieces[i * curves.size() + c] = #{t_b < x_i} of function c, which has fewer than 256 knots.
void find_pieces(const Rows &rows, const Curves &curves, std::uint8_t *pieces, int n_threads);

/// Σ_c f_c(x) + lines[c] x of row(t) for every position t, whose pieces are known.
std::vector<double> sum_pieces(const Positions &x, const Curves &curves, const std::uint8_t *pieces,
                               Doubles lines, int n_threads);

/// The transpose: for every piece Σ r and, behind these, Σ r (x - t) over the positions in it, and
/// for every function Σ r x. The same bits for any number of threads.
std::vector<double> add_pieces(const Positions &x, const Curves &curves, const std::uint8_t *pieces,
                               Doubles r, int n_threads);

}  // namespace linrank
