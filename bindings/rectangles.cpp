// Dual variables of pairs, one rectangle a query.
#include "rectangles.hpp"

#include <cmath>

#include "arrays.hpp"
#include "module.hpp"

namespace {

struct BoundRectangles {
    std::shared_ptr<const Rectangles> layout;
};

using Buffer = nb::ndarray<double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

std::span<double> writable(Buffer &a) { return {a.data(), a.shape(0)}; }

/// Weights of a pair are products of these: finite and >= 0.
void check_weights(std::span<const double> weights, std::int64_t n, const char *name) {
    if (weights.empty()) return;
    require_length(weights.size(), n, name);
    for (const double weight : weights)
        if (!(weight >= 0.0) || !std::isfinite(weight))
            throw std::invalid_argument(std::string(name) + " must be finite and >= 0");
}

BoundRectangles rectangles(Vector<std::int64_t> offsets, Vector<std::int32_t> levels,
                           Vector<std::int32_t> n_levels, Vector<std::int64_t> chosen,
                           std::optional<Vector<double>> row_weight,
                           std::optional<Vector<double>> query_weight, double C) {
    check_offsets(span_of(offsets), levels.shape(0));
    check_levels(span_of(levels), span_of(offsets), span_of(n_levels));
    check_weights(span_of(row_weight), std::int64_t(levels.shape(0)), "row_weight");
    check_weights(span_of(query_weight), std::int64_t(n_levels.shape(0)), "query_weight");
    if (!(C > 0.0) || !std::isfinite(C)) throw std::invalid_argument("C must be finite and > 0");
    std::int64_t last = -1;
    for (const std::int64_t q : span_of(chosen)) {
        if (q <= last || q >= std::int64_t(n_levels.shape(0)))
            throw std::invalid_argument("chosen must increase and name queries that exist");
        if (n_levels(std::size_t(q)) < 2) throw std::invalid_argument("a chosen query has no pairs");
        last = q;
    }
    // With the GIL: another thread of Python might write to what has been checked.
    return {std::make_shared<const Rectangles>(make_rectangles(
        span_of(offsets), span_of(levels), span_of(chosen), span_of(row_weight), span_of(query_weight), C))};
}

template <class Array>
void check_entries(const BoundRectangles &self, const Array &values, const char *name) {
    require_length(values.shape(0), self.layout->n_entries(), name);
}

void check_scores_of(const BoundRectangles &self, const Vector<double> &z, const char *name) {
    require_length(z.shape(0), self.layout->n_positions, name);
}

void check_rho(const BoundRectangles &self, const Vector<double> &rho) {
    require_length(rho.shape(0), self.layout->size(), "rho");
    for (const double value : span_of(rho))
        if (!(value > 0.0) || !std::isfinite(value))
            throw std::invalid_argument("rho must be finite and > 0");
}

nb::tuple loss(const BoundRectangles &self, Vector<double> z, Vector<double> y, Vector<double> rho,
               int n_threads) {
    check_scores_of(self, z, "z");
    check_entries(self, y, "y");
    check_rho(self, rho);
    ProximalLoss found = unlocked([&] {
        return proximal_loss(*self.layout, span_of(z), span_of(y), span_of(rho), n_threads);
    });
    return nb::make_tuple(found.value, found.curvature, to_numpy(std::move(found.gradient)));
}

auto curvature(const BoundRectangles &self, Vector<double> z, Vector<double> y, Vector<double> rho,
               Vector<double> v, int n_threads) {
    check_scores_of(self, z, "z");
    check_scores_of(self, v, "v");
    check_entries(self, y, "y");
    check_rho(self, rho);
    return to_numpy(unlocked([&] {
        return proximal_curvature(*self.layout, span_of(z), span_of(y), span_of(rho), span_of(v), n_threads);
    }));
}

void point(const BoundRectangles &self, Vector<double> z, Vector<double> y, Vector<double> rho, Buffer alpha,
           int n_threads) {
    check_scores_of(self, z, "z");
    check_entries(self, y, "y");
    check_entries(self, alpha, "alpha");
    check_rho(self, rho);
    unlocked([&] {
        proximal_point(*self.layout, span_of(z), span_of(y), span_of(rho), writable(alpha), n_threads);
        return 0;
    });
}

auto relaxed(const BoundRectangles &self, Vector<double> alpha, Vector<double> a, Buffer y, double over,
             int n_threads) {
    check_entries(self, alpha, "alpha");
    check_entries(self, a, "a");
    check_entries(self, y, "y");
    return to_numpy(unlocked([&] {
        return relax(*self.layout, span_of(alpha), span_of(a), writable(y), over, n_threads);
    }));
}

double settled(const BoundRectangles &self, std::int64_t rectangle, std::optional<Vector<double>> s,
               double a_of_m, double a_of_s, double y_of_m, double y_of_s, Buffer a, Buffer y) {
    if (rectangle < 0 || rectangle >= self.layout->size())
        throw std::invalid_argument("there is no such rectangle");
    check_entries(self, a, "a");
    check_entries(self, y, "y");
    const auto k = std::size_t(rectangle);
    if (s) require_length(s->shape(0), self.layout->offsets[k + 1] - self.layout->offsets[k], "s");
    return unlocked([&] {
        return settle(*self.layout, rectangle, span_of(s), {a_of_m, a_of_s, y_of_m, y_of_s}, writable(a),
                      writable(y));
    });
}

/// One array for each of the sums, by rectangle.
nb::tuple sums(const BoundRectangles &self, Vector<double> z, Vector<double> alpha, Vector<double> a,
               Vector<double> y, Vector<double> rho, int n_threads) {
    check_scores_of(self, z, "z");
    check_entries(self, alpha, "alpha");
    check_entries(self, a, "a");
    check_entries(self, y, "y");
    check_rho(self, rho);
    const std::vector<CoupledSums> found = unlocked([&] {
        return coupled_sums(*self.layout, span_of(z), span_of(alpha), span_of(a), span_of(y), span_of(rho),
                            n_threads);
    });
    std::vector<double> parts[6];
    for (const CoupledSums &one : found) {
        const double values[6] = {one.sum, one.distance, one.slope, one.square, one.lowest, one.residual};
        for (int i = 0; i < 6; ++i) parts[i].push_back(values[i]);
    }
    return nb::make_tuple(to_numpy(std::move(parts[0])), to_numpy(std::move(parts[1])),
                          to_numpy(std::move(parts[2])), to_numpy(std::move(parts[3])),
                          to_numpy(std::move(parts[4])), to_numpy(std::move(parts[5])));
}

/// A NumPy view that keeps its rectangles alive, and cannot be written to.
template <class T>
auto view_of(std::vector<T> Rectangles::*member) {
    return [member](nb::handle_t<BoundRectangles> self) {
        const std::vector<T> &values = (*nb::cast<const BoundRectangles &>(self).layout).*member;
        return nb::ndarray<nb::numpy, const T, nb::ndim<1>>(values.data(), {values.size()}, self);
    };
}

}  // namespace

