// Text to rows and rows to text: SVMlight and TREC files.
#include <nanobind/stl/pair.h>

#include <mutex>

#include "arrays.hpp"
#include "exclusive.hpp"
#include "svmlight.hpp"
#include "spans.hpp"
#include "svmlight_text.hpp"
#include "trec.hpp"

namespace {

using Text = Vector<std::uint8_t>;
using PieceList = std::vector<svmlight::Piece *>;

std::string_view chars_of(const Text &text) {
    return {reinterpret_cast<const char *>(text.data()), text.shape(0)};
}

/// Parses blocks, from several threads at once; keeps one scratch for each of them.
template <class Value>
class TextParser {
public:
    TextParser(Index lowest, Index highest) : range{lowest, highest} {}

    svmlight::Piece parse(Text text) {
        nb::gil_scoped_release release;
        std::unique_ptr<svmlight::Scratch<Value>> scratch = take();
        auto piece = svmlight::parse<Value>(chars_of(text), range, *scratch);
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
Index rows_of(const PieceList &pieces) {
    PieceList sorted = pieces;
    std::sort(sorted.begin(), sorted.end());
    require(sorted.empty() || sorted.front() != nullptr, "a piece is None");
    require(std::adjacent_find(sorted.begin(), sorted.end()) == sorted.end(), "a piece is listed twice");
    Index n = 0;
    for (const svmlight::Piece *piece : pieces) n += piece->n_rows;
    return n;
}

void check_columns(const PieceList &pieces, Index n_columns, Index base) {
    if (base < 0) throw std::invalid_argument("base must be >= 0, got " + std::to_string(base));
    for (const svmlight::Piece *piece : pieces)
        if (piece->n_entries > 0 && (piece->lowest < base || piece->highest - base >= n_columns))
            throw std::invalid_argument("a feature index is out of range");
}

template <class Value>
void fill_dense_of(const PieceList &pieces, nb::ndarray<Value, nb::ndim<2>, nb::c_contig, nb::device::cpu> x,
                   Index base, int n_threads) {
    const auto n_columns = Index(x.shape(1));
    require_length(x.shape(0), rows_of(pieces), "x");
    check_columns(pieces, n_columns, base);
    unlocked([&] { svmlight::fill_dense<Value>(pieces, x.data(), n_columns, base, n_threads); });
}

template <class Value>
void fill_csr_of(const PieceList &pieces, Writable<Value> values, Writable<std::int32_t> columns,
                 Writable<Index> offsets, Index n_columns, Index base, int n_threads) {
    require_length(offsets.shape(0), rows_of(pieces) + 1, "offsets");
    Index n_entries = 0;
    for (const svmlight::Piece *piece : pieces) n_entries += piece->n_entries;
    require_length(values.shape(0), n_entries, "values");
    require_length(columns.shape(0), n_entries, "columns");
    check_columns(pieces, n_columns, base);
    unlocked([&] {
        svmlight::fill_csr<Value>(pieces, values.data(), columns.data(), offsets.data(), base, n_threads);
    });
}

/// fill(pieces, array) of an array of one number a row.
template <class T, class Result>
void bind_fill(nb::module_ &m, const char *name, const char *what, Result (*fill)(svmlight::Pieces, T *)) {
    def(m, name, [what, fill](const PieceList &pieces, Writable<T> array) {
        require_length(array.shape(0), rows_of(pieces), what);
        return fill(pieces, array.data());
    }, {"pieces", what});
}

/// Ids as bytes: they may be in any encoding.
nb::list tokens_between(const svmlight::QueryTable &table, Index first, Index last) {
    nb::list ids;
    for (Index q = first; q < last; ++q) ids.append(nb::bytes(table[q].data(), table[q].size()));
    return ids;
}

nb::list fill_query_codes_of(const PieceList &pieces, Writable<Index> codes) {
    require_length(codes.shape(0), rows_of(pieces), "codes");
    const svmlight::QueryTable distinct = svmlight::fill_query_codes(pieces, codes.data());
    return tokens_between(distinct, 0, distinct.size());
}

void fill_comments_of(const PieceList &pieces, Writable<std::uint8_t> text, Writable<Index> offsets) {
    require_length(offsets.shape(0), rows_of(pieces) + 1, "offsets");
    require_length(text.shape(0), svmlight::comment_bytes(pieces), "text");
    svmlight::fill_comments(pieces, reinterpret_cast<char *>(text.data()), offsets.data());
}

std::tuple<Index, Index, std::string> as_tuple(const svmlight::Fault &fault) {
    return {fault.place.line, fault.place.column, fault.message};
}

void bind_piece(nb::module_ &m) {
    using svmlight::Piece;
    nb::class_<Piece> c(m, "Piece", "What was read from one block of lines.");
    def_members(c, {"n_rows", "n_entries", "n_lines", "has_query"}, &Piece::n_rows, &Piece::n_entries, &Piece::n_lines,
                &Piece::has_query);
    c.def_ro("lowest", &Piece::lowest, "Smallest feature index, -1 without entries.")
        .def_ro("highest", &Piece::highest, "Largest feature index, -1 without entries.")
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

void check_range(const svmlight::QueryTable &table, Index first, Index last) {
    if (first < 0 || last < first || last > table.size())
        throw std::invalid_argument("no queries " + std::to_string(first) + " to " +
                                    std::to_string(last) + " among " + std::to_string(table.size()));
}

auto integer_ids(const svmlight::QueryTable &table, Index first, Index last) {
    check_range(table, first, last);
    std::vector<Index> ids(last - first);
    for (Index q = first; q < last; ++q)
        if (!svmlight::parse_integer(table[q], ids[q - first]))
            throw std::invalid_argument("the id of query " + std::to_string(q) + " is no integer");
    return to_numpy(std::move(ids));
}

nb::list id_tokens(const svmlight::QueryTable &table, Index first, Index last) {
    check_range(table, first, last);
    return tokens_between(table, first, last);
}

/// Rows of different lengths in another order. Offsets may start beyond 0: they are of a part of an array.
void gather_spans_of(Text from, Index width, IntegerArray offsets,
                     IntegerArray order, Writable<std::uint8_t> to) {
    const auto places = span_of(offsets);
    if (width < 1 || places.empty() || places.front() < 0 || !std::is_sorted(places.begin(), places.end()) ||
        places.back() > Index(from.shape(0)) / width)
        throw std::invalid_argument("offsets do not match the elements");
    check_indices(span_of(order), Index(places.size()) - 1, "order names a row that does not exist");
    Index n_elements = 0;
    for (const Index i : span_of(order)) n_elements += places[i + 1] - places[i];
    if (n_elements > INT64_MAX / width) throw std::invalid_argument("too many elements");
    require_length(to.shape(0), n_elements * width, "to");
    unlocked([&] {
        gather_spans(reinterpret_cast<const std::byte *>(from.data()), std::size_t(width), places, span_of(order),
                     reinterpret_cast<std::byte *>(to.data()));
    });
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
void bind_reader_of(nb::module_ &m, const char *name) {
    nb::class_<TextParser<Value>> parser(m, name);
    parser.def(nb::init<Index, Index>(), nb::arg("lowest"), nb::arg("highest"));
    parser.def("parse", &TextParser<Value>::parse, nb::arg("text").noconvert(),
               "Read a block of whole lines; may be called from several threads.");
    def(m, "fill_dense", &fill_dense_of<Value>, {"pieces", "x", "base", "n_threads"});
    def(m, "fill_csr", &fill_csr_of<Value>,
        {"pieces", "values", "columns", "offsets", "n_columns", "base", "n_threads"});
}

void bind_reader(nb::module_ &m) {
    bind_piece(m);
    bind_query_table(m);
    m.attr("MAX_FEATURE") = svmlight::max_feature;
    bind_reader_of<float>(m, "TextParser32");
    bind_reader_of<double>(m, "TextParser64");
    bind_fill(m, "fill_labels", "labels", &svmlight::fill_labels);
    bind_fill(m, "fill_weights", "weights", &svmlight::fill_weights);
    bind_fill(m, "fill_integer_queries", "ids", &svmlight::fill_integer_queries);
    def(m, "fill_query_codes", &fill_query_codes_of, {"pieces", "codes"},
        nb::sig("def fill_query_codes(pieces: Sequence[Piece], codes: NDArray[numpy.int64]) -> list[bytes]"));
    def(m, "fill_comments", &fill_comments_of, {"pieces", "text", "offsets"});
    def(m, "gather_spans", &gather_spans_of, {"source", "width", "offsets", "order", "to"},
        "Copy rows of different lengths in an order: elements of `width` bytes.");
}

// ---- rows to text -----------------------------------------------------------------------------

trec::Words words_of(const Text &text, const IntegerArray &offsets) {
    check_offsets(span_of(offsets), text.shape(0));
    return {{reinterpret_cast<const char *>(text.data()), text.shape(0)}, span_of(offsets)};
}

/// One word a row, or none at all.
trec::Words words_of(const std::optional<Text> &text, const std::optional<IntegerArray> &offsets, Index n_rows,
                     const char *name) {
    static const Index none[] = {0};
    if (!text || !offsets) return {{}, none};
    require_length(offsets->shape(0), n_rows + 1, name);
    return words_of(*text, *offsets);
}

auto svmlight_text(const BoundRows &rows, DoubleArray labels, OptionalDoubles weights, std::optional<Text> id_text,
                   std::optional<IntegerArray> id_offsets, std::optional<Text> comment_text,
                   std::optional<IntegerArray> comment_offsets, Index base, bool names_ends, int n_threads) {
    const Index n = n_rows(rows.rows);
    require_length(labels.shape(0), n, "labels");
    require_length(weights, n, "weights");
    const svmlight::Lines lines{
        rows.rows, span_of(labels), span_of(weights), words_of(id_text, id_offsets, n, "id_offsets"),
        words_of(comment_text, comment_offsets, n, "comment_offsets"), base, names_ends};
    return to_numpy(unlocked([&] { return svmlight::text_of(lines, n_threads); }));
}

// ---- TREC files: judgments and runs ----------------------------------------------------------

using trec::DocumentIndex, trec::Words;

/// A query and a word of each row.
DocumentIndex index_of(const IntegerArray &query, const Words &documents) {
    require_length(query.shape(0), documents.size(), "query");
    return unlocked([&] { return DocumentIndex(span_of(query), documents); });
}

using TrecReader = Exclusive<trec::Reader>;

auto read_block(TrecReader &self, Text text) {
    const auto reader = self.use();
    auto fault = unlocked([&] { return reader->read(chars_of(text)); });
    using Place = std::pair<Index, std::string>;
    return fault ? std::optional(Place{fault->line, fault->message}) : std::nullopt;
}

auto take_table(TrecReader &self) {
    trec::Table t = self.use()->take();
    return std::tuple_cat(to_tuple(std::move(t.query), std::move(t.query_ids.text), std::move(t.query_ids.offsets),
                                   std::move(t.documents.text), std::move(t.documents.offsets), std::move(t.value),
                                   std::move(t.line)), std::make_tuple(nb::bytes(t.tag.data(), t.tag.size())));
}

auto repeated_document(IntegerArray query, Text text, IntegerArray offsets) {
    const DocumentIndex index = index_of(query, words_of(text, offsets));
    using Rows = std::pair<Index, Index>;
    return index.repeated < 0 ? std::nullopt : std::optional(Rows{index.repeated, index.earlier});
}

auto find_documents(IntegerArray query, Text text, IntegerArray offsets, IntegerArray wanted_query, Text wanted_text,
                    IntegerArray wanted_offsets) {
    const Words wanted = words_of(wanted_text, wanted_offsets);
    require_length(wanted_query.shape(0), wanted.size(), "wanted_query");
    const DocumentIndex index = index_of(query, words_of(text, offsets));
    return filled(std::vector<Index>(wanted_query.shape(0)), [&](auto rows) {
        for (std::size_t i = 0; i < rows.size(); ++i)
            rows[i] = index.find(span_of(wanted_query)[i], wanted[Index(i)]);
    });
}

auto document_order(IntegerArray offsets, IntegerArray rows, Text text, IntegerArray text_offsets, int n_threads) {
    const Words documents = words_of(text, text_offsets);
    check_offsets(span_of(offsets), rows.shape(0));
    check_indices(span_of(rows), documents.size(), "rows names a document that does not exist");
    return to_numpy(unlocked([&] {
        return trec::id_order(span_of(offsets), span_of(rows), documents, n_threads);
    }));
}

void bind_trec(nb::module_ &m) {
    nb::class_<TrecReader> reader(m, "TrecReader", "Reads judgments, or runs, block by block.");
    def(reader, "__init__", [](TrecReader *self, bool is_run) {
        new (self) TrecReader(trec::Reader(is_run ? trec::Kind::run : trec::Kind::qrels), "reader");
    }, {"is_run"});
    def(reader, "read", &read_block, {"text"}, "Read whole lines; (line, message) of the first fault, or None.");
    reader.def("take", &take_table,
               "(query by row, ids of the queries, documents by row, values, lines, tag of a run); "
               "words as text and offsets.");
    def(m, "repeated_document", &repeated_document, {"query", "text", "offsets"},
        "(row, earlier row) of a query and a document that are named twice, or None.");
    def(m, "find_documents", &find_documents,
        {"query", "text", "offsets", "wanted_query", "wanted_text", "wanted_offsets"},
        "The row that has each of the wanted queries and documents, -1 where none has.");
    def(m, "document_order", &document_order, {"offsets", "rows", "text", "text_offsets", "n_threads"},
        "The place of each document in the order of the ids of its query.");
}

}  // namespace

void bind_text(nb::module_ &m) {
    bind_reader(m);
    def(m, "svmlight_text", &svmlight_text,
        {"rows", "labels", "weights", "id_text", "id_offsets", "comment_text", "comment_offsets", "base", "names_ends",
         "n_threads"},
        "Lines of SVMlight text, as bytes; ids and comments are words, one a row.");
    bind_trec(m);
}
