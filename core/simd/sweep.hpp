// Sums over the levels above or below a row's own; see Kernels in simd.hpp.
#pragma once
#include "simd.hpp"

namespace linrank::LINRANK_ISA {

void prefix_table(const Windows &, const double *v, double *above, double *below, double *table);
void prefix_table_two(const Windows &, const double *v, double *above, double *below, double *table);
void ranked_sums(const Windows &, const double *v, double *above, double *below, double *scratch);
void ranked_sums_two(const Windows &, const double *v, double *above, double *below,
                     double *scratch);
void radix_above(const Windows &, const double *v, std::int64_t first, std::int64_t last,
                 double *tree, double *above);
void radix_below(const Windows &, const double *v, std::int64_t first, std::int64_t last,
                 double *tree, double sign, double *below);

}  // namespace linrank::LINRANK_ISA
