// Products with rows, dense and CSR, and what is asked of their columns. Sums are in double, whatever the storage.
#include "rows.cuh"

extern __shared__ double shared_numbers[];

constexpr int lanes_of_row = 8;

/// z[t] = x_t·w; w goes to shared memory where `holds`.
template <class T, int width>
__device__ void score_dense(const DenseRows<T> &x, int n, const double *w, bool holds, double *z) {
    if (holds) {
        for (int c = threadIdx.x; c < x.n_columns; c += blockDim.x) shared_numbers[c] = w[c];
        __syncthreads();
        w = shared_numbers;
    }
    const int lane = threadIdx.x % lanes_of_row, groups = blockDim.x / lanes_of_row;
    for (int first = blockIdx.x * groups; first < n; first += gridDim.x * groups) {
        const int t = first + threadIdx.x / lanes_of_row;
        // Lanes beyond the end take part in the sums of their warp with a row that is there.
        const double sum = dot_row<T, width, lanes_of_row>(x.row(t < n ? t : n - 1), x.n_columns, w, lane);
        if (lane == 0 && t < n) z[t] = sum;
    }
}

/// parts[block][c] = Σ r_t x_tc over the rows of the block, for the columns of blockIdx.y.
template <class T, int width>
__device__ void add_dense(const DenseRows<T> &x, int n, const double *r, double *parts) {
    const int packs = (x.n_columns + width - 1) / width, begin = blockIdx.y * blockDim.x;
    const int lanes = min(packs - begin, int(blockDim.x)), groups = blockDim.x / lanes;
    const int group = threadIdx.x / lanes, c = (begin + threadIdx.x % lanes) * width;
    const i64 share = (i64(n) + gridDim.x - 1) / gridDim.x, first = blockIdx.x * share;
    double sums[width] = {};
    if (group < groups) {
        const bool is_whole = c + width <= x.n_columns;
#pragma unroll 4
        for (i64 t = first + group; t < least(first + share, n); t += groups) {
            const T *row = x.row(t) + c;
            const double factor = r[t];
            if (is_whole) {
                const Pack<T, width> pack = load<T, width>(row);
                for (int j = 0; j < width; ++j) sums[j] += factor * double(pack.values[j]);
            } else {
                for (int j = 0; j < width; ++j) sums[j] += c + j < x.n_columns ? factor * double(row[j]) : 0.0;
            }
        }
        for (int j = 0; j < width; ++j) shared_numbers[threadIdx.x * width + j] = sums[j];
    }
    __syncthreads();
    if (group > 0) return;
    for (int j = 0; j < width && c + j < x.n_columns; ++j) {
        double sum = 0;
        for (int g = 0; g < groups; ++g) sum += shared_numbers[(g * lanes + threadIdx.x) * width + j];
        parts[i64(blockIdx.x) * x.n_columns + c + j] = sum;
    }
}

/// Of a chunk of whole queries per block, thread c takes column c: parts[block][c] = Σ_q Σ d x² - (Σ d x)² / Σ d.
template <class T>
__device__ void diagonal_dense(const DenseRows<T> &x, const int *chunks, const int *offsets, const double *degree,
                               const double *degrees, double *parts) {
    for (int c = threadIdx.x; c < x.n_columns; c += blockDim.x) {
        double total = 0;
        for (int q = chunks[blockIdx.x]; q < chunks[blockIdx.x + 1]; ++q) {
            double first = 0, second = 0;
            for (int t = offsets[q]; t < offsets[q + 1]; ++t) {
                const double value = x.row(t)[c], d = fmax(degree[t], 0.0);
                first += d * value;
                second += d * value * value;
            }
            if (degrees[q] > 0.0) total += second - first * first / degrees[q];
        }
        parts[i64(blockIdx.x) * x.n_columns + c] = total;
    }
}

/// out[c - begin][t] = x_tc for the columns [begin, begin + gridDim.y), in double.
template <class T>
__device__ void turn_dense(const DenseRows<T> &x, i64 n, i64 begin, double *out) {
    const i64 t = i64(blockIdx.x) * blockDim.x + threadIdx.x;
    if (t < n) out[blockIdx.y * n + t] = x.row(t)[begin + blockIdx.y];
}

