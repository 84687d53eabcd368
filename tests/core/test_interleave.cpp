// Columns into rows against a plain double loop; exits non-zero on the first failure.
#include "interleave.hpp"

#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include "check.hpp"

using namespace linrank;
using linrank_test::check;

namespace {

template <class Value>
void test_against_a_double_loop(std::mt19937 &rng, std::int64_t n_rows, std::int64_t n_columns) {
    std::vector<std::vector<double>> doubles;
    std::vector<std::vector<std::int16_t>> integers;
    std::vector<std::uint8_t> valid(static_cast<std::size_t>(n_rows + 3) / 8 + 1);
    for (auto &byte : valid) byte = static_cast<std::uint8_t>(rng());
    std::vector<TableColumn> columns;
    for (std::int64_t j = 0; j < n_columns; ++j) {
        doubles.emplace_back(n_rows);
        integers.emplace_back(n_rows);
        for (auto &x : doubles.back()) x = std::normal_distribution<>()(rng);
        for (auto &x : integers.back()) x = static_cast<std::int16_t>(rng());
    }
    for (std::size_t j = 0; j < doubles.size(); ++j) {
        TableColumn column{doubles[j].data()};
        if (j % 3 == 1) column.values = integers[j].data();
        if (j % 2 == 1) column.valid = valid.data(), column.first_bit = 3;
        columns.push_back(column);
    }
    const std::int64_t stride = n_columns + 2;
    for (const int n_threads : {1, 3}) {
        std::vector<Value> out(static_cast<std::size_t>(n_rows * stride), Value(-7));
        const Specials seen =
            interleave_columns<Value>(columns, n_rows, out.data(), stride, n_threads);
        bool missing = false;
        for (std::int64_t i = 0; i < n_rows; ++i) {
            for (std::int64_t j = 0; j < n_columns; ++j) {
                const auto c = static_cast<std::size_t>(j), r = static_cast<std::size_t>(i);
                const double x = j % 3 == 1 ? integers[c][r] : doubles[c][r];
                const Value got = out[static_cast<std::size_t>(i * stride + j)];
                if (j % 2 == 1 && (valid[(r + 3) / 8] >> ((r + 3) % 8) & 1) == 0) {
                    missing = true;
                    check(std::isnan(got), "a missing value is NaN");
                } else {
                    check(got == static_cast<Value>(x), "a value is where it belongs");
                }
            }
            for (std::int64_t j = n_columns; j < stride; ++j)
                check(out[static_cast<std::size_t>(i * stride + j)] == Value(-7), "padding stays");
        }
        check(seen.missing == missing && !seen.infinite, "what is no number is told");
    }
}

void test_specials() {
    std::vector<double> x{1.0, 1e39, 2.0};
    std::vector<TableColumn> columns{TableColumn{x.data()}};
    std::vector<float> narrow(3);
    std::vector<double> wide(3);
    check(interleave_columns<float>(columns, 3, narrow.data(), 1, 1).infinite, "beyond float32");
    check(!interleave_columns<double>(columns, 3, wide.data(), 1, 1).infinite, "within float64");
    x[1] = std::numeric_limits<double>::quiet_NaN();
    const Specials seen = interleave_columns<double>(columns, 3, wide.data(), 1, 1);
    check(seen.missing && !seen.infinite, "NaN is missing");
    x[2] = -std::numeric_limits<double>::infinity();
    check(interleave_columns<double>(columns, 3, wide.data(), 1, 1).infinite, "infinity is told");
}

}  // namespace

int main() {
    std::mt19937 rng(5);
    for (const std::int64_t n_rows : {0, 1, 255, 257, 5000})
        for (const std::int64_t n_columns : {1, 15, 17, 40}) {
            test_against_a_double_loop<float>(rng, n_rows, n_columns);
            test_against_a_double_loop<double>(rng, n_rows, n_columns);
        }
    test_specials();
}
