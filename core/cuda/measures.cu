// Measures of ranked lists, as in core/measures.cpp, whose formulas these are. A query of up to
// some thousand rows is the work of one block: its threads find the places of its rows, then the
// first lane of each warp takes a measure down the ranks, which for @10 is ten steps.
#include "sums.cuh"

enum Kind { weighted_sum, mean_ratio, average_precision, reciprocal_rank, err, success };
enum Divisor { a_number, the_ideal, n_relevant_rows, n_rows_reached, n_relevant_reached };
enum Ties { stable, average, last_first };

/// A measure with every choice made, as the host writes it.
struct Measure {
    double kind, k;  // k = 0: the whole list
    double divisor, number;
    double empty;      // the value of a query without a relevant row; NaN: it is left out
    double fewest;     // of fewer rows the value is 0
    double has_steps;  // tied rows share the precision after the last of them
};

/// A ranked query. A row is worth what its level is: its gain, its chance to be the last one looked
/// at, or 1 if it is relevant. Measures are expectations over the orders of the rows of each group.
struct RankedQuery {
    int n_rows, n_levels;
    bool is_grouped;      // else each row is a group
    const double *score;  // by rank
    const int *level;     // by rank
    const int *n_at;      // rows by level
    const double *worth;  // by level, ascending

    __device__ int end_of(int begin) const {
        int end = begin + 1;
        while (is_grouped && end < n_rows && score[end] == score[begin]) ++end;
        return end;
    }
    __device__ double mean_worth(int begin, int end) const {
        double sum = 0;
        for (int i = begin; i < end; ++i) sum += worth[level[i]];
        return end == begin + 1 ? sum : sum / (end - begin);
    }
    __device__ int n_relevant() const {
        int n = 0;
        for (int l = n_levels; l-- > 0 && worth[l] > 0.0;) n += n_at[l];
        return n;
    }
};

/// Σ worth · weight down the list, and `ideal`, the same of the best order; of mean NDCG the sum of
/// the ratios of the two at each rank.
__device__ double sum_worths(const RankedQuery &query, const double *weight, int depth,
                             bool has_ratios, double *ideal) {
    double sum = 0, best = 0, ratios = 0;
    for (int begin = 0, end, top = query.n_levels, left = 0; begin < depth; begin = end) {
        end = query.end_of(begin);
        const double mean = query.mean_worth(begin, end);
        for (int i = begin; i < min(end, depth); ++i) {
            if (left == 0) left = query.n_at[--top];
            --left;
            sum += mean * weight[i];
            best += query.worth[top] * weight[i];
            if (has_ratios) ratios += sum / best;
        }
    }
    *ideal = best;
    return has_ratios ? ratios : sum;
}

__device__ double sum_precisions(const RankedQuery &query, bool has_steps, int depth) {
    double sum = 0, above = 0;
    for (int begin = 0, end; begin < depth; begin = end) {
        end = query.end_of(begin);
        const double size = end - begin, share = query.mean_worth(begin, end), hits = share * size;
        const double slope = size > 1.0 ? (hits - 1.0) / (size - 1.0) : 0.0;
        for (int i = begin; share > 0.0 && i < min(end, depth); ++i) {
            const double down = above + 1.0 + (i - begin) * slope;
            sum += has_steps ? share * (above + hits) / end : share * down / (i + 1);
        }
        above += hits;
    }
    return sum;
}

/// E[1/rank of the first relevant row], or where `is_found` the chance that there is one.
__device__ double first_relevant(const RankedQuery &query, bool is_found, int depth) {
    double value = 0, none_yet = 1;
    for (int begin = 0, end; begin < depth; begin = end) {
        end = query.end_of(begin);
        const double hits = round(query.mean_worth(begin, end) * (end - begin));
        for (int i = begin; hits > 0.0 && i < min(end, depth); ++i) {
            const double left = end - i;
            value += none_yet * (hits / left) / (i + 1);
            none_yet *= fmax(0.0, left - hits) / left;
        }
        if (hits > 0.0 && !is_found) break;
    }
    return is_found ? 1.0 - none_yet : value;
}

