// A pair loss whose weights are what swapping the two rows of a pair would change in a measure of a
// ranking.
//
//   L(z) = Σ_q Σ_{t < j, t < depth_q} ω_tj l(ξ_tj),   ω_tj = |g_t - g_j| f_t u_j max(0, a_t - b_j)
//
// over the positions t, j of each query, which are the places of that ranking, the first place
// first. The row of the larger gain g is the winner of the pair: ξ = 1 - z_winner + z_loser. For
// NDCG a = b is the discount of a place; the depth is the cut-off of the measure, beyond which no
// swap changes anything. So a row has at most depth pairs, and they are visited, not listed: the
// rows after one row lie side by side in memory.
#pragma once

#include "loss_point.hpp"
#include "products.hpp"
#include "queries.hpp"

namespace linrank {

/// The weights' side of the loss, by position; row_weight is u.
struct SwapProblem : QueryArrays<Owned> {
    std::vector<std::int32_t> depth;  // places of each query that have pairs with those after them
    std::vector<double> gain, first, second;  // g, a, b
    std::vector<double> factor;               // f

    SwapRow row(Index t, double z) const { return {z, gain[t], first[t], factor[t] * u(t)}; }
    /// The rows [begin, end), whose scores are given from there on.
    SwapRows rows(Index begin, Index end, const double *z) const {
        return {end - begin, z, gain.data() + begin, second.data() + begin,
                row_weight.empty() ? nullptr : row_weight.data() + begin};
    }
    /// Bounds of at most n_parts ranges of queries with about equally many pairs; depends on
    /// nothing else.
    std::vector<Index> query_parts(Index n_parts) const;
};

/// The loss at one vector of scores.
class SwapPoint : public LossPoint {
public:
    SwapPoint(const SwapProblem &problem, PairLoss loss, Doubles z, int n_threads);

    /// out = ∇²L(z)·v.
    void multiply(Doubles v, std::span<double> out, int n_threads) const;

    const SwapProblem &problem() const { return problem_; }
    /// out[j - first] = ω_tj l''(ξ_tj) for the positions j in [first, last) of the query of t, all
    /// after t.
    void curvatures(Index t, Index first, Index last, double *out) const;

private:
    template <class Visit>
    void for_each_piece(int n_threads, double *out, const Visit &visit) const;
    SwapRow row(Index t) const { return problem_.row(t, z_.data()[t]); }
    SwapRows rows(Index first, Index last) const {
        return problem_.rows(first, last, z_.data() + first);
    }

    const SwapProblem &problem_;
    PairLoss loss_;
    PageArray<double> z_;
};

/// Σ ω over the pairs of each query, then how many of its pairs have a weight.
struct SwapTotals {
    std::vector<double> weight;
    std::vector<Index> n_pairs;
};
SwapTotals swap_totals(const SwapProblem &problem, int n_threads);

/// Xᵀ∇²L(z)X in full, n_columns × n_columns.
std::vector<double> hessian_matrix(const Positions &x, const SwapPoint &point, int n_threads);

/// An estimate of its diagonal from one pass over the non-zeros: Σ_i d_i x_i², d the sums of ω l''
/// of each row.
std::vector<double> hessian_diagonal(const Positions &x, const SwapPoint &point, int n_threads);

}  // namespace linrank
