// The only file that knows Python: checks shapes, releases the GIL, calls the core.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <sstream>
#include <stdexcept>
#include <string>
#include <tuple>
#include <type_traits>
#include <vector>

#include "cholesky.hpp"
#include "concordance.hpp"
#include "hessian.hpp"
#include "metrics.hpp"
#include "pair_sweep.hpp"
#include "preferences.hpp"
#include "products.hpp"
#include "published/explicit_pairs.hpp"
#include "published/point.hpp"
#include "queries.hpp"
#include "ranking.hpp"
#include "row_checks.hpp"
#include "rows.hpp"
#include "scaling.hpp"
#include "simd.hpp"
#include "svmlight.hpp"

namespace nb = nanobind;
using namespace linrank;

namespace {

// Arrays are taken as they are (.noconvert()): a copy is a decision made in Python.
template <class T>
using Vector = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T>
using Matrix = nb::ndarray<const T, nb::ndim<2>, nb::device::cpu>;

/// A NumPy array that owns `data`, a std::vector or a PageArray.
template <template <class...> class Array, class T>
nb::ndarray<nb::numpy, T, nb::ndim<1>> to_numpy(Array<T> &&data) {
    auto owned = std::make_unique<Array<T>>(std::move(data));
    nb::capsule owner(owned.get(), [](void *p) noexcept { delete static_cast<Array<T> *>(p); });
    Array<T> &kept = *owned.release();  // the capsule deletes it
    return {kept.data(), {kept.size()}, owner};
}

template <class T>
std::span<const T> span_of(const Vector<T> &a) { return {a.data(), a.shape(0)}; }
template <class T>
std::span<const T> span_of(const std::optional<Vector<T>> &a) {
    return a ? span_of(*a) : std::span<const T>();
}

/// What `work` returns, without the GIL while it runs.
template <class Work>
auto unlocked(const Work &work) {
    const nb::gil_scoped_release release;
    return work();
}

// ---- checks: the core trusts what passes them -------------------------------------------------

void require_length(std::size_t got, std::int64_t expected, const char *name) {
    if (std::int64_t(got) != expected)
        throw std::invalid_argument(std::string(name) + " has length " + std::to_string(got) +
                                    ", expected " + std::to_string(expected));
}

/// Offsets start at 0, never decrease and end at n_rows.
void check_offsets(std::span<const std::int64_t> offsets, std::size_t n_rows) {
    if (offsets.empty() || offsets.front() != 0 || offsets.back() != std::int64_t(n_rows))
        throw std::invalid_argument("query offsets do not match the rows");
    if (!std::is_sorted(offsets.begin(), offsets.end()))
        throw std::invalid_argument("query offsets decrease");
}

using OptionalOrder = std::optional<Vector<std::int64_t>>;

/// Positions name rows that exist. Checked at every call, since Python may write to the array: about a
/// nanosecond a row.
Order checked_order(const OptionalOrder &order, std::int64_t n_rows) {
    const Order rows = span_of(order);
    for (const std::int64_t row : rows)
        if (row < 0 || row >= n_rows)
            throw std::invalid_argument("order names a row that does not exist");
    return rows;
}

/// An order of all rows, and queries that partition it.
QueryView checked_queries(const Vector<std::int64_t> &offsets, const OptionalOrder &order,
                          std::size_t n_rows) {
    check_offsets(span_of(offsets), n_rows);
    if (order && order->shape(0) != n_rows)
        throw std::invalid_argument("order and rows differ in length");
    return {span_of(offsets), checked_order(order, std::int64_t(n_rows))};
}

/// Levels lie within [0, n_levels) of their query, and are no more than its rows; the offsets have been
/// checked.
void check_levels(std::span<const std::int32_t> levels, std::span<const std::int64_t> offsets,
                  std::span<const std::int32_t> n_levels) {
    require_length(levels.size(), offsets.back(), "levels");
    require_length(n_levels.size(), std::int64_t(offsets.size()) - 1, "n_levels");
    for (std::size_t q = 0; q < n_levels.size(); ++q) {
        if (n_levels[q] < 0) throw std::invalid_argument("a number of levels is negative");
        if (n_levels[q] > offsets[q + 1] - offsets[q])
            throw std::invalid_argument("a query has more levels than rows");
        for (std::int64_t t = offsets[q]; t < offsets[q + 1]; ++t)
            if (levels[std::size_t(t)] < 0 || levels[std::size_t(t)] >= n_levels[q])
                throw std::invalid_argument("a level is out of range");
    }
}

/// A NaN has no place among numbers that are sorted.
void check_no_nan(const Vector<double> &values, const char *what) {
    for (const double value : span_of(values))
        if (value != value) throw std::invalid_argument(std::string(what) + " is NaN");
}

void check_scores(const Vector<double> &scores, std::size_t n_rows) {
    require_length(scores.shape(0), std::int64_t(n_rows), "scores");
    check_no_nan(scores, "a score");
}

/// A square matrix of side n; n * n does not overflow.
void check_square(const Vector<double> &matrix, std::int64_t n, const char *name) {
    if (n < 0 || n > INT32_MAX)
        throw std::invalid_argument("n must lie in [0, 2^31), got " + std::to_string(n));
    require_length(matrix.shape(0), n * n, name);
}

/// Rows and the arrays that they look at.
struct BoundRows {
    Rows rows;
    nb::object keep_alive;
};

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
                   std::int64_t n_columns) {
    const auto n_entries = static_cast<std::int64_t>(values.shape(0));
    const auto n_rows = static_cast<std::int64_t>(offsets.shape(0)) - 1;
    if (static_cast<std::int64_t>(columns.shape(0)) != n_entries)
        throw std::invalid_argument("values and columns differ in length");
    if (n_rows < 0 || offsets(0) != 0 || offsets(n_rows) > n_entries)
        throw std::invalid_argument("row offsets do not match the values");
    // Beyond 2^48 sizes in bytes would overflow, and no vector of weights could be held.
    if (n_columns < 0 || n_columns > std::int64_t(1) << 48)
        throw std::invalid_argument("n_columns must lie in [0, 2^48], got " + std::to_string(n_columns));
    unlocked([&] {
        for (std::int64_t i = 0; i < n_rows; ++i)
            if (offsets(i) > offsets(i + 1)) throw std::invalid_argument("row offsets decrease");
        for (std::int64_t k = 0; k < offsets(n_rows); ++k)
            if (columns(k) < 0 || columns(k) >= n_columns)
                throw std::invalid_argument("a column index is out of range");
    });
    return {CsrRows<Value, Index>{values.data(), columns.data(), offsets.data(), n_rows, n_columns},
            nb::make_tuple(values, columns, offsets)};
}

