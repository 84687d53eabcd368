// A binary search tree whose nodes know the sum of their subtree: the order-statistic tree of
// Lee & Lin's equation (26). What keeps it balanced is left to avl_tree, red_black_tree and aa_tree.
#pragma once
#include <cstdint>
#include <vector>

namespace linrank::published {

enum Side { left = 0, right = 1 };
inline Side other(Side side) { return side == left ? right : left; }

/// Nodes by index. Node 0 stands for every missing child: its sums are 0, as (26) needs and does not
/// say, and its `rank`, which is the balance's own, is that of nothing.
template <class Key>
struct Nodes {
    struct Node {
        Key key{};
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
/// subtree one of whose children has grown and returns its root, Balance::finish(nodes, root) ends it.
template <class Key, class Balance>
class SearchTree {
public:
    void reserve(std::int64_t n_keys) { nodes_.all.reserve(n_keys + 1); }

    void insert(Key key, double v) {
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

    const Nodes<Key> &nodes() const { return nodes_; }
    std::int32_t root() const { return root_; }

private:
    Side side_of(Key key, std::int32_t t) const { return key > nodes_[t].key ? right : left; }

    /// Hangs the new leaf t at the end of the path and balances upwards. A balance looks at the ranks
    /// of children and grandchildren, so two nodes in a row that stay as they are end it.
    void attach(std::int32_t t) {
        const Key key = nodes_[t].key;
        for (int n_unchanged = 0; n_unchanged < 2; path_.pop_back()) {
            if (path_.empty()) {
                root_ = t;
                Balance::finish(nodes_, root_);
                return;
            }
            const std::int32_t parent = path_.back(), rank = nodes_[parent].rank;
            nodes_[parent].child[side_of(key, parent)] = t;
            t = Balance::fix(nodes_, parent);
            n_unchanged = t == parent && nodes_[t].rank == rank ? n_unchanged + 1 : 0;
        }
    }

    Nodes<Key> nodes_;
    std::int32_t root_ = 0;
    std::vector<std::int32_t> path_;
};

/// A search tree keyed by label: at most k nodes, O(log k).
template <class Balance>
class LabelTree {
public:
    explicit LabelTree(std::int32_t n_levels) { tree_.reserve(n_levels); }
    void insert(std::int32_t level, double v) { tree_.insert(level, v); }
    double larger(std::int32_t level) const {
        return tree_.sum(right, [=](std::int32_t key) { return key > level; });
    }
    double smaller(std::int32_t level) const {
        return tree_.sum(left, [=](std::int32_t key) { return key < level; });
    }

private:
    SearchTree<std::int32_t, Balance> tree_;
};

}  // namespace linrank::published
