#include "products.hpp"

#include "checks.hpp"

namespace linrank {

std::vector<Index> triangle_parts(Index n, Index step) {
    // Each part has a total of its own to be added up, n numbers against n²/2 of the triangle, and
    // threads that come late still find work: 32 parts of a large matrix.
    const Index n_parts = std::clamp<Index>(n / 128, 1, 32);
    std::vector<Index> first;
    for (Index t = 0; t < n_parts; ++t) {
        // Rows [0, i) hold the share 1 - (1 - i/n)² of the area.
        const double i = double(n) * (1.0 - std::sqrt(1.0 - double(t) / double(n_parts)));
        const Index row = Index(i) / step * step;
        if (first.empty() || row > first.back()) first.push_back(row);
    }
    first.push_back(n);
    return first;
}

std::vector<double> sum_triangle(Index n, Index step, int n_threads,
                                 const std::function<void(Index, Index, double *)> &add) {
    const std::vector<Index> first = triangle_parts(n, step);
    std::vector<std::vector<double>> totals(first.size() - 1);
    parallel_for(std::ssize(totals), n_threads, [&](Index t) {
        totals[t].assign(n - first[t], 0.0);
        add(first[t], first[t + 1], totals[t].data());
    });
    std::vector<double> out(n);
    for (std::size_t t = 0; t < totals.size(); ++t)
        for (std::size_t i = 0; i < totals[t].size(); ++i) out[first[t] + i] += totals[t][i];
    return out;
}

std::vector<double> symmetric_product(const double *q, Index stride, Doubles v, int n_threads) {
    const Index n = std::ssize(v);
    constexpr Index step = 8;
    return sum_triangle(n, step, n_threads, [&](Index first, Index last, double *total) {
        for (Index i = first; i < last; i += step) {
            const Index n_rows = std::min(step, last - i), next = i + n_rows;
            double sums[step] = {};
            for (Index r = 0; r < n_rows; ++r) {  // the square on the diagonal
                const double *row = q + (i + r) * stride + i;
                sums[r] += row[r] * v[i + r];
                for (Index c = r + 1; c < n_rows; ++c) {
                    sums[r] += row[c] * v[i + c];
                    sums[c] += row[c] * v[i + r];
                }
            }
            if (next < n)
                simd().add_symmetric(n_rows, n - next, q + i * stride + next, stride, v.data() + i,
                                v.data() + next, sums, total + (next - first));
            for (Index r = 0; r < n_rows; ++r) total[i - first + r] += sums[r];
        }
    });
}

// Row by row: both vectors of every inner product are contiguous.
std::optional<std::vector<double>> cholesky_factor(std::vector<double> matrix, Index n) {
    check_square(matrix, n, "matrix");
    const auto dot = simd().dot_vectors;
    for (Index i = 0; i < n; ++i) {
        double *row = matrix.data() + i * n;
        for (Index j = 0; j < i; ++j) {
            const double *other = matrix.data() + j * n;
            row[j] = (row[j] - dot(j, row, other)) / other[j];
        }
        const double pivot = row[i] - dot(i, row, row);
        if (!(pivot > 1e-14 * row[i])) return std::nullopt;
        row[i] = std::sqrt(pivot);
    }
    return matrix;
}

std::vector<double> cholesky_solve(Doubles factor, Index n, std::vector<double> b) {
    check_square(factor, n, "factor");
    require_length(b, n, "b");
    for (Index i = 0; i < n; ++i) {
        const double *row = factor.data() + i * n;
        b[i] = (b[i] - simd().dot_vectors(i, row, b.data())) / row[i];
    }
    for (Index i = n; i-- > 0;) {
        const double *row = factor.data() + i * n;
        const double x = b[i] /= row[i];
        for (Index j = 0; j < i; ++j) b[j] -= x * row[j];
    }
    return b;
}

}  // namespace linrank
