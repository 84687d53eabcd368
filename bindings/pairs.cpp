// Pair losses over queries.
#include <nanobind/stl/string.h>

#include "module.hpp"
#include "points.hpp"
#include "simd.hpp"

namespace {

BoundProblem pair_problem(Vector<std::int64_t> offsets, Vector<std::int32_t> levels,
                          Vector<std::int32_t> n_levels, std::optional<Vector<double>> row_weight,
                          std::optional<Vector<double>> query_weight,
                          std::optional<Vector<double>> gain, bool adjacent) {
    check_offsets(span_of(offsets), levels.shape(0));
    check_levels(span_of(levels), span_of(offsets), span_of(n_levels));
    const auto n = std::int64_t(levels.shape(0)), n_queries = std::int64_t(n_levels.shape(0));
    if (row_weight) require_length(row_weight->shape(0), n, "row_weight");
    if (query_weight) require_length(query_weight->shape(0), n_queries, "query_weight");
    if (gain) require_length(gain->shape(0), n, "gain");
    for (std::size_t q = 0; q < n_levels.shape(0); ++q) {
        const std::int64_t length = offsets(q + 1) - offsets(q);
        if (length > INT32_MAX) throw std::invalid_argument("a query has more than 2^31 - 1 rows");
    }
    BoundProblem bound;
    bound.offsets.assign(offsets.data(), offsets.data() + offsets.shape(0));
    bound.n_levels.assign(n_levels.data(), n_levels.data() + n_levels.shape(0));
    bound.keep_alive = nb::make_tuple(levels, row_weight, query_weight, gain);
    bound.problem = {bound.offsets, span_of(levels), bound.n_levels, span_of(row_weight),
                     span_of(query_weight), {}, span_of(gain), adjacent};
    bound.by_level = level_order(bound.problem);
    bound.problem.by_level = bound.by_level;
    return bound;
}

}  // namespace

void bind_pairs(nb::module_ &m) {
    nb::class_<BoundProblem>(m, "PairProblem", "Queries, levels and weights of a pair loss.");
    m.def("pair_problem", &pair_problem, nb::arg("offsets").noconvert(),
          nb::arg("levels").noconvert(), nb::arg("n_levels").noconvert(),
          nb::arg("row_weight").noconvert().none(), nb::arg("query_weight").noconvert().none(),
          nb::arg("gain").noconvert().none(), nb::arg("adjacent"));

    auto point = nb::class_<BoundPoint>(m, "PairPoint", "A pair loss at given scores.");
    bind_point(point);
    bind_errors(point);
    point.def_prop_ro("inner_slacks", [](const BoundPoint &p) { return p.point->inner_slacks; });
    point.def_prop_ro("total_curvature",
                      [](const BoundPoint &p) { return p.point->total_curvature; });
    point.def("multiply", [](const BoundPoint &p, Vector<double> v, int n_threads) {
        require_length(v.shape(0), std::int64_t(p.point->gradient.size()), "v");
        std::vector<double> out(v.shape(0));
        unlocked([&] { p.point->multiply(span_of(v), out, n_threads); });
        return to_numpy(std::move(out));
    }, nb::arg("v").noconvert(), nb::arg("n_threads"));
    m.def("pair_point", [](nb::handle_t<BoundProblem> problem, const std::string &loss,
                           double epsilon, Vector<double> z, const BoundPoint *near, int n_threads) {
        if (near && !near->problem.is(problem))
            throw std::invalid_argument("near is a point of another problem");
        const PairPoint *guess = near ? near->point.get() : nullptr;
        const PairProblem &pairs = nb::cast<const BoundProblem &>(problem).checked(z);
        const PairLoss kind = pair_loss(loss, epsilon);
        return BoundPoint{unlocked([&] {
            return std::make_shared<PairPoint>(pairs, kind, span_of(z), guess, n_threads);
        }), nb::borrow(problem)};
    }, nb::arg("problem"), nb::arg("loss"), nb::arg("epsilon"), nb::arg("z").noconvert(),
       nb::arg("near").none(), nb::arg("n_threads"));
}
