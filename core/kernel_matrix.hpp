// Kernel matrices K(A, B) and their products with vectors, the matrix in memory or not.
#pragma once

#include "pages.hpp"
#include "rows.hpp"

namespace linrank {

enum class KernelKind { rbf, poly, sigmoid, linear };

/// exp(-γ‖a - b‖²), (γ a·b + c)^degree, tanh(γ a·b + c), a·b. Of the bits of k(a, b) is known: they
/// are those of k(b, a), and k(a, a) is 1 for the first.
struct KernelFunction {
    KernelKind kind;
    double gamma;
    int degree;
    double coef0;
};

// The rows of a and b have the same columns, else std::invalid_argument; where they are one object,
// each pair is computed once. Any number of threads gives the same bits.

/// k(a_i, b_j) at [i·n_b + j].
PageArray<double> kernel_matrix(const KernelFunction &f, const Rows &a, const Rows &b,
                                int n_threads);

/// Σ_j k(a_i, b_j) v[j], tile by tile.
std::vector<double> kernel_product(const KernelFunction &f, const Rows &a, const Rows &b, Doubles v,
                                   int n_threads);

/// k(a_i, a_i).
std::vector<double> kernel_diagonal(const KernelFunction &f, const Rows &rows, int n_threads);

}  // namespace linrank
