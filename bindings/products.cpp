// Products with the rows, with functions of single features, and with kernel matrices; small linear algebra.
#include "symmetric.hpp"
#include "curves.hpp"
#include "arrays.hpp"
#include "kernel_matrix.hpp"
#include "parallel.hpp"
#include "simd.hpp"

namespace {

auto scores(const BoundRows &rows, DoubleArray w, OptionalOrder order, int n_threads) {
    require_length(w.shape(0), n_columns(rows.rows), "w");
    const Positions x = positions(rows, order);
    // Not zeroed first; from the allocator, which keeps what was freed, up to the size where it never
    // does, then in large pages. New memory takes longer than the products of short rows.
    return filled(PageArray<double>(x.n, 32 << 20), [&](auto out) {
        multiply(x, span_of(w), out, n_threads);
    });
}

auto gradient(const BoundRows &rows, DoubleArray r, OptionalOrder order, int n_threads) {
    const Positions x = positions(rows, order);
    require_length(r.shape(0), x.n, "r");
    return filled(std::vector<double>(n_columns(rows.rows)), [&](auto out) {
        multiply_transposed(x, span_of(r), out, n_threads);
    });
}

nb::object cholesky_factor_of(DoubleArray matrix, Index n) {
    check_square(matrix, n, "matrix");
    std::vector<double> factor = own_copy(matrix);
    const bool is_definite = unlocked([&] { return cholesky_factor(factor, n); });
    return is_definite ? nb::cast(to_numpy(std::move(factor))) : nb::none();
}

auto cholesky_solution(DoubleArray factor, Index n, DoubleArray b) {
    check_square(factor, n, "factor");
    require_length(b.shape(0), n, "b");
    return filled(own_copy(b), [&](auto x) { cholesky_solve(span_of(factor), n, x); });
}

auto sum_of_scaled(DoubleArray x, double a, DoubleArray y, int n_threads) {
    require_length(y.shape(0), Index(x.shape(0)), "y");
    return filled(PageArray<double>(x.shape(0), huge_pages), [&](auto out) {
        add_scaled(span_of(x), a, span_of(y), out, n_threads);
    });
}

// ---- curves -----------------------------------------------------------------------------------

/// Functions whose arrays belong together; the knots ascend, as Python has checked.
struct BoundCurves {
    IntegerArray feature, offsets;
    DoubleArray knots, values, slopes;

    Curves view(Index n_columns) const {
        const auto n = Index(feature.shape(0)), n_knots = Index(knots.shape(0));
        require_length(offsets.shape(0), n + 1, "offsets");
        check_offsets(span_of(offsets), knots.shape(0));
        require_lengths(n_knots + n, {"values", "slopes"}, values, slopes);
        check_indices(span_of(feature), n_columns, "a curve has no such feature");
        return {span_of(feature), span_of(offsets), span_of(knots), span_of(values), span_of(slopes)};
    }
};

nb::object curve_columns(const BoundCurves &bound, const BoundRows &x, int n_threads) {
    const Curves curves = bound.view(n_columns(x.rows));
    return cast_values(unlocked([&] { return map_rows(x.rows, curves, n_threads); }));
}

auto curve_sums(const BoundCurves &bound, const BoundRows &x, int n_threads) {
    const Curves curves = bound.view(n_columns(x.rows));
    return filled(std::vector<double>(n_rows(x.rows)), [&](auto out) {
        sum_curves(x.rows, curves, out, n_threads);
    });
}

/// Dense rows, and the piece of each function that every one of them is in.
struct BoundPieces {
    BoundCurves bound;
    BoundRows x;
    std::vector<std::uint8_t> pieces;

