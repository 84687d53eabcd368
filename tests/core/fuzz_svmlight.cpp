// Random damage to valid text. Whatever comes in, the parser must neither read nor write outside its
// buffers, and a text read whole must say the same as the text cut into blocks of lines.
//
//   fuzz_svmlight [seconds] [seed]      a mutation fuzzer of its own, reproducible by its seed
//   -DLINRANK_LIBFUZZER                 the same test as a libFuzzer target
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "fuzzing.hpp"
#include "query_table.hpp"
#include "svmlight.hpp"

using namespace linrank;
using fuzzing::require;
using svmlight::Piece;

namespace {

/// All that was read, as one string of bytes, and the first fault.
template <class Value>
struct Reading {
    std::vector<Value> values;
    std::vector<std::int32_t> columns;
    std::vector<std::int64_t> offsets;
    std::vector<double> labels, weights;
    std::vector<std::int64_t> codes, numbers;
    std::vector<std::string> ids;
    std::string comments, fault;

    bool operator==(const Reading &other) const {
        if (!fault.empty()) return fault == other.fault;  // the rest is of no use then
        const auto same = [](const auto &a, const auto &b) {
            return a.size() == b.size() &&
                   (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof a[0]) == 0);
        };
        return same(values, other.values) && columns == other.columns && offsets == other.offsets &&
               same(labels, other.labels) && same(weights, other.weights) && codes == other.codes &&
               numbers == other.numbers && ids == other.ids && comments == other.comments && fault == other.fault;
    }
};

std::string describe(const svmlight::Fault &fault, std::int64_t n_lines) {
    return std::to_string(n_lines + fault.place.line) + ":" + std::to_string(fault.place.column) + ": " +
           fault.message;
}

template <class Value>
Reading<Value> lay_out(std::vector<Piece> &pieces, std::string fault) {
    Reading<Value> all;
    all.fault = std::move(fault);
    std::vector<Piece *> pointers;
    svmlight::QueryTable table;
    std::size_t n_rows = 0, n_entries = 0;
    for (Piece &piece : pieces) {
        pointers.push_back(&piece);
        const auto runs = table.runs(piece);  // before its ids are taken
        for (std::size_t k = 0; k < runs.sizes.size(); ++k)
            all.numbers.insert(all.numbers.end(), static_cast<std::size_t>(runs.sizes[k]), runs.numbers[k]);
        n_rows += static_cast<std::size_t>(piece.n_rows);
        n_entries += static_cast<std::size_t>(piece.n_entries);
    }
    const bool queries = !pieces.empty() && pieces[0].has_query;
    all.codes.resize(queries ? n_rows : 0);
    if (queries && !svmlight::fill_integer_queries(pointers, all.codes.data()))
        all.ids = svmlight::fill_query_codes(pointers, all.codes.data());
    all.comments.resize(static_cast<std::size_t>(svmlight::comment_bytes(pointers)));
    all.offsets.resize(n_rows + 1);
    svmlight::fill_comments(pointers, all.comments.data(), all.offsets.data());
    for (const std::int64_t end : all.offsets) all.comments += std::to_string(end) + ",";
    all.labels.resize(n_rows);
    all.weights.resize(n_rows);
    svmlight::fill_labels(pointers, all.labels.data());
    svmlight::fill_weights(pointers, all.weights.data());
    all.values.resize(n_entries);
    all.columns.resize(n_entries);
    svmlight::fill_csr<Value>(pointers, all.values.data(), all.columns.data(), all.offsets.data(), 0, 1);
    return all;
}

