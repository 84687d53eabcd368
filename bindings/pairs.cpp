// Pair losses at given scores: over all pairs of queries, over listed preferences, over the pairs
// of a ranking, and as the literature counts them.
#include <sstream>

#include "hessian.hpp"
#include "points.hpp"
#include "preferences.hpp"
#include "published/point.hpp"
#include "swaps.hpp"

template <>
inline constexpr Choices<PairLoss::Kind> choices<PairLoss::Kind>{"loss", {
    {"squared_hinge", PairLoss::squared_hinge}, {"hinge", PairLoss::hinge},
    {"huber", PairLoss::huber}}};

template <>
inline constexpr bool is_opaque<SwapProblem> = true;

namespace {

PairLoss pair_loss(PairLoss::Kind kind, double epsilon) {
    // Sums over a band are differences divided by ε: below, they would be nothing but rounding.
    if (kind == PairLoss::huber && !(epsilon >= 1e-10 && epsilon <= 1.0)) {
        std::ostringstream message;
        message << "epsilon must lie in [1e-10, 1], got " << epsilon;
        throw std::invalid_argument(message.str());
    }
    return {kind, epsilon};
}

/// What all points have in common.
template <class Point>
nb::class_<Point> point_class(nb::module_ &m, const char *name, const char *text) {
    nb::class_<Point> c(m, name, text);
    def_properties(c, {{"value"}, {"sum_of_slacks"}, {"n_violations"}}, &Point::value,
                   &Point::sum_of_slacks, &Point::n_violations);
    def_views(c, {{"gradient"}}, &Point::gradient);
    return c;
}

/// Its curvature, and how far rounding may have taken the numbers.
template <class Point>
void bind_curved(nb::module_ &m, const char *name, const char *text) {
    nb::class_<Point> c = point_class<Point>(m, name, text);
    def_properties(c, {{"inner_slacks"}, {"total_curvature"}, {"value_error"}, {"slacks_error"},
                       {"dual_error"}, {"gradient_error"}}, &Point::inner_slacks,
                       &Point::total_curvature, &Point::value_error, &Point::slacks_error,
                       &Point::dual_error, &Point::gradient_error);
    bind_curvature(m, c);
}

/// The same, and the function of this signature that makes one of a problem.
template <class Point, class Problem>
void bind_curved(nb::module_ &m, const char *name, const char *text, const char *signature) {
    bind_curved<Point>(m, name, text);
    def(m, signature, unlocked([](const Problem &problem, PairLoss::Kind loss, double epsilon,
                                  Doubles z, int n_threads) {
        require_length(z, problem.n_rows(), "z");
        return Point(problem, pair_loss(loss, epsilon), z, n_threads);
    }), nb::keep_alive<0, 1>());
}

// ---- all pairs of queries ---------------------------------------------------------------------

BoundProblem pair_problem(Integers offsets, Levels levels, Levels n_levels,
                          OptionalDoubles row_weight, OptionalDoubles query_weight,
                          OptionalDoubles gain, bool adjacent) {
    BoundProblem bound;
    PairProblem &problem = bound.problem = {leveled_queries(offsets, levels, n_levels, row_weight, query_weight), {},
               or_empty(gain), adjacent};
    require_length(gain, problem.n_rows(), "gain");
    for (Index q = 0; q < problem.n_queries(); ++q)
        require(problem.length(q) <= INT32_MAX, "a query has more than 2^31 - 1 rows");
    problem.offsets = bound.offsets = copy_of(offsets);
    problem.n_levels = bound.n_levels = copy_of(n_levels);
    problem.by_level = bound.by_level = level_order(problem);
    return bound;
}

PairPoint pair_point(const BoundProblem &problem, PairLoss::Kind loss, double epsilon, Doubles z,
                     const PairPoint *near, int n_threads) {
    const PairProblem &pairs = problem.checked(z);
    require(!near || near->problem().offsets.data() == pairs.offsets.data(),
            "near is a point of another problem");
    return PairPoint(pairs, pair_loss(loss, epsilon), z, near, n_threads);
}

auto hessian_product_of(const Rows &rows, OptionalOrder order, const PairPoint &point, Doubles v,
                        int n_threads) {
    const Positions x = positions(rows, order);
    require_length(point.gradient, x.n, "the point");
    require_length(v, n_columns(rows), "v");
    PageArray<double> image(point.gradient.size(), huge_pages);
    auto product = hessian_product(x, point, v, {image.data(), image.size()}, n_threads);
    return std::tuple(std::move(product), std::move(image));
}

void bind_queries(nb::module_ &m) {
    nb::class_<BoundProblem>(m, "PairProblem", "Queries, levels and weights of a pair loss.");
    def(m, "pair_problem(offsets, levels, n_levels, row_weight, query_weight, gain, adjacent)",
        &pair_problem, nb::keep_alive<0, 2>(), nb::keep_alive<0, 4>(), nb::keep_alive<0, 5>(),
        nb::keep_alive<0, 6>());
    bind_curved<PairPoint>(m, "PairPoint", "A pair loss at given scores.");
    def(m, "pair_point(problem, loss, epsilon, z, near, n_threads)", unlocked(&pair_point),
        nb::keep_alive<0, 1>());
    def(m, "hessian_product(rows, order, point, v, n_threads)", unlocked(&hessian_product_of),
        "(H v, X v) in one pass over the rows.");
}

// ---- pairs listed one by one ------------------------------------------------------------------

PreferenceList preference_list(Integers winners, Integers losers, OptionalDoubles weight,
                               Index n_rows) {
    require_lengths(std::ssize(winners), {"losers", "weight"}, losers, weight);
    require(n_rows >= 0, "n_rows is negative");
    for (const Integers side : {winners, losers})
        check_indices(side, n_rows, "a preference names a row that does not exist");
    return PreferenceList(winners, losers, or_empty(weight), n_rows);
}

void bind_preferences(nb::module_ &m) {
    nb::class_<PreferenceList>(m, "PreferenceList", "Preferences by winner, loser and weight.")
        .def("__len__", &PreferenceList::n_pairs);
    def(m, "preference_list(winners, losers, weight, n_rows)", unlocked(&preference_list));
    bind_curved<PreferencePoint, PreferenceList>(
        m, "PreferencePoint", "Loss of listed preferences at given scores.",
        "preference_point(list, loss, epsilon, z, n_threads)");
}

// ---- pairs of a ranking -----------------------------------------------------------------------

/// Copies of all arrays: what is checked stays as it was.
SwapProblem swap_problem(std::vector<Index> offsets, std::vector<std::int32_t> depth,
                         std::vector<double> gain, std::vector<double> first,
                         std::vector<double> second, std::vector<double> factor,
                         OptionalDoubles weight) {
    const Index n_rows = std::ssize(gain);
    require_lengths(n_rows, {"first", "second", "factor", "weight"}, first, second, factor, weight);
    check_offsets(offsets, gain.size());
    const SwapProblem problem{
        {.offsets = std::move(offsets), .row_weight = copy_of(or_empty(weight))}, std::move(depth),
        std::move(gain), std::move(first), std::move(second), std::move(factor)};
    require_length(problem.depth, problem.n_queries(), "depth");
    for (Index q = 0; q < problem.n_queries(); ++q)
        require(problem.depth[q] >= 0 && problem.depth[q] <= problem.length(q),
                "a depth is not within its query");
    return problem;
}

void bind_swaps(nb::module_ &m) {
    nb::class_<SwapProblem>(m, "SwapProblem", "Gains and places of the rows of a ranking.");
    def(m, "swap_problem(offsets, depth, gain, first, second, factor, weight)", &swap_problem);
    def(m, "swap_totals(problem, n_threads)", unlocked(&swap_totals),
        "Sum of the weights of each query, and how many of its pairs have one.");
    bind_curved<SwapPoint, SwapProblem>(
        m, "SwapPoint", "Loss of the pairs of a ranking at given scores.",
        "swap_point(problem, loss, epsilon, z, n_threads)");
}

// ---- the literature ---------------------------------------------------------------------------

using published::PublishedPoint;

PublishedPoint published_point(const BoundProblem &problem, Doubles z,
                               const std::string &counting) {
    const PairProblem &pairs = problem.checked(z);
    check_published(pairs);
    return PublishedPoint(pairs, z, published::counting(counting));
}

PreferenceList explicit_pairs(const BoundProblem &problem) {
    check_published(problem.problem);
    return published::explicit_pairs(problem.problem);
}

void bind_published(nb::module_ &m) {
    auto point = point_class<PublishedPoint>(
        m, "PublishedPoint", "Pair loss at given scores by a published way of counting.");
    def(point, "multiply(v)", unlocked([](const PublishedPoint &self, Doubles v) {
        require_length(v, Index(self.gradient.size()), "v");
        return filled(std::vector<double>(v.size()), [&](auto out) { self.multiply(v, out); });
    }));
    def_views(point, {{"hinge_gradient", "A sub-gradient of sum_of_slacks."}},
              &PublishedPoint::hinge_gradient);
    def(m, "published_point(problem, z, counting)", unlocked(&published_point),
        nb::keep_alive<0, 1>());
    def(m, "explicit_pairs(problem)", unlocked(&explicit_pairs),
        "All pairs of a problem, written down.");
}

}  // namespace

void bind_pairs(nb::module_ &m) {
    bind_queries(m);
    bind_preferences(m);
    bind_swaps(m);
    bind_published(m);
}
