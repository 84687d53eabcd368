// Functions of single features: columns of rows, and their sums.
#include "curves.hpp"

#include <nanobind/stl/vector.h>

#include "arrays.hpp"
#include "module.hpp"

namespace {

/// Functions whose arrays belong together; the knots ascend, as Python has checked.
struct BoundCurves {
    Vector<std::int64_t> feature, offsets;
    Vector<double> knots, values, slopes;

    Curves view(std::int64_t n_columns) const {
        const auto n = std::int64_t(feature.shape(0)), n_knots = std::int64_t(knots.shape(0));
        require_length(offsets.shape(0), n + 1, "offsets");
        check_offsets(span_of(offsets), knots.shape(0));
        require_length(values.shape(0), n_knots + n, "values");
        require_length(slopes.shape(0), n_knots + n, "slopes");
        for (const std::int64_t j : span_of(feature))
            if (j < 0 || j >= n_columns) throw std::invalid_argument("a curve has no such feature");
        return {span_of(feature), span_of(offsets), span_of(knots), span_of(values), span_of(slopes)};
    }
};

/// work(rows) for dense rows; sparse ones are made dense in Python, block by block.
template <class Work>
auto of_dense(const BoundRows &x, const Work &work) {
    return std::visit([&](const auto &view) -> nb::object {
            if constexpr (requires { view.stride; })
                return nb::cast(work(view));
            else
                throw std::invalid_argument("curves take dense rows");
        }, x.rows);
}

nb::object columns(const BoundCurves &bound, const BoundRows &x, int n_threads) {
    const Curves curves = bound.view(n_columns(x.rows));
    return of_dense(x, [&](const auto &view) {
        using Value = typename std::decay_t<decltype(view)>::value_type;
        std::vector<Value> out(view.n_rows * curves.size());
        unlocked([&] { map_rows(view, curves, out.data(), n_threads); });
        return to_numpy(std::move(out));
    });
}

nb::object sums(const BoundCurves &bound, const BoundRows &x, int n_threads) {
    const Curves curves = bound.view(n_columns(x.rows));
    return of_dense(x, [&](const auto &view) {
        std::vector<double> out(view.n_rows);
        unlocked([&] { sum_curves(view, curves, out.data(), n_threads); });
        return to_numpy(std::move(out));
    });
}

/// Dense rows, and the piece of each function that every one of them is in.
struct BoundPieces {
    BoundCurves bound;
    BoundRows x;
    std::vector<std::uint8_t> pieces;

    BoundPieces(const BoundCurves &curves, const BoundRows &rows, int n_threads) : bound(curves), x(rows) {
        const Curves known = bound.view(n_columns(x.rows));
        for (std::int64_t c = 0; c < known.size(); ++c)
            if (known.offsets[c + 1] - known.offsets[c] > 255)
                throw std::invalid_argument("a curve has more than 255 knots");
        pieces.resize(n_rows(x.rows) * known.size());
        of_dense(x, [&](const auto &view) {
            unlocked([&] { find_pieces(view, known, pieces.data(), n_threads); });
            return true;
        });
    }
};

nb::object piece_scores(const BoundPieces &at, Vector<double> values, Vector<double> slopes,
                        Vector<double> lines, const OptionalOrder &given, int n_threads) {
    const BoundCurves bound{at.bound.feature, at.bound.offsets, at.bound.knots, values, slopes};
    const Curves curves = bound.view(n_columns(at.x.rows));
    require_length(lines.shape(0), curves.size(), "lines");
    const Positions positions(at.x, given);
    return of_dense({positions.rows, {}}, [&](const auto &view) {
        std::vector<double> out(positions.size());
        unlocked([&] {
            sum_pieces(view, positions.order, curves, at.pieces.data(), span_of(lines), out, n_threads);
        });
        return to_numpy(std::move(out));
    });
}

nb::object piece_slopes(const BoundPieces &at, Vector<double> r, const OptionalOrder &given, int n_threads) {
    const Curves curves = at.bound.view(n_columns(at.x.rows));
    const Positions positions(at.x, given);
    require_length(r.shape(0), positions.size(), "r");
    return of_dense({positions.rows, {}}, [&](const auto &view) {
        std::vector<double> out(2 * curves.values.size() + curves.feature.size());
        unlocked([&] {
            add_pieces(view, positions.order, curves, at.pieces.data(), span_of(r), out, n_threads);
        });
        return to_numpy(std::move(out));
    });
}

}  // namespace

void bind_curves(nb::module_ &m) {
    nb::class_<BoundCurves>(m, "Curves", "Functions of one feature each, linear between knots.")
        .def(
            "__init__",
            [](BoundCurves *self, Vector<std::int64_t> feature, Vector<std::int64_t> offsets,
               Vector<double> knots, Vector<double> values, Vector<double> slopes) {
                new (self) BoundCurves{feature, offsets, knots, values, slopes};
            },
            nb::arg("feature").noconvert(), nb::arg("offsets").noconvert(),
            nb::arg("knots").noconvert(), nb::arg("values").noconvert(),
            nb::arg("slopes").noconvert())
        .def("columns", &columns, nb::arg("rows"), nb::arg("n_threads"),
             "All functions of all rows, row by row, in the type of the rows.")
        .def("sums", &sums, nb::arg("rows"), nb::arg("n_threads"),
             "The sum of all functions, for every row.");
    nb::class_<BoundPieces>(m, "Pieces", "Dense rows, and the piece of each function that every one is in.")
        .def(nb::init<const BoundCurves &, const BoundRows &, int>(), nb::arg("curves"), nb::arg("rows"),
             nb::arg("n_threads"))
        .def("scores", &piece_scores, nb::arg("values").noconvert(), nb::arg("slopes").noconvert(),
             nb::arg("lines").noconvert(), nb::arg("order").noconvert().none(), nb::arg("n_threads"),
             "The sum of functions with these pieces, and of lines, for every position.")
        .def("slopes", &piece_slopes, nb::arg("r").noconvert(), nb::arg("order").noconvert().none(),
             nb::arg("n_threads"),
             "Sums of r over the positions in each piece, their first moments, and those of features.");
}
