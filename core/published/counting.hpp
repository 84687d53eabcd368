// The pair sums as the literature computes them, on one thread, in double.
// For comparison and teaching: the production sweeps are in ../pair_sweep and ../level_sums.
//
// Lee & Lin (2014) need, for every row i of a query and for some vector v, the sums over its violators
//
//   above_i = Σ v_j over j with level_j > level_i and (1 - z_j) + z_i > 0,
//   below_i = Σ v_j over j with level_j < level_i and (1 - z_i) + z_j > 0.
//
// Value, gradient and Hessian product of either hinge loss follow from two or one of them: see point.hpp.
#pragma once
#include "basics.hpp"

namespace linrank::published {

/// One query in ascending order of its scores; all arrays are by place in that order.
struct SortedQuery {
    Doubles z;
    Levels level;
    std::int32_t n_levels;

    std::size_t n_rows() const { return z.size(); }
    /// Whether the pair (preferred, other) violates its margin. Written in one way: rounding is
    /// monotone, so each pointer that moves by this test finds what the definition finds.
    bool violates(std::size_t preferred, std::size_t other) const {
        return (1.0 - z[preferred]) + z[other] > 0.0;
    }
};

/// A way of counting: writes the sums of v above and below every row.
using Count = void (*)(const SortedQuery &query, Doubles v, std::span<double> above,
                       std::span<double> below);

/// The way of that name. Throws std::invalid_argument for another name.
Count counting(std::string_view name);

}  // namespace linrank::published
