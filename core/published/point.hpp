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
#include "counting.hpp"

namespace linrank::published {

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
