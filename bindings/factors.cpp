// Duals of low rank.
#include "factor_descent.hpp"

#include <nanobind/stl/string.h>

#include <cmath>

#include "arrays.hpp"
#include "exclusive.hpp"
#include "module.hpp"

namespace {

using BoundFactors = Exclusive<FactorDescent>;

Constraint constraint_of(const std::string &name) {
    if (name == "box") return Constraint::box;
    if (name == "ball") return Constraint::ball;
    throw std::invalid_argument("there is no constraint '" + name + "'");
}

// Copies: another thread of Python may write to the arrays once the GIL is let go of.
template <class T>
std::vector<T> copied(const Vector<T> &values) {
    return {span_of(values).begin(), span_of(values).end()};
}
template <class T>
std::vector<T> copied(const std::optional<Vector<T>> &values) {
    return values ? copied(*values) : std::vector<T>();
}

void check_finite(std::span<const double> values, const char *what) {
    for (const double value : values)
        if (!std::isfinite(value)) throw std::invalid_argument(std::string(what) + " is NaN or infinite");
}

void check_factors(const Vector<double> &factors, std::int64_t n_rows, std::int64_t n_factors) {
    if (n_factors < 1 || n_factors > INT32_MAX)
        throw std::invalid_argument("n_factors must lie in [1, 2^31), got " + std::to_string(n_factors));
    if (n_rows > INT64_MAX / n_factors) throw std::invalid_argument("there are too many rows for n_factors");
    require_length(factors.shape(0), n_rows * n_factors, "factors");
    check_finite(span_of(factors), "a factor");
}

/// Rows of the order, each at most once.
void check_distinct(Order order, std::int64_t n_rows) {
    std::vector<bool> is_known(order.empty() ? 0 : std::size_t(n_rows), false);
    for (const std::int64_t row : order) {
        if (is_known[row])
            throw std::invalid_argument("order names row " + std::to_string(row) + " twice");
        is_known[row] = true;
    }
}

BoundFactors factor_descent(const BoundRows &rows, OptionalOrder order, Vector<std::int64_t> offsets,
                            Vector<std::int32_t> levels, Vector<std::int32_t> n_levels,
                            std::optional<Vector<double>> scale, Vector<double> bound,
                            const std::string &constraint, std::int64_t n_factors, Vector<double> factors,
                            std::uint64_t seed) {
    const Positions x(rows, order);
    const std::int64_t n = x.size();
    check_distinct(x.order, n_rows(rows.rows));
    check_offsets(span_of(offsets), std::size_t(n));
    check_levels(span_of(levels), span_of(offsets), span_of(n_levels));
    if (scale) require_length(scale->shape(0), n_columns(rows.rows), "scale");
    check_finite(span_of(scale), "a scale");
    require_length(bound.shape(0), n, "bound");
    check_finite(span_of(bound), "a bound");
    for (const double b : span_of(bound))
        if (b < 0.0) throw std::invalid_argument("a bound is negative");
    check_factors(factors, n, n_factors);
    FactorProblem problem{copied(levels), copied(n_levels), copied(bound), n_factors, constraint_of(constraint)};
    auto positions = copied(order), by_query = copied(offsets);
    auto start = copied(factors), stretch = copied(scale);
    return unlocked([&] {
        return BoundFactors(FactorDescent(
            QueryRows(x.rows, std::move(positions), std::move(by_query), std::move(stretch)),
            std::move(problem), std::move(start), seed));
    });
}

}  // namespace

void bind_factors(nb::module_ &m) {
    nb::class_<BoundFactors>(m, "FactorDescent", "Duals of low rank on their way down.")
        .def("epoch", [](BoundFactors &self, double momentum, int n_threads) {
            if (!std::isfinite(momentum)) throw std::invalid_argument("momentum is NaN or infinite");
            const BoundFactors::Use descent(self, "FactorDescent");
            return unlocked([&] { return descent->epoch(momentum, n_threads); });
        }, nb::arg("momentum"), nb::arg("n_threads"))
        .def("accept", [](BoundFactors &self) { BoundFactors::Use(self, "FactorDescent")->accept(); })
        .def("reject", [](BoundFactors &self) { BoundFactors::Use(self, "FactorDescent")->reject(); })
        .def("shrink", [](BoundFactors &self) { BoundFactors::Use(self, "FactorDescent")->shrink(); })
        .def("value", [](BoundFactors &self) { return BoundFactors::Use(self, "FactorDescent")->value(); })
        .def("factors", [](BoundFactors &self) {
            return to_numpy(std::vector<double>(BoundFactors::Use(self, "FactorDescent")->factors()));
        })
        .def("weights", [](BoundFactors &self) {
            return to_numpy(std::vector<double>(BoundFactors::Use(self, "FactorDescent")->weights()));
        })
        .def("linear_decrease", [](BoundFactors &self, int n_threads) {
            const BoundFactors::Use descent(self, "FactorDescent");
            return unlocked([&] { return descent->linear_decrease(n_threads); });
        }, nb::arg("n_threads"));
    m.def("factor_descent", &factor_descent, nb::keep_alive<0, 1>(), nb::arg("rows"),
          nb::arg("order").noconvert().none(), nb::arg("offsets").noconvert(), nb::arg("levels").noconvert(),
          nb::arg("n_levels").noconvert(), nb::arg("scale").noconvert().none(), nb::arg("bound").noconvert(),
          nb::arg("constraint"), nb::arg("n_factors"), nb::arg("factors").noconvert(), nb::arg("seed"));
}