// Moments of a column over the rows of a block: see ColumnStatistics and Extents. Values that are no numbers count
// as missing and for nothing else.
enum Scanned { c_weight, c_mean, c_spread, c_low, c_high, c_square, c_largest, c_nonzero, c_missing, n_scanned };

struct ColumnScan {
    double weight = 0, sum = 0, low, high, square = 0, largest = 0, nonzero = 0, missing = 0;

    __device__ ColumnScan() : low(__longlong_as_double(0x7ff0000000000000ll)), high(-low) {}
    __device__ void add(double x, double u) {
        if (x != x) {
            ++missing;
            return;
        }
        square += x * x;
        largest = fmax(largest, fabs(x));
        nonzero += x != 0.0;
        if (!(u > 0.0)) return;
        weight += u;
        sum += u * x;
        low = fmin(low, x);
        high = fmax(high, x);
    }
    __device__ double mean() const { return weight > 0.0 ? sum / weight : 0.0; }
    __device__ void store(double spread, double *to, i64 step) const {
        const double numbers[] = {weight, mean(), spread, low, high, square, largest, nonzero, missing};
        for (int j = 0; j < n_scanned; ++j) to[j * step] = numbers[j];
    }
};

/// found[block][number][c] over the rows of the block; the second visit finds them in the cache.
template <class T>
__device__ void scan_dense(const DenseRows<T> &x, i64 n, const double *weight, double *found) {
    const i64 share = (n + gridDim.x - 1) / gridDim.x, first = blockIdx.x * share, end = least(first + share, n);
    for (int c = threadIdx.x; c < x.n_columns; c += blockDim.x) {
        ColumnScan scan;
        for (i64 t = first; t < end; ++t) scan.add(x.row(t)[c], weight ? weight[t] : 1.0);
        const double mean = scan.mean();
        double spread = 0;
        for (i64 t = first; t < end; ++t) {
            const double away = double(x.row(t)[c]) - mean, u = weight ? weight[t] : 1.0;
            if (away == away && u > 0.0) spread += u * away * away;
        }
        scan.store(spread, found + i64(blockIdx.x) * n_scanned * x.n_columns + c, x.n_columns);
    }
}

/// merged[group][number][c]: what the parts of a group of 32 have found, as one.
extern "C" __global__ void merge_scans(i64 n_parts, i64 n_columns, const double *found, double *merged) {
    const i64 c = i64(blockIdx.x) * blockDim.x + threadIdx.x, begin = 32 * blockIdx.y, end = least(begin + 32, n_parts);
    if (c >= n_columns) return;
    const auto number = [&](i64 part, int j) { return found[(part * n_scanned + j) * n_columns + c]; };
    ColumnScan scan;
    for (i64 part = begin; part < end; ++part) {
        scan.weight += number(part, c_weight);
        scan.sum += number(part, c_weight) * number(part, c_mean);
        scan.low = fmin(scan.low, number(part, c_low));
        scan.high = fmax(scan.high, number(part, c_high));
        scan.square += number(part, c_square);
        scan.largest = fmax(scan.largest, number(part, c_largest));
        scan.nonzero += number(part, c_nonzero);
        scan.missing += number(part, c_missing);
    }
    double spread = 0;
    for (i64 part = begin; part < end; ++part) {
        const double away = number(part, c_mean) - scan.mean();
        spread += number(part, c_spread) + number(part, c_weight) * away * away;
    }
    scan.store(spread, merged + i64(blockIdx.y) * n_scanned * n_columns + c, n_columns);
}