/// Reads blocks of about `block` bytes, each from a buffer of exactly its size, as the loader does.
template <class Value>
Reading<Value> read(std::string_view text, std::size_t block) {
    std::vector<Piece> pieces;
    std::int64_t n_lines = 0;
    svmlight::Scratch<Value> scratch;
    for (std::size_t start = 0; start < text.size();) {
        std::size_t end = text.find('\n', start + block - 1);
        end = end == text.npos ? text.size() : end + 1;
        const auto exact = std::make_unique<char[]>(end - start);
        std::memcpy(exact.get(), text.data() + start, end - start);
        Piece piece = svmlight::parse<Value>({exact.get(), end - start}, {}, scratch);
        start = end;
        if (!pieces.empty())
            if (const auto mixed = piece.query_fault(pieces[0].has_query))
                return lay_out<Value>(pieces, describe(*mixed, n_lines));
        std::string fault = piece.fault ? describe(*piece.fault, n_lines) : "";
        n_lines += piece.n_lines;
        if (piece.n_rows > 0) pieces.push_back(std::move(piece));
        if (!fault.empty()) return lay_out<Value>(pieces, std::move(fault));
    }
    return lay_out<Value>(pieces, "");
}

/// The dense form of what was read, where it is small, agrees with the sparse one.
template <class Value>
void check_dense(std::string_view text, const Reading<Value> &truth) {
    svmlight::Scratch<Value> scratch;
    Piece piece = svmlight::parse<Value>(text, {}, scratch);
    if (piece.highest >= 4096) return;
    const std::int64_t width = piece.highest + 1;
    std::vector<Value> x(static_cast<std::size_t>(piece.n_rows * width), Value(7));
    Piece *pointer = &piece;
    const std::int64_t n_rows = piece.n_rows;
    svmlight::fill_dense<Value>({&pointer, 1}, x.data(), width, 0, 2);
    std::vector<Value> expected(x.size(), Value(0));
    for (std::size_t i = 0, k = 0; i < static_cast<std::size_t>(n_rows); ++i)
        for (; k < static_cast<std::size_t>(truth.offsets[i + 1]); ++k)
            expected[i * static_cast<std::size_t>(width) + static_cast<std::size_t>(truth.columns[k])] =
                truth.values[k];
    const bool same =
        x.empty() || std::memcmp(x.data(), expected.data(), x.size() * sizeof(Value)) == 0;
    require(same, "dense = sparse", text);
}

/// Whether the text is valid.
bool test_one(std::string_view text) {
    const auto whole = read<double>(text, text.size() + 1);
    for (const std::size_t block : {std::size_t{1}, std::size_t{40}, std::size_t{100}})
        require(read<double>(text, block) == whole, "blocks do not matter", text);
    const auto narrow = read<float>(text, text.size() + 1);
    require(read<float>(text, 64) == narrow, "blocks do not matter (float32)", text);
    check_dense<double>(text, whole);
    check_dense<float>(text, narrow);
    return whole.fault.empty();
}

}  // namespace

#if defined(LINRANK_LIBFUZZER)

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size) {
    test_one({reinterpret_cast<const char *>(data), size});
    return 0;
}

#else

namespace {

const std::vector<std::string> corpus{
    "2 qid:10002 1:0.007477 2:0.000000 3:1.000000 4:0.25 #docid = GX008-86-4444840 inc = 1\n",
    "0 qid:10002 1:0.603738 2:0.5 3:1.000000 4:0 #docid = GX037-06-11625428 inc = 0.003\n",
    "1 1:3 2:3 3:0 4:0 11:156 15:167 16:6.931275 17:22.076928 136:1.5\n",
    "-1.5:2 0:1e-3 3:-2.5E+7 1023:5. 1024:.5 1025:7\r\n",
    "1 6:0.0198403253586671 15:0.0339873732306071 9947:-1.7976931348623157e308\n",
    "3 qid:abc\t1:+4.9e-324\t2:123456789012345678901234567890\t2147483646:0\n",
    "# a remark\n", "\n", " \t \r\n", "1 qid:a#b\n", "1 qid:7 1:1#b\n", "0\n",
};
const char *const pieces_of_text[] = {
    " ", "\n", "\t", "\r", "#", ":", "qid:", "-", "+", ".", "e", "1:", "0", "nan", "inf", "1e999",
    "1e-999", "2147483647:", "99999999999999999999", "\xef\xbb\xbf"};

}  // namespace

int main(int argc, char **argv) {
    return fuzzing::run("fuzz_svmlight", argc, argv, corpus, pieces_of_text, 1, test_one);
}

#endif
