// Scans of columns, and scaling within queries.
#include <nanobind/stl/optional.h>

#include "arrays.hpp"
#include "column_scan.hpp"
#include "module.hpp"
#include "scaling.hpp"

namespace {

/// What the scan found, by the names of ColumnScan.
nb::dict scan(const BoundRows &x, std::optional<Vector<double>> weight, int n_threads) {
    if (weight) require_length(weight->shape(0), n_rows(x.rows), "weight");
    ColumnScan found = unlocked([&] { return scan_columns(x.rows, span_of(weight), n_threads); });
    nb::dict out;
    out["mean"] = to_numpy(std::move(found.mean));
    out["variance"] = to_numpy(std::move(found.variance));
    out["low"] = to_numpy(std::move(found.low));
    out["high"] = to_numpy(std::move(found.high));
    out["norms"] = to_numpy(std::move(found.norms));
    out["largest"] = to_numpy(std::move(found.largest));
    out["n_nonzero"] = to_numpy(std::move(found.n_nonzero));
    out["n_missing"] = to_numpy(std::move(found.n_missing));
    out["checksum"] = found.checksum;
    return out;
}

/// What lies outside of a range, by the names of ColumnStrays.
nb::dict strays(const BoundRows &x, Vector<double> floor, Vector<double> ceiling, int n_threads) {
    require_length(floor.shape(0), n_columns(x.rows), "floor");
    require_length(ceiling.shape(0), n_columns(x.rows), "ceiling");
    ColumnStrays found =
        unlocked([&] { return find_strays(x.rows, span_of(floor), span_of(ceiling), n_threads); });
    nb::dict out;
    out["n_outside"] = to_numpy(std::move(found.n_outside));
    out["excess"] = to_numpy(std::move(found.excess));
    out["worst"] = to_numpy(std::move(found.worst));
    out["worst_row"] = to_numpy(std::move(found.worst_row));
    out["first_missing"] = to_numpy(std::move(found.first_missing));
    return out;
}

nb::object scale_queries(const BoundRows &x, Vector<std::int64_t> offsets, OptionalOrder order,
                         int n_threads) {
    const QueryView queries = checked_queries(offsets, order, std::size_t(n_rows(x.rows)));
    return std::visit([&](const auto &view) {
            using Value = typename std::decay_t<decltype(view)>::value_type;
            std::int64_t n_entries = view.n_rows * view.n_columns;
            if constexpr (requires { view.offsets; }) n_entries = view.offsets[view.n_rows];
            std::vector<Value> out(n_entries);
            unlocked([&] {
                divide_by_query_range<Value>(x.rows, queries.offsets, queries.order, out.data(),
                                             n_threads);
            });
            return nb::cast(to_numpy(std::move(out)));
        }, x.rows);
}

}  // namespace

void bind_scaling(nb::module_ &m) {
    m.def("scan_columns", &scan, nb::arg("rows"), nb::arg("weight").noconvert().none(), nb::arg("n_threads"),
          "Moments, ranges, norms and counts of every column, absent entries being 0, and the checksum of the rows.");
    m.def("find_strays", &strays, nb::arg("rows"), nb::arg("floor").noconvert(), nb::arg("ceiling").noconvert(),
          nb::arg("n_threads"), "Values of every column below its floor, above its ceiling, or missing.");
    m.def("scale_queries", &scale_queries, nb::arg("rows"), nb::arg("offsets").noconvert(),
          nb::arg("order").noconvert().none(), nb::arg("n_threads"),
          "The stored entries, each divided by the range of its column within its query.");
}
