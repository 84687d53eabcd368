// Scans of columns against their definitions, in every storage, on one thread and on several.
#include "column_scan.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "check.hpp"

using namespace linrank;
using linrank_test::check;

namespace {

constexpr double inf = INFINITY;

bool near(double a, double b) { return a == b || std::abs(a - b) <= 1e-9 * (1.0 + std::abs(b)); }

/// The same matrix dense, with a gap behind every row, and as CSR.
template <class Value>
struct Problem {
    std::int64_t n_rows, n_columns;
    std::vector<Value> dense, apart, values;
    std::vector<std::int32_t> columns;
    std::vector<std::int64_t> offsets{0};
    std::vector<double> weight;

    Problem(std::mt19937 &rng, std::int64_t rows, std::int64_t width, bool has_missing)
        : n_rows(rows), n_columns(width) {
        for (std::int64_t i = 0; i < n_rows; ++i) {
            for (std::int64_t j = 0; j < n_columns; ++j) {
                Value x = rng() % 2 ? Value(0) : Value(int(rng() % 17) - 8) / 4;
                if (has_missing && rng() % 5 == 0) x = std::numeric_limits<Value>::quiet_NaN();
                dense.push_back(x);
                apart.push_back(x);
                if (x == 0) continue;
                values.push_back(x);
                columns.push_back(static_cast<std::int32_t>(j));
            }
            apart.push_back(Value(99));
            offsets.push_back(static_cast<std::int64_t>(values.size()));
            weight.push_back(double(rng() % 3));
        }
    }

