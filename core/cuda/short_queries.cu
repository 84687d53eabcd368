// Queries of up to some thousand rows: each is the work of one block, in shared memory.
#include "pairs.cuh"
#include "rows.cuh"

/// Sums by level over ranges of places, in shared memory. Of few levels there are running sums, above[l][t] over the
/// places < t of levels > l and below[l][t] over those >= t of levels < l (or of neighboring levels): a sum is one of
/// them or the difference of two. Of more levels every row runs over the places, which for so few rows costs less
/// than any tree.
struct LevelSums {
    int n, k, n_vectors;
    bool adjacent, has_table;
    const int *level;      // by place
    const double *vector;  // n_vectors × n, by place
    double *table;

    static __device__ i64 table_size(i64 n, i64 k, i64 n_vectors) { return 2 * n_vectors * (k - 1) * (n + 1); }

    __device__ bool is_above(int other, int own) const { return adjacent ? other == own + 1 : other > own; }
    __device__ bool is_below(int other, int own) const { return adjacent ? other == own - 1 : other < own; }

    /// The running sums of a vector over the levels above l, or below l + 1.
    __device__ double *running(int v, int l, bool below) const {
        return table + i64(((below ? n_vectors : 0) + v) * (k - 1) + l) * (n + 1);
    }

    /// By all threads, a warp per vector, level and side; `vector` is complete, and the caller waits before it asks for
    /// sums. Over what is not taken a sum does not change by a bit: no pairs weigh exactly 0.
    __device__ void build() const {
        if (!has_table) return;
        const int lane = threadIdx.x % warp_size;
        for (int task = threadIdx.x / warp_size; task < 2 * n_vectors * (k - 1); task += blockDim.x / warp_size) {
            const bool below = task & 1;
            const int v = (task >> 1) / (k - 1), l = (task >> 1) % (k - 1);
            double *to = running(v, l, below), before = 0;
            if (lane == 0) to[below ? n : 0] = 0;
            for (int first = 0; first < n; first += warp_size) {
                const int t = below ? n - 1 - first - lane : first + lane;
                const bool is_row = first + lane < n;
                const bool is_taken = is_row && (below ? is_below(level[t], l + 1) : is_above(level[t], l));
                double sum = is_taken ? vector[v * n + t] : 0.0;
                for (int d = 1; d < warp_size; d *= 2) {
                    const double other = __shfl_up_sync(all_lanes, sum, d);
                    if (lane >= d) sum += other;
                }
                const unsigned taken = __ballot_sync(all_lanes, is_taken) & (all_lanes >> (warp_size - 1 - lane));
                const double last = __shfl_sync(all_lanes, sum, taken ? warp_size - 1 - __clz(taken) : lane);
                const double total = taken ? before + last : before;
                if (is_row) to[below ? t : t + 1] = total;
                before = __shfl_sync(all_lanes, total, warp_size - 1);
            }
        }
    }

    /// Of a row of level l: over places [first_above, end_above) above it and [first_below, end_below) below it.
    __device__ void sum(int l, int first_above, int end_above, int first_below, int end_below, double *above,
                        double *below) const {
        for (int v = 0; v < n_vectors; ++v) {
            double a = 0, b = 0;
            if (has_table) {
                if (l < k - 1) a = running(v, l, false)[end_above] - running(v, l, false)[first_above];
                if (l > 0) b = running(v, l - 1, true)[first_below] - running(v, l - 1, true)[end_below];
            } else {
                const double *x = vector + v * n;
                for (int t = first_above; t < end_above; ++t) a += is_above(level[t], l) ? x[t] : 0.0;
                for (int t = first_below; t < end_below; ++t) b += is_below(level[t], l) ? x[t] : 0.0;
            }
            above[v] = a;
            below[v] = b;
        }
    }
};

extern __shared__ double shared_numbers[];

