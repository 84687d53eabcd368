// Pair losses at given scores: over all pairs of queries, over listed preferences, over the pairs of a ranking,
// and as the literature counts them.
#include <sstream>

#include "hessian.hpp"
#include "points.hpp"
#include "preferences.hpp"
#include "published/point.hpp"
#include "swaps.hpp"

namespace {

PairLoss pair_loss(const std::string &name, double epsilon) {
    const auto kind = choose<PairLoss::Kind>("loss", name, {{"squared_hinge", PairLoss::squared_hinge},
        {"hinge", PairLoss::hinge}, {"huber", PairLoss::huber}});
    // Sums over a band are differences divided by ε: below, they would be nothing but rounding.
    if (kind == PairLoss::huber && !(epsilon >= 1e-10 && epsilon <= 1.0)) {
        std::ostringstream message;
        message << "epsilon must lie in [1e-10, 1], got " << epsilon;
        throw std::invalid_argument(message.str());
    }
    return {kind, epsilon};
}

// ---- what all points have in common -----------------------------------------------------------

template <class Point>
nb::class_<Point> point_class(nb::module_ &m, const char *name, const char *text) {
    nb::class_<Point> c(m, name, text);
    def_members(c, {"value", "sum_of_slacks", "n_violations"}, &Point::value, &Point::sum_of_slacks,
                &Point::n_violations);
    c.def_prop_ro("gradient", [](nb::handle_t<Point> self) {
        return view_of(self, nb::cast<const Point &>(self).gradient);
    });
    return c;
}

/// Its curvature, and how far rounding may have taken the numbers.
template <class Point>
void bind_curved(nb::class_<Point> &c) {
    def_members(c, {"inner_slacks", "total_curvature", "value_error", "slacks_error", "dual_error", "gradient_error"},
                &Point::inner_slacks, &Point::total_curvature, &Point::value_error, &Point::slacks_error,
                &Point::dual_error, &Point::gradient_error);
    def(c, "multiply", [](const Point &point, DoubleArray v, int n_threads) {
        require_length(v.shape(0), Index(point.gradient.size()), "v");
        return filled(std::vector<double>(v.shape(0)), [&](auto out) { point.multiply(span_of(v), out, n_threads); });
    }, {"v"}, nb::arg("n_threads") = 1);
}

// ---- all pairs of queries ---------------------------------------------------------------------

BoundProblem pair_problem(IntegerArray offsets, LevelArray levels, LevelArray n_levels, OptionalDoubles row_weight,
                          OptionalDoubles query_weight, OptionalDoubles gain, bool adjacent) {
    check_queries(offsets, levels, n_levels);
    require_lengths(Index(levels.shape(0)), {"row_weight", "gain"}, row_weight, gain);
    require_length(query_weight, Index(n_levels.shape(0)), "query_weight");
    for (std::size_t q = 0; q < n_levels.shape(0); ++q)
        require(offsets(q + 1) - offsets(q) <= INT32_MAX, "a query has more than 2^31 - 1 rows");
    BoundProblem bound;
    bound.offsets = own_copy(offsets);
    bound.n_levels = own_copy(n_levels);
    bound.keep_alive = nb::make_tuple(levels, row_weight, query_weight, gain);
    bound.problem = {{bound.offsets, span_of(levels), bound.n_levels, span_of(row_weight), span_of(query_weight)},
                     {}, span_of(gain), adjacent};
    bound.by_level = level_order(bound.problem);
    bound.problem.by_level = bound.by_level;
    return bound;
}

PairPoint pair_point(const BoundProblem &problem, const std::string &loss, double epsilon, DoubleArray z,
                     const PairPoint *near, int n_threads) {
    const PairProblem &pairs = problem.checked(z);
    require(!near || near->problem().offsets.data() == pairs.offsets.data(), "near is a point of another problem");
    const PairLoss kind = pair_loss(loss, epsilon);
    return unlocked([&] { return PairPoint(pairs, kind, span_of(z), near, n_threads); });
}

auto hessian_product_of(const BoundRows &rows, OptionalOrder order, const PairPoint &point, DoubleArray v, int n_threads) {
    const Positions x = positions(rows, order);
    require_length(point.gradient.size(), x.n, "the point");
    require_length(v.shape(0), n_columns(rows.rows), "v");
    std::vector<double> out(v.shape(0));
    PageArray<double> image(point.gradient.size(), huge_pages);
    unlocked([&] {
        hessian_product(x, point, span_of(v), out, {image.data(), image.size()}, n_threads);
    });
    return to_tuple(std::move(out), std::move(image));
}

void bind_queries(nb::module_ &m) {
    nb::class_<BoundProblem>(m, "PairProblem", "Queries, levels and weights of a pair loss.");
    def(m, "pair_problem", &pair_problem,
        {"offsets", "levels", "n_levels", "row_weight", "query_weight", "gain", "adjacent"});
    auto point = point_class<PairPoint>(m, "PairPoint", "A pair loss at given scores.");
    bind_curved(point);
    def(m, "pair_point", &pair_point, {"problem", "loss", "epsilon", "z", "near", "n_threads"},
        nb::keep_alive<0, 1>());
    def(m, "hessian_product", &hessian_product_of, {"rows", "order", "point", "v", "n_threads"},
        "(H v, X v) in one pass over the rows.");
    bind_hessian<PairPoint>(m, "hessian_matrix", "hessian_diagonal", "An estimate of the diagonal of H.");
}

// ---- pairs listed one by one ------------------------------------------------------------------

PreferenceList preference_list(IntegerArray winners, IntegerArray losers, OptionalDoubles weight, Index n_rows) {
    const auto n = Index(winners.shape(0));
    require_lengths(n, {"losers", "weight"}, losers, weight);
    if (n_rows < 0) throw std::invalid_argument("n_rows is negative");
    for (const auto &side : {span_of(winners), span_of(losers)})
        check_indices(side, n_rows, "a preference names a row that does not exist");
    return unlocked([&] { return PreferenceList(span_of(winners), span_of(losers), span_of(weight), n_rows); });
}

PreferencePoint preference_point(const PreferenceList &list, const std::string &loss, double epsilon, DoubleArray z,
                                 int n_threads) {
    require_length(z.shape(0), list.n_rows(), "z");
    const PairLoss kind = pair_loss(loss, epsilon);
    return unlocked([&] { return PreferencePoint(list, kind, span_of(z), n_threads); });
}

void bind_preferences(nb::module_ &m) {
    nb::class_<PreferenceList>(m, "PreferenceList", "Preferences by winner, loser and weight.")
        .def("__len__", &PreferenceList::n_pairs);
    def(m, "preference_list", &preference_list, {"winners", "losers", "weight", "n_rows"});
    auto point = point_class<PreferencePoint>(m, "PreferencePoint", "Loss of listed preferences at given scores.");
    bind_curved(point);
    def(m, "preference_point", &preference_point, {"list", "loss", "epsilon", "z", "n_threads"},
        nb::keep_alive<0, 1>());
    bind_hessian<PreferencePoint>(m, "preference_hessian_matrix", "preference_hessian_diagonal",
                                  "The diagonal of H.");
}

// ---- pairs of a ranking -----------------------------------------------------------------------

struct BoundSwaps {
    std::shared_ptr<const SwapProblem> problem;
};

/// Copies of all arrays: what is checked stays as it was.
BoundSwaps swap_problem(IntegerArray offsets, LevelArray depth, DoubleArray gain, DoubleArray first, DoubleArray second, DoubleArray factor,
                        OptionalDoubles weight) {
    const auto n_rows = Index(gain.shape(0));
    require_lengths(n_rows, {"first", "second", "factor", "weight"}, first, second, factor, weight);
    SwapProblem problem{{.offsets = own_copy(offsets), .row_weight = own_copy(weight)}, own_copy(depth), own_copy(gain),
                        own_copy(first), own_copy(second), own_copy(factor)};
    check_offsets(problem.offsets, std::size_t(n_rows));
    require_length(problem.depth.size(), problem.n_queries(), "depth");
    for (Index q = 0; q < problem.n_queries(); ++q)
        require(problem.depth[q] >= 0 && problem.depth[q] <= problem.length(q), "a depth is not within its query");
    return {std::make_shared<const SwapProblem>(std::move(problem))};
}

SwapPoint swap_point(const BoundSwaps &swaps, const std::string &loss, double epsilon, DoubleArray z, int n_threads) {
    require_length(z.shape(0), swaps.problem->n_rows(), "z");
    const PairLoss kind = pair_loss(loss, epsilon);
    return unlocked([&] { return SwapPoint(swaps.problem, kind, span_of(z), n_threads); });
}

void bind_swaps(nb::module_ &m) {
    nb::class_<BoundSwaps>(m, "SwapProblem", "Gains and places of the rows of a ranking.");
    def(m, "swap_problem", &swap_problem, {"offsets", "depth", "gain", "first", "second", "factor", "weight"});
    def(m, "swap_totals", [](const BoundSwaps &swaps) {
        SwapTotals totals = unlocked([&] { return swap_totals(*swaps.problem); });
        return to_tuple(std::move(totals.weight), std::move(totals.n_pairs));
    }, {"problem"}, "Sum of the weights of each query, and how many of its pairs have one.");
    auto point = point_class<SwapPoint>(m, "SwapPoint", "Loss of the pairs of a ranking at given scores.");
    bind_curved(point);
    def(m, "swap_point", &swap_point, {"problem", "loss", "epsilon", "z", "n_threads"});
    bind_hessian<SwapPoint>(m, "swap_hessian_matrix", "swap_hessian_diagonal", "The diagonal of H.");
}

// ---- the literature ---------------------------------------------------------------------------

using published::PublishedPoint;

PublishedPoint published_point(const BoundProblem &problem, DoubleArray z, const std::string &counting) {
    const PairProblem &pairs = problem.checked(z);
    check_published(pairs);
    const published::Count count = published::counting(counting);
    return unlocked([&] { return PublishedPoint(pairs, span_of(z), count); });
}

PreferenceList explicit_pairs(const BoundProblem &problem) {
    check_published(problem.problem);
    return unlocked([&] { return published::explicit_pairs(problem.problem); });
}

void bind_published(nb::module_ &m) {
    auto point = point_class<PublishedPoint>(m, "PublishedPoint",
                                             "Pair loss at given scores by a published way of counting.");
    def(point, "multiply", [](const PublishedPoint &self, DoubleArray v) {
        require_length(v, Index(self.gradient.size()), "v");
        return filled(std::vector<double>(v.shape(0)), [&](auto out) { self.multiply(span_of(v), out); });
    }, {"v"});
    point.def_prop_ro("hinge_gradient", [](nb::handle_t<PublishedPoint> self) {
        return view_of(self, nb::cast<const PublishedPoint &>(self).hinge_gradient);
    }, "A sub-gradient of sum_of_slacks.");
    def(m, "published_point", &published_point, {"problem", "z", "counting"}, nb::keep_alive<0, 1>());
    def(m, "explicit_pairs", &explicit_pairs, {"problem"}, "All pairs of a problem, written down.");
}

}  // namespace

void bind_pairs(nb::module_ &m) {
    bind_queries(m);
    bind_preferences(m);
    bind_swaps(m);
    bind_published(m);
}
