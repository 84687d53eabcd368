// Queries too long for one block. Their rows lie in *slots*, query after query, each in whole tiles of `tile` slots
// of which at least one is left over at the end; `first[tile]` is where the query of a tile begins.
//
// The sums over the pairs of a row, of numbers v by row, are sums over ranges of slots of rows that are sorted by
// some bits of their levels, and by place where these are the same. From the highest bit on, the rows whose levels
// agree so far lie together; those with a 0 at the next bit go before those with a 1, both in the order of their
// places. The rows above one with a 0 that differ from it in this bit first are then the ones of its group that
// stand before its window's end, which is a range of slots that begins where the ones do (the *pivot*); those below
// a row with a 1 are a range of the zeros that ends there. A *layer* is one such order: where each row came from,
// its pivot, and the other end of its range for each margin. log2(levels) layers make a point; a product moves v
// through them with one running sum each. Where only neighboring levels count, there are two layers: rows sorted by
// level, with the range in the level above, then with that in the level below.
#include "pairs.cuh"

constexpr int tile = 1024, tile_threads = 256, tile_share = tile / tile_threads;

/// A running sum over the slots of each query, exclusive, as that of the tile and those of the tiles before it.
struct Prefix {
    const double *local, *before;
    __device__ double at(int slot) const { return before[slot / tile] + local[slot]; }
};

struct Slot {
    int index, first, q, n;  // of its query: where it begins, which, and its rows
    __device__ bool is_row() const { return index - first < n; }
};

__device__ Slot slot_of(int index, const int *offsets, const int *tile_query, const int *tile_first) {
    const int q = tile_query[index / tile];
    return {index, tile_first[index / tile], q, offsets[q + 1] - offsets[q]};
}

/// Scores about their median, levels, places and groups, which are the queries at first, of rows in the order of
/// their scores; `home` is the position of each, -1 where there is no row.
extern "C" __global__ void place_rows(PROBLEM, const int *tile_query, const int *tile_first, i64 n_slots, i64 kind,
                                      const double *z, const int *home, double *s, double *grids, int *level,
                                      int *place, int *group_first, int *group_end) {
    const int index = thread_of_grid();
    if (index >= n_slots) return;
    const Slot slot = slot_of(index, offsets, tile_query, tile_first);
    place[index] = index - slot.first;
    group_first[index] = slot.first;
    group_end[index] = slot.is_row() ? slot.first + slot.n : 0;
    const double median = z[home[slot.first + slot.n / 2]];
    const double largest = fmax(fabs(z[home[slot.first]] - median), fabs(z[home[slot.first + slot.n - 1]] - median));
    const double grid = grid_of(kind, !u && !gain, slot.n, largest);
    s[index] = slot.is_row() ? put_on(grid, z[home[index]] - median) : 0.0;
    level[index] = slot.is_row() ? levels[home[index]] : 0;
    if (index % tile == 0) grids[index / tile] = grid;
}

/// Ends of the windows of one margin, by place and from the beginning of the query.
extern "C" __global__ void find_ends(const int *offsets, const int *tile_query, const int *tile_first, i64 n_slots,
                                     double margin, const double *s, int *upto, int *from) {
    const int index = thread_of_grid();
    if (index >= n_slots) return;
    const Slot slot = slot_of(index, offsets, tile_query, tile_first);
    upto[index] = slot.is_row() ? upto_of(s + slot.first, slot.n, margin, s[index]) : 0;
    from[index] = slot.is_row() ? from_of(s + slot.first, slot.n, margin, s[index]) : 0;
}

/// v[vector][slot] = weight of the row times its number, and that times its gain in the vectors after these.
/// The numbers are v by position, or where v is null the score itself (power 1) or 1 (power 0).
extern "C" __global__ void weigh_rows(PROBLEM, i64 n_slots, const int *home, const double *s, i64 power,
                                      const double *v, i64 stride, double *out) {
    const int index = thread_of_grid();
    if (index >= n_slots) return;
    const int i = home[index];
    const double number = i < 0 ? 0.0 : v ? v[blockIdx.y * stride + i] : power ? s[index] : 1.0;
    const double weighted = i < 0 ? 0.0 : (u ? u[i] : 1.0) * number;
    out[blockIdx.y * n_slots + index] = weighted;
    if (gain) out[(gridDim.y + blockIdx.y) * n_slots + index] = i < 0 ? 0.0 : gain[i] * weighted;
}

