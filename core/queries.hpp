// Query ids to offsets, labels to levels.
#pragma once
#include "basics.hpp"

namespace linrank {

/// The elements 0 .. n - 1 by key(i) in [0, n_keys), equal keys in their order: calls put(i, place) for each, and
/// returns the first place of every key, and the end.
template <class Key, class Put>
std::vector<Index> counting_sort(Index n, Index n_keys, const Key &key, const Put &put) {
    // One place ahead, so that filling a key leaves its first place where that of the next one belongs.
    std::vector<Index> first(n_keys + 2);
    for (Index i = 0; i < n; ++i) ++first[key(i) + 2];
    for (Index k = 0; k < n_keys; ++k) first[k + 2] += first[k + 1];
    for (Index i = 0; i < n; ++i) put(i, first[key(i) + 1]++);
    first.pop_back();
    return first;
}

/// codes[i] numbers the distinct ids by first appearance; first[c] is the row where code c appears first.
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

/// p_q = number of (i, j) in query q with levels[i] > levels[j]; exact below 4.2·10⁹ rows per query.
std::vector<Index> count_pairs(Levels levels, Integers offsets, Levels n_levels);

}  // namespace linrank
