// Columns of rows in any storage and order, and products of some of them.
#include "columns.hpp"

#include <algorithm>
#include <numeric>

#include "check.hpp"

using namespace linrank;
using namespace linrank_test;

namespace {

constexpr std::int64_t n = 37, m = 150;  // more columns than a task of the threads takes

std::vector<double> some_values(Rng &rng) {
    std::vector<double> values;
    for (std::int64_t k = 0; k < n * m; ++k)
        values.push_back(draw(rng, 0, 2) == 0 ? 0.25 * double(draw(rng, -8, 8)) : 0.0);
    return values;
}

void check_products(const Rows &rows, const std::vector<double> &values, Rng &rng) {
    std::vector<std::int64_t> order(n);
    std::iota(order.begin(), order.end(), 0);
    std::shuffle(order.begin(), order.end(), rng);
    std::vector<double> r;
    for (std::int64_t t = 0; t < n; ++t) r.push_back(0.125 * double(draw(rng, -8, 8)));
    std::vector<std::int64_t> wanted;
    for (std::int64_t c = 0; c < m; c += 1 + draw(rng, 0, 1)) wanted.push_back(c);
    for (const int n_threads : {1, 3}) {
        const Columns columns = columns_of({rows, order}, n_threads);
        CHECK(n_rows(columns) == n && n_columns(columns) == m);
        const std::vector<double> found = column_products(columns, wanted, r, n_threads);
        CHECK(found.size() == wanted.size());
        for (std::size_t i = 0; i < wanted.size(); ++i) {
            double sum = 0.0;
            for (std::int64_t t = 0; t < n; ++t)
                sum += values[std::size_t(order[std::size_t(t)] * m + wanted[i])] * r[std::size_t(t)];
            CHECK(close(found[i], sum, 1e-12));
        }
        CHECK(column_products(columns, {}, r, n_threads).empty());
    }
}

}  // namespace

int main() {
    Rng rng(5);
    const std::vector<double> values = some_values(rng);
    const std::vector<float> narrow(values.begin(), values.end());
    check_products(DenseRows<double>{values.data(), m, n, m}, values, rng);
    check_products(DenseRows<float>{narrow.data(), m, n, m}, values, rng);
    std::vector<double> entries;
    std::vector<std::int32_t> columns;
    std::vector<std::int64_t> offsets{0};
    for (std::int64_t i = 0; i < n; ++i) {
        for (std::int64_t c = 0; c < m; ++c)
            if (values[std::size_t(i * m + c)] != 0.0) {
                entries.push_back(values[std::size_t(i * m + c)]);
                columns.push_back(std::int32_t(c));
            }
        offsets.push_back(std::int64_t(entries.size()));
    }
    check_products(CsrRows<double>{entries.data(), columns.data(), offsets.data(), n, m},
                   values, rng);
    return 0;
}