    BoundPieces(const BoundCurves &curves, const BoundRows &rows, int n_threads) : bound(curves), x(rows) {
        const Curves known = bound.view(n_columns(x.rows));
        for (Index c = 0; c < known.size(); ++c)
            require(known.offsets[c + 1] - known.offsets[c] <= 255, "a curve has more than 255 knots");
        pieces.resize(n_rows(x.rows) * known.size());
        unlocked([&] { find_pieces(x.rows, known, pieces.data(), n_threads); });
    }
};

auto piece_scores(const BoundPieces &at, DoubleArray values, DoubleArray slopes, DoubleArray lines, OptionalOrder order,
                  int n_threads) {
    const BoundCurves bound{at.bound.feature, at.bound.offsets, at.bound.knots, values, slopes};
    const Curves curves = bound.view(n_columns(at.x.rows));
    require_length(lines.shape(0), curves.size(), "lines");
    const Positions x = positions(at.x, order);
    return filled(std::vector<double>(x.n), [&](auto out) {
        sum_pieces(x, curves, at.pieces.data(), span_of(lines), out, n_threads);
    });
}

auto piece_slopes(const BoundPieces &at, DoubleArray r, OptionalOrder order, int n_threads) {
    const Curves curves = at.bound.view(n_columns(at.x.rows));
    const Positions x = positions(at.x, order);
    require_length(r.shape(0), x.n, "r");
    return filled(std::vector<double>(2 * curves.values.size() + curves.feature.size()), [&](auto out) {
        add_pieces(x, curves, at.pieces.data(), span_of(r), out, n_threads);
    });
}

// ---- kernel matrices --------------------------------------------------------------------------

KernelFunction kernel_function(const std::string &name, double gamma, int degree, double coef0) {
    const auto kind = choose<KernelKind>("kernel", name, {{"rbf", KernelKind::rbf}, {"poly", KernelKind::poly},
        {"sigmoid", KernelKind::sigmoid}, {"linear", KernelKind::linear}});
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

auto kernel_matrix_of(const KernelFunction &f, const BoundRows &a, const BoundRows &b, int n_threads) {
    check_columns(a, b);
    const Index n_a = n_rows(a.rows), n_b = n_rows(b.rows);
    if (n_b > 0 && n_a > (Index(1) << 56) / n_b) throw std::bad_alloc();  // their product may overflow
    return filled(PageArray<double>(n_a * n_b, huge_pages), [&](auto out) {
        kernel_matrix(f, a.rows, b.rows, out, n_threads);
    });
}

auto kernel_product_of(const KernelFunction &f, const BoundRows &a, const BoundRows &b, DoubleArray v, int n_threads) {
    check_columns(a, b);
    require_length(v.shape(0), n_rows(b.rows), "v");
    return filled(std::vector<double>(n_rows(a.rows)), [&](auto out) {
        kernel_product(f, a.rows, b.rows, span_of(v), out, n_threads);
    });
}

auto symmetric_product_of(Matrix<double> q, DoubleArray v, int n_threads) {
    require(q.shape(0) == q.shape(1), "the matrix is not square");
    require(q.shape(0) <= 1 || q.stride(1) == 1, "rows must be contiguous");
    require_length(v.shape(0), Index(q.shape(0)), "v");
    return filled(std::vector<double>(v.shape(0)), [&](auto out) {
        symmetric_product(q.data(), q.stride(0), span_of(v), out, n_threads);
    });
}

void bind_kernels(nb::module_ &m) {
    nb::class_<KernelFunction>(m, "KernelFunction", "k(a, b) of two rows.");
    def(m, "kernel_function", &kernel_function, {"name", "gamma", "degree", "coef0"},
        "name: rbf, poly, sigmoid or linear.");
    def(m, "kernel_matrix", &kernel_matrix_of, {"function", "a", "b", "n_threads"},
        "K(A, B), flattened; half is computed where b is a.");
    def(m, "kernel_product", &kernel_product_of, {"function", "a", "b", "v", "n_threads"},
        "K(A, B) v without the matrix; half is computed where b is a.");
    def(m, "kernel_diagonal", [](const KernelFunction &f, const BoundRows &rows, int n_threads) {
        return filled(std::vector<double>(n_rows(rows.rows)), [&](auto out) {
            kernel_diagonal(f, rows.rows, out, n_threads);
        });
    }, {"function", "rows", "n_threads"}, "k(a, a) of every row.");
    def(m, "symmetric_product", &symmetric_product_of, {"q", "v", "n_threads"},
        "Q v; only the triangle above the diagonal is read.");
}

void bind_curves(nb::module_ &m) {
    nb::class_<BoundCurves> curves(m, "Curves", "Functions of one feature each, linear between knots.");
    def(curves, "__init__", [](BoundCurves *self, IntegerArray feature, IntegerArray offsets, DoubleArray knots, DoubleArray values,
                               DoubleArray slopes) {
        new (self) BoundCurves{feature, offsets, knots, values, slopes};
    }, {"feature", "offsets", "knots", "values", "slopes"});
    def(curves, "columns", &curve_columns, {"rows", "n_threads"},
        "All functions of all rows, row by row, in the type of the rows.");
    def(curves, "sums", &curve_sums, {"rows", "n_threads"}, "The sum of all functions, for every row.");
    nb::class_<BoundPieces> pieces(m, "Pieces", "Dense rows, and the piece of each function that every one is in.");
    pieces.def(nb::init<const BoundCurves &, const BoundRows &, int>(), nb::arg("curves"), nb::arg("rows"),
               nb::arg("n_threads"));
    def(pieces, "scores", &piece_scores, {"values", "slopes", "lines", "order", "n_threads"},
        "The sum of functions with these pieces, and of lines, for every position.");
    def(pieces, "slopes", &piece_slopes, {"r", "order", "n_threads"},
        "Sums of r over the positions in each piece, their first moments, and those of features.");
}

}  // namespace

void bind_products(nb::module_ &m) {
    def(m, "scores", &scores, {"rows", "w", "order", "n_threads"}, "X w, by position.");
    def(m, "gradient", &gradient, {"rows", "r", "order", "n_threads"}, "Transposed X times r, r by position.");
    def(m, "longest_sums", [](const BoundRows &rows) {
        const LongestSums found = longest_sums(rows.rows);
        return nb::make_tuple(found.score, found.slope);
    }, {"rows"}, "Terms of the longest sums that scores, and slopes in w, are made of.");
    def(m, "cholesky_factor", &cholesky_factor_of, {"matrix", "n"}, "The factor, or None if not positive definite.");
    def(m, "cholesky_solve", &cholesky_solution, {"factor", "n", "b"});
    def(m, "add_scaled", &sum_of_scaled, {"x", "a", "y", "n_threads"}, "x + a y.");
    def(m, "dot", [](DoubleArray x, DoubleArray y) {
        require_length(y.shape(0), Index(x.shape(0)), "y");
        return simd().dot_vectors(Index(x.shape(0)), x.data(), y.data());
    }, {"x", "y"}, "Inner product on one thread, the same bits whatever BLAS does.");
    m.attr("LONG_QUERY") = long_query;
    m.def("instruction_set", [] { return simd().name; }, "The vector kernels in use.");
    bind_kernels(m);
    bind_curves(m);
}
