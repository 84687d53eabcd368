// Sums of a warp and of a block. Numbers that the host passes are `i64` or `double`, whatever their use: a launch then has
// no type to get wrong. Every sum has a fixed order, so that the same input gives the same bits.
#pragma once

typedef long long i64;

constexpr int warp_size = 32;
constexpr unsigned all_lanes = 0xffffffffu;

__device__ inline int thread_of_grid() { return blockIdx.x * blockDim.x + threadIdx.x; }

__device__ inline i64 least(i64 a, i64 b) { return a < b ? a : b; }

/// The sum over the lanes of a warp, in every lane.
__device__ inline double warp_sum(double v) {
    for (int d = warp_size / 2; d > 0; d /= 2) v += __shfl_xor_sync(all_lanes, v, d);
    return v;
}

__device__ inline double warp_max(double v) {
    for (int d = warp_size / 2; d > 0; d /= 2) v = fmax(v, __shfl_xor_sync(all_lanes, v, d));
    return v;
}

/// The sum over a block of whole warps, in every thread; the block must be done with `scratch`, 32 numbers.
__device__ inline double block_sum(double v, double *scratch) {
    v = warp_sum(v);
    if (threadIdx.x % warp_size == 0) scratch[threadIdx.x / warp_size] = v;
    __syncthreads();
    double total = 0;
    for (unsigned w = 0; w < blockDim.x / warp_size; ++w) total += scratch[w];
    __syncthreads();
    return total;
}

__device__ inline double block_max(double v, double *scratch) {
    v = warp_max(v);
    if (threadIdx.x % warp_size == 0) scratch[threadIdx.x / warp_size] = v;
    __syncthreads();
    double most = scratch[0];
    for (unsigned w = 1; w < blockDim.x / warp_size; ++w) most = fmax(most, scratch[w]);
    __syncthreads();
    return most;
}

/// A sum in twice the digits of a double: `high` is its rounding, `low` what that left.
struct Twice {
    double high, low;

    __device__ void add(double v) {
        const double sum = high + v, part = sum - high;
        low += (high - (sum - part)) + (v - part);
        high = sum;
    }
    __device__ void add_product(double a, double b) {
        const double product = __dmul_rn(a, b);  // which the compiler fuses with no sum
        low += fma(a, b, -product);
        add(product);
    }
    __device__ double value() const { return high + low; }
};

/// The same over a warp, in its first lane.
__device__ inline Twice warp_sum(Twice v) {
    for (int d = warp_size / 2; d > 0; d /= 2) {
        const double high = __shfl_xor_sync(all_lanes, v.high, d), low = __shfl_xor_sync(all_lanes, v.low, d);
        v.add(high);
        v.low += low;
    }
    return v;
}

/// The same over a block of whole warps, in every thread; `scratch` has 64 numbers.
__device__ inline Twice block_sum(Twice v, double *scratch) {
    v = warp_sum(v);
    if (threadIdx.x % warp_size == 0) {
        scratch[2 * (threadIdx.x / warp_size)] = v.high;
        scratch[2 * (threadIdx.x / warp_size) + 1] = v.low;
    }
    __syncthreads();
    Twice total = {0, 0};
    for (unsigned w = 0; w < blockDim.x / warp_size; ++w) {
        total.add(scratch[2 * w]);
        total.low += scratch[2 * w + 1];
    }
    __syncthreads();
    return total;
}
