// Tiles of a kernel matrix and products with symmetric matrices; see Kernels in simd.hpp.
#pragma once
#include <cstdint>

namespace linrank::LINRANK_ISA {

void panel_distances(std::int64_t n_columns, std::int64_t n_panels, const double *a, const double *b,
                     double factor, double *out, std::int64_t stride);
void panel_products(std::int64_t n_columns, std::int64_t n_panels, const double *a, const double *b,
                    double factor, double term, double *out, std::int64_t stride);
void power_vector(std::int64_t n, int degree, double *x);
void add_symmetric(std::int64_t n_rows, std::int64_t n, const double *q, std::int64_t stride,
                   const double *u, const double *v, double *sums, double *total);

}  // namespace linrank::LINRANK_ISA
