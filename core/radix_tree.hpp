// Where the nodes of a radix-16 tree over levels lie in one array.
#pragma once
#include <cstdint>

namespace linrank {

/// Depth 0 has a slot for each level, depth d one for each group of 16^d levels; sixteen neighbouring
/// slots are a node. Slots of a depth are padded to whole nodes.
struct RadixTree {
    int depth = 0;
    std::int64_t start[8] = {};
    std::int64_t size = 0;  // doubles in the array

    [[gnu::always_inline]] constexpr explicit RadixTree(std::int64_t n_levels) {
        std::int64_t slots = n_levels;
        do {
            start[depth++] = size;
            size += (slots + 15) / 16 * 16;
            slots = (slots + 15) / 16;
        } while (slots > 1);
    }
};

}  // namespace linrank