/// `survive`, of at least as many numbers as rows, holds the chances to look on below the first
/// rows of a group: see mean_survival of the core.
__device__ double expected_reciprocal(const RankedQuery &query, int depth, double *survive) {
    double value = 0, looking = 1;
    for (int begin = 0, end; begin < depth; begin = end) {
        end = query.end_of(begin);
        const double chance = query.mean_worth(begin, end);
        if (end == begin + 1) {
            value += looking * chance / end;
            looking *= 1.0 - chance;
        } else if (chance > 0.0) {
            const double looked_at = chance < 1.0 ? ceil(-41.5 / log1p(-chance)) : 1.0;
            const int taken = int(fmin(double(min(end, depth) - begin), looked_at));
            for (int j = 0; j < taken; ++j) survive[j] = 0;
            for (int i = begin; i < end; ++i) {
                const double goes_on = 1.0 - query.worth[query.level[i]], count = i - begin + 1;
                for (int j = min(taken, i - begin + 1); j > 0; --j) {
                    const double part = j / count, before = j > 1 ? survive[j - 2] : 1.0;
                    survive[j - 1] = (1.0 - part) * survive[j - 1] + part * goes_on * before;
                }
            }
            for (int j = 0; j < taken; ++j)
                value += looking * ((j > 0 ? survive[j - 1] : 1.0) - survive[j]) / (begin + j + 1);
            looking *= survive[taken - 1];
        }
    }
    return value;
}

__device__ double measure_query(const Measure &m, const RankedQuery &query, const double *weight,
                                double *survive) {
    const int n_relevant = query.n_relevant();
    if (n_relevant == 0) return m.empty;
    if (query.n_rows < m.fewest) return 0.0;
    const int depth = m.k > 0.0 ? int(fmin(m.k, double(query.n_rows))) : query.n_rows;
    double value, ideal = 1;
    switch (int(m.kind)) {
        case average_precision: value = sum_precisions(query, m.has_steps, depth); break;
        case reciprocal_rank: value = first_relevant(query, false, depth); break;
        case success: value = first_relevant(query, true, depth); break;
        case err: value = expected_reciprocal(query, depth, survive); break;
        default: value = sum_worths(query, weight, depth, m.kind == mean_ratio, &ideal);
    }
    switch (int(m.divisor)) {
        case the_ideal: return value / ideal;
        case n_relevant_rows: return value / n_relevant;
        case n_rows_reached: return value / depth;
        case n_relevant_reached: return value / min(n_relevant, depth);
        default: return value / m.number;
    }
}

extern __shared__ double shared_numbers[];

/// values[m][q] for the queries listed. The levels of query q have numbers from first_level[q] on:
/// n_at are their rows, worths[m] what they are worth. weights[m][i] is that of rank i + 1, up to
/// `longest`; survive[m] has a number for each position, where ERR needs it. A query with a score
/// that is NaN has infinite values.
extern "C" __global__ __launch_bounds__(1024) void measure_queries(
    const int *offsets, const int *levels, const int *order, const int *first_level,
    const int *n_at, i64 n_all_levels, const int *queries, const double *scores, i64 is_rounded,
    i64 ties, i64 n_measures, const double *measures, const double *worths, i64 longest,
    const double *weights, double *survive, i64 n_queries, double *values) {
    __shared__ double scratch[32];
    const int q = queries[blockIdx.x], begin = offsets[q], n = offsets[q + 1] - begin;
    const int first = first_level[q], n_levels = first_level[q + 1] - first;
    double *raw = shared_numbers, *score = raw + n;
    int *level = reinterpret_cast<int *>(score + n);
    // Of equal scores the first in `raw` is the first in the list.
    const int shift = ties == last_first ? begin + n - 1 : begin;
    const int step = ties == last_first ? -1 : 1;
    double is_void = 0;
    for (int i = threadIdx.x; i < n; i += blockDim.x) {
        const int t = shift + step * i;
        const double own = scores[order ? order[t] : t];
        raw[i] = is_rounded ? double(float(own)) : own;
        if (own != own) is_void = 1;
    }
    is_void = block_max(is_void, scratch);
    // The place of a row is the number of rows before it: so many comparisons cost less than a sort
    // for so few rows.
    for (int i = threadIdx.x; i < n && is_void == 0; i += blockDim.x) {
        const double own = raw[i];
        int place = 0;
        for (int j = 0; j < i; ++j) place += raw[j] >= own;
        for (int j = i + 1; j < n; ++j) place += raw[j] > own;
        score[place] = own;
        level[place] = levels[shift + step * i];
    }
    __syncthreads();
    if (threadIdx.x % warp_size > 0) return;
    for (i64 m = threadIdx.x / warp_size; m < n_measures; m += blockDim.x / warp_size) {
        const Measure &measure = reinterpret_cast<const Measure *>(measures)[m];
        const bool is_grouped = ties == average || measure.has_steps > 0.0;
        const double *worth = worths + m * n_all_levels + first;
        const RankedQuery query{n, n_levels, is_grouped, score, level, n_at + first, worth};
        double *own = survive ? survive + m * offsets[n_queries] + begin : nullptr;
        double value = __longlong_as_double(0x7ff0000000000000ll);
        if (is_void == 0) value = measure_query(measure, query, weights + m * longest, own);
        values[m * n_queries + q] = value;
    }
}
