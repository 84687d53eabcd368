#include <cstddef>
#include <cstdint>
#include <vector>

#include "measures.hpp"

namespace linrank {

PairCounts pair_counts(const RankedQuery &query, std::vector<std::int64_t> &tree) {
    const auto k = static_cast<std::size_t>(query.n_levels());
    PairCounts counts;
    const std::int64_t n = query.n_rows();
    std::int64_t n_pairs = n * n;
    for (const std::int64_t c : query.n_at) n_pairs -= c * c;
    n_pairs /= 2;
    // A Fenwick tree over levels holds the rows with higher scores. A row below them is in the
    // wrong order with those of a lower level: O(log k) each.
    tree.assign(k + 1, 0);
    std::vector<std::int64_t> here(k, 0);
    std::int32_t begin = 0;
    for (const std::int32_t end : query.score_end) {
        std::int64_t equal = 0;
        for (std::int32_t i = begin; i < end; ++i) {
            const auto r = static_cast<std::size_t>(query.level[static_cast<std::size_t>(i)]);
            for (std::size_t at = r; at > 0; at &= at - 1) counts.discordant += tree[at];
            equal += here[r]++;  // pairs of the group in the same level
        }
        const std::int64_t size = end - begin;
        counts.tied += size * (size - 1) / 2 - equal;
        for (std::int32_t i = begin; i < end; ++i) {
            const auto r = static_cast<std::size_t>(query.level[static_cast<std::size_t>(i)]);
            here[r] = 0;
            for (std::size_t at = r + 1; at <= k; at += at & (~at + 1)) ++tree[at];
        }
        begin = end;
    }
    counts.concordant = n_pairs - counts.discordant - counts.tied;
    return counts;
}

}  // namespace linrank
