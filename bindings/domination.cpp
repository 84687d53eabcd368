// The domination loss at given scores, and coordinate descent for it.
#include "domination.hpp"

#include "coordinates.hpp"
#include "points.hpp"

template <>
inline constexpr Choices<Penalty> choices<Penalty>{"penalty", {
    {"none", Penalty::none}, {"l1", Penalty::l1}, {"l2", Penalty::l2}}};
template <>
inline constexpr Choices<Curvature> choices<Curvature>{"curvature", {
    {"local", Curvature::local}, {"range", Curvature::range}, {"paper", Curvature::paper}}};

template <>
inline constexpr bool is_opaque<Layering> = true;

namespace {

/// Layers, margins and weights. Owns all of its arrays: nothing that Python may write to is looked
/// at later.
Layering layering(Integers offsets, Levels levels, Levels n_levels, OptionalDoubles shift,
                  OptionalDoubles row_weight, OptionalDoubles query_weight, OptionalDoubles table,
                  Index n_grades, std::optional<Levels> grades) {
    const Queries queries = leveled_queries(offsets, levels, n_levels, row_weight, query_weight);
    Layering made{{copy_of(offsets), copy_of(levels), copy_of(n_levels),
                   copy_of(queries.row_weight), copy_of(queries.query_weight)}, {0}};
    for (const Index n : n_levels) made.first_cell.push_back(made.first_cell.back() + n);
    require_length(shift, made.n_rows(), "shift");
    made.shift = copy_of(or_empty(shift));
    check_finite(made.shift, "shift");
    if (!table) return made;
    require(n_grades >= 1 && n_grades <= INT32_MAX, "n_grades is out of range");
    require(grades.has_value(), "a table of margins needs grades");
    require_length(grades, made.n_cells(), "grades");
    require_length(table, n_grades * n_grades, "table");
    made.n_grades = n_grades;
    made.grades = copy_of(*grades);
    made.table = copy_of(*table);
    check_indices(made.grades, n_grades, "a grade is out of range");
    check_finite(made.table, "table");
    return made;
}

// ---- the loss at given scores -----------------------------------------------------------------

DominationPoint domination_point(const Layering &layering, Doubles z, int n_threads) {
    require_length(z, layering.n_rows(), "z");
    return DominationPoint(layering, z, n_threads);
}

double dual(const DominationPoint &point, double t, int n_threads) {
    require(t >= 0.0 && t <= 1.0, "t must lie in [0, 1], got ", t);
    return point.dual(t, n_threads);
}

void bind_point(nb::module_ &m) {
    nb::class_<DominationPoint> point(m, "DominationPoint", "The domination loss at given scores.");
    def_properties(point, {{"value"}, {"total_curvature"}, {"value_error"}, {"slope_error"},
                           {"gradient_error"}, {"slope", "The gradient times the scores."}},
                           &DominationPoint::value, &DominationPoint::total_curvature,
                           &DominationPoint::value_error, &DominationPoint::slope_error,
                           &DominationPoint::gradient_error, &DominationPoint::slope);
    def_views(point, {{"gradient"}, {"rho"}}, &DominationPoint::gradient, &DominationPoint::rho);
    bind_curvature(m, point);
    def(point, "dual(t, n_threads)", unlocked(&dual));
    def(m, "domination_point(layering, z, n_threads)", unlocked(&domination_point),
        nb::keep_alive<0, 1>());
}

// ---- columns ----------------------------------------------------------------------------------

/// Features are copies: another thread of Python may write to the array once the GIL is let go of.
void check_features(const std::vector<Index> &features, Index n_features) {
    check_indices(features, n_features, "features names one that does not exist");
}

void check_increasing(const std::vector<Index> &features, Index n_features) {
    check_features(features, n_features);
    require(std::ranges::adjacent_find(features, std::greater_equal()) == features.end(),
            "features must increase");
}

/// Some columns as rows by position: a dense matrix, one row after the other, or (values, columns,
/// offsets).
nb::object take(const Columns &columns, std::vector<Index> features) {
    check_increasing(features, n_columns(columns));
    Narrowed narrowed = run_unlocked([&] { return narrow_rows(columns, features); });
    return std::visit([](auto &rows) -> nb::object {
        if (rows.offsets.empty()) return nb::cast(to_numpy(std::move(rows.values)));
        return nb::make_tuple(to_numpy(std::move(rows.values)), to_numpy(std::move(rows.indices)),
                              to_numpy(std::move(rows.offsets)));
    }, narrowed);
}

std::vector<double> products(const Columns &columns, std::vector<Index> wanted, Doubles r,
                             int n_threads) {
    check_features(wanted, n_columns(columns));
    require_length(r, n_rows(columns), "r");
    return column_products(columns, wanted, r, n_threads);
}

// ---- coordinate descent -----------------------------------------------------------------------

using BoundCoordinates = Exclusive<Coordinates>;

void check_alpha(double alpha) { require(alpha >= 0.0, "alpha must be >= 0"); }

BoundCoordinates coordinates(const Columns &columns, const Layering &layering,
                             std::optional<std::vector<double>> factors) {
    require_length(std::size_t(layering.n_rows()), n_rows(columns), "layering");
    require_length(factors, n_columns(columns), "factors");
    return BoundCoordinates(Coordinates(columns, layering, factors.value_or(std::vector<double>())),
                            "Coordinates");
}

Sweep sweep(BoundCoordinates &self, std::span<double> w, std::vector<Index> features,
            Penalty penalty, double alpha, Curvature curvature) {
    const auto state = self.use();
    require_length(w, state->n_features(), "w");
    check_features(features, state->n_features());
    check_alpha(alpha);
    return state->sweep(w, features, penalty, alpha, curvature);
}

std::vector<CoordinateBound> measure(BoundCoordinates &self, std::vector<Index> features,
                                     Curvature curvature, int n_threads) {
    const auto state = self.use();
    // Threads fill in what is known of a column: no two may have the same one.
    check_increasing(features, state->n_features());
    return state->measure(features, curvature, n_threads);
}

void restart(BoundCoordinates &self, Doubles w) {
    const auto state = self.use();
    require_length(w, state->n_features(), "w");
    state->restart(w);
}

/// (step, decrease) of each: what `sweep` would do with these bounds.
auto coordinate_steps(Doubles gradient, Doubles hessian, Doubles bound, Doubles range, Doubles w,
                      Penalty penalty, double alpha) {
    require_lengths(std::ssize(w), {"gradient", "hessian", "bound", "range"}, gradient, hessian,
                    bound, range);
    check_alpha(alpha);
    std::vector<CoordinateStep> steps;
    for (std::size_t i = 0; i < w.size(); ++i)
        steps.push_back(CoordinateStep({gradient[i], hessian[i], bound[i], range[i]}, w[i], penalty,
                                       alpha));
    return std::tuple(member_of(steps, &CoordinateStep::step),
                      member_of(steps, &CoordinateStep::decrease));
}

std::vector<double> minimize_quadratic(Doubles hessian, Doubles gradient, Doubles w, double alpha,
                                       double enough, Index n_sweeps) {
    check_square(hessian, std::ssize(w), "hessian");
    require_length(gradient, std::ssize(w), "gradient");
    check_alpha(alpha);
    return sparse_quadratic(hessian, gradient, w, alpha, enough, n_sweeps);
}

void bind_coordinates(nb::module_ &m) {
    nb::class_<Columns> matrix(m, "Columns", "A matrix by columns, a copy.");
    def_properties(matrix, {{"n_rows"}}, [](const Columns &c) { return n_rows(c); });
    def(matrix, "take(features)", &take);
    def(matrix, "products(wanted, r, n_threads)", unlocked(&products));
    def(m, "columns(rows, order, n_threads)",
        unlocked([](const Rows &rows, OptionalOrder order, int n_threads) {
        return columns_of(positions(rows, order), n_threads);
    }));
    nb::class_<BoundCoordinates> state(m, "Coordinates",
                                       "The domination loss, ready to move along columns.");
    def(state, "sweep(w, features, penalty, alpha, curvature)", unlocked(&sweep));
    def(state, "measure(features, curvature, n_threads)", unlocked(&measure));
    def(state, "restart(w)", unlocked(&restart));
    def(state, "scores()", exclusive(&Coordinates::scores));
    def(m, "coordinates(columns, layering, factors)", unlocked(&coordinates),
        nb::keep_alive<0, 1>(), nb::keep_alive<0, 2>());
    def(m, "sparse_quadratic(hessian, gradient, w, alpha, enough, n_sweeps)",
        unlocked(&minimize_quadratic));
    def(m, "coordinate_steps(gradient, hessian, bound, range, w, penalty, alpha)",
        &coordinate_steps);
}

}  // namespace

void bind_domination(nb::module_ &m) {
    nb::class_<Layering>(m, "Layering", "Layers, margins and weights of a domination loss.");
    def(m,
        "layering(offsets, levels, n_levels, shift, row_weight, query_weight, table, n_grades, "
        "grades)", &layering);
    bind_point(m);
    bind_coordinates(m);
}
