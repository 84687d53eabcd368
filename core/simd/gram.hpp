// Dense building blocks of the explicit Hessian; see Kernels in simd.hpp.
#pragma once
#include "simd.hpp"

namespace linrank::LINRANK_ISA {

void add_cross_product_f32(std::int64_t n_rows, std::int64_t n, std::int64_t first, std::int64_t last,
                           const float *a, const float *b, double *product);
void add_cross_product_f64(std::int64_t n_rows, std::int64_t n, std::int64_t first, std::int64_t last,
                           const double *a, const double *b, double *product);
void axpy_f32(std::int64_t n, float a, const float *x, float *y);
void axpy_f64(std::int64_t n, double a, const double *x, double *y);
double dot_vectors(std::int64_t n, const double *x, const double *y);

}  // namespace linrank::LINRANK_ISA
