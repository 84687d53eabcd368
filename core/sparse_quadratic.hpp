// A quadratic with an l1 penalty, small enough that its matrix is written down.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

namespace linrank {

/// Minimises g·(v - w) + ½(v - w)ᵀH(v - w) + alpha‖v‖₁ over v by coordinate descent from w, H symmetric and
/// n × n, until no sweep lowers it by more than `enough`, or n_sweeps are done. A coordinate of no curvature
/// stays.
std::vector<double> sparse_quadratic(std::span<const double> H, std::span<const double> g,
                                     std::span<const double> w, double alpha, double enough,
                                     std::int64_t n_sweeps);

}  // namespace linrank