/// 1 where bit `bit` of the level is set.
extern "C" __global__ void take_bits(i64 n_slots, i64 bit, const int *level, double *out) {
    const int index = thread_of_grid();
    if (index < n_slots) out[index] = (level[index] >> bit) & 1;
}

/// moved = v[source] (v itself where source is null), and its running sums within each tile, and their totals.
extern "C" __global__ void scan_tiles(i64 n_slots, const int *source, const double *v, double *moved, double *local,
                                      double *totals) {
    __shared__ double warps[tile_threads / warp_size];
    const i64 shift = blockIdx.y * n_slots;
    const int first = blockIdx.x * tile + threadIdx.x * tile_share, lane = threadIdx.x % warp_size;
    double x[tile_share], sum = 0;
    for (int j = 0; j < tile_share; ++j) {
        x[j] = v[shift + (source ? source[first + j] : first + j)];
        if (moved) moved[shift + first + j] = x[j];
        sum += x[j];
    }
    double running = sum;
    for (int d = 1; d < warp_size; d *= 2) {
        const double other = __shfl_up_sync(all_lanes, running, d);
        if (lane >= d) running += other;
    }
    if (lane == warp_size - 1) warps[threadIdx.x / warp_size] = running;
    __syncthreads();
    double before = 0, total = 0;
    for (int w = 0; w < tile_threads / warp_size; ++w) {
        if (w < int(threadIdx.x) / warp_size) before += warps[w];
        total += warps[w];
    }
    const double up = __shfl_up_sync(all_lanes, running, 1);
    before += lane > 0 ? up : 0.0;
    for (int j = 0; j < tile_share; ++j) {
        local[shift + first + j] = before;
        before += x[j];
    }
    if (threadIdx.x == 0) totals[blockIdx.y * (n_slots / tile) + blockIdx.x] = total;
}

/// Totals of tiles to sums over those before each of the same query, a block per query and vector.
extern "C" __global__ void scan_totals(const int *query_tiles, i64 n_tiles, double *totals) {
    __shared__ double shares[1024];
    const int begin = query_tiles[blockIdx.x], n = query_tiles[blockIdx.x + 1] - begin;
    const int share = (n + blockDim.x - 1) / blockDim.x, first = threadIdx.x * share;
    double *mine = totals + blockIdx.y * n_tiles + begin, sum = 0;
    for (int j = first; j < first + share && j < n; ++j) sum += mine[j];
    shares[threadIdx.x] = sum;
    __syncthreads();
    for (unsigned d = 1; d < blockDim.x; d *= 2) {
        const double other = threadIdx.x >= d ? shares[threadIdx.x - d] : 0.0;
        __syncthreads();
        shares[threadIdx.x] += other;
        __syncthreads();
    }
    double before = threadIdx.x > 0 ? shares[threadIdx.x - 1] : 0.0;
    for (int j = first; j < first + share && j < n; ++j) {
        const double own = mine[j];
        mine[j] = before;
        before += own;
    }
}

// What is known of the row in a slot while layers are made; `upto` and `from` count rows of its group. There are two
// margins where the loss has a band, else the second is not touched.
#define GROUPS const int *level, const int *place, const int *group_first, const int *group_end, const int *ends
#define NEW_GROUPS int *new_level, int *new_place, int *new_first, int *new_end, int *new_ends

