#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "measures.hpp"

namespace linrank {

RowCounts dominating_counts(const RankedQuery &query) {
    RowCounts counts;
    counts.total = query.n_rows() - (query.n_at.empty() ? 0 : query.n_at.front());
    // From the top score down: `lowest` is the least level of the rows above this group of equal
    // scores, so that max_{D(i)} f_j > f_i exactly when the row's own level is larger.
    std::int32_t lowest = query.n_levels(), begin = 0;
    for (const std::int32_t end : query.score_end) {
        std::int32_t here = lowest;
        for (std::int32_t i = begin; i < end; ++i)
            here = std::min(here, query.level[i]);
        for (std::int32_t i = begin; i < end; ++i) {
            const std::int32_t level = query.level[i];
            counts.wrong += level > lowest;
            counts.tied += level <= lowest && level > here;
        }
        lowest = here;
        begin = end;
    }
    return counts;
}

RowCounts dominated_counts(const RankedQuery &query) {
    RowCounts counts;
    counts.total = query.n_rows() - (query.n_at.empty() ? 0 : query.n_at.back());
    // The same from the bottom score up: `highest` is the largest level of the rows below.
    std::int32_t highest = -1;
    for (std::size_t g = query.score_end.size(); g-- > 0;) {
        const std::int32_t begin = g == 0 ? 0 : query.score_end[g - 1], end = query.score_end[g];
        std::int32_t here = highest;
        for (std::int32_t i = begin; i < end; ++i)
            here = std::max(here, query.level[i]);
        for (std::int32_t i = begin; i < end; ++i) {
            const std::int32_t level = query.level[i];
            counts.wrong += level < highest;
            counts.tied += level >= highest && level < here;
        }
        highest = here;
    }
    return counts;
}

}  // namespace linrank
