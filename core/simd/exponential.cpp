#include "exponential.hpp"

namespace linrank::LINRANK_ISA {
namespace {

// 1.5·2⁵²: added to a number below 2⁵¹, it leaves the nearest integer in the low bits.
constexpr double magic = 6755399441055744.0;
constexpr double per_log2 = 1.4426950408889634;
// log 2 in two parts, the first of so few bits that its product with an exponent is exact.
constexpr double log2_high = 6.93147180369123816490e-01, log2_low = 1.90821492927058770002e-10;

/// e^x = 2^k e^r, |r| <= ½ log 2, with the Taylor polynomial of e^r: what it leaves out is below 2⁻⁵⁷.
[[gnu::always_inline]] inline double exponential(double x) {
    const double shifted = x * per_log2 + magic, k = shifted - magic;
    const double r = (x - k * log2_high) - k * log2_low;
    double p = 1.0 / 6227020800;
    p = p * r + 1.0 / 479001600;
    p = p * r + 1.0 / 39916800;
    p = p * r + 1.0 / 3628800;
    p = p * r + 1.0 / 362880;
    p = p * r + 1.0 / 40320;
    p = p * r + 1.0 / 5040;
    p = p * r + 1.0 / 720;
    p = p * r + 1.0 / 120;
    p = p * r + 1.0 / 24;
    p = p * r + 1.0 / 6;
    p = p * r + 0.5;
    p = p * r * r + r;
    const std::uint64_t bits = __builtin_bit_cast(std::uint64_t, shifted);
    const double power = __builtin_bit_cast(double, (bits << 52) + (std::uint64_t(1023) << 52));
    return power + power * p;
}

}  // namespace

void exp_vector(std::int64_t n, double *x) {
    for (std::int64_t i = 0; i < n; ++i) {
        const double value = exponential(x[i]);
        x[i] = x[i] < -700.0 ? 0.0 : value;
    }
}

}  // namespace linrank::LINRANK_ISA
