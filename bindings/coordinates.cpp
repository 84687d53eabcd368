// Coordinate descent for the domination loss.
#include "coordinates.hpp"

#include <nanobind/stl/string.h>

#include "bound_layering.hpp"
#include "exclusive.hpp"
#include "module.hpp"
#include "sparse_quadratic.hpp"

namespace {

struct BoundColumns {
    std::shared_ptr<const Columns> columns;
};

using Weights = nb::ndarray<double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using BoundCoordinates = Exclusive<Coordinates>;

Penalty penalty_of(const std::string &name) {
    if (name == "none") return Penalty::none;
    if (name == "l1") return Penalty::l1;
    if (name == "l2") return Penalty::l2;
    throw std::invalid_argument("there is no penalty '" + name + "'");
}

Curvature curvature_of(const std::string &name) {
    if (name == "local") return Curvature::local;
    if (name == "range") return Curvature::range;
    if (name == "paper") return Curvature::paper;
    throw std::invalid_argument("there is no curvature '" + name + "'");
}

/// A copy: another thread of Python may write to the array once the GIL is let go of.
std::vector<std::int64_t> checked_features(const Vector<std::int64_t> &features, std::int64_t n_features) {
    const auto given = span_of(features);
    std::vector<std::int64_t> copy(given.begin(), given.end());
    for (const std::int64_t r : copy)
        if (r < 0 || r >= n_features) throw std::invalid_argument("features names one that does not exist");
    return copy;
}

void check_increasing(std::span<const std::int64_t> features) {
    for (std::size_t i = 1; i < features.size(); ++i)
        if (features[i] <= features[i - 1]) throw std::invalid_argument("features must increase");
}

BoundCoordinates coordinates(const BoundColumns &columns, const BoundLayering &layering,
                             std::optional<Vector<double>> factors) {
    require_length(std::size_t(layering.layering->n_rows()), n_rows(*columns.columns), "layering");
    std::vector<double> scale;
    if (factors) {
        require_length(factors->shape(0), n_columns(*columns.columns), "factors");
        scale.assign(span_of(*factors).begin(), span_of(*factors).end());
    }
    return unlocked([&] {
        return BoundCoordinates(Coordinates(columns.columns, layering.layering, std::move(scale)));
    });
}

nb::tuple sweep(BoundCoordinates &self, Weights w, Vector<std::int64_t> features, const std::string &penalty,
                double alpha, const std::string &curvature) {
    const BoundCoordinates::Use state(self, "Coordinates");
    require_length(w.shape(0), state->n_features(), "w");
    const std::vector<std::int64_t> moved = checked_features(features, state->n_features());
    const Penalty kind = penalty_of(penalty);
    const Curvature bound = curvature_of(curvature);
    if (!(alpha >= 0.0)) throw std::invalid_argument("alpha must be >= 0");
    const Sweep done = unlocked([&] {
        return state->sweep({w.data(), w.shape(0)}, moved, kind, alpha, bound);
    });
    return nb::make_tuple(done.decrease, done.n_moved);
}

nb::tuple measure(BoundCoordinates &self, Vector<std::int64_t> features, const std::string &curvature,
                  int n_threads) {
    const BoundCoordinates::Use state(self, "Coordinates");
    const std::vector<std::int64_t> asked = checked_features(features, state->n_features());
    check_increasing(asked);  // threads fill in what is known of a column: no two may have the same one
    const Curvature bound = curvature_of(curvature);
    std::vector<CoordinateBound> found(asked.size());
    unlocked([&] { state->measure(asked, bound, found, n_threads); });
    std::vector<double> parts[4];
    for (const CoordinateBound &b : found) {
        const double values[4] = {b.gradient, b.hessian, b.bound, b.range};
        for (int i = 0; i < 4; ++i) parts[i].push_back(values[i]);
    }
    return nb::make_tuple(to_numpy(std::move(parts[0])), to_numpy(std::move(parts[1])),
                          to_numpy(std::move(parts[2])), to_numpy(std::move(parts[3])));
}

/// (step, decrease) of each: what `sweep` would do with these bounds.
nb::tuple coordinate_steps(Vector<double> gradient, Vector<double> hessian, Vector<double> bound,
                           Vector<double> range, Vector<double> w, const std::string &penalty,
                           double alpha) {
    const auto n = std::int64_t(w.shape(0));
    const std::pair<const Vector<double> *, const char *> given[] = {
        {&gradient, "gradient"}, {&hessian, "hessian"}, {&bound, "bound"}, {&range, "range"}};
    for (const auto &[array, name] : given) require_length(array->shape(0), n, name);
    const Penalty kind = penalty_of(penalty);
    std::vector<double> steps(w.shape(0)), decreases(w.shape(0));
    for (std::size_t i = 0; i < w.shape(0); ++i) {
        const CoordinateStep best({gradient(i), hessian(i), bound(i), range(i)}, w(i), kind, alpha);
        steps[i] = best.step;
        decreases[i] = best.decrease;
    }
    return nb::make_tuple(to_numpy(std::move(steps)), to_numpy(std::move(decreases)));
}

nb::ndarray<nb::numpy, double, nb::ndim<1>> minimise_quadratic(Vector<double> hessian, Vector<double> gradient,
                                                            Vector<double> w, double alpha, double enough,
                                                            std::int64_t n_sweeps) {
    const auto n = std::int64_t(w.shape(0));
    check_square(hessian, n, "hessian");
    require_length(gradient.shape(0), n, "gradient");
    if (!(alpha >= 0.0)) throw std::invalid_argument("alpha must be >= 0");
    return to_numpy(unlocked([&] {
        return sparse_quadratic(span_of(hessian), span_of(gradient), span_of(w), alpha, enough, n_sweeps);
    }));
}

/// Some columns as rows by position: a dense matrix, one row after the other, or (values, columns, offsets).
nb::object take(const BoundColumns &self, Vector<std::int64_t> features) {
    const std::vector<std::int64_t> wanted = checked_features(features, n_columns(*self.columns));
    check_increasing(wanted);
    return std::visit([&](const auto &storage) -> nb::object {
        auto rows = unlocked([&] { return narrow_rows(storage, wanted); });
        if constexpr (requires { rows.offsets; })
            return nb::make_tuple(to_numpy(std::move(rows.values)), to_numpy(std::move(rows.columns)),
                                  to_numpy(std::move(rows.offsets)));
        else
            return nb::cast(to_numpy(std::move(rows)));
    }, *self.columns);
}

}  // namespace

