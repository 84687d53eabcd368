// Sums by column of blocks of dense rows; see Kernels in simd.hpp.
#pragma once
#include "simd.hpp"

namespace linrank::LINRANK_ISA {

void add_columns_f32(const DenseBlock<float> &x, const double *weight, const ColumnSums<float> &sums);
void add_columns_f64(const DenseBlock<double> &x, const double *weight, const ColumnSums<double> &sums);

}  // namespace linrank::LINRANK_ISA
