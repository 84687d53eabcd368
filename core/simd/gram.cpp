#include "gram.hpp"

#include "vector.hpp"

namespace linrank::LINRANK_ISA {
namespace {

template <class T>
struct Lanes16;
template <>
struct Lanes16<float> {
    using type = F32x16;
};
template <>
struct Lanes16<double> {
    using type = F64x16;
};

template <class T>
typename Lanes16<T>::type load16(const T *p) {
    return Memory<typename Lanes16<T>::type>::load(p);
}

// Only the tiles that touch the upper triangle. A tile of 4 × 16 sums stays in registers while all rows
// pass; the product itself, in double, is touched once per call, so rounding grows with the rows of a
// call and not with those of the data.
template <class T>
void add_cross_product(std::int64_t n_rows, std::int64_t n, std::int64_t first, std::int64_t last,
                       const T *a, const T *b, double *product) {
    using Vec = typename Lanes16<T>::type;
    for (std::int64_t c = first; c < last; c += 16)
        for (std::int64_t r = 0; r < c + 16; r += 4) {
            Vec s0{}, s1{}, s2{}, s3{};
            const T *pa = a + r, *pb = b + (c - first);
            for (std::int64_t t = 0; t < n_rows; ++t, pa += n, pb += last - first) {
                const Vec v = load16(pb);
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

template <class T>
void axpy(std::int64_t n, T a, const T *x, T *y) {
    for (std::int64_t c = 0; c < n; c += 16) {
        Memory<typename Lanes16<T>::type>::store(y + c, load16(y + c) + load16(x + c) * a);
    }
}

}  // namespace

void add_cross_product_f32(std::int64_t n_rows, std::int64_t n, std::int64_t first, std::int64_t last,
                           const float *a, const float *b, double *product) {
    add_cross_product(n_rows, n, first, last, a, b, product);
}
void add_cross_product_f64(std::int64_t n_rows, std::int64_t n, std::int64_t first, std::int64_t last,
                           const double *a, const double *b, double *product) {
    add_cross_product(n_rows, n, first, last, a, b, product);
}
void axpy_f32(std::int64_t n, float a, const float *x, float *y) { axpy(n, a, x, y); }
void axpy_f64(std::int64_t n, double a, const double *x, double *y) { axpy(n, a, x, y); }

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
