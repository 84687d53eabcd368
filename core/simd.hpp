// The vector kernels, chosen once for the processor that runs them.
//
// core/simd/*.cpp is compiled once per instruction set into a namespace of its own, so one binary
// serves every machine. Those files hold raw loops only: a standard-library template compiled there
// with wide instructions could be picked by the linker for code that runs before the choice. What
// they share with the rest is always inlined, for the same reason.
#pragma once

#include "loss.hpp"
#include "rows.hpp"

namespace linrank {

/// Rows `index[t]` (or first + t where index is null) of a dense matrix, t = 0..n_rows-1.
template <class Value>
struct DenseBlock {
    const Value *values;
    Index stride;
    Index n_columns;
    const Index *index;
    Index first;
    Index n_rows;
    [[gnu::always_inline]] const Value *row(Index t) const {
        return values + (index ? index[t] : first + t) * stride;
    }
};

/// What the rows of a dense matrix add up to by column: with p the pivot of a column, any number,
/// and w the weight of a row, Σ w (x - p), Σ w (x - p)² and the range over rows of positive weight,
/// the largest |x| of the other ones; over all rows Σ x², and how many values are not 0.
template <class Value>
struct ColumnSums {
    const double *pivot;
    double *sum, *square, *squares, *n_nonzero;
    Value *low, *high, *weightless;
};

/// What a sweep over the pairs of one query needs. A row has an index, 0..n-1, and a place in the
/// ascending order of scores.
///
/// The row at place t violates against the preferred rows among the places before upto[t], and,
/// where itself preferred, against the rows from place from[t] on. With inner ends (a band), the
/// places before upto_inner[t] and those from from_inner[t] on are left out.
struct Windows {
    std::int32_t n;
    std::int32_t n_levels;
    bool adjacent;                 // only neighboring levels make pairs; the kernels here ignore it
    const std::int32_t *order;     // row at each place
    const std::int32_t *level;     // level of the row at each place
    const std::int32_t *upto;
    const std::int32_t *from;
    const std::int32_t *upto_inner;  // null if the windows are no bands
    const std::int32_t *from_inner;
    const std::int32_t *place;     // place of each row; ranked_sums only
    const std::int32_t *by_level;  // rows in ascending order of level; ranked_sums only
};

/// Where the places begin that walk_windows inserts for place t by these ends; for the second
/// windows those of the places before t come after it.
template <bool is_above>
[[gnu::always_inline]] inline Index first_inserted(const Windows &q, const std::int32_t *ends,
                                                   Index t) {
    if (is_above) return t == 0 ? 0 : ends[t - 1];
    return t == q.n ? q.n : ends[t];
}

/// Visits the places [first, last), ascending for the first windows (is_above), else descending for
/// the second ones. When visit(t) comes, the places of its window are those for which insert(e,
/// sign) was called with the signs 1, to put it in, and -1, to take it out of a band; the caller
/// has put in those before `first` (or after `last`).
template <bool is_above, class Insert, class Visit>
[[gnu::always_inline]] inline void walk_windows(const Windows &q, bool is_band, Index first,
                                                Index last, const Insert &insert,
                                                const Visit &visit) {
    const std::int32_t *outer = is_above ? q.upto : q.from;
    const std::int32_t *inner = is_above ? q.upto_inner : q.from_inner;
    const auto reach = [&](Index &next, Index end, double sign) __attribute__((always_inline)) {
        if constexpr (is_above)
            for (; next < end; ++next) insert(next, sign);
        else
            while (next > end) insert(--next, sign);
    };
    const Index begin = is_above ? first : last;
    Index inserted = first_inserted<is_above>(q, outer, begin);
    Index removed = is_band ? first_inserted<is_above>(q, inner, begin) : 0;
    for (Index k = 0; k < last - first; ++k) {
        const Index t = is_above ? first + k : last - 1 - k;
        reach(inserted, outer[t], 1.0);
        if (is_band) reach(removed, inner[t], -1.0);
        visit(t);
    }
}

/// A row and the rows that a ranking put after it. The pair of the row and of another one has the
/// weight |gain - gain_other| · factor · weight_other · max(0, first - second_other), and its
/// winner is the row of the larger gain.
struct SwapRow {
    double z, gain, first, factor;
};
struct SwapRows {
    Index n;
    const double *z, *gain, *second;
    const double *weight;  // null for ones
};
/// Sums over such pairs.
struct SwapSums : PairSums {
    double slope = 0, all = 0;  // Σ ω l'(ξ), Σ ω
    double gradient = 0;  // with respect to z of the row
};

// What a stochastic learner remembers beside its vectors.

/// The rule of a step on a pair with the difference x = x_winner - x_loser.
enum class Algorithm : std::int32_t { sgd_svm, pegasos, passive_aggressive, romma, logistic };

/// The weight ρ of an iterate in the average: none, 1, or how many iterates there are with it.
enum class Average : std::int32_t { none, uniform, weighted };

/// The scalars of one model. Its weights are w = scale·v with a vector v that a step changes by a
/// multiple of x only: shrinking w costs nothing.
///
/// sgd_svm, pegasos and logistic shrink by (1 - 1/t) at every step; with η_t = 1/(λt) the whole product
/// is scale = a/(λt), exactly, after any number of steps. The other two have scale = a.
///
/// The sum Σ ρ_s w_s of iterates is K v - z, where K_t = Σ_{s≤t} ρ_s scale_s and z += K_{t-1} δ x when
/// step t adds δ x to v: summation by parts.
struct Learner {
    Algorithm algorithm = Algorithm::pegasos;
    double strength = 0;      // λ; of passive_aggressive its largest step
    double a = 1;             // factor of the projections (pegasos), of the updates (romma)
    double t = 0;             // steps behind it, those it was told to start from included
    double square = 0;        // ‖v‖², kept step by step where the rule needs it
    double first = 0;         // t where its average began
    double K = 0;             // Σ ρ scale
    double total = 0;         // Σ ρ
    double loss = 0;          // Σ of the losses that its steps met, each before its update
    Index n_updates = 0;