/// The layer of one bit, from running sums of the bits: each row moves to the zeros or the ones of its group.
extern "C" __global__ void split_groups(i64 n_slots, i64 n_margins, i64 bit, const double *local,
                                        const double *before, GROUPS, NEW_GROUPS, int *source, int *pivot,
                                        int *outer) {
    const int index = thread_of_grid();
    if (index >= n_slots) return;
    const int first = group_first[index], end = group_end[index];
    if (end <= first) {  // no row
        new_first[index] = new_end[index] = 0;
        new_level[index] = new_place[index] = 0;
        source[index] = pivot[index] = index;
        for (int m = 0; m < n_margins; ++m) {
            outer[m * n_slots + index] = index;
            new_ends[2 * m * n_slots + index] = new_ends[(2 * m + 1) * n_slots + index] = 0;
        }
        return;
    }
    const Prefix ones{local, before};
    const double start = ones.at(first);
    const int n_zeros = (end - first) - int(ones.at(end) - start), middle = first + n_zeros;
    const bool is_one = (level[index] >> bit) & 1;
    const int ones_before = int(ones.at(index) - start);
    const int to = is_one ? middle + ones_before : index - ones_before;
    source[to] = index;
    pivot[to] = middle;
    new_level[to] = level[index];
    new_place[to] = place[index];
    new_first[to] = is_one ? middle : first;
    new_end[to] = is_one ? end : middle;
    for (int m = 0; m < n_margins; ++m) {
        const i64 upto_at = 2 * m * n_slots, from_at = upto_at + n_slots;
        const int upto = ends[upto_at + index], from = ends[from_at + index];
        const int ones_upto = int(ones.at(first + upto) - start), ones_from = int(ones.at(first + from) - start);
        new_ends[upto_at + to] = is_one ? ones_upto : upto - ones_upto;
        new_ends[from_at + to] = is_one ? ones_from : from - ones_from;
        outer[m * n_slots + to] = is_one ? first + (from - ones_from) : middle + ones_upto;
    }
}

/// The first of [first, end) that belongs to at least this level, or to it and at least this place.
__device__ int seek(const int *level, const int *place, int first, int end, int wanted, int least_place) {
    while (first < end) {
        const int middle = (first + end) / 2;
        const bool is_before = level[middle] < wanted || (level[middle] == wanted && place[middle] < least_place);
        if (is_before) first = middle + 1;
        else end = middle;
    }
    return first;
}

/// Both layers of neighboring levels; rows are sorted by level and place, which counts from the query's beginning.
extern "C" __global__ void meet_neighbors(const int *offsets, const int *tile_query, const int *tile_first,
                                          i64 n_slots, i64 n_margins, const int *level, const int *place,
                                          const int *ends, int *pivots, int *outers) {
    const int index = thread_of_grid();
    if (index >= n_slots) return;
    const Slot slot = slot_of(index, offsets, tile_query, tile_first);
    int *above = pivots + index, *below = pivots + n_slots + index;
    int *outer_above = outers + index, *outer_below = outers + n_margins * n_slots + index;
    *above = *below = index;
    for (int m = 0; m < n_margins; ++m) outer_above[m * n_slots] = outer_below[m * n_slots] = index;
    if (!slot.is_row()) return;
    const int end = slot.first + slot.n, own = level[index];
    *above = seek(level, place, slot.first, end, own + 1, 0);
    *below = seek(level, place, slot.first, end, own, 0);
    for (int m = 0; m < n_margins; ++m) {
        const i64 at = 2 * m * n_slots + slot.first + place[index];  // ends are by place
        outer_above[m * n_slots] = seek(level, place, slot.first, end, own + 1, ends[at]);
        outer_below[m * n_slots] = seek(level, place, slot.first, end, own - 1, ends[at + n_slots]);
    }
}

/// sums = those of `source` plus those of the ranges of one layer. `sides` is 2 where sums above and below are kept
/// apart, one after the other for each vector, else 1, and those below then count `sign` times.
extern "C" __global__ void add_ranges(i64 n_slots, const int *source, const int *inner, const int *outer,
                                      const double *local, const double *before, i64 sides, double sign,
                                      const double *sums, double *new_sums) {
    const int index = thread_of_grid();
    if (index >= n_slots) return;
    const Prefix running{local + blockIdx.y * n_slots, before + blockIdx.y * (n_slots / tile)};
    const double range = running.at(outer[index]) - running.at(inner[index]);
    const int from = source ? source[index] : index;
    const i64 at = sides * blockIdx.y * n_slots;
    const double above = outer[index] > inner[index] ? range : 0.0, below = outer[index] < inner[index] ? -range : 0.0;
    new_sums[at + index] = (sums ? sums[at + from] : 0.0) + (sides == 2 ? above : above + sign * below);
    if (sides == 2) new_sums[at + n_slots + index] = (sums ? sums[at + n_slots + from] : 0.0) + below;
}

