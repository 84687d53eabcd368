// A red-black tree keyed by score (Lee & Lin, end of section 2.3): the sweep goes by label, so the
// tree has O(l) nodes whatever the number of levels. They advise against it: O(l log l) a product.
#include <numeric>

#include "counting.hpp"
#include "search_tree.hpp"

namespace linrank::published {
namespace {

/// Places in ascending order of level: level r is places[begin[r]] .. places[begin[r + 1] - 1].
struct ByLevel {
    std::vector<std::size_t> places, begin;

    explicit ByLevel(const SortedQuery &query)
        : places(query.n_rows()), begin(std::size_t(query.n_levels) + 1) {
        for (const std::int32_t level : query.level) ++begin[level + 1];
        std::partial_sum(begin.begin(), begin.end(), begin.begin());
        std::vector<std::size_t> next(begin.begin(), begin.end() - 1);
        for (std::size_t i = 0; i < places.size(); ++i)
            places[next[query.level[i]]++] = i;
    }
    std::span<const std::size_t> at(std::size_t level) const {
        return std::span(places).subspan(begin[level], begin[level + 1] - begin[level]);
    }
};

}  // namespace

void count_by_score_tree(const SortedQuery &query, std::span<const double> v,
                         std::span<double> above, std::span<double> below) {
    const ByLevel by_level(query);
    const std::size_t n_levels = std::size_t(query.n_levels);
    SearchTree<double, RedBlack> lower, higher;
    lower.reserve(std::int64_t(query.n_rows()));
    higher.reserve(std::int64_t(query.n_rows()));
    for (std::size_t r = 0; r < n_levels; ++r) {
        for (const std::size_t i : by_level.at(r))
            below[i] = lower.sum(right, [&](double z) { return (1.0 - query.z[i]) + z > 0.0; });
        for (const std::size_t i : by_level.at(r)) lower.insert(query.z[i], v[i]);
    }
    for (std::size_t r = n_levels; r-- > 0;) {
        for (const std::size_t i : by_level.at(r))
            above[i] = higher.sum(left, [&](double z) { return (1.0 - z) + query.z[i] > 0.0; });
        for (const std::size_t i : by_level.at(r)) higher.insert(query.z[i], v[i]);
    }
}

}  // namespace linrank::published
