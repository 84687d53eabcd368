// The parser and the decimal conversion on their own, for sanitizers: exact buffers, no Python.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "decimal.hpp"
#include "svmlight.hpp"

using namespace linrank;
using svmlight::Piece;

namespace {

int n_failures = 0;

void check(bool ok, const char *what, const std::string &detail = "") {
    if (ok) return;
    ++n_failures;
    std::printf("FAILED: %s %s\n", what, detail.c_str());
}

/// Parses from a buffer of exactly that many bytes: reading behind it is an error of the sanitizer.
template <class Value>
Piece parse(const std::string &text) {
    const auto exact = std::make_unique<char[]>(text.size());
    std::memcpy(exact.get(), text.data(), text.size());
    svmlight::Scratch<Value> scratch;
    return svmlight::parse<Value>({exact.get(), text.size()}, {}, scratch);
}

std::vector<double> dense(const std::vector<std::string> &blocks, std::int64_t n_columns, int n_threads) {
    std::vector<Piece> pieces;
    for (const std::string &block : blocks) pieces.push_back(parse<double>(block));
    std::vector<Piece *> pointers;
    std::int64_t n_rows = 0;
    for (Piece &piece : pieces) {
        pointers.push_back(&piece);
        n_rows += piece.n_rows;
    }
    std::vector<double> x(static_cast<std::size_t>(n_rows * n_columns), -1.0);
    svmlight::fill_dense<double>(pointers, x.data(), n_columns, 1, n_threads);
    return x;
}

/// read_number and read_short against strtod, which is exact in glibc.
void check_number(const std::string &text) {
    const std::string padded = text + "\n" + std::string(32, '\0');
    const double truth = std::strtod(text.c_str(), nullptr);
    double value = 0.0;
    const char *p = padded.data();
    const auto outcome = decimal::read_number(p, value);
    if (std::isinf(truth)) {
        check(outcome == decimal::Outcome::overflow, "overflow", text);
        return;
    }
    check(outcome == decimal::Outcome::number && std::memcmp(&value, &truth, 8) == 0, "number", text);
    check(p == padded.data() + text.size(), "end of number", text);
    const char *end = decimal::read_short(padded.data(), value);
    if (end == padded.data() + text.size()) check(value == truth, "short number", text);
}

void test_numbers() {
    for (const char *text :
         {"0", "-0", "+1", "1.", ".5", "1e5", "1E+5", "9007199254740993", "9007199254740992.5",
          "123456789012345678", "18446744073709551615", "18446744073709551616", "1e22", "1e23",
          "2.2250738585072014e-308", "2.2250738585072011e-308", "4.9e-324", "2.4703282292062327e-324",
          "2.4703282292062328e-324", "1e-400", "1e400", "1.7976931348623157e308", "1.7976931348623159e308",
          "0.000000000000000000000000000000000000000000000000000001e54", "0e999999999999999999999",
          "1e-99999999999999999999", "1e99999999999999999999", "12345678.12345678", "1234567.1234567",
          "0.00000001", "99999999.9999999", "7205759403792793.5"})
        check_number(text);
    std::mt19937_64 random(1);
    for (int i = 0; i < 200000; ++i) {
        std::string text;
        const auto digits = [&](int most) {
            for (auto n = 1 + random() % static_cast<std::uint64_t>(most); n > 0; --n)
                text += static_cast<char>('0' + random() % 10);
        };
        digits(i % 2 ? 9 : 22);
        if (random() % 2) {
            text += '.';
            digits(i % 2 ? 9 : 22);
        }
        if (random() % 4 == 0) text.append("e").append(std::to_string(static_cast<int>(random() % 700) - 350));
        check_number(text);
    }
    double value;
    for (const char *text : {"", "-", ".", "-.", "e5", "+-1", "nan", "inf"}) {
        const std::string padded = text + ("\n" + std::string(32, '\0'));
        const char *p = padded.data();
        const auto outcome = decimal::read_number(p, value);
        check(outcome == decimal::Outcome::not_a_number && p == padded.data(), "no number", text);
    }
}

void test_lines() {
    const Piece piece = parse<float>(
        "# remark\n2:3 qid:a 1:0.5 3:-2 # docid\n\n 0\tqid:b\t2:1e1 \r\n1 qid:a 1:1");
    check(!piece.fault, "valid text", piece.fault ? piece.fault->message : "");
    check(piece.n_rows == 3 && piece.n_lines == 5 && piece.n_entries == 4, "counts");
    check(piece.labels[0] == 2.0 && piece.labels[1] == 0.0 && piece.labels[2] == 1.0, "labels");
    check(piece.weights[0] == 3.0 && piece.weights[1] == 1.0 && piece.weights[2] == 1.0, "weights");
    check(piece.queries[0] == 0 && piece.queries[1] == 1 && piece.queries[2] == 0, "queries");
    check(piece.query_ids[0] == "a" && piece.query_ids[1] == "b", "query ids");
    check(piece.comments[0] == "docid" && piece.comments[1].empty(), "comments");
    check(piece.lowest == 1 && piece.highest == 3, "range");
    check(piece.highest_place.line == 2 && piece.highest_place.column == 17, "place of the highest");
    check(parse<float>("").n_rows == 0 && parse<float>("\n").n_lines == 1, "no text");
}

void test_forms() {
    // Full rows, rows with gaps that are smaller dense, and sparse rows, one block of each.
    const std::vector<std::string> blocks{"0 1:1 2:2\n0 1:3 2:4\n", "0 1:5 2:0 3:6\n0 1:7\n0 1:8 2:9 3:1\n",
                                          "0 3:2\n0\n0\n"};
    const std::vector<double> truth{1, 2, 0, 3, 4, 0, 5, 0, 6, 7, 0, 0, 8, 9, 1, 0, 0, 2, 0, 0, 0, 0, 0, 0};
    check(dense(blocks, 3, 1) == truth && dense(blocks, 3, 3) == truth, "dense");
    check(dense({blocks[0] + blocks[1] + blocks[2]}, 3, 1) == truth, "dense, one block");

    std::vector<Piece> pieces;
    std::vector<Piece *> pointers;
    for (const std::string &block : blocks) pieces.push_back(parse<double>(block));
    for (Piece &piece : pieces) pointers.push_back(&piece);
    std::vector<double> values(12);
    std::vector<std::int32_t> columns(12);
    std::vector<std::int64_t> offsets(9);
    svmlight::fill_csr<double>(pointers, values.data(), columns.data(), offsets.data(), 1, 2);
    check(values == std::vector<double>{1, 2, 3, 4, 5, 0, 6, 7, 8, 9, 1, 2}, "CSR values");
    check(columns == std::vector<std::int32_t>{0, 1, 0, 1, 0, 1, 2, 0, 0, 1, 2, 2}, "CSR columns");
    check(offsets == std::vector<std::int64_t>{0, 2, 4, 7, 8, 11, 12, 12, 12}, "CSR offsets");
}

void test_queries() {
    const auto ids = [](std::vector<std::string> tokens) {
        std::string text;
        for (const std::string &token : tokens) text += "0 qid:" + token + " 1:1\n";
        Piece piece = parse<float>(text), again = parse<float>(text);
        Piece *pointer = &piece, *other = &again;
        std::vector<std::int64_t> numbers(tokens.size());
        const bool integers = svmlight::fill_integer_queries({&pointer, 1}, numbers.data());
        if (!integers) numbers.clear();
        std::vector<std::int64_t> codes(tokens.size());
        const auto distinct = svmlight::fill_query_codes({&other, 1}, codes.data());
        for (std::size_t i = 0; i < tokens.size(); ++i)
            check(distinct[static_cast<std::size_t>(codes[i])] == tokens[i], "token", tokens[i]);
        return numbers;
    };
    using Numbers = std::vector<std::int64_t>;
    check(ids({"3", "-7", "0", "9223372036854775807", "-9223372036854775808", "3"}) ==
              Numbers{3, -7, 0, INT64_MAX, INT64_MIN, 3}, "integer ids");
    for (const char *token : {"9223372036854775808", "01", "-0", "+1", "1.0", "-", "a", "1a"})
        check(ids({"1", token}).empty(), "an id that is no integer", token);
}

void test_faults() {
    const Piece piece = parse<float>("1 1:1\n1 1:1 1:2\nnext");
    check(piece.fault && piece.fault->place.line == 2 && piece.fault->place.column == 7, "place of a fault");
    check(piece.n_rows == 1, "rows before a fault");
    svmlight::Scratch<float> scratch;
    const Piece beyond = svmlight::parse<float>("1 1:1 2:1 3:1\n", {1, 2}, scratch);
    check(beyond.fault && beyond.fault->place.column == 11, "out of range");
    const Piece first = svmlight::parse<float>("1 0:1\n", {1, 2}, scratch);
    check(first.fault && first.fault->place.column == 3, "below the range");
}

}  // namespace

int main() {
    test_numbers();
    test_lines();
    test_forms();
    test_queries();
    test_faults();
    if (n_failures == 0) std::printf("svmlight: all passed\n");
    return n_failures != 0;
}
