// A binary search tree whose nodes know the sum of their subtree: the order-statistic tree of
// Lee & Lin's equation (26). What keeps it balanced is left to avl_tree, red_black_tree and aa_tree.
#pragma once
#include "basics.hpp"

namespace linrank::published {

enum Side { left = 0, right = 1 };
inline Side other(Side side) { return side == left ? right : left; }

/// Nodes by index. Node 0 stands for every missing child: its sums are 0, as (26) needs and does not
/// say, and its `rank`, which is the balance's own, is that of nothing.
struct Nodes {
    struct Node {
        double key = 0;
        double own = 0;  // Σ v of this key
        double sum = 0;  // Σ v of the subtree
        std::int32_t child[2] = {0, 0};
        std::int32_t rank = 0;
    };
    std::vector<Node> all{1};

    Node &operator[](std::int32_t t) { return all[t]; }
    const Node &operator[](std::int32_t t) const { return all[t]; }

    /// Lifts the child of t on that side into the place of t, and returns it.
    std::int32_t lift(std::int32_t t, Side side) {
        Node &top = (*this)[t];
        const std::int32_t lifted = top.child[side];
        Node &up = (*this)[lifted];
        top.child[side] = up.child[other(side)];
        up.child[other(side)] = t;
        up.sum = top.sum;
        top.sum = top.own + (*this)[top.child[left]].sum + (*this)[top.child[right]].sum;
        return lifted;
    }
};

/// Balance::new_rank is the rank of a new leaf, Balance::fix(nodes, t) restores the balance of a
/// subtree one of whose children has grown and returns its root, Balance::finish(nodes, root), where there is one,
/// ends it.
template <class Balance>
class SearchTree {
public:
    void reserve(Index n_keys) { nodes_.all.reserve(n_keys + 1); }

    void insert(double key, double v) {
        path_.clear();
        std::int32_t t = root_;
        while (t != 0 && nodes_[t].key != key) {
            nodes_[t].sum += v;
            path_.push_back(t);
            t = nodes_[t].child[side_of(key, t)];
        }
        if (t != 0) {
            nodes_[t].own += v;
            nodes_[t].sum += v;
            return;
        }
        nodes_.all.push_back({key, v, v, {0, 0}, Balance::new_rank});
        attach(std::int32_t(nodes_.all.size()) - 1);
    }

    /// Σ v over the keys that hold; if a key holds, so do all keys to its `side`. Equation (26): where
    /// a node holds, it and its subtree on that side do, and the search goes on at the other.
    template <class Holds>
    double sum(Side side, const Holds &holds) const {
        double sum = 0;
        for (std::int32_t t = root_; t != 0;) {
            const auto &node = nodes_[t];
            if (holds(node.key)) {
                sum += node.own + nodes_[node.child[side]].sum;
                t = node.child[other(side)];
            } else {
                t = node.child[side];
            }
        }
        return sum;
    }

    const Nodes &nodes() const { return nodes_; }
    std::int32_t root() const { return root_; }

private:
    Side side_of(double key, std::int32_t t) const { return key > nodes_[t].key ? right : left; }

    /// Hangs the new leaf t at the end of the path and balances upwards. A balance looks at the ranks
    /// of children and grandchildren, so two nodes in a row that stay as they are end it.
    void attach(std::int32_t t) {
        const double key = nodes_[t].key;
        for (int n_unchanged = 0; n_unchanged < 2; path_.pop_back()) {
            if (path_.empty()) {
                root_ = t;
                if constexpr (requires { Balance::finish(nodes_, root_); }) Balance::finish(nodes_, root_);
                return;
            }
            const std::int32_t parent = path_.back(), rank = nodes_[parent].rank;
            nodes_[parent].child[side_of(key, parent)] = t;
            t = Balance::fix(nodes_, parent);
            n_unchanged = t == parent && nodes_[t].rank == rank ? n_unchanged + 1 : 0;
        }
    }

    Nodes nodes_;
    std::int32_t root_ = 0;
    std::vector<std::int32_t> path_;
};

/// A search tree keyed by label: at most k nodes, O(log k).
template <class Balance>
class LabelTree {
public:
    explicit LabelTree(Index n_levels) { tree_.reserve(n_levels); }
    void add(Index level, double v) { tree_.insert(double(level), v); }
    double sum_below(Index level) const {
        return tree_.sum(left, [=](double key) { return key < double(level); });
    }

private:
    SearchTree<Balance> tree_;
};

// AVL balance (Adelson-Velsky & Landis 1962): the heights of two siblings differ by at most one.

/// The rank is the height; that of nothing is 0.
struct Avl {
    static constexpr std::int32_t new_rank = 1;

    static std::int32_t fix(Nodes &nodes, std::int32_t t) {
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

private:
    static std::int32_t height(const Nodes &nodes, std::int32_t t) {
        return nodes[t].rank;
    }
    static void update(Nodes &nodes, std::int32_t t) {
        const auto &child = nodes[t].child;
        nodes[t].rank = 1 + std::max(height(nodes, child[left]), height(nodes, child[right]));
    }
    static std::int32_t lift(Nodes &nodes, std::int32_t t, Side side) {
        const std::int32_t lifted = nodes.lift(t, side);
        update(nodes, t);
        update(nodes, lifted);
        return lifted;
    }
};

// AA balance (Andersson 1993): a red-black tree in which only right children may be red, kept by two
// operations. The rank is the number of black nodes down to a missing child, the black root included.

struct Aa {
    static constexpr std::int32_t new_rank = 1;

    static std::int32_t fix(Nodes &nodes, std::int32_t t) {
        return split(nodes, skew(nodes, t));
    }

private:
    /// A left child of the same rank becomes the parent.
    static std::int32_t skew(Nodes &nodes, std::int32_t t) {
        return nodes[nodes[t].child[left]].rank == nodes[t].rank ? nodes.lift(t, left) : t;
    }
    /// Of three nodes of one rank in a row to the right, the middle one rises above the others.
    static std::int32_t split(Nodes &nodes, std::int32_t t) {
        const std::int32_t second = nodes[t].child[right];
        if (nodes[nodes[second].child[right]].rank != nodes[t].rank) return t;
        ++nodes[second].rank;
        return nodes.lift(t, right);
    }
};

// Red-black balance (Guibas & Sedgewick 1978) in Okasaki's form (1999): no red node has a red child,
// and all paths from the root to a missing child pass equally many black nodes.

struct RedBlack {
    static constexpr std::int32_t black = 0, red = 1;
    static constexpr std::int32_t new_rank = red;

    /// A black node above two reds in a row becomes a red node above two black ones: the paths keep
    /// their number of black nodes, and the only red that may now follow a red is one level up.
    static std::int32_t fix(Nodes &nodes, std::int32_t t) {
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
    static void finish(Nodes &nodes, std::int32_t root) {
        nodes[root].rank = black;
    }
};

}  // namespace linrank::published
