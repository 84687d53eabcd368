// Products with the rows, with functions of single features, and with kernel matrices; small linear
// algebra.
#include "products.hpp"

#include "arrays.hpp"
#include "curves.hpp"
#include "kernel_matrix.hpp"

template <>
inline constexpr Choices<KernelKind> choices<KernelKind>{"kernel", {
    {"rbf", KernelKind::rbf}, {"poly", KernelKind::poly}, {"sigmoid", KernelKind::sigmoid},
    {"linear", KernelKind::linear}}};

template <>
inline constexpr bool is_opaque<KernelFunction> = true;

namespace {

PageArray<double> scores(const Rows &rows, Doubles w, OptionalOrder order, int n_threads) {
    require_length(w, n_columns(rows), "w");
    const Positions x = positions(rows, order);
    // Not zeroed first; from the allocator, which keeps what was freed, up to the size where it
    // never does, then in large pages. New memory takes longer than the products of short rows.
    return filled(PageArray<double>(x.n, 32 << 20), [&](auto out) {
        multiply(x, w, out, n_threads);
    });
}

std::vector<double> gradient(const Rows &rows, Doubles r, OptionalOrder order, int n_threads) {
    return multiply_transposed(positions(rows, order), r, n_threads);
}

// ---- curves -----------------------------------------------------------------------------------

/// Functions whose arrays belong together; the knots ascend, as Python has checked.
const Curves &checked(const Curves &curves, const Rows &rows) {
    require_length(curves.offsets, curves.size() + 1, "offsets");
    check_offsets(curves.offsets, curves.knots.size());
    require_lengths(std::ssize(curves.knots) + curves.size(), {"values", "slopes"}, curves.values,
                    curves.slopes);
    check_indices(curves.feature, n_columns(rows), "a curve has no such feature");
    return curves;
}

Values curve_columns(const Curves &curves, const Rows &rows, int n_threads) {
    return map_rows(rows, checked(curves, rows), n_threads);
}

std::vector<double> curve_sums(const Curves &curves, const Rows &rows, int n_threads) {
    return sum_curves(rows, checked(curves, rows), n_threads);
}

/// Dense rows, and the piece of each function that every one of them is in.
struct Pieces {
    Curves curves;
    Rows rows;
    std::vector<std::uint8_t> pieces;

