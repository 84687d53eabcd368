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

template <class Value>
BoundRows csr_rows(Vector<Value> values, Vector<std::int32_t> columns, Vector<std::int64_t> offsets,
                   std::int64_t n_columns, std::int64_t n_checked) {
    unlocked([&] {
        check_csr(values.shape(0), span_of(columns), span_of(offsets), n_columns, n_checked);
    });
    const auto n_rows = static_cast<std::int64_t>(offsets.shape(0)) - 1;
    return {CsrRows<Value>{values.data(), columns.data(), offsets.data(), n_rows, n_columns},
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
    csr(&csr_rows<float>);
    csr(&csr_rows<double>);
    m.def("first_non_finite", [](const BoundRows &rows, int n_threads) {
              return unlocked([&] { return first_non_finite(rows.rows, n_threads); });
          },
          nb::arg("rows"), nb::arg("n_threads") = 1,
          "(row, column) of the first NaN or infinity, or None.");
    m.def("columns_increase", [](const BoundRows &rows, int n_threads) {
              return unlocked([&] { return columns_increase(rows.rows, n_threads); });
          },
          nb::arg("rows"), nb::arg("n_threads") = 1,
          "Whether the column indices of every row increase strictly.");
}
