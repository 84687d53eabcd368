// Dense building blocks of the explicit Hessian; see Kernels in simd.hpp.
#pragma once
#include "simd.hpp"

namespace linrank::LINRANK_ISA {

void add_cross_product(std::int64_t n_rows, std::int64_t n, const float *a, const float *b,
                       double *product);
void axpy_f32(std::int64_t n, float a, const float *x, float *y);
double dot_vectors(std::int64_t n, const double *x, const double *y);

}  // namespace linrank::LINRANK_ISA
