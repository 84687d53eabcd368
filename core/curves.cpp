#include "curves.hpp"

#include <algorithm>
#include <array>

#include "parallel.hpp"

namespace linrank {

namespace {

constexpr std::int64_t block_rows = 128;  // their values of a feature stay in the first cache
constexpr std::int64_t few_knots = 8;     // up to here all are counted, beyond they are searched

using Block = std::array<double, block_rows>;

/// piece[i] = #{t_b < x_i}. All rows take the same steps, so that nothing branches on their values.
void find_pieces(std::span<const double> t, std::span<const double> x,
                 std::array<std::int64_t, block_rows> &piece) {
    const auto n = std::int64_t(x.size());
    piece.fill(0);
    std::int64_t left = std::int64_t(t.size());
    if (left <= few_knots) {
        for (const double knot : t)
            for (std::int64_t i = 0; i < n; ++i) piece[i] += knot < x[i];
        return;
    }
    for (; left > 1; left -= left / 2) {
        const std::int64_t half = left / 2;
        for (std::int64_t i = 0; i < n; ++i)
            piece[i] += t[piece[i] + half - 1] < x[i] ? half : 0;
    }
    for (std::int64_t i = 0; i < n; ++i) piece[i] += t[piece[i]] < x[i];
}

/// f_c of the n <= block_rows rows from `begin` on.
template <class Value>
void evaluate(const DenseRows<Value> &rows, const Curves &curves, std::int64_t c, std::int64_t begin,
              std::int64_t n, Block &out) {
    const std::int64_t first = curves.offsets[c], n_knots = curves.offsets[c + 1] - first;
    const auto t = curves.knots.subspan(first, n_knots);
    const double *values = curves.values.data() + first + c, *slopes = curves.slopes.data() + first + c;
    const Value *cell = rows.values + begin * rows.stride + curves.feature[c];
    Block x;
    for (std::int64_t i = 0; i < n; ++i) x[i] = cell[i * rows.stride];
    if (n_knots == 0) {
        for (std::int64_t i = 0; i < n; ++i) out[i] = values[0] + slopes[0] * x[i];
        return;
    }
    std::array<std::int64_t, block_rows> piece;
    find_pieces(t, {x.data(), std::size_t(n)}, piece);
    for (std::int64_t i = 0; i < n; ++i) {
        const std::int64_t p = piece[i];
        out[i] = values[p] + slopes[p] * (x[i] - t[p > 0 ? p - 1 : 0]);
    }
}

/// body(begin, n) for every block of rows.
template <class Body>
void for_each_block(std::int64_t n_rows, int n_threads, const Body &body) {
    const std::int64_t n_blocks = (n_rows + block_rows - 1) / block_rows;
    parallel_for(n_blocks, n_threads, [&](std::int64_t b) {
        body(b * block_rows, std::min(block_rows, n_rows - b * block_rows));
    });
}

}  // namespace

template <class Value>
void map_rows(const DenseRows<Value> &rows, const Curves &curves, Value *out, int n_threads) {
    for_each_block(rows.n_rows, n_threads, [&](std::int64_t begin, std::int64_t n) {
        Block f;
        for (std::int64_t c = 0; c < curves.size(); ++c) {
            evaluate(rows, curves, c, begin, n, f);
            Value *cell = out + begin * curves.size() + c;
            for (std::int64_t i = 0; i < n; ++i) cell[i * curves.size()] = static_cast<Value>(f[i]);
        }
    });
}

template <class Value>
void sum_curves(const DenseRows<Value> &rows, const Curves &curves, double *out, int n_threads) {
    for_each_block(rows.n_rows, n_threads, [&](std::int64_t begin, std::int64_t n) {
        Block f;
        std::fill_n(out + begin, n, 0.0);
        for (std::int64_t c = 0; c < curves.size(); ++c) {
            evaluate(rows, curves, c, begin, n, f);
            for (std::int64_t i = 0; i < n; ++i) out[begin + i] += f[i];
        }
    });
}

template void map_rows(const DenseRows<float> &, const Curves &, float *, int);
template void map_rows(const DenseRows<double> &, const Curves &, double *, int);
template void sum_curves(const DenseRows<float> &, const Curves &, double *, int);
template void sum_curves(const DenseRows<double> &, const Curves &, double *, int);

}  // namespace linrank
