// The published ways of counting against the definition, and the invariants of their trees.
#include <algorithm>
#include <limits>
#include <stdexcept>

#include "problem.hpp"
#include "published/search_tree.hpp"
#include "published/point.hpp"

using namespace linrank;
using namespace linrank::published;
using namespace linrank_test;

namespace {

constexpr const char *ways[] = {"direct",  "selection-tree", "fenwick",      "red-black", "avl", "aa",
                                "red-black-score", "prefix-table", "wavelet", "two-pointers"};

// ---- trees --------------------------------------------------------------------------------------

/// The keys of a subtree in order; checks that the sums are those of the subtree.
double walk(const Nodes &nodes, std::int32_t t, std::vector<double> &keys) {
    if (t == 0) return 0.0;
    double sum = walk(nodes, nodes[t].child[left], keys);
    keys.push_back(nodes[t].key);
    sum += nodes[t].own + walk(nodes, nodes[t].child[right], keys);
    CHECK(close(sum, nodes[t].sum, 1e-12));
    return sum;
}

/// Height, with the AVL rule: siblings differ by at most one, and every node knows its height.
std::int32_t check_balance(const Nodes &nodes, std::int32_t t, Avl) {
    if (t == 0) return 0;
    const std::int32_t a = check_balance(nodes, nodes[t].child[left], Avl());
    const std::int32_t b = check_balance(nodes, nodes[t].child[right], Avl());
    CHECK(std::abs(a - b) <= 1);
    CHECK(nodes[t].rank == 1 + std::max(a, b));
    return nodes[t].rank;
}

/// Black height, with the red-black rules: no red below a red, equal black heights.
std::int32_t check_balance(const Nodes &nodes, std::int32_t t, RedBlack) {
    if (t == 0) return 0;
    for (const std::int32_t child : nodes[t].child)
        CHECK(nodes[t].rank == RedBlack::black || nodes[child].rank == RedBlack::black);
    const std::int32_t a = check_balance(nodes, nodes[t].child[left], RedBlack());
    CHECK(a == check_balance(nodes, nodes[t].child[right], RedBlack()));
    return a + (nodes[t].rank == RedBlack::black);
}

/// Rank, with the AA rules: a left child is one below its parent, a right one at most one and its own
/// right child below the grandparent.
std::int32_t check_balance(const Nodes &nodes, std::int32_t t, Aa) {
    if (t == 0) return 0;
    const auto &child = nodes[t].child;
    CHECK(check_balance(nodes, child[left], Aa()) == nodes[t].rank - 1);
    const std::int32_t a = check_balance(nodes, child[right], Aa());
    CHECK(a == nodes[t].rank || a == nodes[t].rank - 1);
    CHECK(nodes[nodes[child[right]].child[right]].rank < nodes[t].rank);
    return nodes[t].rank;
}

template <class Balance>
void trees_keep_their_invariants(Rng &rng, int order) {
    SearchTree<Balance> tree;
    std::vector<double> at_key(200);
    for (std::int32_t t = 0; t < 300; ++t) {
        const auto drawn = std::int32_t(draw(rng, 0, 199));
        const std::int32_t key = order == 0 ? drawn : order == 1 ? t % 200 : 199 - t % 200;
        const double v = double(draw(rng, -5, 5));
        tree.insert(key, v);
        at_key[std::size_t(key)] += v;
        check_balance(tree.nodes(), tree.root(), Balance());
        CHECK(tree.nodes()[0].sum == 0 && tree.nodes()[0].rank == 0);
    }

    std::vector<double> keys;
    walk(tree.nodes(), tree.root(), keys);
    CHECK(std::is_sorted(keys.begin(), keys.end()));
    CHECK(std::adjacent_find(keys.begin(), keys.end()) == keys.end());
    double below = 0;
    for (std::int32_t key = 0; key < 200; ++key) {
        CHECK(tree.sum(left, [=](double k) { return k < key; }) == below);
        below += at_key[std::size_t(key)];
        CHECK(tree.sum(right, [=](double k) { return k > key; }) ==
              tree.nodes()[tree.root()].sum - below);
    }
}

// ---- sums ---------------------------------------------------------------------------------------

struct Truth {
    double value = 0, slacks = 0, violations = 0;
    std::vector<double> gradient, hinge, product;
};

Truth definition(const PairProblem &p, const std::vector<double> &z, const std::vector<double> &v) {
    const std::vector<double> zero(z.size());
    Truth truth{0, 0, 0, zero, zero, zero};
    for_each_violation(p, z, [&](std::size_t i, std::size_t j, double weight, double slack) {
        truth.value += weight * slack * slack;
        truth.slacks += weight * slack;
        truth.violations += weight;
        truth.gradient[i] -= 2.0 * weight * slack;
        truth.gradient[j] += 2.0 * weight * slack;
        truth.hinge[i] -= weight;
        truth.hinge[j] += weight;
        truth.product[i] += 2.0 * weight * (v[i] - v[j]);
        truth.product[j] -= 2.0 * weight * (v[i] - v[j]);
    });
    return truth;
}

template <class Point>
void compare(const Point &point, const std::vector<double> &v, const Truth &truth) {
    CHECK(close(point.value, truth.value, 1e-11));
    CHECK(close(point.sum_of_slacks, truth.slacks, 1e-11));
    CHECK(close(point.n_violations, truth.violations, 1e-11));
    std::vector<double> product(v.size(), 1.0);
    if constexpr (requires { point.multiply(v, product, 1); }) point.multiply(v, product, 1);
    else point.multiply(v, product);
    for (std::size_t i = 0; i < v.size(); ++i) {
        CHECK(close(point.gradient[i], truth.gradient[i], 1e-11));
        CHECK(close(product[i], truth.product[i], 1e-11));
    }
}

void every_way_is_the_definition(Rng &rng) {
    for (int repetition = 0; repetition < 60; ++repetition) {
        const Problem problem = draw_problem(rng, repetition % 2 == 1);
        const PairProblem p = problem.view();
        const std::vector<double> z = draw_scores(rng, p.n_rows()), v = draw_normal(rng, p.n_rows());
        const Truth truth = definition(p, z, v);
        for (const char *way : ways) {
            const PublishedPoint point(p, z, counting(way));
            compare(point, v, truth);
            for (std::size_t i = 0; i < z.size(); ++i)
                CHECK(close(point.hinge_gradient[i], truth.hinge[i], 1e-11));
            if (problem.u.empty()) CHECK(point.n_violations == truth.violations);
        }
        const PreferenceList pairs = explicit_pairs(p);
        compare(PreferencePoint(pairs, {}, z, 1), v, truth);
    }
}

/// Scores that overflowed give sums that are not finite; nothing else may break.
void scores_that_are_not_finite_do_no_harm(Rng &rng) {
    const double infinity = std::numeric_limits<double>::infinity();
    for (const double wild : {infinity, -infinity, std::nan(""), 1.7e308}) {
        const Problem problem = draw_problem(rng, false, 200);
        const PairProblem p = problem.view();
        std::vector<double> z = draw_normal(rng, p.n_rows()), out(z.size());
        for (double &score : z)
            if (draw(rng, 0, 4) == 0) score = wild;
        for (const char *way : ways) PublishedPoint(p, z, counting(way)).multiply(z, out);
        const PreferenceList pairs = explicit_pairs(p);
        PreferencePoint(pairs, {}, z, 1).multiply(z, out, 1);
    }
}

void an_unknown_way_is_refused() {
    try {
        counting("abacus");
    } catch (const std::invalid_argument &) {
        return;
    }
    check(false, "counting(\"abacus\") was accepted");
}

}  // namespace

int main() {
    Rng rng(7);
    for (const int order : {0, 1, 2}) {
        trees_keep_their_invariants<Avl>(rng, order);
        trees_keep_their_invariants<RedBlack>(rng, order);
        trees_keep_their_invariants<Aa>(rng, order);
    }
    every_way_is_the_definition(rng);
    scores_that_are_not_finite_do_no_harm(rng);
    an_unknown_way_is_refused();
}
