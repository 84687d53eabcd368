// The checks of a matrix against their definitions; exits non-zero on the first failure.
#include "rows.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "check.hpp"

using namespace linrank;
using linrank_test::check;

namespace {

void test_first_non_finite(std::mt19937 &rng) {
    constexpr std::int64_t n_rows = 20'011, n_columns = 29, stride = 32;
    std::vector<float> values(n_rows * stride, std::nanf(""));  // padding must not be read as data
    for (std::int64_t i = 0; i < n_rows; ++i)
        for (std::int64_t j = 0; j < n_columns; ++j) values[i * stride + j] = 1.0f;
    const Rows rows = DenseRows<float>{values.data(), stride, n_rows, n_columns};
    for (const int n_threads : {1, 4}) check(!first_non_finite(rows, n_threads), "all finite");
    std::uniform_int_distribution<std::int64_t> draw(0, n_rows - 1);
    std::int64_t lowest = n_rows;
    for (int round = 0; round < 20; ++round) {
        const std::int64_t row = draw(rng);
        values[row * stride + row % n_columns] = -std::numeric_limits<float>::infinity();
        lowest = std::min(lowest, row);
        for (const int n_threads : {1, 4})
            check(first_non_finite(rows, n_threads) == std::pair(lowest, lowest % n_columns),
                  "first infinity by row");
    }
}

void test_columns_increase() {
    const std::vector<double> values{1, 1, 1, 1};
    const std::vector<std::int64_t> offsets{0, 2, 2, 4};
    const auto increase = [&](std::vector<std::int32_t> columns) {
        const Rows rows =
            CsrRows<double>{values.data(), columns.data(), offsets.data(), 3, 9};
        return columns_increase(rows, 2);
    };
    check(increase({1, 2, 0, 5}), "a smaller column may start the next row");
    check(!increase({1, 2, 5, 5}), "duplicates are found");
    check(!increase({2, 1, 0, 5}), "disorder is found");
}

}  // namespace

int main() {
    std::mt19937 rng(7);
    test_first_non_finite(rng);
    test_columns_increase();
    std::puts("row checks: ok");
}
