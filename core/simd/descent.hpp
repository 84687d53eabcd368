// Steps of stochastic learners on pairs of rows; see Kernels in simd.hpp.
#pragma once
#include "../learner.hpp"
#include "../rows.hpp"

namespace linrank::LINRANK_ISA {

template <class Storage>
void descend_one(const Storage &rows, const DescentBatch &batch);
template <class Storage>
void descend_lanes(const Storage &rows, const DescentBatch &batch);

}  // namespace linrank::LINRANK_ISA
