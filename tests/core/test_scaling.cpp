// Query ranges and weighted concordance against their definitions.
#include "column_scan.hpp"

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "check.hpp"
#include "metrics.hpp"

using namespace linrank;
using linrank_test::check;

namespace {

bool near(double a, double b) { return std::abs(a - b) <= 1e-9 * (1.0 + std::abs(b)); }

/// The same matrix dense and as CSR.
struct Problem {
    std::int64_t n_rows, n_columns;
    std::vector<float> dense, values;
    std::vector<std::int32_t> columns;
    std::vector<std::int64_t> offsets{0}, query{0}, order;
    std::vector<double> weight, scores;
    std::vector<std::int32_t> levels;

    Problem(std::mt19937 &rng, std::int64_t rows, std::int64_t width)
        : n_rows(rows), n_columns(width) {
        for (std::int64_t i = 0; i < n_rows; ++i) {
            for (std::int64_t j = 0; j < n_columns; ++j) {
                const float x = rng() % 2 ? 0.0f : static_cast<float>(int(rng() % 17) - 8) / 4.0f;
                dense.push_back(x);
                if (x == 0.0f) continue;
                values.push_back(x);
                columns.push_back(static_cast<std::int32_t>(j));
            }
            offsets.push_back(static_cast<std::int64_t>(values.size()));
            order.push_back(i);
            weight.push_back(double(rng() % 4));
            scores.push_back(double(rng() % 5));
            levels.push_back(static_cast<std::int32_t>(rng() % 3));
        }
        weight[0] = 1.0;
        while (query.back() < n_rows)
            query.push_back(std::min<std::int64_t>(n_rows, query.back() + 1 + rng() % 6));
        std::shuffle(order.begin(), order.end(), rng);
    }

    std::vector<Rows> storages() const {
        return {DenseRows<float>{dense.data(), n_columns, n_rows, n_columns},
                CsrRows<float>{values.data(), columns.data(), offsets.data(), n_rows,
                                             n_columns}};
    }
    double at(std::int64_t i, std::int64_t j) const { return dense[i * n_columns + j]; }
};

void test_query_range(const Problem &p) {
    for (const Rows &rows : p.storages()) {
        const bool sparse = rows.index() > 1;
        const auto out = std::get<std::vector<float>>(divide_by_query_range(rows, {.offsets = p.query, .order = p.order}, 2));
        for (std::size_t q = 0; q + 1 < p.query.size(); ++q)
            for (std::int64_t j = 0; j < p.n_columns; ++j) {
                double low = INFINITY, high = -INFINITY;
                for (std::int64_t t = p.query[q]; t < p.query[q + 1]; ++t) {
                    low = std::min(low, p.at(p.order[t], j));
                    high = std::max(high, p.at(p.order[t], j));
                }
                for (std::int64_t t = p.query[q]; t < p.query[q + 1]; ++t) {
                    const std::int64_t i = p.order[t];
                    std::int64_t at = i * p.n_columns + j;
                    if (sparse) {
                        const auto *begin = p.columns.data() + p.offsets[i];
                        const auto *end = p.columns.data() + p.offsets[i + 1];
                        const auto *found = std::find(begin, end, static_cast<std::int32_t>(j));
                        if (found == end) continue;
                        at = found - p.columns.data();
                    }
                    const auto x = high > low ? static_cast<float>(p.at(i, j) / (high - low)) : 0.0f;
                    check(out[at] == x, "divided by the range of the query");
                }
            }
    }
}

void test_concordance(const Problem &p) {
    Concordance truth;
    for (std::size_t q = 0; q + 1 < p.query.size(); ++q)
        for (std::int64_t i = p.query[q]; i < p.query[q + 1]; ++i)
            for (std::int64_t j = p.query[q]; j < p.query[q + 1]; ++j) {
                if (p.levels[i] <= p.levels[j]) continue;
                double &sum = p.scores[i] > p.scores[j]   ? truth.right
                              : p.scores[i] < p.scores[j] ? truth.wrong
                                                          : truth.tied;
                sum += p.weight[i] * p.weight[j];
            }
    const Concordance got = weighted_concordance({p.query, p.levels, {}, p.weight}, p.scores);
    check(near(got.right, truth.right), "weight of the pairs in the right order");
    check(near(got.wrong, truth.wrong), "weight of the pairs in the wrong order");
    check(near(got.tied, truth.tied), "weight of the tied pairs");
}

}  // namespace

int main() {
    std::mt19937 rng(20261115);
    for (int round = 0; round < 200; ++round) {
        const Problem problem(rng, 1 + rng() % 40, 1 + rng() % 7);
        test_query_range(problem);
        test_concordance(problem);
    }
    return 0;
}
