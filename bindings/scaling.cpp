// What the columns range over.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include "arrays.hpp"
#include "module.hpp"
#include "scaling.hpp"

namespace {

using Doubles = nb::ndarray<nb::numpy, double, nb::ndim<1>>;

std::tuple<Doubles, Doubles, Doubles, Doubles> summarise(const BoundRows &x,
                                                         std::optional<Vector<double>> weight,
                                                         int n_threads) {
    if (weight && static_cast<std::int64_t>(weight->size()) != n_rows(x.rows))
        throw std::invalid_argument("there must be one weight per row");
    ColumnSummary summary =
        unlocked([&] { return summarise_columns(x.rows, span_of(weight), n_threads); });
    return {to_numpy(std::move(summary.mean)), to_numpy(std::move(summary.variance)),
            to_numpy(std::move(summary.minimum)), to_numpy(std::move(summary.maximum))};
}

nb::object scale_queries(const BoundRows &x, Vector<std::int64_t> offsets, OptionalOrder order,
                         int n_threads) {
    const QueryView queries = checked_queries(offsets, order, std::size_t(n_rows(x.rows)));
    return std::visit(
        [&](const auto &view) {
            using Value = typename std::decay_t<decltype(view)>::value_type;
            std::int64_t n_entries = view.n_rows * view.n_columns;
            if constexpr (requires { view.offsets; }) n_entries = view.offsets[view.n_rows];
            std::vector<Value> out(static_cast<std::size_t>(n_entries));
            unlocked([&] {
                divide_by_query_range<Value>(x.rows, queries.offsets, queries.order, out.data(),
                                             n_threads);
            });
            return nb::cast(to_numpy(std::move(out)));
        },
        x.rows);
}

}  // namespace

void bind_scaling(nb::module_ &m) {
    m.def("summarise_columns", &summarise, nb::arg("rows"), nb::arg("weight").noconvert().none(),
          nb::arg("n_threads"),
          "(mean, variance, minimum, maximum) of every column, absent entries being 0.");
    m.def("count_nonzero",
          [](const BoundRows &x, int n_threads) {
              return to_numpy(unlocked([&] { return count_nonzero(x.rows, n_threads); }));
          },
          nb::arg("rows"), nb::arg("n_threads"), "How many values of every column are not 0.");
    m.def("scale_queries", &scale_queries, nb::arg("rows"), nb::arg("offsets").noconvert(),
          nb::arg("order").noconvert().none(), nb::arg("n_threads"),
          "The stored entries, each divided by the range of its column within its query.");
}
