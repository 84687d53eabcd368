// Rows to text.
#include "arrays.hpp"
#include "module.hpp"
#include "svmlight_text.hpp"

namespace {

using OptionalBytes = std::optional<Vector<std::uint8_t>>;
using OptionalOffsets = std::optional<Vector<std::int64_t>>;

trec::Words words_of(const OptionalBytes &text, const OptionalOffsets &offsets, std::int64_t n_rows,
                     const char *name) {
    static const std::int64_t none[] = {0};
    if (!text || !offsets) return {{}, none};
    require_length(offsets->shape(0), n_rows + 1, name);
    check_offsets(span_of(*offsets), text->shape(0));
    return {{reinterpret_cast<const char *>(text->data()), text->shape(0)}, span_of(*offsets)};
}

auto svmlight_text(const BoundRows &rows, Vector<double> labels, std::optional<Vector<double>> weights,
                   OptionalBytes id_text, OptionalOffsets id_offsets, OptionalBytes comment_text,
                   OptionalOffsets comment_offsets, std::int64_t base, bool names_ends, int n_threads) {
    const std::int64_t n = n_rows(rows.rows);
    require_length(labels.shape(0), n, "labels");
    if (weights) require_length(weights->shape(0), n, "weights");
    const svmlight::Lines lines{
        rows.rows, span_of(labels), span_of(weights), words_of(id_text, id_offsets, n, "id_offsets"),
        words_of(comment_text, comment_offsets, n, "comment_offsets"), base, names_ends};
    return to_numpy(unlocked([&] { return svmlight::text_of(lines, n_threads); }));
}

}  // namespace

void bind_writer(nb::module_ &m) {
    m.def("svmlight_text", &svmlight_text, nb::arg("rows"), nb::arg("labels").noconvert(),
          nb::arg("weights").noconvert().none(), nb::arg("id_text").noconvert().none(),
          nb::arg("id_offsets").noconvert().none(), nb::arg("comment_text").noconvert().none(),
          nb::arg("comment_offsets").noconvert().none(), nb::arg("base"), nb::arg("names_ends"),
          nb::arg("n_threads"),
          "Lines of SVMlight text, as bytes; ids and comments are words, one a row.");
}
