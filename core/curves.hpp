// Functions of one feature each, linear between knots: the columns and the scores of additive rankers.
#pragma once
#include <cstdint>
#include <span>

#include "rows.hpp"

namespace linrank {

/// Function c looks at one feature x and has the ascending knots t = knots[offsets[c] .. offsets[c+1]).
///
/// With p = #{t_b < x} it is values[p] + slopes[p] (x - t_max(p-1, 0)), its pieces being those from
/// offsets[c] + c on, one more than it has knots. Without any knot, t is 0. It may jump at a knot.
struct Curves {
    std::span<const std::int64_t> feature;
    std::span<const std::int64_t> offsets;
    std::span<const double> knots;
    std::span<const double> values;
    std::span<const double> slopes;

    std::int64_t size() const { return std::int64_t(feature.size()); }
};

/// out[i * curves.size() + c] = f_c(x_i), in double and rounded once. NaN stays NaN.
template <class Value>
void map_rows(const DenseRows<Value> &rows, const Curves &curves, Value *out, int n_threads);

/// out[i] = Σ_c f_c(x_i), added in the order of the functions.
template <class Value>
void sum_curves(const DenseRows<Value> &rows, const Curves &curves, double *out, int n_threads);

}  // namespace linrank
