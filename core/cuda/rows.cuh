// Dense rows as kernels read them: 16 bytes at a time where rows are aligned so (width > 1), else number by number.
#pragma once
#include "sums.cuh"

template <class T, int width>
struct Pack {
    T values[width];
};

template <class T, int width>
__device__ inline Pack<T, width> load(const T *x) {
    if constexpr (width == 1) return {{*x}};
    static_assert(width == 1 || width * sizeof(T) == 16, "16 bytes");
    Pack<T, width> pack;
    *reinterpret_cast<int4 *>(&pack) = *reinterpret_cast<const int4 *>(x);
    return pack;
}

template <class T>
struct DenseRows {
    const T *values;
    i64 stride;
    int n_columns;
    const int *order;  // position t is row order[t], or row t where it is null

    __device__ const T *row(int t) const { return values + (order ? order[t] : t) * stride; }
};

/// x·w, summed by `lanes` lanes that each take every lanes-th pack; in all of them.
template <class T, int width, int lanes>
__device__ inline double dot_row(const T *x, int n, const double *w, int lane) {
    double sum = 0;
    int c = lane * width;
#pragma unroll 4
    for (; c + width <= n; c += lanes * width) {
        const Pack<T, width> pack = load<T, width>(x + c);
        for (int j = 0; j < width; ++j) sum += double(pack.values[j]) * w[c + j];
    }
    for (int j = 0; j < width && c + j < n; ++j) sum += double(x[c + j]) * w[c + j];  // the last pack is cut
    for (int d = lanes / 2; d > 0; d /= 2) sum += __shfl_xor_sync(all_lanes, sum, d);
    return sum;
}
