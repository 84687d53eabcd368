// Rows by query: query ids to offsets, labels to levels.
#pragma once
#include "parallel.hpp"

namespace linrank {

template <class T>
using View = std::span<const T>;
template <class T>
using Owned = std::vector<T>;

/// Rows by query, as all methods see them; what a method does not ask for is empty.
template <template <class> class Array>
struct QueryArrays {
    Array<Index> offsets{};          // query q is positions offsets[q] .. offsets[q+1)
    Array<std::int32_t> levels{};    // of each position, in [0, n_levels[q]), the lowest first
    Array<std::int32_t> n_levels{};  // of each query
    Array<double> row_weight{};      // u, by position; empty for ones
    Array<double> query_weight{};    // c, by query; empty for ones
    Array<Index> order{};            // position t is row order[t]; empty where positions are rows

    Index n_rows() const { return offsets.back(); }
    Index n_queries() const { return std::ssize(offsets) - 1; }
    Index begin(Index q) const { return offsets[q]; }
    Index length(Index q) const { return offsets[q + 1] - offsets[q]; }
    bool has_pairs(Index q) const { return n_levels[q] > 1; }
    double u(Index t) const { return row_weight.empty() ? 1.0 : row_weight[t]; }
    double c(Index q) const { return query_weight.empty() ? 1.0 : query_weight[q]; }
    Index row(Index t) const { return order.empty() ? t : order[t]; }
    std::vector<QueryChunk> chunks(Index n_target) const {
        return chunk_queries(offsets, n_levels, n_target);
    }
};
using Queries = QueryArrays<View>;

/// The elements 0 .. n - 1 by key(i) in [0, n_keys), equal keys in their order: calls put(i, place)
/// for each, and returns the first place of every key, and the end.
template <class Key, class Put>
std::vector<Index> counting_sort(Index n, Index n_keys, const Key &key, const Put &put) {
    // One place ahead, so that filling a key leaves its first place where that of the next one
    // belongs.
    std::vector<Index> first(n_keys + 2);
    for (Index i = 0; i < n; ++i) ++first[key(i) + 2];
    for (Index k = 0; k < n_keys; ++k) first[k + 2] += first[k + 1];
    for (Index i = 0; i < n; ++i) put(i, first[key(i) + 1]++);
    first.pop_back();
    return first;
}

/// codes[i] numbers the distinct ids by first appearance; first[c] is the row where code c appears
/// first.
struct Codes {
    std::vector<Index> codes;
    std::vector<Index> first;
};

/// Query q is positions offsets[q] .. offsets[q+1); position t is row order[t].
/// An empty `order` with is_identity says that the rows already lie query by query.
struct Grouping {
    std::vector<Index> order;
    std::vector<Index> offsets;
    bool is_identity;
};

/// levels[t] in [0, n_levels[q]) is the dense rank of the label at position t inside its query q.
struct RankedLevels {
    std::vector<std::int32_t> levels;
    std::vector<std::int32_t> n_levels;
};

Codes factorize(Integers ids);

/// Stable counting sort by code: rows of a query keep their order. Codes lie in [0, n_queries).
Grouping group_rows(Integers codes, Index n_queries);

/// `order` is empty when positions are rows. Labels are free of NaN. Throws std::invalid_argument
/// for a query of more than 2³¹ - 1 levels.
RankedLevels rank_levels(Doubles labels, Integers offsets, Integers order, int n_threads);

/// p_q = number of (i, j) in query q with levels[i] > levels[j]; exact below 4.2·10⁹ rows per
/// query.
std::vector<Index> count_pairs(const Queries &queries);

// The order of the scores of a query.

struct SortScratch {
    struct Row {
        double score;
        std::int32_t index;
    };
    std::vector<Row> rows;
    std::vector<std::int32_t> bucket, start;  // of each score, of each bucket
    std::vector<std::uint64_t> keys, spare;
};

/// order[t] = index of the t-th smallest score; equal scores keep their order of index. `guess`, an
/// order that may be nearly right, saves time where it is, and may be null. With a NaN among the scores
/// the order is some permutation. At most 2³¹ - 1 scores.
void sort_scores(const double *scores, Index n, const std::int32_t *guess,
                 std::int32_t *order, SortScratch &scratch);

/// The same on several threads, for one long query; the result does not depend on their number.
void sort_scores_parallel(const double *scores, Index n, std::int32_t *order, int n_threads);

}  // namespace linrank
