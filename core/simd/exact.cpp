// A dot product as in twice the precision. Compiled without contraction of a product and a sum into one
// operation: what is lost in each is what this is about.
#include "simd.hpp"

namespace linrank::LINRANK_ISA {

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
