// Problems of pairs, and Hessians of points, as Python sees them.
#pragma once
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
    std::vector<Index> offsets;
    std::vector<std::int32_t> n_levels, by_level;
    nb::object keep_alive;

    /// Python may write to the levels, which are too many to copy: a point looks at them once, when it is
    /// made, and they are checked then.
    const PairProblem &checked(const DoubleArray &z, const char *name = "z") const {
        require_length(z.shape(0), problem.n_rows(), name);
        check_levels(problem.levels, offsets, n_levels);
        return problem;
    }
};

inline void check_published(const PairProblem &pairs) {
    require(pairs.gain.empty() && !pairs.adjacent, "the published methods count all pairs, without gains");
}

/// H = Xᵀ∇²L X of a point, in full and its diagonal, under these names.
template <class Point>
void bind_hessian(nb::module_ &m, const char *matrix, const char *diagonal, const char *text_of_diagonal) {
    using Function = std::vector<double> (*)(const Positions &, const Point &, int);
    const auto bind = [&m](const char *name, Function function, const char *text) {
        def(m, name, [function](const BoundRows &rows, OptionalOrder order, const Point &point, int n_threads) {
            const Positions x = positions(rows, order);
            require_length(point.gradient.size(), x.n, "the point");
            return to_numpy(unlocked([&] { return function(x, point, n_threads); }));
        }, {"rows", "order", "point", "n_threads"}, text);
    };
    bind(matrix, [](const Positions &x, const Point &point, int n_threads) {
        return hessian_matrix(x, point, n_threads);
    }, "H in full, flattened.");
    bind(diagonal, [](const Positions &x, const Point &point, int n_threads) {
        return hessian_diagonal(x, point, n_threads);
    }, text_of_diagonal);
}
