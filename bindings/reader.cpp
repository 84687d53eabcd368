// Text to rows.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <mutex>
#include <tuple>
#include <type_traits>

#include "arrays.hpp"
#include "module.hpp"
#include "query_table.hpp"
#include "spans.hpp"
#include "svmlight.hpp"

namespace {

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

void check_range(const svmlight::QueryTable &table, std::int64_t first, std::int64_t last) {
    if (first < 0 || last < first || last > table.size())
        throw std::invalid_argument("no queries " + std::to_string(first) + " to " +
                                    std::to_string(last) + " among " + std::to_string(table.size()));
}

auto integer_ids(const svmlight::QueryTable &table, std::int64_t first, std::int64_t last) {
    check_range(table, first, last);
    std::vector<std::int64_t> ids(last - first);
    for (std::int64_t q = first; q < last; ++q)
        if (!svmlight::parse_integer(table[q], ids[q - first]))
            throw std::invalid_argument("the id of query " + std::to_string(q) + " is no integer");
    return to_numpy(std::move(ids));
}

nb::list id_tokens(const svmlight::QueryTable &table, std::int64_t first, std::int64_t last) {
    check_range(table, first, last);
    nb::list ids;
    for (std::int64_t q = first; q < last; ++q) ids.append(nb::bytes(table[q].data(), table[q].size()));
    return ids;
}

/// Rows of different lengths in another order. Offsets may start beyond 0: they are of a part of an array.
void gather_spans_of(Output<const std::uint8_t> from, std::int64_t width, Vector<std::int64_t> offsets,
                     Vector<std::int64_t> order, Output<std::uint8_t> to) {
    const auto places = span_of(offsets);
    if (width < 1 || places.empty() || places.front() < 0 || !std::is_sorted(places.begin(), places.end()) ||
        places.back() > static_cast<std::int64_t>(from.shape(0)) / width)
        throw std::invalid_argument("offsets do not match the elements");
    std::int64_t n_elements = 0;
    for (const std::int64_t i : span_of(order)) {
        if (i < 0 || i + 1 >= static_cast<std::int64_t>(places.size()))
            throw std::invalid_argument("order names a row that does not exist");
        n_elements += places[i + 1] - places[i];
    }
    if (n_elements > INT64_MAX / width) throw std::invalid_argument("too many elements");
    require_length(to.shape(0), n_elements * width, "to");
    nb::gil_scoped_release release;
    gather_spans(reinterpret_cast<const std::byte *>(from.data()), static_cast<std::size_t>(width), places,
                 span_of(order), reinterpret_cast<std::byte *>(to.data()));
}

void bind_query_table(nb::module_ &m) {
    using svmlight::QueryTable;
    nb::class_<QueryTable>(m, "QueryTable", "Query ids numbered by first appearance.")
        .def(nb::init<>())
        .def("runs", [](QueryTable &table, const svmlight::Piece &piece) {
            auto runs = table.runs(piece);
            return std::make_tuple(to_numpy(std::move(runs.numbers)), to_numpy(std::move(runs.sizes)));
        }, nb::arg("piece"), "(query, rows) of rows of a piece that follow one another with one id.")
        .def("number", [](QueryTable &table, nb::bytes id) {
            return table.number({id.c_str(), id.size()});
        }, nb::arg("id"), "The number of an id; a new one gets the next.")
        .def("integers", &integer_ids, nb::arg("first"), nb::arg("last"))
        .def("tokens", &id_tokens, nb::arg("first"), nb::arg("last"),
             nb::sig("def tokens(self, first: int, last: int) -> list[bytes]"),
             "Ids as bytes: they may be in any encoding.")
        .def("__len__", &QueryTable::size)
        .def_prop_ro("all_integers", &QueryTable::all_integers)
        .def_prop_ro("n_bytes", &QueryTable::n_bytes);
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

}  // namespace

void bind_reader(nb::module_ &m) {
    bind_piece(m);
    bind_query_table(m);
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
    m.def("gather_spans", &gather_spans_of, nb::arg("source").noconvert(), nb::arg("width"),
          nb::arg("offsets").noconvert(), nb::arg("order").noconvert(), nb::arg("to").noconvert(),
          "Copy rows of different lengths in an order: elements of `width` bytes.");
    m.def("fill_comments", &fill_comments_of, nb::arg("pieces"), nb::arg("text").noconvert(),
          nb::arg("offsets").noconvert());
}