    Pieces(const Curves &from, const Rows &x, int n_threads) : curves(checked(from, x)), rows(x) {
        for (Index c = 0; c < curves.size(); ++c)
            require(curves.offsets[c + 1] - curves.offsets[c] <= 255,
                    "a curve has more than 255 knots");
        pieces.resize(n_rows(rows) * curves.size());
        find_pieces(rows, curves, pieces.data(), n_threads);
    }
};

std::vector<double> piece_scores(const Pieces &at, Doubles values, Doubles slopes, Doubles lines,
                                 OptionalOrder order, int n_threads) {
    Curves curves = at.curves;
    curves.values = values;
    curves.slopes = slopes;
    checked(curves, at.rows);
    require_length(lines, curves.size(), "lines");
    const Positions x = positions(at.rows, order);
    return sum_pieces(x, curves, at.pieces.data(), lines, n_threads);
}

std::vector<double> piece_slopes(const Pieces &at, Doubles r, OptionalOrder order, int n_threads) {
    const Curves &curves = checked(at.curves, at.rows);
    const Positions x = positions(at.rows, order);
    require_length(r, x.n, "r");
    return add_pieces(x, curves, at.pieces.data(), r, n_threads);
}

void bind_curves(nb::module_ &m) {
    nb::class_<Curves> curves(m, "Curves", "Functions of one feature each, linear between knots.");
    def(curves, "__init__(feature, offsets, knots, values, slopes)",
        [](Curves *self, Integers feature, Integers offsets, Doubles knots, Doubles values,
           Doubles slopes) {
        new (self) Curves{feature, offsets, knots, values, slopes};
    }, nb::keep_alive<1, 2>(), nb::keep_alive<1, 3>(),
        nb::keep_alive<1, 4>(), nb::keep_alive<1, 5>(), nb::keep_alive<1, 6>());
    def(curves, "columns(rows, n_threads)", unlocked(&curve_columns),
        "All functions of all rows, row by row, in the type of the rows.");
    def(curves, "sums(rows, n_threads)", unlocked(&curve_sums),
        "The sum of all functions, for every row.");
    nb::class_<Pieces> pieces(m, "Pieces",
                              "Dense rows, and the piece of each function that every one is in.");
    def(pieces, "__init__(curves, rows, n_threads)",
        unlocked([](Pieces *self, const Curves &curves, const Rows &rows, int n_threads) {
        new (self) Pieces(curves, rows, n_threads);
    }), nb::keep_alive<1, 2>(), nb::keep_alive<1, 3>());
    def(pieces, "scores(values, slopes, lines, order, n_threads)", unlocked(&piece_scores),
        "The sum of functions with these pieces, and of lines, for every position.");
    def(pieces, "slopes(r, order, n_threads)", unlocked(&piece_slopes),
        "Sums of r over the positions in each piece, their first moments, and those of features.");
}

// ---- kernel matrices --------------------------------------------------------------------------

KernelFunction kernel_function(KernelKind kind, double gamma, int degree, double coef0) {
    // Of distances e^-γd would grow without a bound, and no longer be a kernel.
    if (kind == KernelKind::rbf) require_non_negative(gamma, "gamma");
    require_non_negative(degree, "degree");
    return {kind, gamma, degree, coef0};
}

std::vector<double> symmetric_product_of(const Matrix<const double> &q, Doubles v, int n_threads) {
    require(q.shape(0) == q.shape(1), "the matrix is not square");
    require(q.shape(0) <= 1 || q.stride(1) == 1, "rows must be contiguous");
    require_length(v, Index(q.shape(0)), "v");
    return symmetric_product(q.data(), q.stride(0), v, n_threads);
}

void bind_kernels(nb::module_ &m) {
    nb::class_<KernelFunction>(m, "KernelFunction", "k(a, b) of two rows.");
    def(m, "kernel_function(name, gamma, degree, coef0)", &kernel_function,
        "name: rbf, poly, sigmoid or linear.");
    def(m, "kernel_matrix(function, a, b, n_threads)", unlocked(&kernel_matrix),
        "K(A, B), flattened; half is computed where b is a.");
    def(m, "kernel_product(function, a, b, v, n_threads)", unlocked(&kernel_product),
        "K(A, B) v without the matrix; half is computed where b is a.");
    def(m, "kernel_diagonal(function, rows, n_threads)", unlocked(&kernel_diagonal),
        "k(a, a) of every row.");
    def(m, "symmetric_product(q, v, n_threads)", unlocked(&symmetric_product_of),
        "Q v; only the triangle above the diagonal is read.");
}

}  // namespace

void bind_products(nb::module_ &m) {
    def(m, "scores(rows, w, order, n_threads)", unlocked(&scores), "X w, by position.");
    def(m, "gradient(rows, r, order, n_threads)", unlocked(&gradient),
        "Transposed X times r, r by position.");
    def(m, "longest_sums(rows)", &longest_sums,
        "Terms of the longest sums that scores, and slopes in w, are made of.");
    def(m, "cholesky_factor(matrix, n)", unlocked(&cholesky_factor),
        "The factor, or None if not positive definite.");
    def(m, "cholesky_solve(factor, n, b)", unlocked(&cholesky_solve));
    def(m, "add_scaled(x, a, y, n_threads)", unlocked(&add_scaled), "x + a y.");
    def(m, "add_to(y, a, x, n_threads)", unlocked(&add_to), "y += a x.");
    def(m, "dot(x, y)", unlocked(&dot), nb::arg("n_threads") = 1,
        "Inner product, the same bits whatever BLAS does.");
    m.attr("LONG_QUERY") = long_query;
    m.def("instruction_set", [] { return simd().name; }, "The vector kernels in use.");
    bind_kernels(m);
    bind_curves(m);
}
