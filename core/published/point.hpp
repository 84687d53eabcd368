// Either hinge loss at one vector of scores, from the sums of any way of counting. With
// l± = above, below of u and γ±(v) = above, below of u v (Lee & Lin, 17-19), by row,
//
//   Σ ω ξ² : gradient 2[(l⁺ + l⁻) s - γ⁺(s) - γ⁻(s) - (l⁻ - l⁺)], curvature 2[(l⁺ + l⁻) v - γ⁺(v) - γ⁻(v)]
//   Σ ω ξ  : sub-gradient l⁺ - l⁻
//
// each times c_q u_i.
#pragma once

#include "../pair_sweep.hpp"
#include "../preferences.hpp"

namespace linrank::published {

// The pair sums as the literature computes them, on one thread, in double.
// For comparison and teaching: the production sweeps are in ../pair_sweep and ../level_sums.
//
// Lee & Lin (2014) need, for every row i of a query and for some vector v, the sums over its violators
//
//   above_i = Σ v_j over j with level_j > level_i and (1 - z_j) + z_i > 0,
//   below_i = Σ v_j over j with level_j < level_i and (1 - z_i) + z_j > 0.
//
// Value, gradient and Hessian product of either hinge loss follow from two or one of them: see above.

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

/// `value` and `gradient` are those of the squared hinge.
class PublishedPoint : public LossPoint {
public:
    PublishedPoint(const PairProblem &problem, Doubles z, Count count);

    std::vector<double> hinge_gradient;  // a sub-gradient of sum_of_slacks

    /// out = ∇²L(z)·v of the squared hinge, reusing the order of the scores.
    void multiply(Doubles v, std::span<double> out) const;

private:
    struct Scratch {
        std::vector<double> v, above, below;
    };
    void sort(Index q, Doubles z);
    void evaluate(Index q, Scratch &scratch);
    /// Sums of u·v, where v(i) is by position, over the violators of each place of query q.
    template <class Value>
    void count(Index q, const Value &v, Scratch &scratch) const;

    PairProblem problem_;
    Count count_;
    std::vector<Index> order_;   // position at each place; the rest is by place, too
    std::vector<double> z_, degree_;    // centered score; c u (l⁺ + l⁻)
    std::vector<std::int32_t> level_;
};

/// All pairs written down, for PRSVM (Chapelle & Keerthi 2010): O(p) a product and in memory.
PreferenceList explicit_pairs(const PairProblem &problem);

}  // namespace linrank::published
