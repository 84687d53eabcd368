#include "gram.hpp"

#include "vector.hpp"

namespace linrank::LINRANK_ISA {
namespace {

F32x16 load16(const float *p) {
    F32x16 v;
    __builtin_memcpy(&v, p, sizeof v);
    return v;
}

}  // namespace

// Only the tiles that touch the upper triangle. A tile of 4 × 16 sums stays in registers while all rows pass; the product itself, in double, is
// touched once per call, so rounding grows with the rows of a call and not with those of the data.
void add_cross_product(std::int64_t n_rows, std::int64_t n, const float *a, const float *b,
                       double *product) {
    for (std::int64_t c = 0; c < n; c += 16)
        for (std::int64_t r = 0; r < c + 16; r += 4) {
            F32x16 s0{}, s1{}, s2{}, s3{};
            const float *pa = a + r, *pb = b + c;
            for (std::int64_t t = 0; t < n_rows; ++t, pa += n, pb += n) {
                const F32x16 v = load16(pb);
                s0 += v * pa[0];
                s1 += v * pa[1];
                s2 += v * pa[2];
                s3 += v * pa[3];
            }
            double *out = product + r * n + c;
            for (int lane = 0; lane < 16; ++lane) {
                out[lane] += double(s0[lane]);
                out[n + lane] += double(s1[lane]);
                out[2 * n + lane] += double(s2[lane]);
                out[3 * n + lane] += double(s3[lane]);
            }
        }
}

void axpy_f32(std::int64_t n, float a, const float *x, float *y) {
    for (std::int64_t c = 0; c < n; c += 16) {
        const F32x16 sum = load16(y + c) + load16(x + c) * a;
        __builtin_memcpy(y + c, &sum, sizeof sum);
    }
}

double dot_vectors(std::int64_t n, const double *x, const double *y) {
    F64x8 s0{}, s1{};
    std::int64_t c = 0;
    for (; c + 16 <= n; c += 16) {
        s0 += load8<double>(x + c) * load8<double>(y + c);
        s1 += load8<double>(x + c + 8) * load8<double>(y + c + 8);
    }
    double sum = sum_lanes(s0 + s1);
    for (; c < n; ++c) sum += x[c] * y[c];
    return sum;
}

}  // namespace linrank::LINRANK_ISA
