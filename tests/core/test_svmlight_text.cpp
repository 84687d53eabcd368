// Rows to text: every line, and back to the same bits.
#include <cmath>
#include <cstring>
#include <limits>
#include <string>

#include "check.hpp"
#include "svmlight.hpp"

using namespace linrank;
using namespace linrank_test;

namespace {

std::string text(const svmlight::Lines &lines, int n_threads = 1) {
    const auto bytes = svmlight::text_of(lines, n_threads);
    return {bytes.begin(), bytes.end()};
}

const std::int64_t no_words[] = {0};
const svmlight::Words none{{}, no_words};

void all_parts_of_a_line() {
    const float x[] = {0.5F, 0.0F, 0.0F, -2.0F};
    const double labels[] = {2, 0.25}, weights[] = {1, 3};
    const std::string ids = "7b", comments = "docid = d";
    const std::int64_t id_ends[] = {0, 1, 2}, comment_ends[] = {0, 9, 9};
    const svmlight::Lines lines{DenseRows<float>{x, 2, 2, 2}, labels, weights,
                                {ids, id_ends}, {comments, comment_ends}, 1, true};
    CHECK(text(lines) == "2:1 qid:7 1:0.5 2:0 # docid = d\n0.25:3 qid:b 1:0 2:-2\n");
}

void the_first_line_names_the_ends() {
    const double values[] = {1.5, 2.5}, labels[] = {1, 0};
    const std::int32_t columns[] = {1, 2};
    const std::int64_t offsets[] = {0, 1, 2};
    const CsrRows<double> rows{values, columns, offsets, 2, 4};
    CHECK(text({rows, labels, {}, none, none, 0, true}) == "1 0:0 1:1.5 3:0\n0 2:2.5\n");
    CHECK(text({rows, labels, {}, none, none, 1, true}) == "1 2:1.5 4:0\n0 3:2.5\n");
    CHECK(text({rows, labels, {}, none, none, 1, false}) == "1 2:1.5\n0 3:2.5\n");
    const std::int64_t empty[] = {0, 0};
    const CsrRows<double> nothing{values, columns, empty, 1, 1};
    CHECK(text({nothing, std::span(labels, 1), {}, none, none, 0, true}) == "1 0:0\n");
    CHECK(text({nothing, std::span(labels, 1), {}, none, none, 1, true}) == "1 1:0\n");
}

template <class Value>
void values_read_back() {
    std::vector<Value> x;
    std::uint64_t state = 1;
    for (int i = 0; i < 30000; ++i) {
        state = state * 6364136223846793005ULL + 1442695040888963407ULL;
        const std::uint64_t bits = state >> (64 - 8 * sizeof(Value));
        Value value;
        std::memcpy(&value, &bits, sizeof value);
        x.push_back(std::isfinite(value) ? value : Value(0.1));
    }
    for (const Value v : {std::numeric_limits<Value>::denorm_min(), std::numeric_limits<Value>::max(),
                          std::numeric_limits<Value>::lowest(), Value(-0.0), Value(16777216)})
        x.push_back(v);
    const auto n = std::int64_t(x.size());
    const std::vector<double> labels(x.size(), 1.0);
    const svmlight::Lines lines{DenseRows<Value>{x.data(), 1, n, 1}, labels, {}, none, none, 1, true};
    const std::string written = text(lines);
    CHECK(written == text(lines, 3));
    svmlight::Scratch<Value> scratch;
    svmlight::Piece piece = svmlight::parse<Value>(written, {}, scratch);
    CHECK(!piece.fault && piece.n_rows == n);
    std::vector<Value> read(x.size());
    svmlight::Piece *const pieces[] = {&piece};
    svmlight::fill_dense<Value>(pieces, read.data(), 1, 1, 1);
    CHECK(std::memcmp(read.data(), x.data(), x.size() * sizeof(Value)) == 0);
}

}  // namespace

int main() {
    all_parts_of_a_line();
    the_first_line_names_the_ends();
    values_read_back<float>();
    values_read_back<double>();
    return 0;
}
