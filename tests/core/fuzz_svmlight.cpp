// Any bytes as SVMlight text. Whatever comes in, the parser must neither read nor write outside its buffers; a
// text read whole must say the same as the text cut into blocks of lines; dense rows must say the same as
// sparse ones; and what was read must read the same again after it was written.
#include <array>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fuzzing.hpp"
#include "svmlight.hpp"

using namespace linrank;
using fuzzing::require;
using fuzzing::same;
using svmlight::Piece;

namespace {

fuzzing::Arena arena;

/// All that was read, or the first fault.
template <class Value>
struct Reading {
    std::span<Value> values;
    std::span<std::int32_t> columns;
    std::span<std::int64_t> offsets, comment_offsets;
    std::span<double> labels, weights;
    std::span<std::int64_t> codes;  // integer ids, or numbers into `ids`
    std::span<char> comments;
    std::vector<std::string> ids;
    std::optional<svmlight::Fault> fault;  // with its line in the whole text

    bool operator==(const Reading &other) const {
        if (fault.has_value() != other.fault.has_value()) return false;
        if (fault)  // the rest is of no use then
            return fault->place.line == other.fault->place.line && fault->place.column == other.fault->place.column &&
                   fault->message == other.fault->message;
        return same(values, other.values) && same(columns, other.columns) &&
               same(offsets, other.offsets) && same(labels, other.labels) && same(weights, other.weights) &&
               same(codes, other.codes) && ids == other.ids && same(comments, other.comments) &&
               same(comment_offsets, other.comment_offsets);
    }
};

/// Reads blocks of about `block` bytes, each from a buffer of exactly its size, as the loader does.
template <class Value>
class BlockReader {
public:
    std::vector<Piece> pieces;
    std::optional<svmlight::Fault> fault;