    std::vector<Rows> storages() const {
        return {DenseRows<Value>{dense.data(), n_columns, n_rows, n_columns},
                DenseRows<Value>{apart.data(), n_columns + 1, n_rows, n_columns},
                CsrRows<Value>{values.data(), columns.data(), offsets.data(), n_rows, n_columns}};
    }
    double at(std::int64_t i, std::int64_t j) const { return dense[i * n_columns + j]; }
};

template <class Value>
void test_columns(const Problem<Value> &p, const ColumnScan &got, std::span<const double> weight) {
    for (std::int64_t j = 0; j < p.n_columns; ++j) {
        std::int64_t n_nonzero = 0, n_missing = 0;
        double total = 0, mean = 0, variance = 0, low = inf, high = -inf, squares = 0, largest = 0;
        const auto u = [&](std::int64_t i) { return weight.empty() ? 1.0 : weight[i]; };
        for (std::int64_t i = 0; i < p.n_rows; ++i) {
            const double x = p.at(i, j);
            n_nonzero += x != 0.0;
            n_missing += std::isnan(x);
            if (std::isnan(x)) continue;
            squares += x * x;
            largest = std::max(largest, std::abs(x));
            if (u(i) == 0.0) continue;
            total += u(i);
            mean += u(i) * x;
            low = std::min(low, x);
            high = std::max(high, x);
        }
        if (total > 0.0) mean /= total;
        for (std::int64_t i = 0; i < p.n_rows; ++i)
            if (!std::isnan(p.at(i, j)) && total > 0.0)
                variance += u(i) * (p.at(i, j) - mean) * (p.at(i, j) - mean) / total;
        check(got.columns[j].n_nonzero == n_nonzero && got.columns[j].n_missing == n_missing, "counts");
        check(near(got.columns[j].mean, mean) && near(got.columns[j].variance, variance), "moments");
        check(got.columns[j].low == low && got.columns[j].high == high, "range");
        check(near(got.columns[j].norm, std::sqrt(squares)) && got.columns[j].largest == largest, "sizes");
    }
}

template <class T>
std::uint32_t checksum(const std::vector<T> &all, std::uint32_t before) {
    return crc32c({reinterpret_cast<const std::uint8_t *>(all.data()), all.size() * sizeof(T)}, before);
}

template <class Value>
void test_scan(const Problem<Value> &p) {
    const std::uint32_t shape = checksum(std::vector<std::int64_t>{p.n_rows, p.n_columns}, 0);
    const std::uint32_t of_dense = checksum(p.dense, shape);
    const std::uint32_t of_csr = checksum(p.values, checksum(p.columns, checksum(p.offsets, shape)));
    for (const std::span<const double> weight : {std::span<const double>(), std::span<const double>(p.weight)})
        for (const Rows &rows : p.storages()) {
            const ColumnScan one = scan_columns(rows, weight, 1), three = scan_columns(rows, weight, 3);
            test_columns(p, one, weight);
            for (std::size_t j = 0; j < one.columns.size(); ++j) {
                const ColumnFacts &a = one.columns[j], &b = three.columns[j];
                check(a.mean == b.mean && a.variance == b.variance && a.norm == b.norm, "threads do not change a bit");
            }
            check(one.checksum == (rows.index() > 1 ? of_csr : of_dense), "checksum");
            check(one.checksum == three.checksum, "checksum on three threads");
        }
}

template <class Value>
void test_strays(const Problem<Value> &p) {
    const std::vector<double> floor(p.n_columns, 0.3), ceiling(p.n_columns, 1.5);
    for (const Rows &rows : p.storages())
        for (const int n_threads : {1, 3}) {
            const std::vector<ColumnStrays> got = find_strays(rows, floor, ceiling, n_threads);
            for (std::int64_t j = 0; j < p.n_columns; ++j) {
                std::int64_t n_outside = 0, worst_row = -1, first_missing = -1;
                double excess = 0, worst = 0;
                for (std::int64_t i = 0; i < p.n_rows; ++i) {
                    const double x = p.at(i, j), beyond = std::max(x - 1.5, 0.3 - x);
                    if (std::isnan(x) && first_missing < 0) first_missing = i;
                    if (!(beyond > 0.0)) continue;
                    ++n_outside;
                    if (beyond > excess) excess = beyond, worst = x, worst_row = i;
                }
                if (rows.index() > 1 && excess > 0.0 && worst == 0.0) worst_row = -1;  // of a zero left out
                check(got[j].n_outside == n_outside && got[j].first_missing == first_missing, "strays");
                check(got[j].excess == excess && got[j].worst == worst && got[j].worst_row == worst_row,
                      "the worst of them");
            }
        }
}

template <class Value>
void test_problems(std::mt19937 &rng) {
    for (int round = 0; round < 100; ++round) {
        const Problem<Value> problem(rng, rng() % 40, 1 + rng() % 19, round % 2);
        test_scan(problem);
        test_strays(problem);
    }
    for (const bool has_missing : {false, true}) {  // more than one chunk of rows
        const Problem<Value> chunked(rng, 3000, 9, has_missing);
        test_scan(chunked);
        test_strays(chunked);
    }
}

void wide_rows_are_shared_by_column(linrank_test::Rng &rng) {
    const std::int64_t n_rows = 4096, n_columns = 1 << 18, in_row = 1024;
    std::vector<std::int32_t> columns;
    std::vector<std::int64_t> offsets{0};
    for (std::int64_t i = 0; i < n_rows; ++i) {
        for (std::int64_t k = 0; k < in_row; ++k)
            columns.push_back(std::int32_t(linrank_test::draw(rng, 256 * k, 256 * k + 255)));
        offsets.push_back(std::int64_t(columns.size()));
    }
    const std::vector<double> values = linrank_test::draw_normal(rng, std::int64_t(columns.size()));
    const Rows rows = CsrRows<double>{values.data(), columns.data(), offsets.data(), n_rows, n_columns};
    const ColumnScan one = scan_columns(rows, {}, 1);
    for (const int n_threads : {5, 16, 64}) {
        const ColumnScan many = scan_columns(rows, {}, n_threads);
        CHECK(many.checksum == one.checksum);
        for (std::size_t j = 0; j < one.columns.size(); ++j) {
            const ColumnFacts &a = one.columns[j], &b = many.columns[j];
            CHECK(a.mean == b.mean && a.variance == b.variance && a.norm == b.norm);
            CHECK(a.low == b.low && a.high == b.high && a.n_nonzero == b.n_nonzero);
        }
    }
}

}  // namespace

int main() {
    std::mt19937 rng(20261118);
    test_problems<float>(rng);
    test_problems<double>(rng);
    linrank_test::Rng wide(20261119);
    wide_rows_are_shared_by_column(wide);
}
