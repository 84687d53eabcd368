// AVL balance (Adelson-Velsky & Landis 1962): the heights of two siblings differ by at most one.
#pragma once
#include <algorithm>

#include "search_tree.hpp"

namespace linrank::published {

/// The rank is the height; that of nothing is 0.
struct Avl {
    static constexpr std::int32_t new_rank = 1;

    template <class Key>
    static std::int32_t fix(Nodes<Key> &nodes, std::int32_t t) {
        for (const Side side : {left, right}) {
            const std::int32_t high = nodes[t].child[side];
            if (height(nodes, high) <= height(nodes, nodes[t].child[other(side)]) + 1) continue;
            // The inner grandchild first, if it is the one that is too high.
            const auto &grandchild = nodes[high].child;
            if (height(nodes, grandchild[other(side)]) > height(nodes, grandchild[side]))
                nodes[t].child[side] = lift(nodes, high, other(side));
            return lift(nodes, t, side);
        }
        update(nodes, t);
        return t;
    }
    template <class Key>
    static void finish(Nodes<Key> &, std::int32_t) {}

private:
    template <class Key>
    static std::int32_t height(const Nodes<Key> &nodes, std::int32_t t) {
        return nodes[t].rank;
    }
    template <class Key>
    static void update(Nodes<Key> &nodes, std::int32_t t) {
        const auto &child = nodes[t].child;
        nodes[t].rank = 1 + std::max(height(nodes, child[left]), height(nodes, child[right]));
    }
    template <class Key>
    static std::int32_t lift(Nodes<Key> &nodes, std::int32_t t, Side side) {
        const std::int32_t lifted = nodes.lift(t, side);
        update(nodes, t);
        update(nodes, lifted);
        return lifted;
    }
};

}  // namespace linrank::published
