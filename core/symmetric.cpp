#include "symmetric.hpp"

#include <algorithm>
#include <cmath>

#include "parallel.hpp"
#include "simd.hpp"

namespace linrank {

std::vector<std::int64_t> triangle_parts(std::int64_t n, std::int64_t step) {
    // Each part has a total of its own to be added up, n numbers against n²/2 of the triangle, and
    // threads that come late still find work: 32 parts of a large matrix.
    const std::int64_t n_parts = std::clamp<std::int64_t>(n / 128, 1, 32);
    std::vector<std::int64_t> first;
    for (std::int64_t t = 0; t < n_parts; ++t) {
        // Rows [0, i) hold the share 1 - (1 - i/n)² of the area.
        const double i = double(n) * (1.0 - std::sqrt(1.0 - double(t) / double(n_parts)));
        const std::int64_t row = std::int64_t(i) / step * step;
        if (first.empty() || row > first.back()) first.push_back(row);
    }
    first.push_back(n);
    return first;
}

void sum_triangle(std::int64_t n, std::int64_t step, std::span<double> out, int n_threads,
                  const std::function<void(std::int64_t, std::int64_t, double *)> &add) {
    const std::vector<std::int64_t> first = triangle_parts(n, step);
    std::vector<std::vector<double>> totals(first.size() - 1);
    parallel_for(std::int64_t(totals.size()), n_threads, [&](std::int64_t t) {
        auto &total = totals[t];
        total.assign(n - first[t], 0.0);
        add(first[t], first[t + 1], total.data());
    });
    std::fill(out.begin(), out.end(), 0.0);
    for (std::size_t t = 0; t < totals.size(); ++t) {
        double *to = out.data() + first[t];
        for (std::size_t i = 0; i < totals[t].size(); ++i) to[i] += totals[t][i];
    }
}

void symmetric_product(const double *q, std::int64_t stride, std::span<const double> v,
                       std::span<double> out, int n_threads) {
    const std::int64_t n = std::int64_t(v.size());
    constexpr std::int64_t step = 8;
    sum_triangle(n, step, out, n_threads, [&](std::int64_t first, std::int64_t last, double *total) {
        for (std::int64_t i = first; i < last; i += step) {
            const std::int64_t n_rows = std::min(step, last - i), next = i + n_rows;
            double sums[step] = {};
            for (std::int64_t r = 0; r < n_rows; ++r) {  // the square on the diagonal
                const double *row = q + (i + r) * stride + i;
                sums[r] += row[r] * v[i + r];
                for (std::int64_t c = r + 1; c < n_rows; ++c) {
                    sums[r] += row[c] * v[i + c];
                    sums[c] += row[c] * v[i + r];
                }
            }
            if (next < n)
                simd().add_symmetric(n_rows, n - next, q + i * stride + next, stride, v.data() + i,
                                v.data() + next, sums, total + (next - first));
            for (std::int64_t r = 0; r < n_rows; ++r) total[i - first + r] += sums[r];
        }
    });
}

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
