// Red-black balance (Guibas & Sedgewick 1978) in Okasaki's form (1999): no red node has a red child,
// and all paths from the root to a missing child pass equally many black nodes.
#pragma once
#include "search_tree.hpp"

namespace linrank::published {

struct RedBlack {
    static constexpr std::int32_t black = 0, red = 1;
    static constexpr std::int32_t new_rank = red;

    /// A black node above two reds in a row becomes a red node above two black ones: the paths keep
    /// their number of black nodes, and the only red that may now follow a red is one level up.
    template <class Key>
    static std::int32_t fix(Nodes<Key> &nodes, std::int32_t t) {
        if (nodes[t].rank == red) return t;
        for (const Side side : {left, right}) {
            const std::int32_t child = nodes[t].child[side];
            if (nodes[child].rank != red) continue;
            const bool outer = nodes[nodes[child].child[side]].rank == red;
            const bool inner = nodes[nodes[child].child[other(side)]].rank == red;
            if (!outer && !inner) continue;
            if (!outer) nodes[t].child[side] = nodes.lift(child, other(side));
            const std::int32_t top = nodes.lift(t, side);
            nodes[top].rank = red;
            for (const std::int32_t below : nodes[top].child) nodes[below].rank = black;
            return top;
        }
        return t;
    }
    template <class Key>
    static void finish(Nodes<Key> &nodes, std::int32_t root) {
        nodes[root].rank = black;
    }
};

}  // namespace linrank::published
