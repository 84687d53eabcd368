// Pairs of one row with many others, weighted by what swapping them changes; see Kernels in simd.hpp.
#pragma once
#include "simd.hpp"

namespace linrank::LINRANK_ISA {

void add_swaps(PairLoss loss, const SwapRow &, const SwapRows &, double *gradient, SwapSums &sums);
double multiply_swaps(PairLoss loss, const SwapRow &, const SwapRows &, double v, const double *others, double *out);
void swap_curvatures(PairLoss loss, const SwapRow &, const SwapRows &, double *out);

}  // namespace linrank::LINRANK_ISA
