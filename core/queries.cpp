#include "queries.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <limits>
#include <stdexcept>

#include "hash_index.hpp"
#include "parallel.hpp"

namespace linrank {
namespace {

/// Few distinct labels are the rule (grades): a sorted list this long is searched linearly, and a
/// query that overflows it is sorted instead.
constexpr int max_listed_levels = 16;

/// Below this many rows a query is not worth more than one thread.
constexpr std::int64_t min_parallel_sort = 1 << 16;

struct Ranked {
    double label;
    std::int64_t position;
    bool operator<(const Ranked &other) const { return label < other.label; }
};

/// Distinct labels of a query, ascending; stops at max_listed_levels + 1.
class LabelList {
public:
    void add(double label) {
        if (size > 0 && values[last] == label) return;  // equal labels come in runs
        int at = 0;
        while (at < size && values[at] < label) ++at;
        last = at;
        if (at < size && values[at] == label) return;
        for (int k = size; k > at; --k) values[k] = values[k - 1];
        values[at] = label;
        ++size;
    }
    bool overflowed() const { return size > max_listed_levels; }
    int rank(double label) const {
        int at = 0;
        while (values[at] < label) ++at;
        return at;
    }
    int size = 0;

private:
    double values[max_listed_levels + 1];
    int last = 0;
};

/// Sorted chunks, then rounds of pairwise merges: one query may hold all the rows of a problem.
/// The ranks of equal labels are equal, so the order among them, and with it the number of
/// threads, leaves no trace in the result.
void sort_ranked(std::vector<Ranked> &rows, int n_threads) {
    const auto n = std::int64_t(rows.size());
    if (n_threads <= 1 || n < min_parallel_sort) {
        std::sort(rows.begin(), rows.end());
        return;
    }
    const std::int64_t n_chunks = std::min(n_threads, 256);  // of at least 256 rows each
    const auto bound = [&](std::int64_t chunk) {
        return rows.begin() + n * std::min(chunk, n_chunks) / n_chunks;
    };
    parallel_for(n_chunks, n_threads, [&](std::int64_t c) { std::sort(bound(c), bound(c + 1)); });
    for (std::int64_t width = 1; width < n_chunks; width *= 2)
        parallel_for((n_chunks + 2 * width - 1) / (2 * width), n_threads, [&](std::int64_t m) {
            const std::int64_t c = 2 * width * m;
            std::inplace_merge(bound(c), bound(c + width), bound(c + 2 * width));
        });
}

/// The labels of one query as seen by position.
struct QueryLabels {
    const double *labels;
    const std::int64_t *order;  // null: positions are rows
    double operator()(std::int64_t t) const { return labels[order ? order[t] : t]; }
};

std::int32_t rank_by_sort(const QueryLabels &label, std::int64_t begin, std::int64_t end,
                          std::int32_t *levels, int n_threads) {
    std::vector<Ranked> rows(end - begin);
    for (std::int64_t t = begin; t < end; ++t) rows[t - begin] = {label(t), t};
    sort_ranked(rows, n_threads);
    std::int64_t level = 0;
    for (std::size_t k = 0; k < rows.size(); ++k) {
        if (k > 0 && rows[k - 1].label < rows[k].label) ++level;
        if (level >= std::numeric_limits<std::int32_t>::max())
            throw std::invalid_argument("a query has more than 2147483647 different labels");
        levels[rows[k].position] = std::int32_t(level);
    }
    return std::int32_t(level + 1);
}

/// The whole numbers 0 .. 63 as a number of that size; -1 for any other label. Nearly all grades are
/// such numbers.
int grade_of(double label) {
    if (!(label >= 0.0 && label < 64.0)) return -1;
    const int grade = int(label);
    return double(grade) == label ? grade : -1;
}

/// Levels of grades, by the set of those that occur: the level of one is how many are below it. 0 if
/// some label is no grade.
std::int32_t rank_grades(const QueryLabels &label, std::int64_t begin, std::int64_t end,
                         std::int32_t *levels) {
    std::uint64_t present = 0;
    for (std::int64_t t = begin; t < end; ++t) {
        const int grade = grade_of(label(t));
        if (grade < 0) return 0;
        present |= std::uint64_t(1) << grade;
        levels[t] = grade;
    }
    std::array<std::int32_t, 64> level;
    std::int32_t n_levels = 0;
    for (std::uint64_t left = present; left != 0; left &= left - 1)
        level[std::countr_zero(left)] = n_levels++;
    for (std::int64_t t = begin; t < end; ++t) levels[t] = level[levels[t]];
    return n_levels;
}

std::int32_t rank_query(const QueryLabels &label, std::int64_t begin, std::int64_t end,
                        std::int32_t *levels, int n_threads) {
    if (const std::int32_t n_levels = rank_grades(label, begin, end, levels)) return n_levels;
    LabelList list;
    for (std::int64_t t = begin; t < end; ++t) {
        list.add(label(t));
        if (list.overflowed()) return rank_by_sort(label, begin, end, levels, n_threads);
    }
    for (std::int64_t t = begin; t < end; ++t) levels[t] = list.rank(label(t));
    return list.size;
}

}  // namespace

// Only the id of a new run is looked up, so contiguous queries cost one look a query, not a row.
Codes factorize(std::span<const std::int64_t> ids) {
    Codes result;
    result.codes.resize(ids.size());
    std::vector<std::int64_t> known;  // ids by code
    HashIndex<std::uint64_t> index;
    const auto hash_of = [&](std::int64_t code) { return mixed_hash(std::uint64_t(known[code])); };
    std::int64_t code = 0;
    for (std::size_t i = 0; i < ids.size(); ++i) {
        if (i == 0 || ids[i] != ids[i - 1]) {
            const std::uint64_t hash = mixed_hash(std::uint64_t(ids[i]));
            code = index.find(hash, [&](std::int64_t c) { return known[c] == ids[i]; });
            if (code < 0) {
                code = std::int64_t(known.size());
                index.reserve(hash_of);
                index.insert(hash);
                known.push_back(ids[i]);
                result.first.push_back(std::int64_t(i));
            }
        }
        result.codes[i] = code;
    }
    return result;
}

Grouping group_rows(std::span<const std::int64_t> codes, std::int64_t n_queries) {
    Grouping result{{}, std::vector<std::int64_t>(n_queries + 1, 0), true};
    std::int64_t previous = 0;
    for (const std::int64_t code : codes) {
        if (code < 0 || code >= n_queries)
            throw std::invalid_argument("a query code is out of range");
        ++result.offsets[code + 1];
        result.is_identity &= code >= previous;
        previous = code;
    }
    for (std::int64_t q = 0; q < n_queries; ++q) result.offsets[q + 1] += result.offsets[q];
    if (result.is_identity) return result;
    result.order.resize(codes.size());
    std::vector<std::int64_t> free(result.offsets.begin(), result.offsets.end() - 1);
    for (std::size_t i = 0; i < codes.size(); ++i)
        result.order[free[codes[i]]++] = std::int64_t(i);
    return result;
}

Levels rank_levels(std::span<const double> labels, std::span<const std::int64_t> offsets,
                   std::span<const std::int64_t> order, int n_threads) {
    const auto n_queries = std::int64_t(offsets.size()) - 1;
    Levels result{std::vector<std::int32_t>(labels.size()), std::vector<std::int32_t>(n_queries)};
    const QueryLabels label{labels.data(), order.empty() ? nullptr : order.data()};
    const auto is_giant = [&](std::int64_t q) {
        return n_threads > 1 && offsets[q + 1] - offsets[q] >= min_parallel_sort;
    };
    const auto rank = [&](std::int64_t q, int threads) {
        result.n_levels[q] =
            rank_query(label, offsets[q], offsets[q + 1], result.levels.data(), threads);
    };
    // Giant queries one after the other with all threads, the others side by side.
    for (std::int64_t q = 0; q < n_queries; ++q)
        if (is_giant(q)) rank(q, n_threads);
    const auto bounds = cut_queries(offsets);
    parallel_for(std::int64_t(bounds.size()) - 1, n_threads, [&](std::int64_t chunk) {
        for (std::int64_t q = bounds[chunk]; q < bounds[chunk + 1]; ++q)
            if (!is_giant(q)) rank(q, 1);
    });
    return result;
}

std::vector<std::int64_t> count_pairs(std::span<const std::int32_t> levels,
                                      std::span<const std::int64_t> offsets,
                                      std::span<const std::int32_t> n_levels) {
    std::vector<std::int64_t> pairs(n_levels.size());
    std::vector<std::int64_t> rows_in;
    for (std::size_t q = 0; q < n_levels.size(); ++q) {
        rows_in.assign(n_levels[q], 0);
        for (std::int64_t t = offsets[q]; t < offsets[q + 1]; ++t) ++rows_in[levels[t]];
        // Σ_r n_r · (rows below r) stays below l_q²/2, where (l_q² - Σ n_r²)/2 overflows earlier.
        std::int64_t below = 0;
        for (const std::int64_t n : rows_in) {
            pairs[q] += n * below;
            below += n;
        }
    }
    return pairs;
}

}  // namespace linrank
