// Layers, margins and weights of a domination loss.
#include "bound_layering.hpp"

#include <cmath>

#include "module.hpp"

namespace {

std::vector<double> finite_copy(const std::optional<Vector<double>> &a, std::int64_t n,
                                const char *name) {
    if (!a) return {};
    require_length(a->shape(0), n, name);
    std::vector<double> copy = own_copy(*a);
    for (const double value : copy)
        if (!std::isfinite(value)) throw std::invalid_argument(std::string(name) + " is not finite");
    return copy;
}

std::vector<double> weights_copy(const std::optional<Vector<double>> &a, std::int64_t n,
                                 const char *name) {
    std::vector<double> copy = finite_copy(a, n, name);
    for (const double value : copy)
        if (value < 0.0) throw std::invalid_argument(std::string(name) + " is negative");
    return copy;
}

std::vector<std::int64_t> first_cells(std::span<const std::int32_t> n_levels) {
    std::vector<std::int64_t> first(n_levels.size() + 1, 0);
    for (std::size_t q = 0; q < n_levels.size(); ++q) first[q + 1] = first[q] + n_levels[q];
    return first;
}

BoundLayering layering(Vector<std::int64_t> offsets, Vector<std::int32_t> levels,
                       Vector<std::int32_t> n_levels, std::optional<Vector<double>> shift,
                       std::optional<Vector<double>> row_weight,
                       std::optional<Vector<double>> query_weight,
                       std::optional<Vector<double>> table, std::int64_t n_grades,
                       std::optional<Vector<std::int32_t>> grades) {
    check_offsets(span_of(offsets), levels.shape(0));
    check_levels(span_of(levels), span_of(offsets), span_of(n_levels));
    auto made = std::make_shared<Layering>();
    made->offsets = own_copy(offsets);
    made->levels = own_copy(levels);
    made->n_levels = own_copy(n_levels);
    made->first_cell = first_cells(made->n_levels);
    made->shift = finite_copy(shift, made->n_rows(), "shift");
    made->row_weight = weights_copy(row_weight, made->n_rows(), "row_weight");
    made->query_weight = weights_copy(query_weight, made->n_queries(), "query_weight");
    if (!table) return {std::move(made)};
    if (n_grades < 1 || n_grades > INT32_MAX) throw std::invalid_argument("n_grades is out of range");
    if (!grades) throw std::invalid_argument("a table of margins needs grades");
    require_length(grades->shape(0), made->n_cells(), "grades");
    for (const std::int32_t grade : span_of(*grades))
        if (grade < 0 || grade >= n_grades) throw std::invalid_argument("a grade is out of range");
    made->table = finite_copy(table, n_grades * n_grades, "table");
    made->n_grades = n_grades;
    made->grades = own_copy(*grades);
    return {std::move(made)};
}

}  // namespace

void bind_layering(nb::module_ &m) {
    nb::class_<BoundLayering>(m, "Layering", "Layers, margins and weights of a domination loss.");
    m.def("layering", &layering, nb::arg("offsets").noconvert(), nb::arg("levels").noconvert(),
          nb::arg("n_levels").noconvert(), nb::arg("shift").noconvert().none(),
          nb::arg("row_weight").noconvert().none(), nb::arg("query_weight").noconvert().none(),
          nb::arg("table").noconvert().none(), nb::arg("n_grades"),
          nb::arg("grades").noconvert().none());
}
