// What a point tells as a whole, and vectors over the positions.
#include "pairs.cuh"

struct Errors {
    double slacks, duals, squares, slopes;  // of the slopes the squared 2-norm
};

/// As PairPoint::errors_of, from moments alone; `depth` bounds the additions behind a sum over a window.
__device__ Errors errors_of(const double *rows, const double *m, double c, double depth, bool is_counted) {
    const double unit = 10.0 * depth * 0x1p-53, sum = rows[m_spread_s];
    if (is_counted) {
        const double slope = unit * (m[m_largest] + c * sum);
        return {unit * m[m_dr], unit * m[m_dr], unit * (m[m_drr] + c * sum * (m[m_active] + sum)),
                m[m_active] * slope * slope};
    }
    const double loose = c * rows[m_gain] * rows[m_weight], near = c * rows[m_gain] * sum;
    const double slacks = unit * (m[m_dr] + loose * rows[m_ur]);
    const double slopes = near * near * rows[m_uu] + 2.0 * near * loose * rows[m_uur] + loose * loose * rows[m_uurr];
    return {slacks, slacks, unit * (m[m_drr] + near * rows[m_ur] + loose * rows[m_urr]),
            2.0 * unit * unit * (slopes + m[m_active] * m[m_largest] * m[m_largest])};
}

/// As PairPoint::errors_on, of scores on a grid.
__device__ Errors errors_on(double grid, const double *m, double violations, double slacks, double squares, double c,
                            double n, double margin) {
    const double off = fmod(margin, grid) == 0.0 ? 0.0 : 4.0 * 0x1p-53;
    const double moved = grid * (violations + 0.5 * c * n * n);
    const double of_slacks = off * m[m_dr] + 8.0 * 0x1p-53 * (violations + fabs(slacks));
    const double of_squares = off * m[m_drr] + 8.0 * 0x1p-53 * (violations + fabs(squares));
    return {of_slacks + moved, of_slacks, of_squares, m[m_active] * off * off * m[m_largest] * m[m_largest]};
}

struct Margin {
    double violations, slacks, squares;
    Errors error;

    __device__ Margin(const double *rows, const double *m, double margin, double c, double n, double depth,
                      bool is_counted) {
        Twice balance = {m[m_balance], m[m_balance_low]}, curl = {m[m_curl], m[m_curl_low]};
        violations = c * m[m_violations];
        slacks = c * (margin * m[m_violations] - balance.value());
        squares = c * (margin * margin * m[m_violations] + curl.value());
        error = rows[m_grid] > 0.0 ? errors_on(rows[m_grid], m, violations, slacks, squares, c, n, margin)
                                   : errors_of(rows, m, c, depth, is_counted);
    }
};

/// A sum that rounding may have taken below 0; what is no number stays none.
__device__ double nonnegative(double x) { return x < 0.0 ? 0.0 : x; }

/// What the queries tell, summed over those of each block. `long_depth` bounds the additions behind a sum of queries
/// longer than `longest`; of others it is their length.
extern "C" __global__ void summarize(PROBLEM, i64 n_queries, i64 longest, double long_depth, i64 kind, double epsilon,
                                     const double *moments, double *told) {
    __shared__ double scratch[64];
    double sums[n_told] = {};
    const i64 share = (n_queries + gridDim.x - 1) / gridDim.x, first = blockIdx.x * share;
    for (i64 q = first + threadIdx.x; q < least(first + share, n_queries); q += blockDim.x) {
        if (n_levels[q] < 2) continue;
        const double n = offsets[q + 1] - offsets[q], weight = c ? c[q] : 1.0;
        const double *rows = moments + q * n_moments, *outer = rows + n_row_moments, *inner = outer + n_margin_moments;
        const double depth = n > longest ? long_depth : n + 2.0;
        const bool is_counted = !u && !gain;
        const Margin m(rows, outer, 1.0, weight, n, depth, is_counted);
        const double slacks = nonnegative(m.slacks);
        sums[t_slacks] += slacks;
        sums[t_violations] += m.violations;
        sums[t_slacks_error] += m.error.slacks;
        sums[t_slopes] += rows[m_slopes];
        if (kind == squared_hinge) {
            sums[t_value] += nonnegative(m.squares);
            sums[t_curvature] += 2.0 * m.violations;
            sums[t_value_error] += m.error.squares;
            sums[t_dual_error] += m.error.duals;
            sums[t_slope_errors] += m.error.slopes;
        } else if (kind == hinge) {
            sums[t_value] += slacks;
            sums[t_value_error] += m.error.slacks;
            sums[t_dual_error] += m.error.duals;
            sums[t_slope_errors] += m.error.slopes;
        } else {
            // Of large slacks the difference of squares keeps no digit; but h_ε is at most ε/2 below the hinge.
            const Margin in(rows, inner, 1.0 - epsilon, weight, n, depth, is_counted);
            const double half = 0.5 / epsilon, floor = nonnegative(slacks - epsilon * m.violations);
            const double difference = half * (m.squares - in.squares);
            sums[t_value] += difference < floor ? floor : difference;
            sums[t_inner_slacks] += nonnegative(in.slacks);
            sums[t_curvature] += (m.violations - in.violations) / epsilon;
            sums[t_value_error] += half * (m.error.squares + in.error.squares) + m.error.slacks;
            sums[t_dual_error] += m.error.duals + in.error.duals;
            sums[t_slope_errors] += 2.0 * half * half * (m.error.slopes + in.error.slopes);
        }
    }
    for (int j = 0; j < n_told; ++j) {
        const double total = block_sum(sums[j], scratch);
        if (threadIdx.x == 0) told[blockIdx.x * n_told + j] = total;
    }
}

/// Σ a b over the share of each block.
extern "C" __global__ void dot(i64 n, const double *a, const double *b, double *sums) {
    __shared__ double scratch[64];
    double sum = 0;
    for (i64 i = thread_of_grid(); i < n; i += i64(gridDim.x) * blockDim.x) sum += a[i] * b[i];
    sum = block_sum(sum, scratch);
    if (threadIdx.x == 0) sums[blockIdx.x] = sum;
}

/// out = x + t y
extern "C" __global__ void add_scaled(i64 n, const double *x, double t, const double *y, double *out) {
    const i64 i = i64(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i < n) out[i] = x[i] + t * y[i];
}

/// Sums over the positions of each query, a block per query; what is below 0 counts as 0.
extern "C" __global__ void sum_queries(const int *offsets, const double *x, double *sums) {
    __shared__ double scratch[64];
    double sum = 0;
    for (int i = offsets[blockIdx.x] + threadIdx.x; i < offsets[blockIdx.x + 1]; i += blockDim.x) sum += fmax(x[i], 0.0);
    sum = block_sum(sum, scratch);
    if (threadIdx.x == 0) sums[blockIdx.x] = sum;
}
