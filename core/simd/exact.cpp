// Compiled without contraction of a product and a sum into one operation: sums by column of dense
// rows, in the order of the rows, which so have the same bits whatever the instructions; and a dot
// product as in twice the precision, which is about what is lost in each operation.
#include "vector.hpp"

namespace linrank::LINRANK_ISA {
namespace {

/// Several rows at a time, for fewer loads and stores of the sums; x and the sums from a column on, one or eight
/// of them. Each adds its values in the order of the rows.
template <class Values, class Wide, int n_rows, bool has_weights, class Value>
[[gnu::always_inline]] inline void add_values(const Value *x, Index stride, Index c, const double *weight,
                                              const ColumnSums<Value> &sums) {
    const Values zero{}, one = zero + Value(1);
    const Wide pivot = Memory<Wide>::load(sums.pivot + c);
    Wide sum = Memory<Wide>::load(sums.sum + c), square = Memory<Wide>::load(sums.square + c);
    Wide squares = Memory<Wide>::load(sums.squares + c);
    Values low = Memory<Values>::load(sums.low + c), high = Memory<Values>::load(sums.high + c), n_nonzero{};
    for (int r = 0; r < n_rows; ++r) {
        const Values value = Memory<Values>::load(x + r * stride + c);
        const Wide wide = widen(value), shifted = wide - pivot;
        const Wide scaled = has_weights ? shifted * weight[r] : shifted;
        sum += scaled;
        square += scaled * shifted;
        squares += wide * wide;
        low = either(value < low, value, low);
        high = either(high < value, value, high);
        n_nonzero += either(value != Value(0), one, zero);
    }
    Memory<Wide>::store(sums.sum + c, sum);
    Memory<Wide>::store(sums.square + c, square);
    Memory<Wide>::store(sums.squares + c, squares);
    Memory<Values>::store(sums.low + c, low);
    Memory<Values>::store(sums.high + c, high);
    Memory<Wide>::store(sums.n_nonzero + c, Memory<Wide>::load(sums.n_nonzero + c) + widen(n_nonzero));
}

template <int n_rows, bool has_weights, class Value>
void add_rows(const Value *x, Index stride, Index n_columns, const double *weight,
              const ColumnSums<Value> &sums) {
    Index c = 0;
    for (; c + 8 <= n_columns; c += 8) add_values<Vec8<Value>, F64x8, n_rows, has_weights>(x, stride, c, weight, sums);
    for (; c < n_columns; ++c) add_values<Value, double, n_rows, has_weights>(x, stride, c, weight, sums);
}

/// A row of weight 0, which moments and ranges know nothing of.
template <class Value>
void add_weightless(const Value *x, Index n_columns, const ColumnSums<Value> &sums) {
    for (Index c = 0; c < n_columns; ++c) {
        const Value size = x[c] < 0 ? -x[c] : x[c];
        sums.squares[c] += double(x[c]) * double(x[c]);
        if (sums.weightless[c] < size) sums.weightless[c] = size;
        sums.n_nonzero[c] += x[c] != 0;
    }
}

template <bool has_weights, class Value>
void add_all(const DenseBlock<Value> &x, const double *weight, const ColumnSums<Value> &sums) {
    constexpr int together = 4;
    const Index row_bytes = x.n_columns * Index(sizeof(Value));
    for (Index t = 0; t < x.n_rows;) {
        // The block that follows is on its way while this one is summed.
        const char *ahead = reinterpret_cast<const char *>(x.row(t + x.n_rows));
        for (Index byte = 0; byte < together * row_bytes; byte += 64) prefetch_line(ahead + byte);
        const double *w = has_weights ? weight + t : nullptr;
        bool is_full = t + together <= x.n_rows;
        for (int r = 0; has_weights && is_full && r < together; ++r) is_full = w[r] > 0.0;
        if (is_full) add_rows<together, has_weights>(x.row(t), x.stride, x.n_columns, w, sums);
        else if (has_weights && *w <= 0.0) add_weightless(x.row(t), x.n_columns, sums);
        else add_rows<1, has_weights>(x.row(t), x.stride, x.n_columns, w, sums);
        t += is_full ? together : 1;
    }
}

}  // namespace

template <class Value>
void add_columns(const DenseBlock<Value> &x, const double *weight, const ColumnSums<Value> &sums) {
    weight ? add_all<true>(x, weight, sums) : add_all<false>(x, weight, sums);
}
template void add_columns(const DenseBlock<float> &, const double *, const ColumnSums<float> &);
template void add_columns(const DenseBlock<double> &, const double *, const ColumnSums<double> &);

// Eight sums side by side. Of each product and each sum the rounding is computed exactly (by one fused
// operation, and after Knuth) and added up beside it (Ogita, Rump & Oishi 2005).
double dot_twice(Index n, const double *x, const double *y) {
    constexpr int lanes = 8;
    double sum[lanes] = {}, lost[lanes] = {};
    const auto add = [&](Index i, int k) {
        const double p = x[i] * y[i], low = __builtin_fma(x[i], y[i], -p);
        const double next = sum[k] + p, part = next - sum[k];
        lost[k] += ((sum[k] - (next - part)) + (p - part)) + low;
        sum[k] = next;
    };
    Index i = 0;
    for (; i + lanes <= n; i += lanes)
        for (int k = 0; k < lanes; ++k) add(i + k, k);
    for (; i < n; ++i) add(i, int(i % lanes));
    double total = 0, rest = 0;
    for (int k = 0; k < lanes; ++k) {
        const double next = total + sum[k], part = next - total;
        rest += ((total - (next - part)) + (sum[k] - part)) + lost[k];
        total = next;
    }
    return total + rest;
}

}  // namespace linrank::LINRANK_ISA
