// A loss over the pairs of all queries: value, gradient and curvature in the scores.
//
//   L(z) = Σ_q Σ_{(i,j): level_i > level_j} ω_ij l(1 - z_i + z_j),   ω_ij = c_q u_i u_j (g_i - g_j)
//
// for the squared hinge l(ξ) = max(0, ξ)², the hinge max(0, ξ) and its Huberized form, without the
// factor g_i - g_j where there are no gains, or for pairs of neighboring levels only,
// in O(n log n) per point and, by level_sums, O(n) or O(n log_16 n) per product, never by listing
// pairs.
#pragma once

#include "loss_point.hpp"
#include "queries.hpp"
#include "simd.hpp"

namespace linrank {

/// The labels' side of the loss.
struct PairProblem : Queries {
    Levels by_level = {};   // of level_order(), or empty
    Doubles gain = {};      // g, the same for all rows of a level, or empty
    bool adjacent = false;  // pairs of neighboring levels only: level_i = level_j + 1
};

/// Rows of each query, counted from its beginning, in ascending order of level: fixed for a whole
/// fit. Empty if no query asks for it (see sums_by_rank).
std::vector<std::int32_t> level_order(const PairProblem &problem);

/// Scratch of one thread for the queries of a chunk.
struct SweepScratch {
    std::vector<double> tree, above, below, v, s;
    SortScratch sort;
};

/// The loss at one vector of scores.
class PairPoint : public LossPoint {
public:
    /// `near` is a point of the same problem whose order of scores is likely to be similar, or
    /// null.
    PairPoint(const PairProblem &problem, PairLoss loss, Doubles z, const PairPoint *near,
              int n_threads);

    /// l'' where it is not 0.
    double curvature() const {
        if (loss_.kind == PairLoss::hinge) return 0.0;
        return loss_.kind == PairLoss::huber ? 1.0 / loss_.epsilon : 2.0;
    }

    /// out = ∇²L(z)·v for the rows of query q, v and out by position within the query.
    void multiply(Index q, const double *v, double *out, SweepScratch &scratch) const;
    /// The same for a long query, by all threads; v and out are not the same memory.
    void multiply_long(Index q, const double *v, double *out, int n_threads) const;
    /// out = ∇²L(z)·v for all rows.
    void multiply(Doubles v, std::span<double> out, int n_threads) const;

    /// Where the loss of a pair is curved: windows, of huber bands.
    Windows windows(Index q) const;
    /// Row (within the query) that stands at each place of the ascending order of scores.
    const std::int32_t *order(Index q) const { return order_.data() + problem_.begin(q); }
    /// Σ_j ω_ij over the pairs of each row where the loss is curved.
    const double *degree(Index q) const { return degree_.data() + problem_.begin(q); }
    const PairProblem &problem() const { return problem_; }

private:
    friend class QuerySweep;  // which makes the point, query by query

    PairProblem problem_;
    PairLoss loss_;
    // Not initialized where a query has no pairs: nothing asks for it there. A point lives for one
    // iteration, so most of the cost of memory is its first touch: large pages, where it is much.
    PageArray<std::int32_t> order_, level_, upto_, from_, upto_inner_, from_inner_, place_;
    PageArray<double> degree_;
};

// Sums of a vector over the pairs that each row violates, for one query.

/// Whether level_sums will want PairProblem::by_level and the places of the rows; not for
/// neighboring levels.
bool sums_by_rank(Index n, Index n_levels);

/// above[i], below[i] as in Simd, by the way of counting that is fastest for this query; v holds
/// n_vectors vectors one after the other, and so do above and below.
void level_sums(const Windows &q, int n_vectors, const double *v, double *above, double *below,
                SweepScratch &scratch);

/// The same for one vector of a long query, by all threads, with v and the sums by place and added
/// to what is there: above[t] += Σ, below[t] += sign Σ. Both may be the same array.
void add_level_sums(const Windows &q, const double *v, double *above, double sign, double *below,
                    int n_threads);

/// Ends of the windows of a query for one margin, score(t) being the score of place t, ascending:
/// upto[t] counts the places e with (margin - score(e)) + score(t) > 0, and from[e] is the first
/// place t with it (n if there is none). Both come from one walk over that one test: rounding is
/// monotone, so each is the exact inverse of the other and the counts of the two sides add up to
/// the same number.
template <class Score>
void find_windows(Index n, const Score &score, double margin, std::int32_t *upto,
                  std::int32_t *from) {
    Index end = 0;
    for (Index t = 0; t < n; ++t) {
        const double other = score(t);
        while (end < n && (margin - score(end)) + other > 0.0) from[end++] = std::int32_t(t);
        upto[t] = std::int32_t(end);
    }
    std::fill(from + end, from + n, std::int32_t(n));
}

/// The same by all threads, for a long query. With NaN the ends are within bounds and ascending.
void find_windows_parallel(const double *s, Index n, double margin, std::int32_t *upto,
                           std::int32_t *from, int n_threads);

}  // namespace linrank
