// Exponentials of many numbers; see Kernels in simd.hpp.
#pragma once
#include <cstdint>

namespace linrank::LINRANK_ISA {

void exp_vector(std::int64_t n, double *x);

}  // namespace linrank::LINRANK_ISA