#define DENSE(T) const T *values, i64 stride, i64 n_columns, const int *order
#define DENSE_GIVEN(T) DenseRows<T>{values, stride, int(n_columns), order}
#define DEFINE_DENSE(T, name, wide)                                                                                 \
    extern "C" __global__ void score_##name(DENSE(T), i64 n, i64 is_wide, i64 holds, const double *w, double *z) {  \
        if (is_wide) score_dense<T, wide>(DENSE_GIVEN(T), n, w, holds, z);                                          \
        else score_dense<T, 1>(DENSE_GIVEN(T), n, w, holds, z);                                                     \
    }                                                                                                               \
    extern "C" __global__ void add_##name(DENSE(T), i64 n, i64 is_wide, const double *r, double *parts) {           \
        if (is_wide) add_dense<T, wide>(DENSE_GIVEN(T), n, r, parts);                                               \
        else add_dense<T, 1>(DENSE_GIVEN(T), n, r, parts);                                                          \
    }                                                                                                               \
    extern "C" __global__ void diagonal_##name(DENSE(T), const int *chunks, const int *offsets,                     \
                                               const double *degree, const double *degrees, double *parts) {        \
        diagonal_dense(DENSE_GIVEN(T), chunks, offsets, degree, degrees, parts);                                    \
    }                                                                                                               \
    extern "C" __global__ void turn_##name(DENSE(T), i64 n, i64 begin, double *out) {                               \
        turn_dense(DENSE_GIVEN(T), n, begin, out);                                                                  \
    }                                                                                                               \
    extern "C" __global__ void scan_##name(DENSE(T), i64 n, const double *weight, double *found) {                  \
        scan_dense(DENSE_GIVEN(T), n, weight, found);                                                               \
    }

DEFINE_DENSE(float, f32, 4)
DEFINE_DENSE(double, f64, 2)

/// out[c] = factor Σ_b parts[b][c], in a fixed order: 32 columns per block, whose warps share the parts.
extern "C" __global__ void sum_parts(i64 n_parts, i64 n_columns, double factor, const double *parts, double *out) {
    __shared__ double shares[32][33];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const i64 c = i64(blockIdx.x) * 32 + lane;
    double sum = 0;
    if (c < n_columns)
        for (i64 b = warp; b < n_parts; b += blockDim.x / 32) sum += parts[b * n_columns + c];
    shares[warp][lane] = sum;
    __syncthreads();
    if (warp > 0 || c >= n_columns) return;
    for (unsigned w = 1; w < blockDim.x / 32; ++w) sum += shares[w][lane];
    out[c] = factor * sum;
}

// ---- CSR --------------------------------------------------------------------------------------------------------

/// z[t] = x_t·w, a warp per position.
template <class T>
__device__ void score_csr(const T *values, const int *columns, const i64 *offsets, const int *order, i64 n,
                          const double *w, double *z) {
    const int lane = threadIdx.x % warp_size;
    for (i64 t = thread_of_grid() / warp_size; t < n; t += i64(gridDim.x) * blockDim.x / warp_size) {
        const i64 row = order ? order[t] : t;
        double sum = 0;
        for (i64 k = offsets[row] + lane; k < offsets[row + 1]; k += warp_size) sum += double(values[k]) * w[columns[k]];
        sum = warp_sum(sum);
        if (lane == 0) z[t] = sum;
    }
}

/// The same matrix by columns: entries `entry[k]` of CSR, in rows `rows[k]`, cut into pieces of one column each.
/// parts[piece] = Σ r x over its entries, a warp per piece.
template <class T>
__device__ void add_columns(const T *values, const i64 *entry, const int *rows, const i64 *pieces, i64 n_pieces,
                            const double *r, double *parts) {
    const int lane = threadIdx.x % warp_size;
    const i64 piece = thread_of_grid() / warp_size;
    if (piece >= n_pieces) return;
    double sum = 0;
    for (i64 k = pieces[piece] + lane; k < pieces[piece + 1]; k += warp_size) sum += double(values[entry[k]]) * r[rows[k]];
    sum = warp_sum(sum);
    if (lane == 0) parts[piece] = sum;
}

/// parts[piece] = Σ_q Σ d x² - (Σ d x)² / Σ d over the entries of the piece, a thread per piece; by row are degrees d
/// and queries, and entries of a query come together.
template <class T>
__device__ void diagonal_columns(const T *values, const i64 *entry, const int *rows, const i64 *pieces, i64 n_pieces,
                                 const double *degree, const int *query, const double *degrees, double *parts) {
    const i64 piece = thread_of_grid();
    if (piece >= n_pieces) return;
    double total = 0, first = 0;
    int last = -1;
    for (i64 k = pieces[piece]; k < pieces[piece + 1]; ++k) {
        const int row = rows[k], q = query[row];
        if (q != last && last >= 0 && degrees[last] > 0.0) total -= first * first / degrees[last];
        if (q != last) first = 0;
        last = q;
        const double x = values[entry[k]], d = fmax(degree[row], 0.0);
        first += d * x;
        total += d * x * x;
    }
    if (last >= 0 && degrees[last] > 0.0) total -= first * first / degrees[last];
    parts[piece] = total;
}