    [[gnu::always_inline]] bool shrinks() const {
        return algorithm != Algorithm::passive_aggressive && algorithm != Algorithm::romma;
    }
    /// w = scale()·v; before the first step of a learner that shrinks, w = 0.
    [[gnu::always_inline]] double scale() const {
        if (!shrinks()) return a;
        return t > 0 ? a / (strength * t) : 0;
    }
};

/// Steps on some pairs by `width` models side by side: element c of the vectors of all models is
/// v[c*width .. (c+1)*width), width 1 or `lanes`. v and z are aligned to 64 bytes and padded to lines of
/// eight numbers, which are 0 beyond the columns.
struct DescentBatch {
    Learner *learners;
    int n_models;        // lanes in use, the first ones
    Index n_columns;
    double *v;
    double *z;           // null if nothing is averaged
    double *scratch;     // one number a column, padded; zeros before and after
    Average average;
    const RowPair *pairs;
    Index n_pairs;
    Index n_known;  // pairs that may be looked at, to ask for their rows ahead: >= n_pairs
};

/// Models that share a pass through the pairs.
inline constexpr int lanes = 8;

/// Steps of one model, or of several side by side, on pairs of rows stored in this way.
template <class Storage>
struct DescentKernel {
    void (*one)(const Storage &, const DescentBatch &);
    void (*lanes)(const Storage &, const DescentBatch &);
};

/// The kernels for numbers of one type.
template <class Value>
struct RowKernels {
    // out[t] = x_t·w, summed in double.
    void (*dot)(const DenseBlock<Value> &, const double *w, double *out);
    // total += Σ_t a[t]·x_t, summed in the type of total; the second for rows just used.
    void (*add)(const DenseBlock<Value> &, const double *a, double *total);
    void (*add_cached)(const DenseBlock<Value> &, const double *a, Value *total);
    // Adds the rows to the sums of their columns; weight[t] is that of row t, null for ones.
    void (*add_columns)(const DenseBlock<Value> &, const double *weight, const ColumnSums<Value> &);
    // Columns [first, last) of product += Aᵀ·B, product n × n and A n_rows × n, row-major; B holds
    // only these columns, and A need not be filled beyond them. On and above the diagonal; what
    // lies below is not defined. n, first and last are multiples of 16.
    void (*add_cross_product)(Index n_rows, Index n, Index first, Index last,
                              const Value *a, const Value *b, double *product);
    // y += a·x, n a multiple of 16
    void (*axpy)(Index n, Value a, const Value *x, Value *y);
    DescentKernel<DenseRows<Value>> dense;
    DescentKernel<CsrRows<Value>> sparse;
};

struct Simd {
    const char *name;
    RowKernels<float> of_float;
    RowKernels<double> of_double;