/// Degrees, slopes and moments of one margin; rows lie in the order of the last layer, a tile per block. `sums` are
/// those of the weights, then those of the weighted scores.
extern "C" __global__ void finish_rows(PROBLEM, const int *tile_query, const int *tile_first, i64 n_slots, i64 kind,
                                       double epsilon, i64 is_inner, i64 is_last, const int *place, const int *home,
                                       const double *s, const double *grids, const double *sums, double *degree,
                                       double *gradient, double *moments) {
    __shared__ double scratch[64];
    const Problem problem = PROBLEM_GIVEN;
    const double margin = is_inner ? 1.0 - epsilon : 1.0;
    MarginTotals totals;
    RowTotals rows;
    double weight = 1.0;
    for (int index = blockIdx.x * tile + threadIdx.x; index < (blockIdx.x + 1) * tile; index += blockDim.x) {
        const Slot slot = slot_of(index, offsets, tile_query, tile_first);
        if (!slot.is_row()) continue;
        const int at = slot.first + place[index], i = home[at];
        const double own = u ? u[i] : 1.0, g = gain ? gain[i] : 0.0;
        weight = c ? c[slot.q] : 1.0;
        double sides[8] = {};
        for (int v = 0; v < 4 * problem.n_vectors(); ++v) sides[v] = sums[v * n_slots + index];
        const int half = 2 * problem.n_vectors();
        const RowSums x{combined(gain, g, sides[0], sides[2], 1.0), combined(gain, g, sides[1], sides[3], -1.0),
                        combined(gain, g, sides[half], sides[half + 2], 1.0),
                        combined(gain, g, sides[half + 1], sides[half + 3], -1.0)};
        double d, slope;
        totals.add(x, s[at], own, weight, margin, kind == hinge, &d, &slope);
        degree[i] = is_inner ? degree[i] - d : d;
        slope = is_inner ? gradient[i] - slope : slope;
        gradient[i] = is_last ? slope * (weight * (kind == huber ? 0.5 / epsilon : 1.0) * own) : slope;
        if (is_last) rows.add(s[at], own, gain ? 2.0 * fabs(g) : 1.0, gradient[i]);
    }
    double *mine = moments + i64(blockIdx.x) * n_moments;
    totals.store(mine + n_row_moments + is_inner * n_margin_moments, scratch);
    if (is_last) rows.store(grids[blockIdx.x], mine, scratch);
}

/// Moments of the queries, a block each, from those of their tiles: a warp per moment.
extern "C" __global__ void sum_tiles(const int *long_queries, const int *query_tiles, const double *of_tiles,
                                     double *moments) {
    const int j = threadIdx.x / warp_size, k = j < n_row_moments ? -1 : (j - n_row_moments) % n_margin_moments;
    const bool is_twice = k == m_balance || k == m_curl, is_low = k == m_balance_low || k == m_curl_low;
    Twice total = {0, 0};
    double most = 0;
    for (int t = query_tiles[blockIdx.x] + threadIdx.x % warp_size; t < query_tiles[blockIdx.x + 1]; t += warp_size) {
        const double *one = of_tiles + i64(t) * n_moments + j;
        total.add(one[0]);
        if (is_twice) total.low += one[1];
        most = fmax(most, one[0]);
    }
    total = warp_sum(total);
    most = warp_max(most);
    if (threadIdx.x % warp_size > 0 || is_low) return;
    double *to = moments + i64(long_queries[blockIdx.x]) * n_moments + j;
    const bool is_most = k == m_largest || j == m_gain || j == m_grid;
    to[0] = is_most ? most : is_twice ? total.high : total.value();
    if (is_twice) to[1] = total.low;
}

/// out = ∇²L v at the positions of the rows, from their sums, one vector per blockIdx.y.
extern "C" __global__ void combine_rows(PROBLEM, const int *tile_query, const int *tile_first, i64 n_slots, i64 kind,
                                        double epsilon, const int *place, const int *home, const double *degree,
                                        const double *sums, const double *v, double *out, i64 stride) {
    const int index = thread_of_grid();
    if (index >= n_slots) return;
    const Slot slot = slot_of(index, offsets, tile_query, tile_first);
    if (!slot.is_row()) return;
    const int i = home[slot.first + place[index]];
    double paired = sums[blockIdx.y * n_slots + index];
    if (gain) paired = sums[(gridDim.y + blockIdx.y) * n_slots + index] - gain[i] * paired;
    const double curvature = kind == huber ? 1.0 / epsilon : 2.0, weight = (c ? c[slot.q] : 1.0) * (u ? u[i] : 1.0);
    out[blockIdx.y * stride + i] = curvature * (degree[i] * v[blockIdx.y * stride + i] - weight * paired);
}
