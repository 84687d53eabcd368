// Products with the columns of curves by pieces, against the functions themselves.
#include "curves.hpp"

#include <algorithm>
#include <cmath>
#include <random>
#include <utility>
#include <vector>

#include "check.hpp"

using namespace linrank;
using linrank_test::check, linrank_test::close;

namespace {

/// Rows with room between them, and functions of up to `most` knots, some of which the rows hit.
struct Problem {
    std::int64_t n_rows, n_columns, stride;
    std::vector<double> cells, knots, values, slopes, lines, r;
    std::vector<std::int64_t> feature, offsets{0}, order;

    Problem(std::mt19937 &rng, std::int64_t rows, std::int64_t width, std::int64_t n_curves, std::int64_t most)
        : n_rows(rows), n_columns(width), stride(width + 2), cells(std::size_t(rows * stride), NAN) {
        std::uniform_real_distribution<double> unit(-1.0, 1.0);
        for (std::int64_t i = 0; i < n_rows; ++i)
            for (std::int64_t j = 0; j < n_columns; ++j) cells[std::size_t(i * stride + j)] = int(rng() % 33) - 16;
        for (std::int64_t c = 0; c < n_curves; ++c) {
            feature.push_back(std::int64_t(rng() % std::uint64_t(n_columns)));
            // The last has as many knots as a byte can tell pieces apart.
            const std::int64_t n = c + 1 == n_curves ? most : std::int64_t(rng() % std::uint64_t(most + 1));
            std::vector<double> t;
            for (std::int64_t b = 0; b < n; ++b) t.push_back(16.0 * (2.0 * double(b) / double(n) - 1.0));
            knots.insert(knots.end(), t.begin(), t.end());
            offsets.push_back(std::int64_t(knots.size()));
            for (std::int64_t p = 0; p <= n; ++p) {
                values.push_back(unit(rng));
                slopes.push_back(unit(rng));
            }
            lines.push_back(unit(rng));
        }
        for (std::int64_t t = 0; t < n_rows; ++t) {
            r.push_back(unit(rng));
            order.push_back(std::int64_t(rng() % std::uint64_t(n_rows)));  // rows twice, others not at all
        }
    }

    Curves curves() const { return {feature, offsets, knots, values, slopes}; }
    DenseRows<double> rows() const { return {cells.data(), stride, n_rows, n_columns}; }
    double at(std::int64_t i, std::int64_t c) const { return cells[std::size_t(i * stride + feature[std::size_t(c)])]; }

    /// #{t_b < x_i} of function c, and where its piece begins.
    std::pair<std::int64_t, double> piece(std::int64_t i, std::int64_t c) const {
        const auto first = knots.begin() + offsets[std::size_t(c)], last = knots.begin() + offsets[std::size_t(c) + 1];
        const std::int64_t p = std::lower_bound(first, last, at(i, c)) - first;
        return {p, first == last ? 0.0 : *(first + (p > 0 ? p - 1 : 0))};
    }
};

void test_products(const Problem &p, const std::vector<std::int64_t> &order, int n_threads) {
    const Curves curves = p.curves();
    const std::int64_t width = curves.size(), n = order.empty() ? p.n_rows : std::int64_t(order.size());
    std::vector<std::uint8_t> pieces(std::size_t(p.n_rows * width));
    find_pieces(p.rows(), curves, pieces.data(), n_threads);
    const Positions x{p.rows(), order};
    const auto z = sum_pieces(x, curves, pieces.data(), p.lines, n_threads);
    const std::span<const double> r(p.r.data(), std::size_t(n));
    const auto sums = add_pieces(x, curves, pieces.data(), r, n_threads);

    std::vector<double> wanted(sums.size(), 0.0);
    for (std::int64_t t = 0; t < n; ++t) {
        const std::int64_t i = order.empty() ? t : order[std::size_t(t)];
        double score = 0.0;
        for (std::int64_t c = 0; c < width; ++c) {
            const auto [own, origin] = p.piece(i, c);
            check(pieces[std::size_t(i * width + c)] == own, "piece");
            const auto k = std::size_t(p.offsets[std::size_t(c)] + c + own);
            const double x = p.at(i, c), slope = p.r[std::size_t(t)];
            score += p.lines[std::size_t(c)] * x + p.values[k] + p.slopes[k] * (x - origin);
            wanted[k] += slope;
            wanted[p.values.size() + k] += slope * (x - origin);
            wanted[2 * p.values.size() + std::size_t(c)] += slope * x;
        }
        check(close(z[std::size_t(t)], score, 1e-9), "score");
    }
    for (std::size_t k = 0; k < sums.size(); ++k) check(close(sums[k], wanted[k], 1e-9), "sum of a piece");

    const auto again = add_pieces(x, curves, pieces.data(), r, 1);
    const auto same = sum_pieces(x, curves, pieces.data(), p.lines, 1);
    check(again == sums && same == z, "the same bits for any number of threads");
}

}  // namespace

int main() {
    std::mt19937 rng(1);
    for (const std::int64_t n_rows : {1, 127, 128, 129, 1023, 1024, 9000})
        for (const std::int64_t most : {0, 3, 8, 9, 255})
            for (const int n_threads : {1, 3}) {
                const Problem p(rng, n_rows, 3, 5, most);
                test_products(p, {}, n_threads);
                test_products(p, p.order, n_threads);
            }
    return 0;
}
