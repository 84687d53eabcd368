#include "cholesky.hpp"

#include <cmath>

#include "simd.hpp"

namespace linrank {

// Row by row: both vectors of every inner product are contiguous.
bool cholesky_factor(std::span<double> matrix, std::int64_t n) {
    const auto dot = simd().dot_vectors;
    for (std::int64_t i = 0; i < n; ++i) {
        double *row = matrix.data() + i * n;
        for (std::int64_t j = 0; j < i; ++j) {
            const double *other = matrix.data() + j * n;
            row[j] = (row[j] - dot(j, row, other)) / other[j];
        }
        const double pivot = row[i] - dot(i, row, row);
        if (!(pivot > 1e-14 * row[i])) return false;
        row[i] = std::sqrt(pivot);
    }
    return true;
}

void cholesky_solve(std::span<const double> factor, std::int64_t n, std::span<double> b) {
    for (std::int64_t i = 0; i < n; ++i) {
        const double *row = factor.data() + i * n;
        b[i] = (b[i] - simd().dot_vectors(i, row, b.data())) / row[i];
    }
    for (std::int64_t i = n; i-- > 0;) {
        const double *row = factor.data() + i * n;
        const double x = b[i] /= row[i];
        for (std::int64_t j = 0; j < i; ++j) b[j] -= x * row[j];
    }
}

}  // namespace linrank
