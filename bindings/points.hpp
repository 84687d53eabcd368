// What the points of all pair losses have in common in Python.
#pragma once
#include <sstream>

#include "arrays.hpp"
#include "pair_sweep.hpp"

/// Vectors keep their memory when they are moved, so `problem` may look at those beside it; a copy would look
/// at those of another.
struct BoundProblem {
    BoundProblem() = default;
    BoundProblem(BoundProblem &&) = default;
    BoundProblem(const BoundProblem &) = delete;
    BoundProblem &operator=(const BoundProblem &) = delete;

    PairProblem problem;
    std::vector<std::int64_t> offsets;
    std::vector<std::int32_t> n_levels, by_level;
    nb::object keep_alive;

    /// Python may write to the levels, which are too many to copy: a point looks at them once, when it is
    /// made, and they are checked then.
    const PairProblem &checked(const Vector<double> &z, const char *name = "z") const {
        require_length(z.shape(0), problem.n_rows(), name);
        check_levels(problem.levels, offsets, n_levels);
        return problem;
    }
};

struct BoundPoint {
    std::shared_ptr<PairPoint> point;
    nb::object problem;  // the arrays that the point looks at
};

inline PairLoss pair_loss(const std::string &name, double epsilon) {
    if (name == "squared_hinge") return {PairLoss::squared_hinge, epsilon};
    if (name == "hinge") return {PairLoss::hinge, epsilon};
    if (name != "huber") throw std::invalid_argument("there is no loss '" + name + "'");
    // Sums over a band are differences divided by ε: below, they would be nothing but rounding.
    if (!(epsilon >= 1e-10 && epsilon <= 1.0)) {
        std::ostringstream message;
        message << "epsilon must lie in [1e-10, 1], got " << epsilon;
        throw std::invalid_argument(message.str());
    }
    return {PairLoss::huber, epsilon};
}

/// A NumPy view of the gradient that keeps its point alive.
template <class Bound>
nb::ndarray<nb::numpy, const double, nb::ndim<1>> gradient_of(nb::handle_t<Bound> self) {
    const auto &gradient = nb::cast<const Bound &>(self).point->gradient;
    return {gradient.data(), {gradient.size()}, self};
}

template <class Bound>
void bind_point(nb::class_<Bound> &c) {
    c.def_prop_ro("value", [](const Bound &p) { return p.point->value; })
        .def_prop_ro("sum_of_slacks", [](const Bound &p) { return p.point->sum_of_slacks; })
        .def_prop_ro("n_violations", [](const Bound &p) { return p.point->n_violations; })
        .def_prop_ro("gradient", &gradient_of<Bound>);
}

/// How far rounding may have taken the numbers of a point.
template <class Bound>
void bind_errors(nb::class_<Bound> &c) {
    c.def_prop_ro("value_error", [](const Bound &p) { return p.point->value_error; })
        .def_prop_ro("slacks_error", [](const Bound &p) { return p.point->slacks_error; })
        .def_prop_ro("dual_error", [](const Bound &p) { return p.point->dual_error; })
        .def_prop_ro("gradient_error", [](const Bound &p) { return p.point->gradient_error; });
}

/// A point whose pairs are visited one by one: its curvature, times a vector and in full.
template <class Bound>
void bind_visited_point(nb::module_ &m, nb::class_<Bound> &c, const char *matrix, const char *diagonal) {
    bind_point(c);
    bind_errors(c);
    c.def_prop_ro("inner_slacks", [](const Bound &p) { return p.point->inner_slacks; });
    c.def_prop_ro("total_curvature", [](const Bound &p) { return p.point->total_curvature; });
    c.def("multiply", [](const Bound &p, Vector<double> v, int n_threads) {
        require_length(v.shape(0), std::int64_t(p.point->gradient.size()), "v");
        std::vector<double> out(v.shape(0));
        unlocked([&] { p.point->multiply(span_of(v), out, n_threads); });
        return to_numpy(std::move(out));
    }, nb::arg("v").noconvert(), nb::arg("n_threads"));
    const auto define = [&m](const char *name, auto function, const char *text) {
        m.def(name, [function](const BoundRows &rows, OptionalOrder order, const Bound &point, int n_threads) {
            const Positions x(rows, order);
            require_length(point.point->gradient.size(), x.size(), "the point");
            return to_numpy(unlocked([&] { return function(x.rows, x.order, *point.point, n_threads); }));
        }, nb::arg("rows"), nb::arg("order").noconvert().none(), nb::arg("point"), nb::arg("n_threads"), text);
    };
    define(matrix, [](const auto &...args) { return hessian_matrix(args...); }, "H in full, flattened.");
    define(diagonal, [](const auto &...args) { return hessian_diagonal(args...); }, "The diagonal of H.");
}
