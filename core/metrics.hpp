// Measures of rankings, straight from their formulas.
#pragma once
#include "fenwick.hpp"
#include "queries.hpp"

namespace linrank {

// One query put in the order of its scores: the sort that all measures share.

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

// Measures of one ranked query.

enum class Kind {
    ndcg, mean_ndcg, average_precision, precision, recall, reciprocal_rank, err, auc, rbp, success, kendall_tau,
};
enum class Gain { exponential, linear };   // 2^y - 1, y
enum class Discount { standard, letor };   // 1/log2(i+1), 1/log2(max(2, i)); ranks i = 1, 2, ...

/// A measure with every convention decided.
struct Measure {
    Kind kind;
    Index k = 0;                  // cutoff; 0: the whole list
    Gain gain = Gain::exponential;
    Discount discount = Discount::standard;
    double relevant_from = 1.0;          // a row is relevant when its label reaches this
    double y_max = 0.0;                  // of ERR: the highest grade there is
    double empty = 0.0;                  // value of 0/0: no relevant row; NaN: the query is left out
    bool short_is_zero = false;          // NDCG@k of a query with fewer than k rows is 0 (LETOR)
    bool reachable = false;         // AP@k divides by min(k, #relevant), P@k by min(k, rows)
    bool step_precision = false;         // AP of tied rows from the precision after all of them
    double persistence = 0.8;            // of RBP: the chance to look at the next row
};

/// discount[i] of rank i + 1, for i < n.
std::vector<double> discounts(Discount kind, Index n);

/// 2^(y - y_max) - 2^(-y_max), 0 <= y <= y_max: the gain 2^y - 1 scaled so that no label overflows.
double scaled_gain(double y, double y_max);

/// Of the pairs with different labels: scores in the right order, in the wrong order, equal.
struct PairCounts {
    Index concordant = 0, discordant = 0, tied = 0;
};
PairCounts pair_counts(const RankedQuery &query, FenwickTree<Index> &higher);

/// Whether the measure is a function of the pair counts.
bool needs_pairs(const Measure &measure);

/// Value of the measure; NaN where the query does not take part in the mean. `pairs` are those of the
/// query if the measure needs them.
double measure_query(const Measure &measure, const RankedQuery &query,
                     Doubles discount, const PairCounts &pairs);

/// Of the rows that some row is to stand below (or above): those with one of these strictly on the
/// wrong side, and those that have none there but one with an equal score. O(rows) after the sort.
struct RowCounts {
    Index total = 0, wrong = 0, tied = 0;
};
RowCounts dominating_counts(const RankedQuery &query);  // i with D(i) not empty: max_{D(i)} f_j against f_i
RowCounts dominated_counts(const RankedQuery &query);   // j with i above it: min_i f_i against f_j

// Measures of all queries at once: one sort per query, chunks of queries over threads.

/// What is counted beside the measures.
struct Counted {
    bool pairs = false;
    bool rows = false;
};

struct MetricValues {
    std::vector<double> values;         // measure m of query q at [m * n_queries + q]; NaN: left out
    std::vector<double> means;          // by measure, over the queries that take part; NaN if none
    std::vector<Index> pairs;    // concordant, discordant, tied of query q at [3 q], if asked
    // Total, wrong, tied of the dominating rows of query q at [6 q], of the dominated at [6 q + 3].
    std::vector<Index> rows;
};

/// The values do not depend on n_threads: each is written by query and means are summed in order.
MetricValues evaluate_queries(const RankInput &input, std::span<const Measure> measures, Ties ties,
                              Counted counted, int n_threads);

// Weighted pairwise accuracy of all queries.

/// Total weight u_i·u_j of the pairs of one query, by what the scores say of them.
struct Concordance {
    double right = 0.0;
    double wrong = 0.0;
    double tied = 0.0;
};

/// The pairs (i above j) of every query, in O(n log n); scores are by position, and none is NaN.
Concordance weighted_concordance(const Queries &queries, Doubles scores);

// The concordance index of times of which some are only known to be longer.

/// The comparable pairs (i, j): i has an event, and j is known to last longer: time_j > time_i, or
/// the same time and no event.
struct CensoredCounts {
    Index concordant = 0;  // risk_i > risk_j
    Index discordant = 0;
    Index tied = 0;       // |risk_i - risk_j| <= tolerance
    Index tied_time = 0;  // of all of these, those with the same time
};

/// By position; no time or risk is NaN.
struct Times {
    std::span<const bool> event;
    Doubles time, risk;
    double tolerance;
};

/// The pairs of every stratum [offsets[q], offsets[q+1]), in O(n log n).
CensoredCounts censored_concordance(Integers offsets, const Times &times);

}  // namespace linrank