/// Point of the queries listed, one per block. `ends` are four arrays of n_positions: where the windows of the margin
/// end, upto and from, and of huber those of the inner margin 1 - ε. `room` is what the tables of sums may take of
/// the shared memory, in numbers, beside 4 per row and vector.
extern "C" __global__ __launch_bounds__(1024) void sweep_queries(
    PROBLEM, const int *queries, i64 kind, double epsilon, i64 room, const double *z, i64 n_positions, int *order,
    int *ends, double *degree, double *gradient, double *moments) {
    __shared__ double scratch[64];
    const Problem problem = PROBLEM_GIVEN;
    const int q = queries[blockIdx.x], begin = offsets[q], n = offsets[q + 1] - begin, k = n_levels[q];
    const int n_vectors = problem.n_vectors();
    double *s = shared_numbers, *raw = s + n, *vector = raw + n;
    int *row = reinterpret_cast<int *>(vector + 2 * n_vectors * n), *level = row + n;
    LevelSums sums{n, k, 2 * n_vectors, problem.adjacent, false, level, vector,
                   reinterpret_cast<double *>(row + 2 * n)};
    sums.has_table = LevelSums::table_size(n, k, 2 * n_vectors) <= room;

    // The place of a row is the number of rows before it: so many comparisons cost less than a sort for so few rows.
    double is_void = 0;
    for (int i = threadIdx.x; i < n; i += blockDim.x) {
        raw[i] = z[begin + i];
        row[i] = i;  // with scores that are no numbers, some places stay without a row
        if (raw[i] != raw[i]) is_void = 1;
    }
    is_void = block_max(is_void, scratch);
    for (int i = threadIdx.x; i < n; i += blockDim.x) {
        const double own = raw[i];
        int place = 0;
        for (int j = 0; j < i; ++j) place += raw[j] <= own;
        for (int j = i + 1; j < n; ++j) place += raw[j] < own;
        row[place] = i;
    }
    __syncthreads();
    // Pairs see differences of scores only: about the median, which no far row drags away, they keep their digits.
    const double median = is_void > 0 ? nan("") : raw[row[n / 2]];
    const double largest = fmax(fabs(raw[row[0]] - median), fabs(raw[row[n - 1]] - median));
    const double grid = grid_of(kind, problem.is_counted(), n, largest);
    for (int t = threadIdx.x; t < n; t += blockDim.x) {
        const int i = begin + row[t];
        s[t] = put_on(grid, raw[row[t]] - median);
        level[t] = levels[i];
        order[begin + t] = row[t];
        const double weight = u ? u[i] : 1.0;
        vector[t] = weight;
        vector[n_vectors * n + t] = weight * s[t];
        if (gain) {
            vector[n + t] = gain[i] * weight;
            vector[3 * n + t] = gain[i] * weight * s[t];
        }
    }
    __syncthreads();
    sums.build();
    __syncthreads();

    const double query_weight = c ? c[q] : 1.0;
    for (int inner = 0; inner < (kind == huber ? 2 : 1); ++inner) {
        const double margin = inner ? 1.0 - epsilon : 1.0;
        int *upto = ends + 2 * inner * n_positions + begin, *from = upto + n_positions;
        MarginTotals totals;
        for (int t = threadIdx.x; t < n; t += blockDim.x) {
            const int i = begin + row[t];
            const double weight = vector[t], g = gain ? gain[i] : 0.0;
            upto[t] = upto_of(s, n, margin, s[t]);
            from[t] = from_of(s, n, margin, s[t]);
            double above[4] = {}, below[4] = {};
            sums.sum(level[t], 0, upto[t], from[t], n, above, below);
            const RowSums x{combined(gain, g, above[0], above[1], 1.0), combined(gain, g, below[0], below[1], -1.0),
                            combined(gain, g, above[n_vectors], above[n_vectors + 1], 1.0),
                            combined(gain, g, below[n_vectors], below[n_vectors + 1], -1.0)};
            double d, slope;
            totals.add(x, s[t], weight, query_weight, margin, kind == hinge, &d, &slope);
            degree[i] = inner ? degree[i] - d : d;
            gradient[i] = inner ? gradient[i] - slope : slope;
        }
        totals.store(moments + i64(q) * n_moments + n_row_moments + inner * n_margin_moments, scratch);
    }
    RowTotals totals;
    const double scale = query_weight * (kind == huber ? 0.5 / epsilon : 1.0);
    for (int t = threadIdx.x; t < n; t += blockDim.x) {
        const int i = begin + row[t];
        gradient[i] *= scale * vector[t];
        totals.add(s[t], vector[t], gain ? 2.0 * fabs(gain[i]) : 1.0, gradient[i]);
    }
    totals.store(grid, moments + i64(q) * n_moments, scratch);
}