/// out[c - begin][t] = x_tc for the columns [begin, end), zeros left out; a warp per position.
template <class T>
__device__ void turn_csr(const T *values, const int *columns, const i64 *offsets, const int *order, i64 n, i64 begin,
                         i64 end, double *out) {
    const i64 t = thread_of_grid() / warp_size, row = t < n && order ? order[t] : t;
    if (t >= n) return;
    for (i64 k = offsets[row] + threadIdx.x % warp_size; k < offsets[row + 1]; k += warp_size)
        if (columns[k] >= begin && columns[k] < end) out[(columns[k] - begin) * n + t] = values[k];
}

/// found[number][piece] over the entries of a piece, a thread per piece; see `scan_dense`.
template <class T>
__device__ void scan_columns(const T *values, const i64 *entry, const int *rows, const i64 *pieces, i64 n_pieces,
                             const double *weight, double *found) {
    const i64 piece = thread_of_grid();
    if (piece >= n_pieces) return;
    ColumnScan scan;
    for (i64 k = pieces[piece]; k < pieces[piece + 1]; ++k)
        scan.add(values[entry[k]], weight ? weight[rows[k]] : 1.0);
    const double mean = scan.mean();
    double spread = 0;
    for (i64 k = pieces[piece]; k < pieces[piece + 1]; ++k) {
        const double away = double(values[entry[k]]) - mean, u = weight ? weight[rows[k]] : 1.0;
        if (away == away && u > 0.0) spread += u * away * away;
    }
    scan.store(spread, found + piece, n_pieces);
}

#define COLUMNS(T) const T *values, const i64 *entry, const int *rows, const i64 *pieces, i64 n_pieces
#define DEFINE_CSR(T, name)                                                                                         \
    extern "C" __global__ void score_csr_##name(const T *values, const int *columns, const i64 *offsets,            \
                                                const int *order, i64 n, const double *w, double *z) {              \
        score_csr(values, columns, offsets, order, n, w, z);                                                        \
    }                                                                                                               \
    extern "C" __global__ void add_columns_##name(COLUMNS(T), const double *r, double *parts) {                     \
        add_columns(values, entry, rows, pieces, n_pieces, r, parts);                                               \
    }                                                                                                               \
    extern "C" __global__ void diagonal_columns_##name(COLUMNS(T), const double *degree, const int *query,          \
                                                       const double *degrees, double *parts) {                      \
        diagonal_columns(values, entry, rows, pieces, n_pieces, degree, query, degrees, parts);                     \
    }                                                                                                               \
    extern "C" __global__ void turn_csr_##name(const T *values, const int *columns, const i64 *offsets,             \
                                               const int *order, i64 n, i64 begin, i64 end, double *out) {          \
        turn_csr(values, columns, offsets, order, n, begin, end, out);                                              \
    }                                                                                                               \
    extern "C" __global__ void scan_columns_##name(COLUMNS(T), const double *weight, double *found) {               \
        scan_columns(values, entry, rows, pieces, n_pieces, weight, found);                                         \
    }

DEFINE_CSR(float, f32)
DEFINE_CSR(double, f64)

/// out[c] = factor Σ of the parts of the pieces of column c; 0 where there is none.
extern "C" __global__ void sum_pieces(const i64 *piece_of_column, i64 n_columns, double factor, const double *parts,
                                      double *out) {
    const i64 c = i64(blockIdx.x) * blockDim.x + threadIdx.x;
    if (c >= n_columns) return;
    double sum = 0;
    for (i64 k = piece_of_column[c]; k < piece_of_column[c + 1]; ++k) sum += parts[k];
    out[c] = factor * sum;
}
