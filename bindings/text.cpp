// Text to rows and rows to text: SVMlight and TREC files.
#include <mutex>

#include "arrays.hpp"
#include "svmlight.hpp"
#include "trec.hpp"

using svmlight::Piece, svmlight::QueryTable, svmlight::Words;
template <>
inline constexpr bool is_opaque<Piece> = true;

/// Text, as its bytes.
template <>
struct Parameter<std::string_view> {
    using Given = Vector<const std::uint8_t>;
    static std::string_view of(const Given &a) {
        return {reinterpret_cast<const char *>(a.data()), a.shape(0)};
    }
};
/// Words, as the bytes of their text and the offsets of each.
template <>
struct Parameter<Words> {
    using Given = std::pair<Vector<const std::uint8_t>, Vector<const Index>>;
    static Words of(const Given &given) {
        const Words words{Parameter<std::string_view>::of(given.first),
                                    Parameter<Integers>::of(given.second)};
        check_offsets(words.offsets, words.text.size());
        return words;
    }
};

namespace {

using Text = std::span<const std::uint8_t>;
using PieceList = std::vector<Piece *>;

/// Parses blocks, from several threads at once; keeps one scratch for each of them.
template <class Value>
class TextParser {
public:
    TextParser(Index lowest, Index highest) : range{lowest, highest} {}

