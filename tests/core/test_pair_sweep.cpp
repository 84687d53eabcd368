// The sweeps are the O(n²) sums over pairs, ties, one-level and one-row queries included.
#include "pair_sweep.hpp"

#include <algorithm>
#include <limits>

#include "problem.hpp"
#include "published/point.hpp"

using namespace linrank;
using namespace linrank_test;

namespace {

bool equal(const PageArray<double> &a, const PageArray<double> &b) {
    return std::equal(a.data(), a.data() + a.size(), b.data(), b.data() + b.size());
}

struct Sums {
    double value = 0, slacks = 0, violations = 0;
    std::vector<double> gradient, product;
};

Sums definition(const PairProblem &p, PairLoss loss, const std::vector<double> &z,
                const std::vector<double> &v) {
    Sums sums{0, 0, 0, std::vector<double>(z.size()), std::vector<double>(z.size())};
    for_each_violation(p, z, [&](std::size_t i, std::size_t j, double weight, double slack) {
        const OfSlack l = of_slack(loss, slack);
        sums.value += weight * l.value;
        sums.slacks += weight * slack;
        sums.violations += weight;
        sums.gradient[i] -= weight * l.slope;
        sums.gradient[j] += weight * l.slope;
        sums.product[i] += weight * l.curve * (v[i] - v[j]);
        sums.product[j] -= weight * l.curve * (v[i] - v[j]);
    });
    return sums;
}

template <class Point>
void compare(const Point &point, const std::vector<double> &product, const Sums &truth,
             double tolerance) {
    CHECK(close(point.value, truth.value, tolerance));
    CHECK(close(point.sum_of_slacks, truth.slacks, tolerance));
    CHECK(close(point.n_violations, truth.violations, tolerance));
    for (std::size_t i = 0; i < product.size(); ++i) {
        CHECK(close(point.gradient[i], truth.gradient[i], tolerance));
        CHECK(close(product[i], truth.product[i], tolerance));
    }
}

void trees_equal_the_definition(Rng &rng) {
    for (int repetition = 0; repetition < 300; ++repetition) {
        const Problem problem = draw_problem(rng, repetition % 2 == 1);
        const PairProblem p = problem.view();
        const std::vector<double> z = draw_scores(rng, p.n_rows()), v = draw_normal(rng, p.n_rows());
        std::vector<double> product(z.size());
        const published::PublishedPoint tree(p, z, published::counting("selection-tree"));
        tree.multiply(v, product);
        compare(tree, product, definition(p, {}, z, v), 1e-11);
    }
}

void every_loss_equals_its_definition(Rng &rng) {
    for (int repetition = 0; repetition < 400; ++repetition) {
        Problem problem = draw_problem(rng, repetition % 2 == 1);
        if (repetition % 3 == 0) problem.add_gains();
        if (repetition % 5 == 0) problem.adjacent = true;
        problem.finish();
        const PairProblem p = problem.view();
        const std::vector<double> z = draw_scores(rng, p.n_rows()), v = draw_normal(rng, p.n_rows());
        std::vector<double> product(z.size());
        for (const PairLoss loss : losses) {
            const PairPoint point(p, loss, z, nullptr, 1 + repetition % 3);
            point.multiply(v, product, 1 + repetition % 3);
            compare(point, product, definition(p, loss, z, v), 1e-10);
        }
    }
}

void an_offset_of_the_scores_changes_nothing(Rng &rng) {
    const Problem problem = draw_problem(rng, false);
    const PairProblem p = problem.view();
    std::vector<double> z = draw_scores(rng, p.n_rows());
    const PairPoint near(p, {}, z, nullptr, 1);
    for (double &score : z) score += 1e6;
    const PairPoint far(p, {}, z, nullptr, 1);
    CHECK(close(near.value, far.value, 1e-8));  // 1e-10 is lost in z itself, 6e-5 without centering
}

/// The order of another point is a hint: it may save time, it may not change a bit.
void a_nearby_order_changes_nothing(Rng &rng) {
    for (int repetition = 0; repetition < 50; ++repetition) {
        const Problem problem = draw_problem(rng, false, 400);
        const PairProblem p = problem.view();
        std::vector<double> z = draw_normal(rng, p.n_rows());
        const PairPoint before(p, {}, z, nullptr, 1);
        const double change = repetition % 2 == 0 ? 1e-3 : 10.0;
        const std::vector<double> move = draw_normal(rng, p.n_rows(), change);
        for (std::size_t i = 0; i < z.size(); ++i) z[i] += move[i];
        const PairPoint fresh(p, {}, z, nullptr, 1), guided(p, {}, z, &before, 2);
        CHECK(fresh.value == guided.value && equal(fresh.gradient, guided.gradient));
    }
}

/// Scores that overflowed give sums that are not finite; nothing else may break.
void scores_that_are_not_finite_do_no_harm(Rng &rng) {
    const double infinity = std::numeric_limits<double>::infinity();
    for (const double wild : {infinity, -infinity, std::nan(""), 1.7e308}) {
        const Problem problem = draw_problem(rng, false, 400);
        const PairProblem p = problem.view();
        std::vector<double> z = draw_normal(rng, p.n_rows());
        const PairPoint near(p, {}, z, nullptr, 1);
        for (double &score : z)
            if (draw(rng, 0, 4) == 0) score = wild;
        std::vector<double> out(z.size());
        PairPoint(p, {}, z, &near, 1).multiply(z, out, 1);
        published::PublishedPoint(p, z, published::counting("selection-tree")).multiply(z, out);
    }
}

/// Each way of counting, up to the one that cuts a query into pieces, against the published tree.
void a_large_query_is_the_same_on_any_number_of_threads(Rng &rng, std::int64_t n,
                                                        std::int64_t n_labels) {
    Problem problem;
    problem.add_query(draw_labels(rng, n, n_labels));
    problem.add_query({0, 1, 1});
    problem.finish();
    const PairProblem p = problem.view();
    const std::vector<double> z = draw_normal(rng, p.n_rows()), v = draw_normal(rng, p.n_rows());
    const published::PublishedPoint tree(p, z, published::counting("selection-tree"));
    std::vector<double> expected(z.size()), one(z.size()), many(z.size());
    tree.multiply(v, expected);
    const PairPoint alone(p, {}, z, nullptr, 1), shared(p, {}, z, nullptr, 3);
    alone.multiply(v, one, 1);
    shared.multiply(v, many, 3);
    CHECK(alone.value == shared.value && equal(alone.gradient, shared.gradient) && one == many);
    CHECK(close(alone.value, tree.value, 1e-9));
    for (std::size_t i = 0; i < z.size(); ++i) {
        CHECK(close(alone.gradient[i], tree.gradient[i], 1e-7));
        CHECK(close(one[i], expected[i], 1e-7));
    }
}

}  // namespace

int main() {
    Rng rng(1);
    trees_equal_the_definition(rng);
    every_loss_equals_its_definition(rng);
    an_offset_of_the_scores_changes_nothing(rng);
    a_nearby_order_changes_nothing(rng);
    scores_that_are_not_finite_do_no_harm(rng);
    for (const std::int64_t n : {std::int64_t(700), std::int64_t(5000), long_query - 1, long_query + 1000})
        for (const std::int64_t n_labels : {2, 5, 300, 1000000})
            a_large_query_is_the_same_on_any_number_of_threads(rng, n, n_labels);
}
