// Pairs weighted by what swapping them changes in a ranking.
#include <nanobind/stl/string.h>

#include "module.hpp"
#include "points.hpp"
#include "swaps.hpp"

namespace {

struct BoundSwaps {
    std::shared_ptr<const SwapProblem> problem;
};

struct BoundSwapPoint {
    std::shared_ptr<SwapPoint> point;
};

/// Copies of all arrays: what is checked stays as it was.
BoundSwaps swap_problem(Vector<std::int64_t> offsets, Vector<std::int32_t> depth, Vector<double> gain,
                        Vector<double> first, Vector<double> second, Vector<double> factor,
                        std::optional<Vector<double>> weight) {
    auto problem = std::make_shared<SwapProblem>();
    const auto n_rows = std::int64_t(gain.shape(0));
    problem->offsets = own_copy(offsets);
    check_offsets(problem->offsets, std::size_t(n_rows));
    require_length(depth.shape(0), problem->n_queries(), "depth");
    problem->depth = own_copy(depth);
    for (std::int64_t q = 0; q < problem->n_queries(); ++q)
        if (problem->depth[q] < 0 || problem->depth[q] > problem->length(q))
            throw std::invalid_argument("a depth is not within its query");
    const auto copied = [n_rows](const Vector<double> &values, const char *name) {
        require_length(values.shape(0), n_rows, name);
        return own_copy(values);
    };
    problem->gain = copied(gain, "gain");
    problem->first = copied(first, "first");
    problem->second = copied(second, "second");
    problem->factor = copied(factor, "factor");
    if (weight) problem->weight = copied(*weight, "weight");
    return {problem};
}

}  // namespace

void bind_swaps(nb::module_ &m) {
    nb::class_<BoundSwaps>(m, "SwapProblem", "Gains and places of the rows of a ranking.");
    m.def("swap_problem", &swap_problem, nb::arg("offsets").noconvert(), nb::arg("depth").noconvert(),
          nb::arg("gain").noconvert(), nb::arg("first").noconvert(), nb::arg("second").noconvert(),
          nb::arg("factor").noconvert(), nb::arg("weight").noconvert().none());
    m.def("swap_totals", [](const BoundSwaps &swaps) {
        SwapTotals totals = unlocked([&] { return swap_totals(*swaps.problem); });
        return nb::make_tuple(to_numpy(std::move(totals.weight)), to_numpy(std::move(totals.n_pairs)));
    }, nb::arg("problem"), nb::sig("def swap_totals(problem: SwapProblem) -> tuple[NDArray[numpy.float64], NDArray[numpy.int64]]"),
       "Sum of the weights of each query, and how many of its pairs have one.");
    auto point = nb::class_<BoundSwapPoint>(m, "SwapPoint", "Loss of the pairs of a ranking at given scores.");
    bind_visited_point(m, point, "swap_hessian_matrix", "swap_hessian_diagonal");
    m.def("swap_point", [](const BoundSwaps &swaps, const std::string &loss, double epsilon, Vector<double> z,
                           int n_threads) {
        require_length(z.shape(0), swaps.problem->n_rows(), "z");
        const PairLoss kind = pair_loss(loss, epsilon);
        return BoundSwapPoint{unlocked([&] {
            return std::make_shared<SwapPoint>(swaps.problem, kind, span_of(z), n_threads);
        })};
    }, nb::arg("problem"), nb::arg("loss"), nb::arg("epsilon"), nb::arg("z").noconvert(), nb::arg("n_threads"));
}