    Piece parse(std::string_view text) {
        std::unique_ptr<svmlight::Scratch<Value>> scratch = take();
        auto piece = svmlight::parse<Value>(text, range, *scratch);
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

/// The rows of all pieces. Every function that fills arrays asks for them: no piece is None, and
/// none is there twice, since filling takes the memory of a piece.
Index rows_of(const PieceList &pieces) {
    PieceList sorted = pieces;
    std::ranges::sort(sorted);
    require(sorted.empty() || sorted.front() != nullptr, "a piece is None");
    require(std::ranges::adjacent_find(sorted) == sorted.end(), "a piece is listed twice");
    Index n = 0;
    for (const Piece *piece : pieces) n += piece->n_rows;
    return n;
}

void check_columns(const PieceList &pieces, Index n_columns, Index base) {
    require_non_negative(base, "base");
    for (const Piece *piece : pieces)
        require(piece->n_entries == 0 || (piece->lowest >= base && piece->highest
                                          - base < n_columns), "a feature index is out of range");
}

template <class Value>
void fill_dense(const PieceList &pieces, const nb::ndarray<Value, nb::ndim<2>, nb::c_contig,
                nb::device::cpu> &x, Index base, int n_threads) {
    require_length(x.shape(0), rows_of(pieces), "x");
    check_columns(pieces, Index(x.shape(1)), base);
    svmlight::fill_dense<Value>(pieces, x.data(), Index(x.shape(1)), base, n_threads);
}

template <class Value>
void fill_csr(const PieceList &pieces, std::span<Value> values, std::span<std::int32_t> columns,
              std::span<Index> offsets, Index n_columns, Index base, int n_threads) {
    require_length(offsets, rows_of(pieces) + 1, "offsets");
    Index n_entries = 0;
    for (const Piece *piece : pieces) n_entries += piece->n_entries;
    require_lengths(n_entries, {"values", "columns"}, values, columns);
    check_columns(pieces, n_columns, base);
    svmlight::fill_csr<Value>(pieces, values.data(), columns.data(), offsets.data(), base,
                              n_threads);
}

/// fill(pieces, array) of an array of one number a row.
template <class T, class Result>
void bind_fill(nb::module_ &m, const char *name, const char *what,
               Result (*fill)(svmlight::Pieces, T *)) {
    def(m, std::string(name) + "(pieces, " + what + ")",
        [what, fill](const PieceList &pieces, std::span<T> array) {
        require_length(array, rows_of(pieces), what);
        return fill(pieces, array.data());
    });
}

/// Ids as bytes: they may be in any encoding.
nb::list id_tokens(const QueryTable &table, Index first, Index last) {
    nb::list ids;
    for (Index q = first; q < last; ++q) ids.append(nb::bytes(table[q].data(), table[q].size()));
    return ids;
}

nb::list fill_query_codes(const PieceList &pieces, std::span<Index> codes) {
    require_length(codes, rows_of(pieces), "codes");
    const QueryTable distinct = svmlight::fill_query_codes(pieces, codes.data());
    return id_tokens(distinct, 0, distinct.size());
}

void fill_comments(const PieceList &pieces, std::span<std::uint8_t> text,
                   std::span<Index> offsets) {
    require_length(offsets, rows_of(pieces) + 1, "offsets");
    require_length(text, svmlight::comment_bytes(pieces), "text");
    svmlight::fill_comments(pieces, reinterpret_cast<char *>(text.data()), offsets.data());
}

using PlacedFault = std::optional<std::tuple<Index, Index, std::string>>;

PlacedFault as_tuple(const std::optional<svmlight::Fault> &fault) {
    if (!fault) return std::nullopt;
    return std::tuple(fault->place.line, fault->place.column, fault->message);
}

void bind_piece(nb::module_ &m) {
    nb::class_<Piece> c(m, "Piece", "What was read from one block of lines.");
    def_properties(c, {{"n_rows"}, {"n_entries"}, {"n_lines"}, {"has_query"},
                       {"lowest", "Smallest feature index, -1 without entries."},
                       {"highest", "Largest feature index, -1 without entries."}, {"n_bytes"}},
                       &Piece::n_rows, &Piece::n_entries, &Piece::n_lines, &Piece::has_query,
                       &Piece::lowest, &Piece::highest, &Piece::n_bytes);
    def_properties(c, {{"has_weight"}, {"n_comment_bytes"}, {"highest_place"},
                       {"fault", "(line, column, message) of the first fault."}},
        [](const Piece &p) { return p.weights.size() > 0; },
        [](const Piece &p) { return p.comments.text.size(); },
        [](const Piece &p) { return std::tuple(p.highest_place.line, p.highest_place.column); },
        [](const Piece &p) { return as_tuple(p.fault); });
    def(c, "query_fault(before)", [](const Piece &p, bool before) {
        return as_tuple(p.query_fault(before));
    }, "The fault if rows before have (or lack) query ids and these do not.");
}

void check_range(const QueryTable &table, Index first, Index last) {
    require(first >= 0 && last >= first && last <= table.size(), "no queries ", first, " to ",
            last, " among ", table.size());
}

std::vector<std::int64_t> integer_ids(const QueryTable &table, Index first, Index last) {
    check_range(table, first, last);
    std::vector<std::int64_t> ids(last - first);
    for (Index q = first; q < last; ++q)
        require(svmlight::parse_integer(table[q], ids[q - first]), "the id of query ", q,
                " is no integer");
    return ids;
}

/// Rows of different lengths in another order. Offsets may start beyond 0: they are of a part of an
/// array.
void gather(Text from, Index width, Integers offsets, Integers order, std::span<std::uint8_t> to) {
    require(width >= 1 && !offsets.empty() && offsets.front() >= 0
            && std::ranges::is_sorted(offsets) && offsets.back() <= std::ssize(from) / width,
            "offsets do not match the elements");
    check_indices(order, std::ssize(offsets) - 1, "order names a row that does not exist");
    Index n_elements = 0;
    for (const Index i : order) n_elements += offsets[i + 1] - offsets[i];
    require(n_elements <= INT64_MAX / width, "too many elements");
    require_length(to, n_elements * width, "to");
    gather_spans(from.data(), std::size_t(width), offsets, order, to.data());
}

void bind_query_table(nb::module_ &m) {
    nb::class_<QueryTable> c(m, "QueryTable", "Query ids numbered by first appearance.");
    c.def(nb::init<>());
    def(c, "runs(piece)", &QueryTable::runs,
        "(query, rows) of rows of a piece that follow one another with one id.");
    def(c, "number(id)", [](QueryTable &table, nb::bytes id) {
        return table.number({id.c_str(), id.size()});
    }, "The number of an id; a new one gets the next.");
    def(c, "integers(first, last)", &integer_ids);
    def(c, "tokens(first, last)", [](const QueryTable &table, Index first, Index last) {
        check_range(table, first, last);
        return id_tokens(table, first, last);
    }, nb::sig("def tokens(self, first: int, last: int) -> list[bytes]"),
        "Ids as bytes: they may be in any encoding.");
    def(c, "__len__()", &QueryTable::size);
    def_properties(c, {{"all_integers"}, {"n_bytes"}}, &QueryTable::all_integers,
                   &QueryTable::n_bytes);
}

template <class Value>
void bind_reader_of(nb::module_ &m, const char *name) {
    nb::class_<TextParser<Value>> parser(m, name);
    parser.def(nb::init<Index, Index>(), nb::arg("lowest"), nb::arg("highest"));
    def(parser, "parse(text)", unlocked(&TextParser<Value>::parse),
        "Read a block of whole lines; may be called from several threads.");
    def(m, "fill_dense(pieces, x, base, n_threads)", unlocked(&fill_dense<Value>));
    def(m, "fill_csr(pieces, values, columns, offsets, n_columns, base, n_threads)",
        unlocked(&fill_csr<Value>));
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
    def(m, "fill_query_codes(pieces, codes)", &fill_query_codes,
        nb::sig("def fill_query_codes(pieces: Sequence[Piece], codes: NDArray[numpy.int64]) -> "
                "list[bytes]"));
    def(m, "fill_comments(pieces, text, offsets)", &fill_comments);
    def(m, "gather_spans(source, width, offsets, order, to)", unlocked(&gather),
        "Copy rows of different lengths in an order: elements of `width` bytes.");
}

// ---- rows to text -----------------------------------------------------------------------------

std::vector<std::uint8_t> svmlight_text(const Rows &rows, Doubles labels, OptionalDoubles weights,
                                        std::optional<Words> ids, std::optional<Words> comments,
                                        Index base, bool names_ends, int n_threads) {
    require_lengths(n_rows(rows), {"labels", "weights", "ids", "comments"}, labels, weights, ids,
                    comments);
    return svmlight::text_of({rows, labels, or_empty(weights), ids.value_or(Words()),
                              comments.value_or(Words()), base, names_ends}, n_threads);
}

// ---- TREC files: judgments and runs ----------------------------------------------------------

using trec::DocumentIndex;

/// A query and a word of each row.
DocumentIndex index_of(Integers query, const Words &documents) {
    require_length(query, documents.size(), "query");
    return DocumentIndex(query, documents);
}

using TrecReader = Exclusive<trec::Reader>;
using RowsOfDocument = std::optional<std::pair<Index, Index>>;

auto take_table(TrecReader &self) {
    trec::Table t = self.use()->take();
    return std::tuple(std::move(t.query), std::move(t.query_ids), std::move(t.documents),
                      std::move(t.value), std::move(t.line),
                      nb::bytes(t.tag.data(), t.tag.size()));
}

RowsOfDocument repeated_document(Integers query, Words documents) {
    const DocumentIndex index = index_of(query, documents);
    return index.repeated < 0 ? std::nullopt : RowsOfDocument({index.repeated, index.earlier});
}

std::vector<Index> find_documents(Integers query, Words documents, Integers wanted_query,
                                  Words wanted) {
    require_length(wanted_query, wanted.size(), "wanted_query");
    const DocumentIndex index = index_of(query, documents);
    std::vector<Index> rows;
    for (Index i = 0; i < wanted.size(); ++i)
        rows.push_back(index.find(wanted_query[i], wanted[i]));
    return rows;
}

std::vector<Index> document_order(Integers offsets, Integers rows, Words documents,
                                  int n_threads) {
    check_offsets(offsets, rows.size());
    check_indices(rows, documents.size(), "rows names a document that does not exist");
    return trec::id_order(offsets, rows, documents, n_threads);
}

void bind_trec(nb::module_ &m) {
    nb::class_<TrecReader> reader(m, "TrecReader", "Reads judgments, or runs, block by block.");
    def(reader, "__init__(is_run)", [](TrecReader *self, bool is_run) {
        new (self) TrecReader(trec::Reader(is_run ? trec::Kind::run : trec::Kind::qrels), "reader");
    });
    def(reader, "read(text)", unlocked(exclusive(&trec::Reader::read)),
        "Read whole lines; (line, message) of the first fault, or None.");
    def(reader, "take()", &take_table,
        "(query by row, ids of the queries, documents by row, values, lines, tag of a run); "
        "words as text and offsets.");
    def(m, "repeated_document(query, documents)", unlocked(&repeated_document),
        "(row, earlier row) of a query and a document that are named twice, or None.");
    def(m, "find_documents(query, documents, wanted_query, wanted)", unlocked(&find_documents),
        "The row that has each of the wanted queries and documents, -1 where none has.");
    def(m, "document_order(offsets, rows, documents, n_threads)", unlocked(&document_order),
        "The place of each document in the order of the ids of its query.");
}

}  // namespace

void bind_text(nb::module_ &m) {
    bind_reader(m);
    def(m, "svmlight_text(rows, labels, weights, ids, comments, base, names_ends, n_threads)",
        unlocked(&svmlight_text),
        "Lines of SVMlight text, as bytes; ids and comments are words, one a row.");
    bind_trec(m);
}
