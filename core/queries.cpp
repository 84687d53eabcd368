#include "queries.hpp"

#include "hash_index.hpp"

namespace linrank {
namespace {

/// Below this many rows a query is not worth more than one thread.
constexpr Index min_parallel_sort = 1 << 16;

/// The labels of one query as seen by position.
struct QueryLabels {
    const double *labels;
    const Index *order;  // null: positions are rows
    double operator()(Index t) const { return labels[order ? order[t] : t]; }
};

std::int32_t rank_by_sort(const QueryLabels &label, Index begin, Index end,
                          std::int32_t *levels, int n_threads) {
    const Index n = end - begin;
    require(n <= INT32_MAX, "a query has more than 2147483647 rows");
    std::vector<double> labels(n);
    for (Index i = 0; i < n; ++i) labels[i] = label(begin + i);
    std::vector<std::int32_t> order(n);
    SortScratch scratch;
    if (n_threads > 1 && n >= min_parallel_sort)
        sort_scores_parallel(labels.data(), n, order.data(), n_threads);
    else sort_scores(labels.data(), n, nullptr, order.data(), scratch);
    std::int32_t level = 0;
    for (Index k = 0; k < n; ++k) {
        if (k > 0 && labels[order[k - 1]] < labels[order[k]]) ++level;
        levels[begin + order[k]] = level;
    }
    return n > 0 ? level + 1 : 0;
}

/// The whole numbers 0 .. 63 as a number of that size; -1 for any other label. Nearly all grades
/// are such numbers.
int grade_of(double label) {
    if (!(label >= 0.0 && label < 64.0)) return -1;
    const int grade = int(label);
    return double(grade) == label ? grade : -1;
}

/// Levels of grades, by the set of those that occur: the level of one is how many are below it. 0
/// if some label is no grade.
std::int32_t rank_grades(const QueryLabels &label, Index begin, Index end, std::int32_t *levels) {
    std::uint64_t present = 0;
    for (Index t = begin; t < end; ++t) {
        const int grade = grade_of(label(t));
        if (grade < 0) return 0;
        present |= std::uint64_t(1) << grade;
        levels[t] = grade;
    }
    std::array<std::int32_t, 64> level;
    std::int32_t n_levels = 0;
    for (std::uint64_t left = present; left != 0; left &= left - 1)
        level[std::countr_zero(left)] = n_levels++;
    for (Index t = begin; t < end; ++t) levels[t] = level[levels[t]];
    return n_levels;
}

std::int32_t rank_query(const QueryLabels &label, Index begin, Index end,
                        std::int32_t *levels, int n_threads) {
    const std::int32_t n_levels = rank_grades(label, begin, end, levels);
    return n_levels > 0 ? n_levels : rank_by_sort(label, begin, end, levels, n_threads);
}

}  // namespace

// Only the id of a new run is looked up, so contiguous queries cost one look a query, not a row.
Codes factorize(Integers ids) {
    Codes result;
    result.codes.resize(ids.size());
    std::vector<Index> known;  // ids by code
    HashIndex<std::uint64_t> index;
    const auto hash_of = [&](Index code) { return mixed_hash(std::uint64_t(known[code])); };
    Index code = 0;
    for (std::size_t i = 0; i < ids.size(); ++i) {
        if (i == 0 || ids[i] != ids[i - 1]) {
            const std::uint64_t hash = mixed_hash(std::uint64_t(ids[i]));
            code = index.find(hash, [&](Index c) { return known[c] == ids[i]; });
            if (code < 0) {
                code = Index(known.size());
                index.reserve(hash_of);
                index.insert(hash);
                known.push_back(ids[i]);
                result.first.push_back(Index(i));
            }
        }
        result.codes[i] = code;
    }
    return result;
}

Grouping group_rows(Integers codes, Index n_queries) {
    require(n_queries >= 0, "n_queries must be >= 0");
    Index previous = 0;
    bool is_identity = true;
    for (const Index code : codes) {
        require(code >= 0 && code < n_queries, "a query code is out of range");
        is_identity &= code >= previous;
        previous = code;
    }
    std::vector<Index> order(is_identity ? 0 : codes.size());
    std::vector<Index> offsets = counting_sort(std::ssize(codes), n_queries, [&](Index i) {
        return codes[i];
    }, [&](Index i, Index place) {
        if (!is_identity) order[place] = i;
    });
    return {std::move(order), std::move(offsets), is_identity};
}

RankedLevels rank_levels(Doubles labels, Integers offsets, Integers order, int n_threads) {
    const auto n_queries = Index(offsets.size()) - 1;
    RankedLevels result{std::vector<std::int32_t>(labels.size()),
                        std::vector<std::int32_t>(n_queries)};
    const QueryLabels label{labels.data(), order.empty() ? nullptr : order.data()};
    const auto is_giant = [&](Index q) {
        return n_threads > 1 && offsets[q + 1] - offsets[q] >= min_parallel_sort;
    };
    const auto rank = [&](Index q, int threads) {
        result.n_levels[q] =
            rank_query(label, offsets[q], offsets[q + 1], result.levels.data(), threads);
    };
    // Giant queries one after the other with all threads, the others side by side.
    for (Index q = 0; q < n_queries; ++q)
        if (is_giant(q)) rank(q, n_threads);
    for_each_query<std::monostate>(offsets, n_threads, [&](Index q, std::monostate) {
        if (!is_giant(q)) rank(q, 1);
    });
    return result;
}

std::vector<Index> count_pairs(const Queries &queries) {
    std::vector<Index> pairs(queries.n_queries()), rows_in;
    for (Index q = 0; q < queries.n_queries(); ++q) {
        rows_in.assign(queries.n_levels[q], 0);
        for (Index t = queries.begin(q); t < queries.begin(q + 1); ++t)
            ++rows_in[queries.levels[t]];
        // Σ_r n_r · (rows below r) stays below l_q²/2, where (l_q² - Σ n_r²)/2 overflows earlier.
        Index below = 0;
        for (const Index n : rows_in) {
            pairs[q] += n * below;
            below += n;
        }
    }
    return pairs;
}

}  // namespace linrank
