// AA balance (Andersson 1993): a red-black tree in which only right children may be red, kept by two
// operations. The rank is the number of black nodes down to a missing child, the black root included.
#pragma once
#include "search_tree.hpp"

namespace linrank::published {

struct Aa {
    static constexpr std::int32_t new_rank = 1;

    template <class Key>
    static std::int32_t fix(Nodes<Key> &nodes, std::int32_t t) {
        return split(nodes, skew(nodes, t));
    }
    template <class Key>
    static void finish(Nodes<Key> &, std::int32_t) {}

private:
    /// A left child of the same rank becomes the parent.
    template <class Key>
    static std::int32_t skew(Nodes<Key> &nodes, std::int32_t t) {
        return nodes[nodes[t].child[left]].rank == nodes[t].rank ? nodes.lift(t, left) : t;
    }
    /// Of three nodes of one rank in a row to the right, the middle one rises above the others.
    template <class Key>
    static std::int32_t split(Nodes<Key> &nodes, std::int32_t t) {
        const std::int32_t second = nodes[t].child[right];
        if (nodes[nodes[second].child[right]].rank != nodes[t].rank) return t;
        ++nodes[second].rank;
        return nodes.lift(t, right);
    }
};

}  // namespace linrank::published
