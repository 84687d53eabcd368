// Problems of pairs, and Hessians of points, as Python sees them.
#pragma once
#include "arrays.hpp"
#include "pair_sweep.hpp"

/// Vectors keep their memory when they are moved, so `problem` may look at those beside it; a copy
/// would look at those of another.
struct BoundProblem {
    BoundProblem() = default;
    BoundProblem(BoundProblem &&) = default;

    PairProblem problem;
    std::vector<Index> offsets;
    std::vector<std::int32_t> n_levels, by_level;

    /// Python may write to the levels, which are too many to copy: a point looks at them once, when
    /// it is made, and they are checked then.
    const PairProblem &checked(Doubles z, const char *name = "z") const {
        require_length(z, problem.n_rows(), name);
        check_levels(problem);
        return problem;
    }
};

inline void check_published(const PairProblem &pairs) {
    require(pairs.gain.empty() && !pairs.adjacent,
            "the published methods count all pairs, without gains");
}

/// ∇²L v at a point, and H = Xᵀ∇²L X, in full and its diagonal.
template <class Point>
void bind_curvature(nb::module_ &m, nb::class_<Point> &c) {
    def(c, "multiply(v)", unlocked([](const Point &point, Doubles v, int n_threads) {
        require_length(v, std::ssize(point.gradient), "v");
        return filled(PageArray<double>(v.size(), huge_pages), [&](auto out) {
            point.multiply(v, out, n_threads);
        });
    }), nb::arg("n_threads") = 1);
    const auto bind = [&m](const char *signature, auto function, const char *text) {
        def(m, signature, unlocked([function](const Rows &rows, OptionalOrder order,
                                              const Point &point, int n_threads) {
            const Positions x = positions(rows, order);
            require_length(point.gradient, x.n, "the point");
            return function(x, point, n_threads);
        }), text);
    };
    bind("hessian_matrix(rows, order, point, n_threads)",
         [](auto &...of) { return hessian_matrix(of...); }, "H in full, flattened.");
    bind("hessian_diagonal(rows, order, point, n_threads)",
         [](auto &...of) { return hessian_diagonal(of...); }, "The diagonal of H, or an estimate.");
}
