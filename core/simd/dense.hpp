// Products with blocks of dense rows; see Kernels in simd.hpp.
#pragma once
#include "simd.hpp"

namespace linrank::LINRANK_ISA {

void dot_f32(const DenseBlock<float> &x, const double *w, double *out);
void dot_f64(const DenseBlock<double> &x, const double *w, double *out);
void add_f32(const DenseBlock<float> &x, const double *a, double *total);
void add_f64(const DenseBlock<double> &x, const double *a, double *total);
void add_cached_f32(const DenseBlock<float> &x, const double *a, float *total);
void add_cached_f64(const DenseBlock<double> &x, const double *a, double *total);

}  // namespace linrank::LINRANK_ISA
