// Sums over the levels above or below a row's own; see Kernels in simd.hpp.
#pragma once
#include "simd.hpp"

namespace linrank::LINRANK_ISA {

void prefix_table(const Windows &, const double *v, double *above, double *below, double *table);
void radix_above(const Windows &, const double *v, std::int64_t first, std::int64_t last,
                 double *tree, double *above);
void radix_below(const Windows &, const double *v, std::int64_t first, std::int64_t last,
                 double *tree, double *below);

}  // namespace linrank::LINRANK_ISA
