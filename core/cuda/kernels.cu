// Kernels of rows, k(a_i, b_j): as a matrix, or multiplied by a vector tile by tile. Rows come feature by feature, row i
// of `a` having feature c in a[c·stride_a + i], so that neighboring threads read neighboring rows.
#include "sums.cuh"

enum KernelKind { rbf, poly, sigmoid, linear };

constexpr int tile = 64;   // rows of either side of a tile
constexpr int depth = 8;   // features that are added at a time
constexpr int lanes = 16;  // threads of either side, of which each takes 4 × 4 entries
constexpr int side = tile / lanes;

/// k from the product of two rows; not inlined, as it would be 16 times.
__device__ __noinline__ double of_product(int kind, int degree, double gamma, double coef0, double product) {
    if (kind == linear) return product;
    double base = gamma * product + coef0, power = 1.0;
    if (kind == sigmoid) return tanh(base);
    for (int n = degree; n > 0; n /= 2, base *= base)
        if (n % 2) power *= base;
    return power;
}

struct KernelFunction {
    int kind, degree;
    double gamma, coef0;

    /// k from the squared distance or the product of two rows.
    template <bool is_rbf>
    __device__ double of(double sum) const {
        return is_rbf ? exp(-gamma * sum) : of_product(kind, degree, gamma, coef0, sum);
    }
};

struct Side {
    const double *values;
    i64 stride, n;

    /// 0 beyond the last row and the last feature, which adds nothing.
    __device__ double at(i64 row, int c, int n_columns) const {
        return row < n && c < n_columns ? values[c * stride + row] : 0.0;
    }
};

/// sums[r][s] = ‖a_i - b_j‖² or a_i·b_j of rows i = first_a + lane_a + 16 r, j = first_b + lane_b + 16 s. Every sum is
/// taken feature by feature, and a and b may change places: k(a, b) and k(b, a) are the same bits.
template <bool is_rbf>
__device__ void sum_tile(const Side &a, const Side &b, int n_columns, i64 first_a, i64 first_b,
                         double (&sums)[side][side]) {
    __shared__ double rows_a[depth][tile], rows_b[depth][tile];
    const int lane_a = threadIdx.x / lanes, lane_b = threadIdx.x % lanes;
#pragma unroll
    for (int e = 0; e < side * side; ++e) sums[e / side][e % side] = 0;
    for (int first = 0; first < n_columns; first += depth) {
        for (int t = threadIdx.x; t < depth * tile; t += lanes * lanes) {
            rows_a[t / tile][t % tile] = a.at(first_a + t % tile, first + t / tile, n_columns);
            rows_b[t / tile][t % tile] = b.at(first_b + t % tile, first + t / tile, n_columns);
        }
        __syncthreads();
#pragma unroll
        for (int c = 0; c < depth; ++c)
#pragma unroll
            for (int e = 0; e < side * side; ++e) {
                const double x = rows_a[c][lane_a + lanes * (e / side)], y = rows_b[c][lane_b + lanes * (e % side)];
                const double difference = x - y;
                sums[e / side][e % side] += is_rbf ? difference * difference : x * y;
            }
        __syncthreads();
    }
}

template <bool is_rbf>
__device__ void fill_tile(const KernelFunction &k, const Side &a, const Side &b, int n_columns, double *out) {
    const i64 first_a = i64(blockIdx.y) * tile, first_b = i64(blockIdx.x) * tile;
    double sums[side][side];
    sum_tile<is_rbf>(a, b, n_columns, first_a, first_b, sums);
#pragma unroll
    for (int e = 0; e < side * side; ++e) {
        const i64 i = first_a + threadIdx.x / lanes + lanes * (e / side);
        const i64 j = first_b + threadIdx.x % lanes + lanes * (e % side);
        if (i < a.n && j < b.n) out[i * b.n + j] = k.of<is_rbf>(sums[e / side][e % side]);
    }
}

template <bool is_rbf>
__device__ void multiply_tiles(const KernelFunction &k, const Side &a, const Side &b, int n_columns, const double *v,
                               double *parts) {
    const i64 first_a = i64(blockIdx.x) * tile, n_tiles = (b.n + tile - 1) / tile;
    const i64 share = (n_tiles + gridDim.y - 1) / gridDim.y, first = blockIdx.y * share;
    double sums[side][side], totals[side] = {};
    for (i64 t = first; t < least(first + share, n_tiles); ++t) {
        sum_tile<is_rbf>(a, b, n_columns, first_a, t * tile, sums);
#pragma unroll
        for (int e = 0; e < side * side; ++e) {
            const i64 j = t * tile + threadIdx.x % lanes + lanes * (e % side);
            if (j < b.n) totals[e / side] += k.of<is_rbf>(sums[e / side][e % side]) * v[j];
        }
    }
#pragma unroll
    for (int r = 0; r < side; ++r) {
        for (int d = lanes / 2; d > 0; d /= 2) totals[r] += __shfl_xor_sync(all_lanes, totals[r], d);
        const i64 i = first_a + threadIdx.x / lanes + lanes * r;
        if (threadIdx.x % lanes == 0 && i < a.n) parts[blockIdx.y * a.n + i] = totals[r];
    }
}

#define KERNEL i64 kind, i64 degree, double gamma, double coef0
#define GIVEN KernelFunction{int(kind), int(degree), gamma, coef0}
#define SIDES i64 n_columns, const double *a, i64 stride_a, i64 n_a, const double *b, i64 stride_b, i64 n_b
#define GIVEN_SIDES {a, stride_a, n_a}, {b, stride_b, n_b}, int(n_columns)

/// out[i·n_b + j] = k(a_i, b_j), a block per tile.
extern "C" __global__ void __launch_bounds__(lanes *lanes) kernel_matrix(KERNEL, SIDES, double *out) {
    if (kind == rbf) fill_tile<true>(GIVEN, GIVEN_SIDES, out);
    else fill_tile<false>(GIVEN, GIVEN_SIDES, out);
}

/// parts[p][i] = Σ_j k(a_i, b_j) v[j] over the p-th share of the tiles, p being blockIdx.y.
extern "C" __global__ void __launch_bounds__(lanes *lanes) kernel_product(KERNEL, SIDES, const double *v,
                                                                          double *parts) {
    if (kind == rbf) multiply_tiles<true>(GIVEN, GIVEN_SIDES, v, parts);
    else multiply_tiles<false>(GIVEN, GIVEN_SIDES, v, parts);
}
