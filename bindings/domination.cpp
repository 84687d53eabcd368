// The domination loss at given scores.
#include "domination.hpp"

#include "bound_layering.hpp"
#include "domination_hessian.hpp"
#include "module.hpp"

namespace {

struct BoundDomination {
    std::shared_ptr<DominationPoint> point;
    std::shared_ptr<const Layering> layering;  // what the point looks at
};

BoundDomination domination_point(const BoundLayering &layering, Vector<double> z, int n_threads) {
    require_length(z.shape(0), layering.layering->n_rows(), "z");
    return {unlocked([&] {
        return std::make_shared<DominationPoint>(*layering.layering, span_of(z), n_threads);
    }), layering.layering};
}

/// A NumPy view of something by position that keeps its point alive.
template <class Get>
auto view(const Get &get) {
    return [get](nb::handle_t<BoundDomination> self) {
        const std::span<const double> a = get(*nb::cast<const BoundDomination &>(self).point);
        return nb::ndarray<nb::numpy, const double, nb::ndim<1>>(a.data(), {a.size()}, self);
    };
}

using Explicit = std::vector<double> (*)(const Rows &, Order, const DominationPoint &, int);

/// A function of rows and point, whose result is flat.
auto bound(Explicit function) {
    return [function](const BoundRows &rows, OptionalOrder order, const BoundDomination &point,
                      int n_threads) {
        const Positions x(rows, order);
        require_length(point.point->gradient.size(), x.size(), "the point");
        return to_numpy(unlocked([&] { return function(x.rows, x.order, *point.point, n_threads); }));
    };
}

}  // namespace

void bind_domination(nb::module_ &m) {
    using Point = DominationPoint;
    nb::class_<BoundDomination>(m, "DominationPoint", "The domination loss at given scores.")
        .def_prop_ro("value", [](const BoundDomination &p) { return p.point->value; })
        .def_prop_ro("slope", [](const BoundDomination &p) { return p.point->slope; },
                     "The gradient times the scores.")
        .def_prop_ro("total_curvature",
                     [](const BoundDomination &p) { return p.point->total_curvature; })
        .def_prop_ro("gradient", view([](const Point &p) { return p.gradient.view(); }))
        .def_prop_ro("value_error", [](const BoundDomination &p) { return p.point->value_error; })
        .def_prop_ro("slope_error", [](const BoundDomination &p) { return p.point->slope_error; })
        .def_prop_ro("gradient_error",
                     [](const BoundDomination &p) { return p.point->gradient_error; })
        .def_prop_ro("rho", view([](const Point &p) { return p.rho(); }))
        .def("multiply", [](const BoundDomination &p, Vector<double> v, int n_threads) {
            require_length(v.shape(0), p.layering->n_rows(), "v");
            PageArray<double> out(v.shape(0), PageArray<double>::huge);
            unlocked([&] { p.point->multiply(span_of(v), {out.data(), out.size()}, n_threads); });
            return to_numpy(std::move(out));
        }, nb::arg("v").noconvert(), nb::arg("n_threads"))
        .def("dual", [](const BoundDomination &p, double t, int n_threads) {
            if (!(t >= 0.0 && t <= 1.0))
                throw std::invalid_argument("t must lie in [0, 1], got " + std::to_string(t));
            return unlocked([&] { return p.point->dual(t, n_threads); });
        }, nb::arg("t"), nb::arg("n_threads"));
    m.def("domination_hessian_matrix", bound(hessian_matrix), nb::arg("rows"),
          nb::arg("order").noconvert().none(), nb::arg("point"), nb::arg("n_threads"),
          "H in full, flattened.");
    m.def("domination_hessian_diagonal", bound(hessian_diagonal), nb::arg("rows"),
          nb::arg("order").noconvert().none(), nb::arg("point"), nb::arg("n_threads"),
          "The diagonal of H.");
    m.def("domination_point", &domination_point, nb::arg("layering"), nb::arg("z").noconvert(),
          nb::arg("n_threads"));
}