/// What a Hessian product needs of a query, in shared memory: its order, levels and windows are read again.
struct QueryProduct {
    Problem problem;
    int q, begin, n, n_positions;
    bool is_band;
    double curvature;
    const int *order, *ends;
    const double *degree;
    LevelSums sums;
    double *vector;
    int *level;

    __device__ QueryProduct(const Problem &problem, int q, int n_positions, i64 kind, double epsilon, i64 room,
                            const int *order, const int *ends, const double *degree, double *memory)
        : problem(problem), q(q), begin(problem.offsets[q]), n(problem.offsets[q + 1] - begin),
          n_positions(n_positions), is_band(kind == huber), curvature(kind == huber ? 1.0 / epsilon : 2.0),
          order(order + begin), ends(ends + begin), degree(degree + begin), vector(memory) {
        const int k = problem.n_levels[q], n_vectors = problem.n_vectors();
        level = reinterpret_cast<int *>(vector + n_vectors * n);
        // An even number of levels keeps the table aligned.
        sums = {n, k, n_vectors, problem.adjacent, LevelSums::table_size(n, k, n_vectors) <= room, level, vector,
                reinterpret_cast<double *>(level + n + n % 2)};
    }

    /// Takes v, by row of the query, which may lie anywhere.
    __device__ void load(const double *v) {
        for (int t = threadIdx.x; t < n; t += blockDim.x) {
            const int i = begin + order[t];
            vector[t] = (problem.u ? problem.u[i] : 1.0) * v[order[t]];
            if (problem.gain) vector[n + t] = problem.gain[i] * vector[t];
            level[t] = problem.levels[i];
        }
        __syncthreads();
        sums.build();
        __syncthreads();
    }

    /// out = ∇²L v, by row; v as it was loaded.
    __device__ void store(const double *v, double *out) const {
        const int *upto = ends, *from = ends + n_positions, *upto_in = from + n_positions,
                  *from_in = upto_in + n_positions;
        const double weight = problem.c ? problem.c[q] : 1.0;
        for (int t = threadIdx.x; t < n; t += blockDim.x) {
            const int row = order[t], i = begin + row;
            const double g = problem.gain ? problem.gain[i] : 0.0;
            double above[2] = {}, below[2] = {};
            sums.sum(level[t], is_band ? upto_in[t] : 0, upto[t], from[t], is_band ? from_in[t] : n, above, below);
            const double paired = combined(problem.gain, g, above[0], above[1], 1.0) +
                                  combined(problem.gain, g, below[0], below[1], -1.0);
            out[row] = curvature * (degree[row] * v[row] - weight * (problem.u ? problem.u[i] : 1.0) * paired);
        }
    }
};

/// out = ∇²L v for the queries listed, a block per query and vector; `stride` from one vector to the next.
extern "C" __global__ __launch_bounds__(1024) void multiply_queries(
    PROBLEM, const int *queries, i64 kind, double epsilon, i64 room, i64 n_positions, const int *order,
    const int *ends, const double *degree, const double *v, double *out, i64 stride) {
    QueryProduct product(PROBLEM_GIVEN, queries[blockIdx.x], n_positions, kind, epsilon, room, order, ends, degree,
                         shared_numbers);
    v += blockIdx.y * stride + product.begin;
    product.load(v);
    product.store(v, out + blockIdx.y * stride + product.begin);
}

