// One query put in the order of its scores: the sort that all measures share.
#pragma once

#include "queries.hpp"
#include "sort_scores.hpp"

namespace linrank {

/// Who comes first among rows of one query with equal scores.
enum class Ties {
    stable,       // the row that comes first in the input
    average,      // nobody: measures are expectations over all orders of the tied rows
    pessimistic,  // the row with the lower label
    docid,        // the row with the larger document id (trec_eval)
};

/// A query after sorting. Rank 0 is the top. Rows that were not retrieved stand behind the list, as
/// one group of equal scores: they count among the rows to be found and have no rank.
struct RankedQuery {
    std::vector<std::int32_t> level;      // level by rank
    std::vector<std::int32_t> score_end;  // ends of the groups of equal scores, ascending
    // Ends of the groups whose inner order is left open: the same groups under Ties::average,
    // single rows under every other rule, so that each measure has one form.
    std::vector<std::int32_t> open_end;
    std::vector<double> label;            // label of each level, ascending
    std::vector<std::int32_t> n_at;       // rows in each level
    std::int32_t n_ranked = 0;            // rows on the list; those behind it were not retrieved
    std::int32_t n_rows() const { return std::int32_t(level.size()); }
    std::int32_t n_levels() const { return std::int32_t(label.size()); }
};

/// Memory of a ranking, kept between queries.
struct RankScratch {
    // scores by place in the query: ascending numbers are descending scores
    std::vector<double> negative;
    std::vector<std::int32_t> order;  // places by rank
    SortScratch sort;
};

/// Input of the ranking of all queries; labels, scores and docid are by row, levels by position. No
/// score is NaN.
struct RankInput : Queries {
    Doubles labels = {};
    Doubles scores = {};
    Integers docid = {};  // rank of the document id; empty: the row number is the id
    // Of each query, how many of its positions, from the first on, are on the list; empty: all.
    Integers n_ranked = {};
};

/// Puts query q into `out`.
void rank_query(const RankInput &input, Index q, Ties ties, RankScratch &scratch, RankedQuery &out);

/// ranks[row] = 1 for the highest score of the row's query; equal scores keep their order.
std::vector<Index> ranks_within_queries(const Queries &queries, Doubles scores, int n_threads);

}  // namespace linrank