    void read(std::string_view text, std::size_t block) {
        pieces.clear();
        fault.reset();
        std::int64_t n_lines = 0;
        for (std::size_t start = 0; start < text.size() && !fault;) {
            std::size_t end = text.find('\n', start + block - 1);
            end = end == text.npos ? text.size() : end + 1;
            const auto exact = arena.take<char>(end - start);
            std::memcpy(exact.data(), text.data() + start, end - start);
            Piece piece = svmlight::parse<Value>({exact.data(), exact.size()}, {}, scratch);
            start = end;
            if (!pieces.empty()) fault = piece.query_fault(pieces[0].has_query);
            if (!fault) fault = std::move(piece.fault);
            if (fault) fault->place.line += n_lines;
            n_lines += piece.n_lines;
            if (piece.n_rows > 0) pieces.push_back(std::move(piece));
        }
    }
    /// Takes the pieces.
    Reading<Value> lay_out() {
        Reading<Value> all;
        all.fault = std::move(fault);
        if (all.fault) return all;
        std::vector<Piece *> pointers;
        std::size_t n_rows = 0, n_entries = 0;
        for (Piece &piece : pieces) {
            pointers.push_back(&piece);
            n_rows += static_cast<std::size_t>(piece.n_rows);
            n_entries += static_cast<std::size_t>(piece.n_entries);
        }
        if (!pieces.empty() && pieces[0].has_query) {
            all.codes = arena.take<std::int64_t>(n_rows);
            if (!svmlight::fill_integer_queries(pointers, all.codes.data())) {
                const svmlight::QueryTable ids = svmlight::fill_query_codes(pointers, all.codes.data());
                for (std::int64_t q = 0; q < ids.size(); ++q) all.ids.emplace_back(ids[q]);
            }
        }
        all.comments = arena.take<char>(static_cast<std::size_t>(svmlight::comment_bytes(pointers)));
        all.comment_offsets = arena.take<std::int64_t>(n_rows + 1);
        svmlight::fill_comments(pointers, all.comments.data(), all.comment_offsets.data());
        all.labels = arena.take<double>(n_rows);
        all.weights = arena.take<double>(n_rows);
        svmlight::fill_labels(pointers, all.labels.data());
        svmlight::fill_weights(pointers, all.weights.data());
        all.offsets = arena.take<std::int64_t>(n_rows + 1);
        all.values = arena.take<Value>(n_entries);
        all.columns = arena.take<std::int32_t>(n_entries);
        svmlight::fill_csr<Value>(pointers, all.values.data(), all.columns.data(), all.offsets.data(), 0, 1);
        return all;
    }

private:
    svmlight::Scratch<Value> scratch;
};

template <class Value>
Reading<Value> read(BlockReader<Value> &reader, std::string_view text, std::size_t block) {
    reader.read(text, block);
    return reader.lay_out();
}

/// Dense rows, where they are narrow, agree with the sparse ones.
template <class Value>
void check_dense(BlockReader<Value> &reader, std::string_view text, const Reading<Value> &truth) {
    reader.read(text, text.size() + 1);
    if (reader.pieces.empty() || reader.pieces[0].highest >= 256) return;
    Piece *pointer = &reader.pieces[0];
    const auto width = static_cast<std::size_t>(pointer->highest + 1);
    const std::size_t n_rows = truth.labels.size();
    const auto x = arena.take<Value>(n_rows * width), expected = arena.take<Value>(n_rows * width);
    svmlight::fill_dense<Value>({&pointer, 1}, x.data(), pointer->highest + 1, 0, 1);
    std::fill(expected.begin(), expected.end(), Value(0));
    for (std::size_t i = 0, k = 0; i < n_rows; ++i)
        for (; k < static_cast<std::size_t>(truth.offsets[i + 1]); ++k)
            expected[i * width + static_cast<std::size_t>(truth.columns[k])] = truth.values[k];
    require(same(x, expected), "dense = sparse");
}

/// The query ids of the rows, by the table that streams use.
template <class Value>
svmlight::WordList names_of(BlockReader<Value> &reader, std::string_view text) {
    svmlight::WordList names;
    svmlight::QueryTable table;
    reader.read(text, 1);
    for (const Piece &piece : reader.pieces) {
        const auto runs = table.runs(piece);
        for (std::size_t k = 0; k < runs.sizes.size(); ++k)
            for (std::int64_t row = 0; row < runs.sizes[k]; ++row) names.push(table[runs.numbers[k]]);
    }
    return names;
}

template <class Value>
void check_written(BlockReader<Value> &reader, std::string_view text, const Reading<Value> &truth) {
    const CsrRows<Value> rows{truth.values.data(), truth.columns.data(), truth.offsets.data(),
                                            static_cast<std::int64_t>(truth.labels.size()),
                                            svmlight::max_feature + 1};
    svmlight::WordList names;
    const std::string_view comments(truth.comments.data(), truth.comments.size());
    svmlight::Lines lines{rows, truth.labels, truth.weights, {}, {comments, truth.comment_offsets}, 0};
    if (!truth.codes.empty()) {
        names = names_of(reader, text);
        lines.ids = names.view();
    }
    const std::vector<std::uint8_t> written = svmlight::text_of(lines, 1);
    const std::string_view again(reinterpret_cast<const char *>(written.data()), written.size());
    require(read(reader, again, again.size() + 1) == truth, "what was written reads the same");
}

template <class Value>
void test_one(std::string_view text, std::size_t way) {
    constexpr std::array<std::size_t, 3> blocks{1, 40, 100};
    BlockReader<Value> reader;
    const Reading<Value> whole = read(reader, text, text.size() + 1);
    // Most inputs are faulty, and a fault takes as long to find as many rows: some of them are read twice.
    if (whole.fault && way > 0) return;
    if (way < blocks.size()) require(read(reader, text, blocks[way]) == whole, "blocks do not matter");
    else if (way == blocks.size()) check_dense(reader, text, whole);
    else check_written(reader, text, whole);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size) {
    const std::string_view text(reinterpret_cast<const char *>(data), size);
    const std::size_t way = fuzzing::choose(text, 10);
    arena.clear();
    if (way % 2) test_one<float>(text, way / 2);
    else test_one<double>(text, way / 2);
    return 0;
}
