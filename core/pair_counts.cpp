#include <cstddef>
#include <cstdint>
#include <vector>

#include "measures.hpp"

namespace linrank {

PairCounts pair_counts(const RankedQuery &query, FenwickTree<std::int64_t> &higher) {
    const auto k = static_cast<std::size_t>(query.n_levels());
    PairCounts counts;
    const std::int64_t n = query.n_rows();
    std::int64_t n_pairs = n * n;
    for (const std::int64_t c : query.n_at) n_pairs -= c * c;
    n_pairs /= 2;
    // The rows with higher scores, by level: a row is in the wrong order with those of a lower level.
    higher.reset(query.n_levels());
    std::vector<std::int64_t> here(k, 0);
    std::int32_t begin = 0;
    for (const std::int32_t end : query.score_end) {
        std::int64_t equal = 0;
        for (std::int32_t i = begin; i < end; ++i) {
            const auto r = static_cast<std::size_t>(query.level[i]);
            counts.discordant += higher.sum_below(std::int64_t(r));
            equal += here[r]++;  // pairs of the group in the same level
        }
        const std::int64_t size = end - begin;
        counts.tied += size * (size - 1) / 2 - equal;
        for (std::int32_t i = begin; i < end; ++i) {
            const auto r = static_cast<std::size_t>(query.level[i]);
            here[r] = 0;
            higher.add(std::int64_t(r), 1);
        }
        begin = end;
    }
    counts.concordant = n_pairs - counts.discordant - counts.tied;
    return counts;
}

}  // namespace linrank