void bind_rectangles(nb::module_ &m) {
    nb::class_<BoundRectangles>(m, "Rectangles", "Where the dual variables of pairs lie in a flat buffer.")
        .def_prop_ro("upper", view_of(&Rectangles::upper), nb::rv_policy::automatic, "Positions of the rows of all rectangles.")
        .def_prop_ro("lower", view_of(&Rectangles::lower), nb::rv_policy::automatic, "Positions of the columns of all rectangles.")
        .def_prop_ro("n_pairs", view_of(&Rectangles::n_pairs), nb::rv_policy::automatic, "Pairs of each row: a prefix of the columns.")
        .def_prop_ro("first_row", view_of(&Rectangles::first_row), nb::rv_policy::automatic)
        .def_prop_ro("first_column", view_of(&Rectangles::first_column), nb::rv_policy::automatic)
        .def_prop_ro("offsets", view_of(&Rectangles::offsets), nb::rv_policy::automatic, "Where each rectangle begins, and the end.")
        .def_prop_ro("row_bound", view_of(&Rectangles::row_bound), nb::rv_policy::automatic)
        .def_prop_ro("column_bound", view_of(&Rectangles::column_bound), nb::rv_policy::automatic)
        .def("loss", &loss, nb::arg("z").noconvert(), nb::arg("y").noconvert(), nb::arg("rho").noconvert(),
             nb::arg("n_threads"), "(value, curvature, gradient by position) of the loss that is a maximum over alpha.")
        .def("curvature", &curvature, nb::arg("z").noconvert(), nb::arg("y").noconvert(),
             nb::arg("rho").noconvert(), nb::arg("v").noconvert(), nb::arg("n_threads"))
        .def("point", &point, nb::arg("z").noconvert(), nb::arg("y").noconvert(), nb::arg("rho").noconvert(),
             nb::arg("alpha").noconvert(), nb::arg("n_threads"), "Writes the maximiser into alpha.")
        .def("coefficients", [](const BoundRectangles &self, Vector<double> alpha, int n_threads) {
            check_entries(self, alpha, "alpha");
            return to_numpy(unlocked([&] { return dual_coefficients(*self.layout, span_of(alpha), n_threads); }));
        }, nb::arg("alpha").noconvert(), nb::arg("n_threads"), "Row sums less column sums, by position.")
        .def("relax", &relaxed, nb::arg("alpha").noconvert(), nb::arg("a").noconvert(),
             nb::arg("y").noconvert(), nb::arg("over"), nb::arg("n_threads"))
        .def("squared_norms", [](const BoundRectangles &self, Vector<double> values, int n_threads) {
            check_entries(self, values, "values");
            return to_numpy(unlocked([&] { return squared_norms(*self.layout, span_of(values), n_threads); }));
        }, nb::arg("values").noconvert(), nb::arg("n_threads"))
        .def("settle", &settled, nb::arg("rectangle"), nb::arg("s").noconvert().none(), nb::arg("a_of_m"),
             nb::arg("a_of_s"), nb::arg("y_of_m"), nb::arg("y_of_s"), nb::arg("a").noconvert(),
             nb::arg("y").noconvert())
        .def("sums", &sums, nb::arg("z").noconvert(), nb::arg("alpha").noconvert(), nb::arg("a").noconvert(),
             nb::arg("y").noconvert(), nb::arg("rho").noconvert(), nb::arg("n_threads"));
    m.def("rectangles", &rectangles, nb::arg("offsets").noconvert(), nb::arg("levels").noconvert(),
          nb::arg("n_levels").noconvert(), nb::arg("chosen").noconvert(), nb::arg("row_weight").noconvert().none(),
          nb::arg("query_weight").noconvert().none(), nb::arg("C"));
}