void bind_coordinates(nb::module_ &m) {
    nb::class_<BoundColumns>(m, "Columns", "A matrix by columns, a copy.")
        .def_prop_ro("n_rows", [](const BoundColumns &c) { return n_rows(*c.columns); })
        .def("take", &take, nb::arg("features").noconvert())
        .def("products", [](const BoundColumns &c, Vector<std::int64_t> wanted, Vector<double> r,
                            int n_threads) {
            const std::vector<std::int64_t> asked = checked_features(wanted, n_columns(*c.columns));
            require_length(r.shape(0), n_rows(*c.columns), "r");
            return to_numpy(unlocked([&] {
                return column_products(*c.columns, asked, span_of(r), n_threads);
            }));
        }, nb::arg("wanted").noconvert(), nb::arg("r").noconvert(), nb::arg("n_threads"));
    m.def("columns", [](const BoundRows &rows, OptionalOrder order, int n_threads) {
        const Positions x(rows, order);
        return BoundColumns{unlocked([&] {
            return std::make_shared<const Columns>(columns_of(x.rows, x.order, n_threads));
        })};
    }, nb::arg("rows"), nb::arg("order").noconvert().none(), nb::arg("n_threads"));

    nb::class_<BoundCoordinates>(m, "Coordinates", "The domination loss, ready to move along columns.")
        .def("sweep", &sweep, nb::arg("w").noconvert(), nb::arg("features").noconvert(),
             nb::arg("penalty"), nb::arg("alpha"), nb::arg("curvature"))
        .def("measure", &measure, nb::arg("features").noconvert(), nb::arg("curvature"),
             nb::arg("n_threads"))
        .def("restart", [](BoundCoordinates &self, Vector<double> w) {
            const BoundCoordinates::Use state(self, "Coordinates");
            require_length(w.shape(0), state->n_features(), "w");
            unlocked([&] { state->restart(span_of(w)); return 0; });
        }, nb::arg("w").noconvert())
        .def("scores", [](BoundCoordinates &self) {
            const BoundCoordinates::Use state(self, "Coordinates");
            return to_numpy(state->scores());
        });
    m.def("coordinates", &coordinates, nb::arg("columns"), nb::arg("layering"),
          nb::arg("factors").noconvert().none());
    m.def("sparse_quadratic", &minimise_quadratic, nb::arg("hessian").noconvert(),
          nb::arg("gradient").noconvert(), nb::arg("w").noconvert(), nb::arg("alpha"), nb::arg("enough"),
          nb::arg("n_sweeps"));
    m.def("coordinate_steps", &coordinate_steps, nb::arg("gradient").noconvert(),
          nb::arg("hessian").noconvert(), nb::arg("bound").noconvert(), nb::arg("range").noconvert(),
          nb::arg("w").noconvert(), nb::arg("penalty"), nb::arg("alpha"));
}
