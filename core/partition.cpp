#include "partition.hpp"

#include <algorithm>

namespace linrank {

std::vector<QueryChunk> chunk_queries(std::span<const std::int64_t> offsets,
                                      std::span<const std::int32_t> n_levels, std::int64_t n_target) {
    const std::int64_t share = std::max<std::int64_t>(1, offsets.back() / n_target);
    std::vector<QueryChunk> chunks;
    std::size_t first = 0;
    const auto close = [&](std::size_t last, bool is_long) {
        if (first < last) chunks.push_back({std::int64_t(first), std::int64_t(last), is_long});
        first = last;
    };
    for (std::size_t q = 0; q < n_levels.size(); ++q) {
        if (offsets[q + 1] - offsets[q] >= long_query && n_levels[q] > 1) {
            close(q, false);
            close(q + 1, true);
        } else if (offsets[q + 1] - offsets[first] >= share) {
            close(q + 1, false);
        }
    }
    close(n_levels.size(), false);
    return chunks;
}

std::vector<std::int64_t> cut_queries(std::span<const std::int64_t> offsets, std::int64_t target) {
    std::vector<std::int64_t> cuts{0};
    std::int64_t begin = 0;
    for (std::size_t q = 1; q < offsets.size(); ++q) {
        if (offsets[q] - begin < target && q + 1 < offsets.size()) continue;
        cuts.push_back(std::int64_t(q));
        begin = offsets[q];
    }
    return cuts;
}

}  // namespace linrank
