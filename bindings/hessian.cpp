// Products with the rows, Hessians, their factors.
#include <nanobind/stl/tuple.h>

#include "cholesky.hpp"
#include "hessian.hpp"
#include "module.hpp"
#include "points.hpp"
#include "simd.hpp"


void bind_products(nb::module_ &m) {
    m.def("scores", [](const BoundRows &rows, Vector<double> w, OptionalOrder order, int n_threads) {
        require_length(w.shape(0), n_columns(rows.rows), "w");
        const Positions x(rows, order);
        // Not zeroed first; from the allocator, which keeps what was freed, up to the size where it never
        // does, then in large pages. New memory takes longer than the products of short rows.
        PageArray<double> out(x.size(), 32 << 20);
        unlocked([&] { multiply(x.rows, x.order, span_of(w), {out.data(), out.size()}, n_threads); });
        return to_numpy(std::move(out));
    }, nb::arg("rows"), nb::arg("w").noconvert(), nb::arg("order").noconvert().none(),
       nb::arg("n_threads"), "X w, by position.");
    m.def("longest_sums", [](const BoundRows &rows) {
        const LongestSums found = longest_sums(rows.rows);
        return nb::make_tuple(found.score, found.slope);
    }, nb::arg("rows"), "Terms of the longest sums that scores, and slopes in w, are made of.");
    m.def("gradient", [](const BoundRows &rows, Vector<double> r, OptionalOrder order, int n_threads) {
        const Positions x(rows, order);
        require_length(r.shape(0), x.size(), "r");
        std::vector<double> out(n_columns(rows.rows));
        unlocked([&] { multiply_transposed(x.rows, x.order, span_of(r), out, n_threads); });
        return to_numpy(std::move(out));
    }, nb::arg("rows"), nb::arg("r").noconvert(), nb::arg("order").noconvert().none(),
       nb::arg("n_threads"), "Transposed X times r, r by position.");
}

void bind_hessian(nb::module_ &m) {
    m.def("hessian_product", [](const BoundRows &rows, OptionalOrder order,
                                     const BoundPoint &point, Vector<double> v, int n_threads) {
        const Positions x(rows, order);
        require_length(point.point->gradient.size(), x.size(), "the point");
        require_length(v.shape(0), n_columns(rows.rows), "v");
        std::vector<double> out(v.shape(0));
        PageArray<double> image(point.point->gradient.size(), PageArray<double>::huge);
        unlocked([&] {
            hessian_product(x.rows, x.order, *point.point, span_of(v), out,
                            {image.data(), image.size()}, n_threads);
        });
        return std::make_tuple(to_numpy(std::move(out)), to_numpy(std::move(image)));
    }, nb::arg("rows"), nb::arg("order").noconvert().none(), nb::arg("point"),
       nb::arg("v").noconvert(), nb::arg("n_threads"), "(H v, X v) in one pass over the rows.");
    const auto dense = [](const BoundRows &rows, const OptionalOrder &order,
                               const BoundPoint &point, int n_threads, auto function) {
        const Positions x(rows, order);
        require_length(point.point->gradient.size(), x.size(), "the point");
        const nb::gil_scoped_release release;
        return function(x.rows, x.order, *point.point, n_threads);
    };
    using Function = std::vector<double> (*)(const Rows &, Order, const PairPoint &, int);
    m.def("hessian_matrix", [dense](const BoundRows &rows, OptionalOrder order,
                                    const BoundPoint &point, int n_threads) {
        return to_numpy(dense(rows, order, point, n_threads, Function(hessian_matrix)));
    }, nb::arg("rows"), nb::arg("order").noconvert().none(), nb::arg("point"), nb::arg("n_threads"),
       "H in full, flattened.");
    m.def("hessian_diagonal", [dense](const BoundRows &rows, OptionalOrder order,
                                      const BoundPoint &point, int n_threads) {
        return to_numpy(dense(rows, order, point, n_threads, Function(hessian_diagonal)));
    }, nb::arg("rows"), nb::arg("order").noconvert().none(), nb::arg("point"), nb::arg("n_threads"),
       "An estimate of the diagonal of H.");
    m.def("cholesky_factor", [](Vector<double> matrix, std::int64_t n) {
        check_square(matrix, n, "matrix");
        std::vector<double> factor(matrix.data(), matrix.data() + matrix.shape(0));
        const bool is_definite = unlocked([&] { return cholesky_factor(factor, n); });
        return is_definite ? nb::cast(to_numpy(std::move(factor))) : nb::none();
    }, nb::arg("matrix").noconvert(), nb::arg("n"), "The factor, or None if not positive definite.");
    m.def("cholesky_solve", [](Vector<double> factor, std::int64_t n, Vector<double> b) {
        check_square(factor, n, "factor");
        require_length(b.shape(0), n, "b");
        std::vector<double> x(b.data(), b.data() + b.shape(0));
        unlocked([&] { cholesky_solve(span_of(factor), n, x); });
        return to_numpy(std::move(x));
    }, nb::arg("factor").noconvert(), nb::arg("n"), nb::arg("b").noconvert());
    m.def("add_scaled", [](Vector<double> x, double a, Vector<double> y, int n_threads) {
        require_length(y.shape(0), std::int64_t(x.shape(0)), "y");
        PageArray<double> out(x.shape(0), PageArray<double>::huge);
        unlocked([&] {
            add_scaled(span_of(x), a, span_of(y), {out.data(), out.size()}, n_threads);
        });
        return to_numpy(std::move(out));
    }, nb::arg("x").noconvert(), nb::arg("a"), nb::arg("y").noconvert(), nb::arg("n_threads"),
       "x + a y.");
    m.def("dot", [](Vector<double> x, Vector<double> y) {
        require_length(y.shape(0), std::int64_t(x.shape(0)), "y");
        return kernels().dot_vectors(std::int64_t(x.shape(0)), x.data(), y.data());
    }, nb::arg("x").noconvert(), nb::arg("y").noconvert(),
       "Inner product on one thread, the same bits whatever BLAS does.");
    m.attr("LONG_QUERY") = long_query;
    m.def("instruction_set", [] { return kernels().name; }, "The vector kernels in use.");
}
