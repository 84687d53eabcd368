// Kernel matrices, and products with them or with any symmetric matrix.
#include <nanobind/stl/string.h>

#include "arrays.hpp"
#include "kernels.hpp"
#include "module.hpp"
#include "pages.hpp"
#include "symmetric.hpp"

namespace {

KernelFunction kernel_function(const std::string &name, double gamma, int degree, double coef0) {
    const KernelKind kind = name == "rbf"       ? KernelKind::rbf
                            : name == "poly"    ? KernelKind::poly
                            : name == "sigmoid" ? KernelKind::sigmoid
                            : name == "linear"  ? KernelKind::linear
                                                : throw std::invalid_argument("no kernel is named " + name);
    // Of distances e^-γd would grow without a bound, and no longer be a kernel.
    if (kind == KernelKind::rbf && !(gamma >= 0.0))
        throw std::invalid_argument("gamma must be >= 0, got " + std::to_string(gamma));
    if (degree < 0) throw std::invalid_argument("degree must be >= 0, got " + std::to_string(degree));
    return {kind, gamma, degree, coef0};
}

void check_columns(const BoundRows &a, const BoundRows &b) {
    if (n_columns(a.rows) != n_columns(b.rows))
        throw std::invalid_argument("rows of " + std::to_string(n_columns(a.rows)) + " and of " +
                                    std::to_string(n_columns(b.rows)) + " columns have no kernel");
}

/// Pages for an n_a × n_b matrix; its size does not overflow.
PageArray<double> room(std::int64_t n_a, std::int64_t n_b) {
    if (n_b > 0 && n_a > (std::int64_t(1) << 56) / n_b) throw std::bad_alloc();
    return PageArray<double>(n_a * n_b, PageArray<double>::huge);
}

}  // namespace

void bind_kernels(nb::module_ &m) {
    nb::class_<KernelFunction>(m, "KernelFunction", "k(a, b) of two rows.");
    m.def("kernel_function", &kernel_function, nb::arg("name"), nb::arg("gamma"), nb::arg("degree"),
          nb::arg("coef0"), "name: rbf, poly, sigmoid or linear.");
    m.def("kernel_matrix", [](const KernelFunction &f, const BoundRows &a, const BoundRows &b,
                              int n_threads) {
        check_columns(a, b);
        PageArray<double> out = room(n_rows(a.rows), n_rows(b.rows));
        const std::span<double> view(out.data(), out.size());
        unlocked([&] {
            if (&a == &b) kernel_matrix(f, a.rows, view, n_threads);
            else kernel_matrix(f, a.rows, b.rows, view, n_threads);
        });
        return to_numpy(std::move(out));
    }, nb::arg("function"), nb::arg("a"), nb::arg("b"), nb::arg("n_threads"),
       "K(A, B), flattened; half is computed where b is a.");
    m.def("kernel_product", [](const KernelFunction &f, const BoundRows &a, const BoundRows &b,
                               Vector<double> v, int n_threads) {
        check_columns(a, b);
        require_length(v.shape(0), n_rows(b.rows), "v");
        std::vector<double> out(n_rows(a.rows));
        unlocked([&] {
            if (&a == &b) kernel_product(f, a.rows, span_of(v), out, n_threads);
            else kernel_product(f, a.rows, b.rows, span_of(v), out, n_threads);
        });
        return to_numpy(std::move(out));
    }, nb::arg("function"), nb::arg("a"), nb::arg("b"), nb::arg("v").noconvert(),
       nb::arg("n_threads"), "K(A, B) v without the matrix; half is computed where b is a.");
    m.def("kernel_diagonal", [](const KernelFunction &f, const BoundRows &rows, int n_threads) {
        std::vector<double> out(n_rows(rows.rows));
        unlocked([&] { kernel_diagonal(f, rows.rows, out, n_threads); });
        return to_numpy(std::move(out));
    }, nb::arg("function"), nb::arg("rows"), nb::arg("n_threads"), "k(a, a) of every row.");
    m.def("symmetric_product", [](Matrix<double> q, Vector<double> v, int n_threads) {
        if (q.shape(0) != q.shape(1)) throw std::invalid_argument("the matrix is not square");
        if (q.shape(0) > 1 && q.stride(1) != 1) throw std::invalid_argument("rows must be contiguous");
        require_length(v.shape(0), std::int64_t(q.shape(0)), "v");
        std::vector<double> out(v.shape(0));
        unlocked([&] { symmetric_product(q.data(), q.stride(0), span_of(v), out, n_threads); });
        return to_numpy(std::move(out));
    }, nb::arg("q").noconvert(), nb::arg("v").noconvert(), nb::arg("n_threads"),
       "Q v; only the triangle above the diagonal is read.");
}
