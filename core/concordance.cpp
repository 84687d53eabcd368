#include "concordance.hpp"

#include <algorithm>
#include <numeric>
#include <vector>

#include "fenwick.hpp"

namespace linrank {
namespace {

Concordance concordance_of_query(std::span<const std::int32_t> levels,
                                 std::span<const double> scores, std::span<const double> weight) {
    const auto n = static_cast<std::int64_t>(levels.size());
    std::vector<std::int64_t> by_score(n);
    std::iota(by_score.begin(), by_score.end(), std::int64_t{0});
    std::sort(by_score.begin(), by_score.end(), [&](std::int64_t a, std::int64_t b) {
        return scores[a] != scores[b] ? scores[a] > scores[b] : a < b;
    });
    const std::int64_t top = n == 0 ? 0 : *std::max_element(levels.begin(), levels.end());
    // The rows with higher scores, from the lowest level up and from the highest down.
    FenwickTree<double> up(top + 1), down(top + 1);
    std::vector<double> at_level(top + 1);  // of the group of equal scores; zero between groups
    Concordance result;
    for (std::int64_t begin = 0, end = 0; begin < n; begin = end) {
        double group = 0.0;
        do {
            const std::int64_t i = by_score[end];
            const std::int32_t r = levels[i];
            result.right += weight[i] * down.sum_below(top - r);
            result.wrong += weight[i] * up.sum_below(r);
            result.tied += weight[i] * std::max(0.0, group - at_level[r]);
            group += weight[i];
            at_level[r] += weight[i];
        } while (++end < n && scores[by_score[end]] == scores[by_score[begin]]);
        for (std::int64_t t = begin; t < end; ++t) {
            const std::int64_t i = by_score[t];
            up.add(levels[i], weight[i]);
            down.add(top - levels[i], weight[i]);
            at_level[levels[i]] = 0.0;
        }
    }
    return result;
}

}  // namespace

Concordance weighted_concordance(std::span<const std::int64_t> offsets,
                                 std::span<const std::int32_t> levels,
                                 std::span<const double> scores, std::span<const double> weight) {
    Concordance total;
    for (std::size_t q = 0; q + 1 < offsets.size(); ++q) {
        const auto size = static_cast<std::size_t>(offsets[q + 1] - offsets[q]);
        const auto first = static_cast<std::size_t>(offsets[q]);
        const Concordance part = concordance_of_query(
            levels.subspan(first, size), scores.subspan(first, size), weight.subspan(first, size));
        total.right += part.right;
        total.wrong += part.wrong;
        total.tied += part.tied;
    }
    return total;
}

}  // namespace linrank
