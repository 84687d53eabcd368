// Matrices: views of NumPy arrays, checked once.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/tuple.h>

#include "arrays.hpp"
#include "module.hpp"
#include "row_checks.hpp"

namespace {

template <class Value>
BoundRows dense_rows(Matrix<Value> x) {
    // NumPy gives arrays without elements strides of 0.
    if (x.shape(0) > 0 && x.shape(1) > 1 && x.stride(1) != 1)
        throw std::invalid_argument("rows must be contiguous");
    const auto n_rows = static_cast<std::int64_t>(x.shape(0));
    const auto n_columns = static_cast<std::int64_t>(x.shape(1));
    const std::int64_t stride = n_rows > 1 ? x.stride(0) : n_columns;
    return {DenseRows<Value>{x.data(), stride, n_rows, n_columns}, nb::cast(x)};
}

template <class Value, class Index>
BoundRows csr_rows(Vector<Value> values, Vector<Index> columns, Vector<std::int64_t> offsets,
                   std::int64_t n_columns, std::int64_t n_checked) {
    const auto n_entries = static_cast<std::int64_t>(values.shape(0));
    const auto n_rows = static_cast<std::int64_t>(offsets.shape(0)) - 1;
    if (static_cast<std::int64_t>(columns.shape(0)) != n_entries)
        throw std::invalid_argument("values and columns differ in length");
    if (n_rows < 0 || offsets(0) != 0 || offsets(n_rows) > n_entries)
        throw std::invalid_argument("row offsets do not match the values");
    // Beyond 2^48 sizes in bytes would overflow, and no vector of weights could be held.
    if (n_columns < 0 || n_columns > std::int64_t(1) << 48)
        throw std::invalid_argument("n_columns must lie in [0, 2^48], got " + std::to_string(n_columns));
    if (n_checked < 0 || n_checked > n_rows)
        throw std::invalid_argument("n_checked must lie in [0, n_rows], got " + std::to_string(n_checked));
    unlocked([&] {
        for (std::int64_t i = n_checked; i < n_rows; ++i)
            if (offsets(i) > offsets(i + 1)) throw std::invalid_argument("row offsets decrease");
        for (std::int64_t k = std::max<std::int64_t>(0, offsets(n_checked)); k < offsets(n_rows); ++k)
            if (columns(k) < 0 || columns(k) >= n_columns)
                throw std::invalid_argument("a column index is out of range");
    });
    return {CsrRows<Value, Index>{values.data(), columns.data(), offsets.data(), n_rows, n_columns},
            nb::make_tuple(values, columns, offsets)};
}

}  // namespace

void bind_rows(nb::module_ &m) {
    nb::class_<BoundRows>(m, "Rows", "A view of a row-major matrix, dense or CSR.")
        .def_prop_ro("shape", [](const BoundRows &r) {
            return nb::make_tuple(n_rows(r.rows), n_columns(r.rows));
        });
    m.def("dense_rows", &dense_rows<float>, nb::arg("x").noconvert());
    m.def("dense_rows", &dense_rows<double>, nb::arg("x").noconvert());
    const auto csr = [&](auto function) {
        m.def("csr_rows", function, nb::arg("values").noconvert(), nb::arg("columns").noconvert(),
              nb::arg("offsets").noconvert(), nb::arg("n_columns"), nb::arg("n_checked") = 0,
              "n_checked: rows at the start that an earlier view has checked, and nobody has changed.");
    };
    csr(&csr_rows<float, std::int32_t>);
    csr(&csr_rows<double, std::int32_t>);
    csr(&csr_rows<float, std::int64_t>);
    csr(&csr_rows<double, std::int64_t>);
    m.def("first_non_finite",
          [](const BoundRows &rows, int n_threads) {
              return unlocked([&] { return first_non_finite(rows.rows, n_threads); });
          },
          nb::arg("rows"), nb::arg("n_threads") = 1,
          "(row, column) of the first NaN or infinity, or None.");
    m.def("columns_increase",
          [](const BoundRows &rows, int n_threads) {
              return unlocked([&] { return columns_increase(rows.rows, n_threads); });
          },
          nb::arg("rows"), nb::arg("n_threads") = 1,
          "Whether the column indices of every row increase strictly.");
}
