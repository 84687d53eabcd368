// The domination loss at given scores, and coordinate descent for it.
#include "coordinates.hpp"
#include "domination.hpp"
#include "exclusive.hpp"
#include "points.hpp"
#include "coordinate_step.hpp"

namespace {

// ---- layers, margins and weights --------------------------------------------------------------

/// Owns all of its arrays: nothing that Python may write to is looked at later.
struct BoundLayering {
    std::shared_ptr<const Layering> layering;
};

/// A copy of numbers that pass the check.
std::vector<double> checked_copy(const OptionalDoubles &a, Index n, const char *name,
                                 void (*check)(std::span<const double>, const char *)) {
    require_length(a, n, name);
    std::vector<double> copy = own_copy(a);
    check(copy, name);
    return copy;
}

std::vector<Index> first_cells(std::span<const std::int32_t> n_levels) {
    std::vector<Index> first(n_levels.size() + 1, 0);
    for (std::size_t q = 0; q < n_levels.size(); ++q) first[q + 1] = first[q] + n_levels[q];
    return first;
}

BoundLayering layering(IntegerArray offsets, LevelArray levels, LevelArray n_levels, OptionalDoubles shift,
                       OptionalDoubles row_weight, OptionalDoubles query_weight, OptionalDoubles table,
                       Index n_grades, std::optional<LevelArray> grades) {
    check_queries(offsets, levels, n_levels);
    auto made = std::make_shared<Layering>();
    made->offsets = own_copy(offsets);
    made->levels = own_copy(levels);
    made->n_levels = own_copy(n_levels);
    made->first_cell = first_cells(made->n_levels);
    made->shift = checked_copy(shift, made->n_rows(), "shift", check_finite);
    made->row_weight = checked_copy(row_weight, made->n_rows(), "row_weight", check_weights);
    made->query_weight = checked_copy(query_weight, made->n_queries(), "query_weight", check_weights);
    if (!table) return {std::move(made)};
    require(n_grades >= 1 && n_grades <= INT32_MAX, "n_grades is out of range");
    require(grades.has_value(), "a table of margins needs grades");
    require_length(grades, made->n_cells(), "grades");
    made->grades = own_copy(grades);
    check_indices(made->grades, n_grades, "a grade is out of range");
    made->table = checked_copy(table, n_grades * n_grades, "table", check_finite);
    made->n_grades = n_grades;
    return {std::move(made)};
}

// ---- the loss at given scores -----------------------------------------------------------------

DominationPoint domination_point(const BoundLayering &layering, DoubleArray z, int n_threads) {
    require_length(z.shape(0), layering.layering->n_rows(), "z");
    return unlocked([&] { return DominationPoint(*layering.layering, span_of(z), n_threads); });
}

auto multiply(const DominationPoint &point, DoubleArray v, int n_threads) {
    require_length(v.shape(0), point.layering().n_rows(), "v");
    return filled(PageArray<double>(v.shape(0), huge_pages), [&](auto out) {
        point.multiply(span_of(v), out, n_threads);
    });
}

double dual(const DominationPoint &point, double t, int n_threads) {
    if (!(t >= 0.0 && t <= 1.0)) throw std::invalid_argument("t must lie in [0, 1], got " + std::to_string(t));
    return unlocked([&] { return point.dual(t, n_threads); });
}

void bind_point(nb::module_ &m) {
    nb::class_<DominationPoint> point(m, "DominationPoint", "The domination loss at given scores.");
    def_members(point, {"value", "total_curvature", "value_error", "slope_error", "gradient_error"},
                &DominationPoint::value, &DominationPoint::total_curvature, &DominationPoint::value_error,
                &DominationPoint::slope_error, &DominationPoint::gradient_error);
    point.def_ro("slope", &DominationPoint::slope, "The gradient times the scores.");
    point.def_prop_ro("gradient", [](nb::handle_t<DominationPoint> self) {
        return view_of(self, nb::cast<const DominationPoint &>(self).gradient);
    });
    point.def_prop_ro("rho", [](nb::handle_t<DominationPoint> self) {
        return view_of(self, nb::cast<const DominationPoint &>(self).rho());
    });
    def(point, "multiply", &multiply, {"v", "n_threads"});
    def(point, "dual", &dual, {"t", "n_threads"});
    def(m, "domination_point", &domination_point, {"layering", "z", "n_threads"}, nb::keep_alive<0, 1>());
    bind_hessian<DominationPoint>(m, "domination_hessian_matrix", "domination_hessian_diagonal",
                                  "The diagonal of H.");
}

// ---- columns ----------------------------------------------------------------------------------

struct BoundColumns {
    std::shared_ptr<const Columns> columns;
};

/// A copy: another thread of Python may write to the array once the GIL is let go of.
std::vector<Index> checked_features(const IntegerArray &features, Index n_features) {
    std::vector<Index> copy = own_copy(features);
    check_indices(copy, n_features, "features names one that does not exist");
    return copy;
}

std::vector<Index> increasing_features(const IntegerArray &features, Index n_features) {
    std::vector<Index> copy = checked_features(features, n_features);
    require(std::ranges::adjacent_find(copy, std::greater_equal()) == copy.end(), "features must increase");
    return copy;
}

/// Some columns as rows by position: a dense matrix, one row after the other, or (values, columns, offsets).
nb::object take(const BoundColumns &self, IntegerArray features) {
    const std::vector<Index> wanted = increasing_features(features, n_columns(*self.columns));
    Narrowed narrowed = unlocked([&] { return narrow_rows(*self.columns, wanted); });
    return std::visit([](auto &rows) -> nb::object {
        if (rows.offsets.empty()) return nb::cast(to_numpy(std::move(rows.values)));
        return nb::cast(to_tuple(std::move(rows.values), std::move(rows.columns), std::move(rows.offsets)));
    }, narrowed);
}

auto products(const BoundColumns &self, IntegerArray wanted, DoubleArray r, int n_threads) {
    const std::vector<Index> features = checked_features(wanted, n_columns(*self.columns));
    require_length(r.shape(0), n_rows(*self.columns), "r");
    return to_numpy(unlocked([&] { return column_products(*self.columns, features, span_of(r), n_threads); }));
}

BoundColumns columns(const BoundRows &rows, OptionalOrder order, int n_threads) {
    const Positions x = positions(rows, order);
    return {unlocked([&] { return std::make_shared<const Columns>(columns_of(x, n_threads)); })};
}

// ---- coordinate descent -----------------------------------------------------------------------

using BoundCoordinates = Exclusive<Coordinates>;

Penalty penalty_of(const std::string &name, double alpha) {
    require(alpha >= 0.0, "alpha must be >= 0");
    return choose<Penalty>("penalty", name, {{"none", Penalty::none}, {"l1", Penalty::l1}, {"l2", Penalty::l2}});
}

Curvature curvature_of(const std::string &name) {
    return choose<Curvature>("curvature", name, {{"local", Curvature::local}, {"range", Curvature::range},
        {"paper", Curvature::paper}});
}

BoundCoordinates coordinates(const BoundColumns &columns, const BoundLayering &layering, OptionalDoubles factors) {
    require_length(std::size_t(layering.layering->n_rows()), n_rows(*columns.columns), "layering");
    require_length(factors, n_columns(*columns.columns), "factors");
    std::vector<double> scale = own_copy(factors);
    return unlocked([&] {
        return BoundCoordinates(Coordinates(columns.columns, layering.layering, std::move(scale)), "Coordinates");
    });
}

nb::tuple sweep(BoundCoordinates &self, Writable<double> w, IntegerArray features, const std::string &penalty, double alpha,
                const std::string &curvature) {
    const auto state = self.use();
    require_length(w.shape(0), state->n_features(), "w");
    const std::vector<Index> moved = checked_features(features, state->n_features());
    const Penalty kind = penalty_of(penalty, alpha);
    const Curvature bound = curvature_of(curvature);
    const Sweep done = unlocked([&] { return state->sweep(writable(w), moved, kind, alpha, bound); });
    return nb::make_tuple(done.decrease, done.n_moved);
}

auto measure(BoundCoordinates &self, IntegerArray features, const std::string &curvature, int n_threads) {
    const auto state = self.use();
    // Threads fill in what is known of a column: no two may have the same one.
    const std::vector<Index> measured = increasing_features(features, state->n_features());
    const Curvature bound = curvature_of(curvature);
    std::vector<CoordinateBound> found(measured.size());
    unlocked([&] { state->measure(measured, bound, found, n_threads); });
    return member_arrays(found, &CoordinateBound::gradient, &CoordinateBound::hessian, &CoordinateBound::bound,
                         &CoordinateBound::range);
}

void restart(BoundCoordinates &self, DoubleArray w) {
    const auto state = self.use();
    require_length(w.shape(0), state->n_features(), "w");
    unlocked([&] { state->restart(span_of(w)); });
}

/// (step, decrease) of each: what `sweep` would do with these bounds.
auto coordinate_steps(DoubleArray gradient, DoubleArray hessian, DoubleArray bound, DoubleArray range, DoubleArray w,
                           const std::string &penalty, double alpha) {
    const auto n = Index(w.shape(0));
    require_lengths(n, {"gradient", "hessian", "bound", "range"}, gradient, hessian, bound, range);
    const Penalty kind = penalty_of(penalty, alpha);
    std::vector<CoordinateStep> steps;
    for (std::size_t i = 0; i < w.shape(0); ++i)
        steps.push_back(CoordinateStep({gradient(i), hessian(i), bound(i), range(i)}, w(i), kind, alpha));
    return member_arrays(steps, &CoordinateStep::step, &CoordinateStep::decrease);
}

auto minimize_quadratic(DoubleArray hessian, DoubleArray gradient, DoubleArray w, double alpha, double enough,
                        Index n_sweeps) {
    const auto n = Index(w.shape(0));
    check_square(hessian, n, "hessian");
    require_length(gradient.shape(0), n, "gradient");
    require(alpha >= 0.0, "alpha must be >= 0");
    return to_numpy(unlocked([&] {
        return sparse_quadratic(span_of(hessian), span_of(gradient), span_of(w), alpha, enough, n_sweeps);
    }));
}

void bind_coordinates(nb::module_ &m) {
    nb::class_<BoundColumns> matrix(m, "Columns", "A matrix by columns, a copy.");
    matrix.def_prop_ro("n_rows", [](const BoundColumns &c) { return n_rows(*c.columns); });
    def(matrix, "take", &take, {"features"});
    def(matrix, "products", &products, {"wanted", "r", "n_threads"});
    def(m, "columns", &columns, {"rows", "order", "n_threads"});
    nb::class_<BoundCoordinates> state(m, "Coordinates", "The domination loss, ready to move along columns.");
    def(state, "sweep", &sweep, {"w", "features", "penalty", "alpha", "curvature"});
    def(state, "measure", &measure, {"features", "curvature", "n_threads"});
    def(state, "restart", &restart, {"w"});
    state.def("scores", [](BoundCoordinates &self) { return to_numpy(self.use()->scores()); });
    def(m, "coordinates", &coordinates, {"columns", "layering", "factors"});
    def(m, "sparse_quadratic", &minimize_quadratic, {"hessian", "gradient", "w", "alpha", "enough", "n_sweeps"});
    def(m, "coordinate_steps", &coordinate_steps, {"gradient", "hessian", "bound", "range", "w", "penalty", "alpha"});
}

}  // namespace

void bind_domination(nb::module_ &m) {
    nb::class_<BoundLayering>(m, "Layering", "Layers, margins and weights of a domination loss.");
    def(m, "layering", &layering, {"offsets", "levels", "n_levels", "shift", "row_weight", "query_weight", "table",
                                   "n_grades", "grades"});
    bind_point(m);
    bind_coordinates(m);
}