void bind_rows(nb::module_ &m) {
    nb::class_<BoundRows>(m, "Rows", "A view of a row-major matrix, dense or CSR.")
        .def_prop_ro("shape", [](const BoundRows &r) {
            return nb::make_tuple(n_rows(r.rows), n_columns(r.rows));
        });
    m.def("dense_rows", &dense_rows<float>, nb::arg("x").noconvert());
    m.def("dense_rows", &dense_rows<double>, nb::arg("x").noconvert());
    const auto csr = [&](auto function) {
        m.def("csr_rows", function, nb::arg("values").noconvert(), nb::arg("columns").noconvert(),
              nb::arg("offsets").noconvert(), nb::arg("n_columns"));
    };
    csr(&csr_rows<float, std::int32_t>);
    csr(&csr_rows<double, std::int32_t>);
    csr(&csr_rows<float, std::int64_t>);
    csr(&csr_rows<double, std::int64_t>);
}

// ---- queries: ids to offsets, labels to levels ------------------------------------------------

auto factorise_ids(Vector<std::int64_t> ids) {
    Codes result = unlocked([&] { return factorise(span_of(ids)); });
    return std::make_tuple(to_numpy(std::move(result.codes)), to_numpy(std::move(result.first)));
}

auto group_rows_of(Vector<std::int64_t> codes, std::int64_t n_queries) {
    if (n_queries < 0) throw std::invalid_argument("n_queries must be >= 0");
    Grouping result = unlocked([&] { return group_rows(span_of(codes), n_queries); });
    return std::make_tuple(to_numpy(std::move(result.order)), to_numpy(std::move(result.offsets)),
                           result.is_identity);
}

auto rank_levels_of(Vector<double> labels, Vector<std::int64_t> offsets, OptionalOrder order,
                    int n_threads) {
    const QueryView queries = checked_queries(offsets, order, labels.shape(0));
    check_no_nan(labels, "a label");
    Levels result = unlocked(
        [&] { return rank_levels(span_of(labels), queries.offsets, queries.order, n_threads); });
    return std::make_tuple(to_numpy(std::move(result.levels)), to_numpy(std::move(result.n_levels)));
}

auto count_pairs_of(Vector<std::int32_t> levels, Vector<std::int64_t> offsets,
                    Vector<std::int32_t> n_levels) {
    check_offsets(span_of(offsets), levels.shape(0));
    check_levels(span_of(levels), span_of(offsets), span_of(n_levels));
    return to_numpy(unlocked(
        [&] { return count_pairs(span_of(levels), span_of(offsets), span_of(n_levels)); }));
}

