// Sums whose rounding does not grow with their length; see Kernels in simd.hpp.
#pragma once
#include <cstdint>

namespace linrank::LINRANK_ISA {

double dot_twice(std::int64_t n, const double *x, const double *y);

}  // namespace linrank::LINRANK_ISA
