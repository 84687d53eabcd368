// TREC files: judgements and runs.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>

#include "arrays.hpp"
#include "exclusive.hpp"
#include "module.hpp"
#include "trec.hpp"

namespace {

using trec::DocumentIndex;
using trec::Words;

Words words_of(const Vector<std::uint8_t> &text, const Vector<std::int64_t> &offsets) {
    check_offsets(span_of(offsets), text.shape(0));
    return {{reinterpret_cast<const char *>(text.data()), text.shape(0)}, span_of(offsets)};
}

/// A query and a word of each row.
DocumentIndex index_of(const Vector<std::int64_t> &query, const Words &documents) {
    require_length(query.shape(0), documents.size(), "query");
    return unlocked([&] { return DocumentIndex(span_of(query), documents); });
}

using Reader = Exclusive<trec::Reader>;

auto read_block(Reader &own, Vector<std::uint8_t> text) {
    const Reader::Use reader(own, "reader");
    auto fault = unlocked([&] {
        return reader->read({reinterpret_cast<const char *>(text.data()), text.shape(0)});
    });
    using Place = std::pair<std::int64_t, std::string>;
    return fault ? std::optional(Place{fault->line, fault->message}) : std::nullopt;
}

auto take_table(Reader &own) {
    const Reader::Use reader(own, "reader");
    trec::Table t = reader->take();
    return std::make_tuple(
        to_numpy(std::move(t.query)), to_numpy(std::move(t.query_ids.text)),
        to_numpy(std::move(t.query_ids.offsets)), to_numpy(std::move(t.documents.text)),
        to_numpy(std::move(t.documents.offsets)), to_numpy(std::move(t.value)),
        to_numpy(std::move(t.line)), nb::bytes(t.tag.data(), t.tag.size()));
}

auto repeated_document(Vector<std::int64_t> query, Vector<std::uint8_t> text,
                       Vector<std::int64_t> offsets) {
    const DocumentIndex index = index_of(query, words_of(text, offsets));
    using Rows = std::pair<std::int64_t, std::int64_t>;
    return index.repeated < 0 ? std::nullopt : std::optional(Rows{index.repeated, index.earlier});
}

auto find_documents(Vector<std::int64_t> query, Vector<std::uint8_t> text,
                    Vector<std::int64_t> offsets, Vector<std::int64_t> wanted_query,
                    Vector<std::uint8_t> wanted_text, Vector<std::int64_t> wanted_offsets) {
    const Words wanted = words_of(wanted_text, wanted_offsets);
    require_length(wanted_query.shape(0), wanted.size(), "wanted_query");
    const DocumentIndex index = index_of(query, words_of(text, offsets));
    std::vector<std::int64_t> rows(wanted_query.shape(0));
    unlocked([&] {
        for (std::size_t i = 0; i < rows.size(); ++i)
            rows[i] = index.find(span_of(wanted_query)[i], wanted[std::int64_t(i)]);
    });
    return to_numpy(std::move(rows));
}

auto document_order(Vector<std::int64_t> offsets, Vector<std::int64_t> rows,
                    Vector<std::uint8_t> text, Vector<std::int64_t> text_offsets, int n_threads) {
    const Words documents = words_of(text, text_offsets);
    check_offsets(span_of(offsets), rows.shape(0));
    for (const std::int64_t row : span_of(rows))
        if (row < 0 || row >= documents.size())
            throw std::invalid_argument("rows names a document that does not exist");
    return to_numpy(unlocked(
        [&] { return trec::id_order(span_of(offsets), span_of(rows), documents, n_threads); }));
}

}  // namespace

void bind_trec(nb::module_ &m) {
    nb::class_<Reader>(m, "TrecReader", "Reads judgements, or runs, block by block.")
        .def("__init__", [](Reader *self, bool is_run) {
                 new (self) Reader(trec::Reader(is_run ? trec::Kind::run : trec::Kind::qrels));
             }, nb::arg("is_run"))
        .def("read", &read_block, nb::arg("text").noconvert(),
             "Read whole lines; (line, message) of the first fault, or None.")
        .def("take", &take_table,
             "(query by row, ids of the queries, documents by row, values, lines, tag of a run); "
             "words as text and offsets.");
    m.def("repeated_document", &repeated_document, nb::arg("query").noconvert(),
          nb::arg("text").noconvert(), nb::arg("offsets").noconvert(),
          "(row, earlier row) of a query and a document that are named twice, or None.");
    m.def("find_documents", &find_documents, nb::arg("query").noconvert(),
          nb::arg("text").noconvert(), nb::arg("offsets").noconvert(),
          nb::arg("wanted_query").noconvert(), nb::arg("wanted_text").noconvert(),
          nb::arg("wanted_offsets").noconvert(),
          "The row that has each of the wanted queries and documents, -1 where none has.");
    m.def("document_order", &document_order, nb::arg("offsets").noconvert(),
          nb::arg("rows").noconvert(), nb::arg("text").noconvert(),
          nb::arg("text_offsets").noconvert(), nb::arg("n_threads"),
          "The place of each document in the order of the ids of its query.");
}