    // above[i] = Σ v over the rows of higher level in row i's first window, below[i] = Σ v over the
    // rows of lower level in its second one; v, above and below by row. The second of each takes
    // two vectors, one after the other, which share the walk through the rows.
    void (*prefix_table[2])(const Windows &, const double *v, double *above, double *below,
                            double *table);
    void (*ranked_sums[2])(const Windows &, const double *v, double *above, double *below,
                           double *scratch);
    // The sums below, or above, for the places [first, last), from a tree that holds what was
    // inserted before; see sweep.cpp. Here v and the sums are by place, for a long query leaves the
    // cache and its order is random, and the sums, times sign, are added to what is there.
    void (*radix_sums[2])(const Windows &, const double *v, Index first, Index last,
                          double *tree, double sign, double *sums);

    // Σ x·y
    double (*dot_vectors)(Index n, const double *x, const double *y);
    // The same as in twice the precision: off by a rounding of itself, and n² roundings of second
    // order.
    double (*dot_twice)(Index n, const double *x, const double *y);
    // x[i] = e^x[i] for x[i] <= 709, to an ulp or so; 0 below -700
    void (*exp_vector)(Index n, double *x);
    // x[i] = x[i]^degree, n a multiple of 8
    void (*power_vector)(Index n, int degree, double *x);

    // Tiles of kernel matrices. Eight rows are a panel: value c of row r is at [8c + r]. Row r of a
    // and rows 8p + k of b, n_panels panels one behind the other, give out[r·stride + 8p + k]:
    // factor · Σ_c (a - b)², or factor · Σ_c a·b + term.
    void (*panel_distances)(Index n_columns, Index n_panels, const double *a,
                            const double *b, double factor, double *out, Index stride);
    void (*panel_products)(Index n_columns, Index n_panels, const double *a,
                           const double *b, double factor, double term, double *out, Index stride);
    // sums[r] += Σ_j q[r·stride + j]·v[j], total[j] += Σ_r q[r·stride + j]·u[r], q read once
    void (*add_symmetric)(Index n_rows, Index n, const double *q, Index stride,
                          const double *u, const double *v, double *sums, double *total);

    // gradient[j] += ∂/∂z_j of the losses of the pairs of a row and the rows after it; returns their
    // sums.
    SwapSums (*add_swaps)(PairLoss, const SwapRow &, const SwapRows &, double *gradient);
    // With h the curvatures of the same pairs, ω l'': out[j] += Σ h (others[j] - v); returns Σ h (v
    // - others[j]).
    double (*multiply_swaps)(PairLoss, const SwapRow &, const SwapRows &, double v,
                             const double *others, double *out);
    // out[j] = h
    void (*swap_curvatures)(PairLoss, const SwapRow &, const SwapRows &, double *out);

    template <class Value>
    const RowKernels<Value> &of() const {
        if constexpr (sizeof(Value) == sizeof(float)) return of_float;
        else return of_double;
    }
};

/// The kernels for this processor.
const Simd &simd();

/// Largest number of levels that prefix_table takes.
inline constexpr int prefix_table_levels = 8;
/// Largest number of rows that ranked_sums takes: beyond, a tree over the rows leaves the
/// second-level cache, and a tree over the levels, often far fewer, wins.
inline constexpr Index longest_ranked = 32768;

/// Where the nodes of a radix-16 tree over levels lie in one array.
///
/// Depth 0 has a slot for each level, depth d one for each group of 16^d levels; sixteen
/// neighboring slots are a node. Slots of a depth are padded to whole nodes.
struct RadixTree {
    int depth = 0;
    Index start[8] = {};
    Index size = 0;  // doubles in the array

    [[gnu::always_inline]] constexpr explicit RadixTree(Index n_levels) {
        Index slots = n_levels;
        do {
            start[depth++] = size;
            size += (slots + 15) / 16 * 16;
            slots = (slots + 15) / 16;
        } while (slots > 1);
    }
};

}  // namespace linrank