void bind_queries(nb::module_ &m) {
    m.def("factorise", &factorise_ids, nb::arg("ids").noconvert(),
          "(codes, first): ids numbered by first appearance, and the row of each first appearance.");
    m.def("group_rows", &group_rows_of, nb::arg("codes").noconvert(), nb::arg("n_queries"),
          "(order, offsets, is_identity): a stable counting sort; order is empty if the identity.");
    m.def("rank_levels", &rank_levels_of, nb::arg("labels").noconvert(),
          nb::arg("offsets").noconvert(), nb::arg("order").noconvert().none(),
          nb::arg("n_threads") = 1, "(levels, n_levels): dense ranks of the labels of each query.");
    m.def("count_pairs", &count_pairs_of, nb::arg("levels").noconvert(),
          nb::arg("offsets").noconvert(), nb::arg("n_levels").noconvert(),
          "Pairs (i above j) of each query.");
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

// ---- reader: text to rows ---------------------------------------------------------------------

using Text = nb::ndarray<const std::uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T>
using Output = nb::ndarray<T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using PieceList = std::vector<svmlight::Piece *>;

/// Parses blocks, from several threads at once; keeps one scratch for each of them.
template <class Value>
class TextParser {
public:
    TextParser(std::int64_t lowest, std::int64_t highest) : range{lowest, highest} {}

    svmlight::Piece parse(Text text) {
        nb::gil_scoped_release release;
        std::unique_ptr<svmlight::Scratch<Value>> scratch = take();
        auto piece = svmlight::parse<Value>(
            {reinterpret_cast<const char *>(text.data()), text.shape(0)}, range, *scratch);
        const std::lock_guard lock(access);
        idle.push_back(std::move(scratch));
        return piece;
    }

private:
    const svmlight::Range range;
    std::mutex access;
    std::vector<std::unique_ptr<svmlight::Scratch<Value>>> idle;

    std::unique_ptr<svmlight::Scratch<Value>> take() {
        const std::lock_guard lock(access);
        if (idle.empty()) return std::make_unique<svmlight::Scratch<Value>>();
        auto scratch = std::move(idle.back());
        idle.pop_back();
        return scratch;
    }
};

/// The rows of all pieces. Every function that fills arrays asks for them: no piece is None, and none is
/// there twice, since filling takes the memory of a piece.
std::int64_t rows_of(const PieceList &pieces) {
    PieceList sorted = pieces;
    std::sort(sorted.begin(), sorted.end());
    if (!sorted.empty() && sorted.front() == nullptr) throw std::invalid_argument("a piece is None");
    if (std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end())
        throw std::invalid_argument("a piece is listed twice");
    std::int64_t n = 0;
    for (const svmlight::Piece *piece : pieces) n += piece->n_rows;
    return n;
}

void check_columns(const PieceList &pieces, std::int64_t n_columns, std::int64_t base) {
    if (base < 0) throw std::invalid_argument("base must be >= 0, got " + std::to_string(base));
    for (const svmlight::Piece *piece : pieces)
        if (piece->n_entries > 0 && (piece->lowest < base || piece->highest - base >= n_columns))
            throw std::invalid_argument("a feature index is out of range");
}

template <class Value>
void fill_dense_of(const PieceList &pieces,
                   nb::ndarray<Value, nb::ndim<2>, nb::c_contig, nb::device::cpu> x,
                   std::int64_t base, int n_threads) {
    const auto n_columns = static_cast<std::int64_t>(x.shape(1));
    require_length(x.shape(0), rows_of(pieces), "x");
    check_columns(pieces, n_columns, base);
    nb::gil_scoped_release release;
    svmlight::fill_dense<Value>(pieces, x.data(), n_columns, base, n_threads);
}

template <class Value>
void fill_csr_of(const PieceList &pieces, Output<Value> values, Output<std::int32_t> columns,
                 Output<std::int64_t> offsets, std::int64_t n_columns, std::int64_t base,
                 int n_threads) {
    require_length(offsets.shape(0), rows_of(pieces) + 1, "offsets");
    std::int64_t n_entries = 0;
    for (const svmlight::Piece *piece : pieces) n_entries += piece->n_entries;
    require_length(values.shape(0), n_entries, "values");
    require_length(columns.shape(0), n_entries, "columns");
    check_columns(pieces, n_columns, base);
    nb::gil_scoped_release release;
    svmlight::fill_csr<Value>(pieces, values.data(), columns.data(), offsets.data(), base, n_threads);
}

/// The distinct ids as bytes: they may be in any encoding.
nb::list fill_query_codes_of(const PieceList &pieces, Output<std::int64_t> codes) {
    require_length(codes.shape(0), rows_of(pieces), "codes");
    nb::list ids;
    for (const std::string &id : svmlight::fill_query_codes(pieces, codes.data()))
        ids.append(nb::bytes(id.data(), id.size()));
    return ids;
}

void fill_comments_of(const PieceList &pieces, Output<std::uint8_t> text,
                      Output<std::int64_t> offsets) {
    require_length(offsets.shape(0), rows_of(pieces) + 1, "offsets");
    require_length(text.shape(0), svmlight::comment_bytes(pieces), "text");
    svmlight::fill_comments(pieces, reinterpret_cast<char *>(text.data()), offsets.data());
}

std::tuple<std::int64_t, std::int64_t, std::string> as_tuple(const svmlight::Fault &fault) {
    return {fault.place.line, fault.place.column, fault.message};
}

void bind_piece(nb::module_ &m) {
    using svmlight::Piece;
    nb::class_<Piece>(m, "Piece", "What was read from one block of lines.")
        .def_ro("n_rows", &Piece::n_rows)
        .def_ro("n_entries", &Piece::n_entries)
        .def_ro("n_lines", &Piece::n_lines)
        .def_ro("lowest", &Piece::lowest, "Smallest feature index, -1 without entries.")
        .def_ro("highest", &Piece::highest, "Largest feature index, -1 without entries.")
        .def_ro("has_query", &Piece::has_query)
        .def_prop_ro("has_weight", [](const Piece &p) { return p.weights.size() > 0; })
        .def_prop_ro("n_comment_bytes", [](const Piece &p) { return p.comments.text.size(); })
        .def_prop_ro("n_bytes", &Piece::n_bytes)
        .def_prop_ro("highest_place", [](const Piece &p) {
            return std::make_tuple(p.highest_place.line, p.highest_place.column);
        })
        .def_prop_ro("fault", [](const Piece &p) {
            return p.fault ? std::optional(as_tuple(*p.fault)) : std::nullopt;
        }, "(line, column, message) of the first fault.")
        .def("query_fault", [](const Piece &p, bool before) {
            const auto fault = p.query_fault(before);
            return fault ? std::optional(as_tuple(*fault)) : std::nullopt;
        }, nb::arg("before"), "The fault if rows before have (or lack) query ids and these do not.");
}

template <class Value>
void bind_reader_of(nb::module_ &m, const char *parser) {
    nb::class_<TextParser<Value>>(m, parser)
        .def(nb::init<std::int64_t, std::int64_t>(), nb::arg("lowest"), nb::arg("highest"))
        .def("parse", &TextParser<Value>::parse, nb::arg("text").noconvert(),
             "Read a block of whole lines; may be called from several threads.");
    m.def("fill_dense", &fill_dense_of<Value>, nb::arg("pieces"), nb::arg("x").noconvert(),
          nb::arg("base"), nb::arg("n_threads"));
    m.def("fill_csr", &fill_csr_of<Value>, nb::arg("pieces"), nb::arg("values").noconvert(),
          nb::arg("columns").noconvert(), nb::arg("offsets").noconvert(), nb::arg("n_columns"),
          nb::arg("base"), nb::arg("n_threads"));
}

void bind_reader(nb::module_ &m) {
    bind_piece(m);
    m.attr("MAX_FEATURE") = svmlight::max_feature;
    bind_reader_of<float>(m, "TextParser32");
    bind_reader_of<double>(m, "TextParser64");
    m.def("fill_labels", [](const PieceList &pieces, Output<double> labels) {
        require_length(labels.shape(0), rows_of(pieces), "labels");
        svmlight::fill_labels(pieces, labels.data());
    }, nb::arg("pieces"), nb::arg("labels").noconvert());
    m.def("fill_weights", [](const PieceList &pieces, Output<double> weights) {
        require_length(weights.shape(0), rows_of(pieces), "weights");
        svmlight::fill_weights(pieces, weights.data());
    }, nb::arg("pieces"), nb::arg("weights").noconvert());
    m.def("fill_integer_queries", [](const PieceList &pieces, Output<std::int64_t> ids) {
        require_length(ids.shape(0), rows_of(pieces), "ids");
        return svmlight::fill_integer_queries(pieces, ids.data());
    }, nb::arg("pieces"), nb::arg("ids").noconvert());
    m.def("fill_query_codes", &fill_query_codes_of, nb::arg("pieces"), nb::arg("codes").noconvert(),
          nb::sig("def fill_query_codes(pieces: Sequence[Piece], "
                  "codes: NDArray[numpy.int64]) -> list[bytes]"));
    m.def("fill_comments", &fill_comments_of, nb::arg("pieces"), nb::arg("text").noconvert(),
          nb::arg("offsets").noconvert());
}

// ---- pairs: sweeps, products, Hessians --------------------------------------------------------

/// Positions of the matrix in the order given.
std::int64_t n_positions(const BoundRows &rows, const Order &order) {
    return order.empty() ? n_rows(rows.rows) : std::int64_t(order.size());
}

/// Vectors keep their memory when they are moved, so `problem` may look at those beside it.
struct BoundProblem {
    PairProblem problem;
    std::vector<std::int64_t> offsets;
    std::vector<std::int32_t> n_levels, by_level;
    nb::object keep_alive;

    /// Python may write to the levels, which are too many to copy: a point looks at them once, when it is
    /// made, and they are checked then.
    const PairProblem &checked(const Vector<double> &z) const {
        require_length(z.shape(0), problem.n_rows(), "z");
        check_levels(problem.levels, offsets, n_levels);
        return problem;
    }
};

BoundProblem pair_problem(Vector<std::int64_t> offsets, Vector<std::int32_t> levels,
                          Vector<std::int32_t> n_levels, std::optional<Vector<double>> row_weight,
                          std::optional<Vector<double>> query_weight,
                          std::optional<Vector<double>> gain, bool adjacent) {
    check_offsets(span_of(offsets), levels.shape(0));
    check_levels(span_of(levels), span_of(offsets), span_of(n_levels));
    const auto n = std::int64_t(levels.shape(0)), n_queries = std::int64_t(n_levels.shape(0));
    if (row_weight) require_length(row_weight->shape(0), n, "row_weight");
    if (query_weight) require_length(query_weight->shape(0), n_queries, "query_weight");
    if (gain) require_length(gain->shape(0), n, "gain");
    for (std::size_t q = 0; q < n_levels.shape(0); ++q) {
        const std::int64_t length = offsets(q + 1) - offsets(q);
        if (length > INT32_MAX) throw std::invalid_argument("a query has more than 2^31 - 1 rows");
    }
    const auto o = span_of(offsets);
    const auto k = span_of(n_levels);
    BoundProblem bound{{}, {o.begin(), o.end()}, {k.begin(), k.end()}, {},
                       nb::make_tuple(levels, row_weight, query_weight, gain)};
    bound.problem = {bound.offsets, span_of(levels), bound.n_levels, span_of(row_weight),
                     span_of(query_weight), {}, span_of(gain), adjacent};
    bound.by_level = level_order(bound.problem);
    bound.problem.by_level = bound.by_level;
    return bound;
}

struct BoundPoint {
    std::shared_ptr<PairPoint> point;
    nb::object problem;  // the arrays that the point looks at
};

PairLoss pair_loss(const std::string &name, double epsilon) {
    if (name == "squared_hinge") return {PairLoss::squared_hinge, epsilon};
    if (name == "hinge") return {PairLoss::hinge, epsilon};
    if (name != "huber") throw std::invalid_argument("there is no loss '" + name + "'");
    // Sums over a band are differences divided by ε: below, they would be nothing but rounding.
    if (!(epsilon >= 1e-10 && epsilon <= 1.0)) {
        std::ostringstream message;
        message << "epsilon must lie in [1e-10, 1], got " << epsilon;
        throw std::invalid_argument(message.str());
    }
    return {PairLoss::huber, epsilon};
}

/// A NumPy view of the gradient that keeps its point alive.
template <class Bound>
nb::ndarray<nb::numpy, const double, nb::ndim<1>> gradient_of(nb::handle_t<Bound> self) {
    const auto &gradient = nb::cast<const Bound &>(self).point->gradient;
    return {gradient.data(), {gradient.size()}, self};
}

template <class Bound>
void bind_point(nb::class_<Bound> &c) {
    c.def_prop_ro("value", [](const Bound &p) { return p.point->value; })
        .def_prop_ro("sum_of_slacks", [](const Bound &p) { return p.point->sum_of_slacks; })
        .def_prop_ro("n_violations", [](const Bound &p) { return p.point->n_violations; })
        .def_prop_ro("gradient", &gradient_of<Bound>);
}

void bind_pairs(nb::module_ &m) {
    nb::class_<BoundProblem>(m, "PairProblem", "Queries, levels and weights of a pair loss.");
    m.def("pair_problem", &pair_problem, nb::arg("offsets").noconvert(),
          nb::arg("levels").noconvert(), nb::arg("n_levels").noconvert(),
          nb::arg("row_weight").noconvert().none(), nb::arg("query_weight").noconvert().none(),
          nb::arg("gain").noconvert().none(), nb::arg("adjacent"));

    auto point = nb::class_<BoundPoint>(m, "PairPoint", "A pair loss at given scores.");
    bind_point(point);
    point.def_prop_ro("inner_slacks", [](const BoundPoint &p) { return p.point->inner_slacks; });
    point.def_prop_ro("total_curvature",
                      [](const BoundPoint &p) { return p.point->total_curvature; });
    point.def("multiply", [](const BoundPoint &p, Vector<double> v, int n_threads) {
        require_length(v.shape(0), std::int64_t(p.point->gradient.size()), "v");
        std::vector<double> out(v.shape(0));
        unlocked([&] { p.point->multiply(span_of(v), out, n_threads); });
        return to_numpy(std::move(out));
    }, nb::arg("v").noconvert(), nb::arg("n_threads"));
    m.def("pair_point", [](nb::handle_t<BoundProblem> problem, const std::string &loss,
                           double epsilon, Vector<double> z, const BoundPoint *near, int n_threads) {
        if (near && !near->problem.is(problem))
            throw std::invalid_argument("near is a point of another problem");
        const PairPoint *guess = near ? near->point.get() : nullptr;
        const PairProblem &pairs = nb::cast<const BoundProblem &>(problem).checked(z);
        const PairLoss kind = pair_loss(loss, epsilon);
        return BoundPoint{unlocked([&] {
            return std::make_shared<PairPoint>(pairs, kind, span_of(z), guess, n_threads);
        }), nb::borrow(problem)};
    }, nb::arg("problem"), nb::arg("loss"), nb::arg("epsilon"), nb::arg("z").noconvert(),
       nb::arg("near").none(), nb::arg("n_threads"));
}

// ---- the published methods --------------------------------------------------------------------

struct BoundPublishedPoint {
    std::shared_ptr<published::PublishedPoint> point;
    nb::object problem;
};

struct BoundPairList {
    std::shared_ptr<published::ExplicitPairs> list;
    nb::object problem;
};

struct BoundPairListPoint {
    std::shared_ptr<published::ExplicitPairsPoint> point;
    nb::object list;
};

template <class Bound>
void bind_published_point(nb::class_<Bound> c) {
    bind_point(c);
    c.def("multiply", [](const Bound &p, Vector<double> v) {
        require_length(v.shape(0), std::int64_t(p.point->gradient.size()), "v");
        std::vector<double> out(v.shape(0));
        unlocked([&] { p.point->multiply(span_of(v), out); });
        return to_numpy(std::move(out));
    }, nb::arg("v").noconvert());
}

void check_published(const PairProblem &pairs) {
    if (!pairs.gain.empty() || pairs.adjacent)
        throw std::invalid_argument("the published methods count all pairs, without gains");
}

void bind_published(nb::module_ &m) {
    nb::class_<BoundPublishedPoint> point(m, "PublishedPoint",
                                          "Pair loss at given scores by a published way of counting.");
    bind_published_point(point);
    point.def_prop_ro("hinge_gradient", [](nb::handle_t<BoundPublishedPoint> self) {
        const auto &p = *nb::cast<const BoundPublishedPoint &>(self).point;
        return nb::ndarray<nb::numpy, const double, nb::ndim<1>>(
            p.hinge_gradient.data(), {p.hinge_gradient.size()}, self);
    }, "A sub-gradient of sum_of_slacks.");
    m.def("published_point", [](nb::handle_t<BoundProblem> problem, Vector<double> z,
                                const std::string &counting) {
        const PairProblem &pairs = nb::cast<const BoundProblem &>(problem).checked(z);
        check_published(pairs);
        const published::Count count = published::counting(counting);
        return BoundPublishedPoint{unlocked([&] {
            return std::make_shared<published::PublishedPoint>(pairs, span_of(z), count);
        }), nb::borrow(problem)};
    }, nb::arg("problem"), nb::arg("z").noconvert(), nb::arg("counting"));

    nb::class_<BoundPairList>(m, "ExplicitPairs", "All pairs of a problem, written down.")
        .def("__len__", [](const BoundPairList &p) { return p.list->pairs.size(); });
    m.def("explicit_pairs", [](nb::handle_t<BoundProblem> problem) {
        const PairProblem &p = nb::cast<const BoundProblem &>(problem).problem;
        check_published(p);
        return BoundPairList{unlocked([&] { return std::make_shared<published::ExplicitPairs>(p); }),
                             nb::borrow(problem)};
    }, nb::arg("problem"));
    bind_published_point(nb::class_<BoundPairListPoint>(m, "ExplicitPairsPoint",
                                                        "Squared hinge over explicit pairs."));
    m.def("explicit_pairs_point", [](nb::handle_t<BoundPairList> pairs, Vector<double> z) {
        const auto &list = *nb::cast<const BoundPairList &>(pairs).list;
        require_length(z.shape(0), list.problem.n_rows(), "z");
        return BoundPairListPoint{unlocked([&] {
            return std::make_shared<published::ExplicitPairsPoint>(list, span_of(z));
        }), nb::borrow(pairs)};
    }, nb::arg("pairs"), nb::arg("z").noconvert());
}

// ---- preferences: pairs listed one by one ------------------------------------------------------

struct BoundPreferences {
    std::shared_ptr<PreferenceList> list;
};

struct BoundPreferencePoint {
    std::shared_ptr<PreferencePoint> point;
    nb::object list;  // what the point looks at
};

BoundPreferences preference_list(Vector<std::int64_t> winners, Vector<std::int64_t> losers,
                                 std::optional<Vector<double>> weight, std::int64_t n_rows) {
    const auto n = std::int64_t(winners.shape(0));
    require_length(losers.shape(0), n, "losers");
    if (weight) require_length(weight->shape(0), n, "weight");
    if (n_rows < 0) throw std::invalid_argument("n_rows is negative");
    for (const auto &side : {span_of(winners), span_of(losers)})
        for (const std::int64_t i : side)
            if (i < 0 || i >= n_rows)
                throw std::invalid_argument("a preference names a row that does not exist");
    return {unlocked([&] {
        return std::make_shared<PreferenceList>(span_of(winners), span_of(losers), span_of(weight),
                                                n_rows);
    })};
}

void bind_preferences(nb::module_ &m) {
    nb::class_<BoundPreferences>(m, "PreferenceList", "Preferences by winner, loser and weight.");
    m.def("preference_list", &preference_list, nb::arg("winners").noconvert(),
          nb::arg("losers").noconvert(), nb::arg("weight").noconvert().none(), nb::arg("n_rows"));
    auto point = nb::class_<BoundPreferencePoint>(m, "PreferencePoint",
                                                  "Loss of listed preferences at given scores.");
    bind_point(point);
    point.def_prop_ro("inner_slacks",
                      [](const BoundPreferencePoint &p) { return p.point->inner_slacks; });
    point.def_prop_ro("total_curvature",
                      [](const BoundPreferencePoint &p) { return p.point->total_curvature; });
    point.def("multiply", [](const BoundPreferencePoint &p, Vector<double> v, int n_threads) {
        require_length(v.shape(0), std::int64_t(p.point->gradient.size()), "v");
        std::vector<double> out(v.shape(0));
        unlocked([&] { p.point->multiply(span_of(v), out, n_threads); });
        return to_numpy(std::move(out));
    }, nb::arg("v").noconvert(), nb::arg("n_threads"));
    m.def("preference_point", [](nb::handle_t<BoundPreferences> list, const std::string &loss,
                                 double epsilon, Vector<double> z, int n_threads) {
        const PreferenceList &l = *nb::cast<const BoundPreferences &>(list).list;
        require_length(z.shape(0), l.n_rows(), "z");
        const PairLoss kind = pair_loss(loss, epsilon);
        return BoundPreferencePoint{unlocked([&] {
            return std::make_shared<PreferencePoint>(l, kind, span_of(z), n_threads);
        }), nb::borrow(list)};
    }, nb::arg("list"), nb::arg("loss"), nb::arg("epsilon"), nb::arg("z").noconvert(),
       nb::arg("n_threads"));
    const auto dense = [](const BoundRows &rows, const OptionalOrder &order,
                          const BoundPreferencePoint &point, int n_threads, auto function) {
        const Order o = checked_order(order, n_rows(rows.rows));
        require_length(point.point->gradient.size(), n_positions(rows, o), "the point");
        const nb::gil_scoped_release release;
        return function(rows.rows, o, *point.point, n_threads);
    };
    using Function = std::vector<double> (*)(const Rows &, Order, const PreferencePoint &, int);
    m.def("preference_hessian_matrix", [dense](const BoundRows &rows, OptionalOrder order,
                                               const BoundPreferencePoint &point, int n_threads) {
        return to_numpy(dense(rows, order, point, n_threads, Function(hessian_matrix)));
    }, nb::arg("rows"), nb::arg("order").noconvert().none(), nb::arg("point"), nb::arg("n_threads"),
       "H in full, flattened.");
    m.def("preference_hessian_diagonal", [dense](const BoundRows &rows, OptionalOrder order,
                                                 const BoundPreferencePoint &point, int n_threads) {
        return to_numpy(dense(rows, order, point, n_threads, Function(hessian_diagonal)));
    }, nb::arg("rows"), nb::arg("order").noconvert().none(), nb::arg("point"), nb::arg("n_threads"),
       "The diagonal of H.");
}

void bind_products(nb::module_ &m) {
    m.def("scores", [](const BoundRows &rows, Vector<double> w, OptionalOrder order, int n_threads) {
        require_length(w.shape(0), n_columns(rows.rows), "w");
        const Order o = checked_order(order, n_rows(rows.rows));
        std::vector<double> out(static_cast<std::size_t>(n_positions(rows, o)));
        unlocked([&] { multiply(rows.rows, o, span_of(w), out, n_threads); });
        return to_numpy(std::move(out));
    }, nb::arg("rows"), nb::arg("w").noconvert(), nb::arg("order").noconvert().none(),
       nb::arg("n_threads"), "X w, by position.");
    m.def("gradient", [](const BoundRows &rows, Vector<double> r, OptionalOrder order, int n_threads) {
        const Order o = checked_order(order, n_rows(rows.rows));
        require_length(r.shape(0), n_positions(rows, o), "r");
        std::vector<double> out(static_cast<std::size_t>(n_columns(rows.rows)));
        unlocked([&] { multiply_transposed(rows.rows, o, span_of(r), out, n_threads); });
        return to_numpy(std::move(out));
    }, nb::arg("rows"), nb::arg("r").noconvert(), nb::arg("order").noconvert().none(),
       nb::arg("n_threads"), "Transposed X times r, r by position.");
}

void bind_hessian(nb::module_ &m) {
    const auto check = [](const BoundRows &rows, const Order &order, const BoundPoint &point) {
        require_length(point.point->gradient.size(), n_positions(rows, order), "the point");
    };
    m.def("hessian_product", [check](const BoundRows &rows, OptionalOrder order,
                                     const BoundPoint &point, Vector<double> v, int n_threads) {
        const Order o = checked_order(order, n_rows(rows.rows));
        check(rows, o, point);
        require_length(v.shape(0), n_columns(rows.rows), "v");
        std::vector<double> out(v.shape(0));
        PageArray<double> image(point.point->gradient.size(), PageArray<double>::huge);
        unlocked([&] {
            hessian_product(rows.rows, o, *point.point, span_of(v), out,
                            {image.data(), image.size()}, n_threads);
        });
        return std::make_tuple(to_numpy(std::move(out)), to_numpy(std::move(image)));
    }, nb::arg("rows"), nb::arg("order").noconvert().none(), nb::arg("point"),
       nb::arg("v").noconvert(), nb::arg("n_threads"), "(H v, X v) in one pass over the rows.");
    const auto dense = [check](const BoundRows &rows, const OptionalOrder &order,
                               const BoundPoint &point, int n_threads, auto function) {
        const Order o = checked_order(order, n_rows(rows.rows));
        check(rows, o, point);
        const nb::gil_scoped_release release;
        return function(rows.rows, o, *point.point, n_threads);
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

// ---- scaling: what the columns range over -----------------------------------------------------

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

std::tuple<double, double, double> concordance(Vector<std::int64_t> offsets,
                                               Vector<std::int32_t> levels, Vector<double> scores,
                                               Vector<double> weight) {
    const std::size_t n_rows = levels.shape(0);
    check_offsets(span_of(offsets), n_rows);
    check_scores(scores, n_rows);
    require_length(weight.shape(0), std::int64_t(n_rows), "weight");
    for (const std::int32_t level : span_of(levels))
        if (level < 0 || std::size_t(level) >= n_rows)
            throw std::invalid_argument("a level is out of range");
    const Concordance result = unlocked([&] {
        return weighted_concordance(span_of(offsets), span_of(levels), span_of(scores),
                                    span_of(weight));
    });
    return {result.right, result.wrong, result.tied};
}

void bind_scaling(nb::module_ &m) {
    m.def("weighted_concordance", &concordance, nb::arg("offsets").noconvert(),
          nb::arg("levels").noconvert(), nb::arg("scores").noconvert(),
          nb::arg("weight").noconvert(),
          "Total weight of the pairs in the right order, in the wrong one, and tied.");
    m.def("summarise_columns", &summarise, nb::arg("rows"), nb::arg("weight").noconvert().none(),
          nb::arg("n_threads"),
          "(mean, variance, minimum, maximum) of every column, absent entries being 0.");
    m.def("scale_queries", &scale_queries, nb::arg("rows"), nb::arg("offsets").noconvert(),
          nb::arg("order").noconvert().none(), nb::arg("n_threads"),
          "The stored entries, each divided by the range of its column within its query.");
}

// ---- metrics ----------------------------------------------------------------------------------

auto evaluate_queries_of(Vector<double> labels, Vector<double> scores, Vector<std::int64_t> offsets,
                         OptionalOrder order, Vector<std::int32_t> levels,
                         Vector<std::int32_t> n_levels, std::optional<Vector<std::int64_t>> docid,
                         const std::vector<Measure> &measures, Ties ties, bool with_pairs,
                         int n_threads) {
    const std::size_t n_rows = labels.shape(0);
    const QueryView queries = checked_queries(offsets, order, n_rows);
    check_scores(scores, n_rows);
    if (docid) require_length(docid->shape(0), std::int64_t(n_rows), "docid");
    check_levels(span_of(levels), span_of(offsets), span_of(n_levels));
    const RankInput input{queries,         span_of(labels),   span_of(scores),
                          span_of(levels), span_of(n_levels), span_of(docid)};
    MetricValues result =
        unlocked([&] { return evaluate_queries(input, measures, ties, with_pairs, n_threads); });
    return std::make_tuple(to_numpy(std::move(result.values)), to_numpy(std::move(result.means)),
                           to_numpy(std::move(result.pairs)));
}

auto ranks_within_queries_of(Vector<double> scores, Vector<std::int64_t> offsets,
                             OptionalOrder order, int n_threads) {
    const QueryView queries = checked_queries(offsets, order, scores.shape(0));
    check_scores(scores, scores.shape(0));
    std::vector<std::int64_t> ranks(scores.shape(0));
    unlocked([&] { ranks_within_queries(queries, span_of(scores), n_threads, ranks); });
    return to_numpy(std::move(ranks));
}

void bind_measure(nb::module_ &m) {
    nb::enum_<Ties>(m, "Ties", "Who comes first among equal scores.")
        .value("stable", Ties::stable)
        .value("average", Ties::average)
        .value("pessimistic", Ties::pessimistic)
        .value("docid", Ties::docid);
    nb::enum_<Gain>(m, "Gain").value("exponential", Gain::exponential).value("linear", Gain::linear);
    nb::enum_<Discount>(m, "Discount")
        .value("standard", Discount::standard)
        .value("letor", Discount::letor);
    nb::enum_<Kind>(m, "Kind", "The measures of one query.")
        .value("ndcg", Kind::ndcg)
        .value("mean_ndcg", Kind::mean_ndcg)
        .value("average_precision", Kind::average_precision)
        .value("precision", Kind::precision)
        .value("recall", Kind::recall)
        .value("reciprocal_rank", Kind::reciprocal_rank)
        .value("err", Kind::err)
        .value("auc", Kind::auc);
    nb::class_<Measure>(m, "Measure", "A measure with every convention decided.")
        .def("__init__",
             [](Measure *self, Kind kind, std::int64_t k, Gain gain, Discount discount,
                double relevant_from, double y_max, double empty, bool short_is_zero,
                bool reachable, bool step_precision) {
                 if (k < 0) throw std::invalid_argument("k must be >= 0");
                 new (self) Measure{kind,  k,     gain,          discount,  relevant_from,
                                    y_max, empty, short_is_zero, reachable, step_precision};
             },
             nb::kw_only(), nb::arg("kind"), nb::arg("k"), nb::arg("gain"), nb::arg("discount"),
             nb::arg("relevant_from"), nb::arg("y_max"), nb::arg("empty"),
             nb::arg("short_is_zero"), nb::arg("reachable"), nb::arg("step_precision"));
}

void bind_metrics(nb::module_ &m) {
    bind_measure(m);
    m.def("evaluate_queries", &evaluate_queries_of, nb::arg("labels").noconvert(),
          nb::arg("scores").noconvert(), nb::arg("offsets").noconvert(),
          nb::arg("order").noconvert().none(), nb::arg("levels").noconvert(),
          nb::arg("n_levels").noconvert(), nb::arg("docid").noconvert().none(),
          nb::arg("measures"), nb::arg("ties"), nb::arg("with_pairs"), nb::arg("n_threads") = 1,
          "(values by measure and query, means, pair counts by query), each flat.");
    m.def("ranks_within_queries", &ranks_within_queries_of, nb::arg("scores").noconvert(),
          nb::arg("offsets").noconvert(), nb::arg("order").noconvert().none(),
          nb::arg("n_threads") = 1, "Rank of each row in its query, from 1.");
}

}  // namespace

NB_MODULE(_core, m) {
    m.doc() = "The C++ core of linrank.";
    // A dataset that lives until the interpreter exits is no leak, and not worth a page on stderr.
    nb::set_leak_warnings(false);
    bind_rows(m);
    bind_queries(m);
    bind_reader(m);
    bind_pairs(m);
    bind_preferences(m);
    bind_published(m);
    bind_products(m);
    bind_hessian(m);
    bind_scaling(m);
    bind_metrics(m);
}
