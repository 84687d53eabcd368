// Samplers of the pairs of queries: the distributions that `sampling` names.
#pragma once

#include "pair_sampler.hpp"

namespace linrank {

/// Query q is positions offsets[q] .. offsets[q+1), with levels in [0, n_levels[q]); position t is row
/// order[t], or t if there is no order.
struct LeveledQueries {
    std::span<const std::int64_t> offsets, order;
    std::span<const std::int32_t> levels, n_levels;
};

/// P(i, j) ∝ c_q u_i u_j over level_i > level_j, with c > 0 for the queries that take part. `row_weight`
/// is by position, and empty for ones: then O(1) a pair, else O(log l_q).
///
/// A cell is a level r >= 1 of a query: its rows as winners, all rows below as losers. Sorted by level the
/// latter are a prefix of the query, so one array of rows serves all cells; O(l) to build.
std::unique_ptr<PairSampler> make_level_sampler(const LeveledQueries &queries,
                                                std::span<const double> query_weight,
                                                std::span<const double> row_weight);

/// Sculley's indexed sampler: a query by its weight, two different levels of it, a row of each.
/// P(i, j) = c_q/Σc · 2/(k_q (k_q - 1)) · 1/(n_qr n_qs). Queries of one level are left out, which the paper
/// forgets: there is no second level to draw from.
std::unique_ptr<PairSampler> make_query_level_sampler(const LeveledQueries &queries,
                                                      std::span<const double> query_weight);

/// Two uniform rows, again and again until they make a pair: P(i, j) = 1/p, after l²/2p draws on average.
/// The rows of queries of which `keep` is false are left out; an empty `keep` leaves out none. Throws
/// std::invalid_argument if there is no pair: it would search for ever.
std::unique_ptr<PairSampler> make_rejection_sampler(const LeveledQueries &queries,
                                                    std::span<const bool> keep);

}  // namespace linrank