/// image = X v and, in parts[block], Xᵀ(∇²L image) for the queries listed, with dense rows of up to `blockDim` packs:
/// a block takes every gridDim-th query, whose rows it finds in the cache when it reads them again.
template <class T, int width>
__device__ void multiply_rows(const Problem &problem, const int *queries, i64 n_queries, i64 kind, double epsilon,
                              i64 room, i64 n_positions, const int *order, const int *ends, const double *degree,
                              const DenseRows<T> &x, i64 longest, const double *v, double *image, double *parts) {
    double *w = shared_numbers, *z = w + x.n_columns, *curved = z + longest, *memory = curved + longest;
    for (int c = threadIdx.x; c < x.n_columns; c += blockDim.x) w[c] = v[c];
    constexpr int lanes = 8;
    const int packs = (x.n_columns + width - 1) / width, groups = blockDim.x / packs;
    const int group = threadIdx.x / packs, c = (threadIdx.x % packs) * width;
    const bool is_whole = c + width <= x.n_columns;
    double sums[width] = {};
    for (i64 k = blockIdx.x; k < n_queries; k += gridDim.x) {
        __syncthreads();
        QueryProduct product(problem, queries[k], n_positions, kind, epsilon, room, order, ends, degree, memory);
        const int n = product.n, begin = product.begin;
        for (int first = 0; first < n; first += blockDim.x / lanes) {
            const int t = first + threadIdx.x / lanes;
            const double sum = dot_row<T, width, lanes>(x.row(begin + (t < n ? t : n - 1)), x.n_columns, w,
                                                        threadIdx.x % lanes);
            if (threadIdx.x % lanes == 0 && t < n) z[t] = image[begin + t] = sum;
        }
        __syncthreads();
        product.load(z);
        product.store(z, curved);
        __syncthreads();
        if (group >= groups) continue;
#pragma unroll 4
        for (int t = group; t < n; t += groups) {
            const T *row = x.row(begin + t) + c;
            if (is_whole) {
                const Pack<T, width> pack = load<T, width>(row);
                for (int j = 0; j < width; ++j) sums[j] += curved[t] * double(pack.values[j]);
            } else {
                for (int j = 0; j < width; ++j) sums[j] += c + j < x.n_columns ? curved[t] * double(row[j]) : 0.0;
            }
        }
    }
    __syncthreads();
    if (group < groups)
        for (int j = 0; j < width; ++j) memory[threadIdx.x * width + j] = sums[j];
    __syncthreads();
    if (group > 0) return;
    for (int j = 0; j < width && c + j < x.n_columns; ++j) {
        double sum = 0;
        for (int g = 0; g < groups; ++g) sum += memory[(g * packs + threadIdx.x) * width + j];
        parts[i64(blockIdx.x) * x.n_columns + c + j] = sum;
    }
}

#define DEFINE_MULTIPLY_ROWS(T, name, wide)                                                                         \
    /* five blocks a multiprocessor hide more than the registers of three hold */                                   \
    extern "C" __global__ __launch_bounds__(256, 5) void multiply_rows_##name(                                      \
        PROBLEM, const int *queries, i64 n_queries, i64 kind, double epsilon, i64 room, i64 n_positions,            \
        const int *order, const int *ends, const double *degree, const T *values, i64 stride, i64 n_columns,        \
        const int *rows, i64 is_wide, i64 longest, const double *v, double *image, double *parts) {                 \
        const DenseRows<T> x{values, stride, int(n_columns), rows};                                                 \
        if (is_wide)                                                                                                \
            multiply_rows<T, wide>(PROBLEM_GIVEN, queries, n_queries, kind, epsilon, room, n_positions, order,      \
                                   ends, degree, x, longest, v, image, parts);                                      \
        else                                                                                                        \
            multiply_rows<T, 1>(PROBLEM_GIVEN, queries, n_queries, kind, epsilon, room, n_positions, order, ends,   \
                                degree, x, longest, v, image, parts);                                               \
    }

DEFINE_MULTIPLY_ROWS(float, f32, 4)
DEFINE_MULTIPLY_ROWS(double, f64, 2)
