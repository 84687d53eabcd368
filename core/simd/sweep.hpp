// Three ways to sum a vector over the pairs of a query, none with a branch that depends on a level.
#pragma once
#include "vector.hpp"

namespace linrank::LINRANK_ISA {
namespace {

/// indicator[level][r] = 1 if r = 0 or level < r: what a row of that level adds to the table.
struct alignas(64) Indicator {
    double at[8][8];
    constexpr Indicator() : at{} {
        for (int level = 0; level < 8; ++level)
            for (int r = 0; r < 8; ++r) at[level][r] = (r == 0 || level < r) ? 1.0 : 0.0;
    }
};
constexpr Indicator indicator;

/// beyond[d][r] = 1 if digit d lies above digit r; short_of[d][r] = 1 if it lies below.
struct alignas(64) DigitMasks {
    double beyond[16][16], short_of[16][16];
    constexpr DigitMasks() : beyond{}, short_of{} {
        for (int d = 0; d < 16; ++d)
            for (int r = 0; r < 16; ++r) {
                beyond[d][r] = d > r ? 1.0 : 0.0;
                short_of[d][r] = d < r ? 1.0 : 0.0;
            }
    }
};
constexpr DigitMasks digit_masks;

inline void insert(double *node, const double (&mask)[16], double v) {
    store8(node, load8<double>(node) + load8<double>(mask) * v);
    store8(node + 8, load8<double>(node + 8) + load8<double>(mask + 8) * v);
}

/// Adds v to the nodes of a level's path that lie short of it (or beyond it).
template <int depth>
inline void insert_path(const RadixTree &layout, double *tree, const double (&masks)[16][16],
                        std::int32_t level, double v) {
    for (int d = 0; d < depth; ++d, level >>= 4)
        insert(tree + layout.start[d] + (level & ~15), masks[level & 15], v);
}

/// The tree holds, at leaf `level` of each depth, the sum of v over the inserted rows in the same node whose digit
/// lies beyond (or short of) the leaf's own: a lookup adds one number per depth.
template <bool is_above, int depth, bool is_band>
void sweep(const Windows &q, const double *v, Index first, Index last, double *tree, double sign,
           double *sums) {
    const RadixTree layout(q.n_levels);
    const auto &masks = is_above ? digit_masks.beyond : digit_masks.short_of;
    walk_windows<is_above>(q, is_band, first, last, [&](Index e, double s) __attribute__((always_inline)) {
        insert_path<depth>(layout, tree, masks, q.level[e], s * v[e]);
    }, [&](Index t) __attribute__((always_inline)) {
        double sum = 0;
        std::int32_t level = q.level[t];
        for (int d = 0; d < depth; ++d, level >>= 4) sum += tree[layout.start[d] + level];
        sums[t] += sign * sum;
    });
}

/// work.operator()<depth>() for the depth of a tree, which the loops along a path are unrolled for.
template <int deepest, int depth = 1, class Work>
void with_depth(int wanted, const Work &work) {
    if constexpr (depth < deepest)
        if (wanted > depth) return with_depth<deepest, depth + 1>(wanted, work);
    work.template operator()<depth>();
}

// table[t][r] = Σ v over the first t places with level < r, and over all of them for r = 0. Then
//   above = table[upto][0] - table[upto][level + 1]   (level 7: index 8 wraps to 0, the sum to 0)
//   below = table[n][level] - table[from][level]      (level 0 has nothing below)
// In a band the same differences at the inner ends are taken off; table[n] cancels.
template <int n_vectors, bool is_band>
void sums_by_table(const Windows &q, const double *v, double *above, double *below, double *table) {
    constexpr Index width = 8 * n_vectors;
    const Index n = q.n;
    F64x8 running[n_vectors] = {};
    for (int k = 0; k < n_vectors; ++k) store8(table + 8 * k, running[k]);
    for (Index t = 0; t < n; ++t) {
        const F64x8 counts = load8<double>(indicator.at[q.level[t]]);
        for (int k = 0; k < n_vectors; ++k) {
            running[k] += counts * v[k * n + q.order[t]];
            store8(table + width * (t + 1) + 8 * k, running[k]);
        }
    }
    const double *all = table + width * n;
    for (Index t = 0; t < n; ++t) {
        const std::int32_t level = q.level[t], i = q.order[t];
        const double *upto = table + width * q.upto[t], *from = table + width * q.from[t];
        const double *end = is_band ? table + width * q.from_inner[t] : all;
        for (int k = 0; k < n_vectors; ++k) {
            above[k * n + i] = upto[8 * k] - upto[8 * k + ((level + 1) & 7)];
            below[k * n + i] = level == 0 ? 0.0 : end[8 * k + level] - from[8 * k + level];
        }
        if constexpr (is_band) {
            const double *inner = table + width * q.upto_inner[t];
            for (int k = 0; k < n_vectors; ++k)
                above[k * n + i] -= inner[8 * k] - inner[8 * k + ((level + 1) & 7)];
        }
    }
}

/// A radix-16 tree over places: prefix(x) = Σ of what was inserted at places below x.
template <int depth>
struct PlaceTree {
    Index start[depth];
    double *slots;

    void insert(std::int32_t place, double v) {
        for (int d = 0; d < depth; ++d, place >>= 4)
            LINRANK_ISA::insert(slots + start[d] + (place & ~15), digit_masks.short_of[place & 15], v);
    }
    double prefix(std::int32_t place) const {
        double sum = 0;
        for (int d = 0; d < depth; ++d, place >>= 4) sum += slots[start[d] + place];
        return sum;
    }
};

// Rows pass in ascending order of level. With T the tree of the rows passed,
//   below_i = T(all) - T(from)          before the rows of i's level enter it,
//   above_i = S(upto) - T(upto)         after they have; S sums over all rows up to a place,
// and in a band the inner end takes the place of `all` in the one and is taken off in the other.
// Insertions and lookups alternate in a pattern that no score changes, so nothing is mispredicted.
template <int n_vectors, int depth, bool is_band>
void sums_by_rank(const Windows &q, const double *v, double *above, double *below, double *scratch) {
    const Index n = q.n;
    const RadixTree layout(n + 1);
    PlaceTree<depth> tree[n_vectors];
    double total[n_vectors] = {};
    double *prefix = scratch;  // S
    double *slots = scratch + n_vectors * (n + 1);
    for (Index c = 0; c < n_vectors * layout.size; ++c) slots[c] = 0.0;
    for (int k = 0; k < n_vectors; ++k) {
        for (int d = 0; d < depth; ++d) tree[k].start[d] = layout.start[d];
        tree[k].slots = slots + k * layout.size;
        double running = 0;
        for (Index t = 0; t < n; ++t) {
            prefix[k * (n + 1) + t] = running;
            running += v[k * n + q.order[t]];
        }
        prefix[k * (n + 1) + n] = running;
    }
    for (Index first = 0, last; first < n; first = last) {
        const std::int32_t level = q.level[q.place[q.by_level[first]]];
        last = first;
        do {
            const std::int32_t i = q.by_level[last], from = q.from[q.place[i]];
            for (int k = 0; k < n_vectors; ++k) {
                const double upper = is_band ? tree[k].prefix(q.from_inner[q.place[i]]) : total[k];
                below[k * n + i] = upper - tree[k].prefix(from);
            }
        } while (++last < n && q.level[q.place[q.by_level[last]]] == level);
        for (Index m = first; m < last; ++m) {
            const std::int32_t i = q.by_level[m];
            for (int k = 0; k < n_vectors; ++k) {
                tree[k].insert(q.place[i], v[k * n + i]);
                total[k] += v[k * n + i];
            }
        }
        for (Index m = first; m < last; ++m) {
            const std::int32_t i = q.by_level[m], upto = q.upto[q.place[i]];
            for (int k = 0; k < n_vectors; ++k) {
                const double *all = prefix + k * (n + 1);
                above[k * n + i] = all[upto] - tree[k].prefix(upto);
                if constexpr (is_band) {
                    const std::int32_t inner = q.upto_inner[q.place[i]];
                    above[k * n + i] -= all[inner] - tree[k].prefix(inner);
                }
            }
        }
    }
}

static_assert(RadixTree(longest_ranked + 1).depth <= 4);

template <int n_vectors>
void prefix_table(const Windows &q, const double *v, double *above, double *below, double *table) {
    (q.upto_inner ? sums_by_table<n_vectors, true> : sums_by_table<n_vectors, false>)(q, v, above, below, table);
}

template <int n_vectors>
void ranked_sums(const Windows &q, const double *v, double *above, double *below, double *scratch) {
    with_depth<4>(RadixTree(Index(q.n) + 1).depth, [&]<int depth>() {
        (q.upto_inner ? sums_by_rank<n_vectors, depth, true>
                      : sums_by_rank<n_vectors, depth, false>)(q, v, above, below, scratch);
    });
}

template <bool is_above>
void radix_sums(const Windows &q, const double *v, Index first, Index last, double *tree, double sign,
                double *sums) {
    with_depth<8>(RadixTree(q.n_levels).depth, [&]<int depth>() {
        (q.upto_inner ? sweep<is_above, depth, true> : sweep<is_above, depth, false>)(q, v, first, last, tree, sign,
                                                                                     sums);
    });
}

// ---- pairs of a ranking ------------------------------------------------------------------------
// All pairs of one row with the rows ranked after it, eight at a time and without a branch.

inline F64x8 spread(double x) { return F64x8{} + x; }
template <class V>
inline V at_least_zero(V x) {
    return either(x > 0.0, x, V{});
}

/// σ = ω times the sign of g - g_other, and the slack ξ of the pair.
template <class V>
struct Pairs {
    V signed_weight, slack;

    Pairs(const SwapRow &row, V z, V gain, V second, V weight) {
        const V difference = row.gain - gain, ahead = row.z - z;
        signed_weight = difference * (row.factor * weight) * at_least_zero(row.first - second);
        slack = 1.0 - either(difference < 0.0, -ahead, ahead);
    }
    V weight() const { return either(signed_weight < 0.0, -signed_weight, signed_weight); }
};

template <class V, PairLoss::Kind kind>
struct Losses {
    V value, slope, curvature;

    Losses(V slack, double epsilon) {
        const V positive = at_least_zero(slack);
        if constexpr (kind == PairLoss::squared_hinge) {
            value = positive * positive;
            slope = positive * 2.0;
            curvature = either(slack > 0.0, V{} + 2.0, V{});
        } else if constexpr (kind == PairLoss::hinge) {
            value = positive;
            slope = either(slack > 0.0, V{} + 1.0, V{});
            curvature = V{};
        } else {
            const auto is_steep = slack > epsilon;
            value = either(is_steep, slack + -0.5 * epsilon, positive * positive * (0.5 / epsilon));
            slope = either(is_steep, V{} + 1.0, positive * (1.0 / epsilon));
            curvature = either(is_steep, V{}, either(slack > 0.0, V{} + 1.0 / epsilon, V{}));
        }
    }
};

/// Calls body(load, j) for the others: `load(p)` is p[j], or the eight from there on.
template <class Body>
inline void for_each_pair(const SwapRow &row, const SwapRows &others, const Body &body) {
    Index j = 0;
    for (; j + 8 <= others.n; j += 8)
        body(Pairs<F64x8>(row, load8<double>(others.z + j), load8<double>(others.gain + j),
                          load8<double>(others.second + j),
                          others.weight ? load8<double>(others.weight + j) : spread(1.0)), j);
    for (; j < others.n; ++j)
        body(Pairs<double>(row, others.z[j], others.gain[j], others.second[j],
                           others.weight ? others.weight[j] : 1.0), j);
}

/// A sum over all pairs: eight lanes, and the rest.
struct Total {
    F64x8 lanes{};
    double rest = 0;
    void operator+=(F64x8 v) { lanes += v; }
    void operator+=(double v) { rest += v; }
    double sum() const { return sum_lanes(lanes) + rest; }
};

template <PairLoss::Kind kind>
SwapSums add_losses(double epsilon, const SwapRow &row, const SwapRows &others, double *gradient) {
    Total value, slacks, inner, violations, curvature, all, slope, own;
    for_each_pair(row, others, [&]<class V>(const Pairs<V> &pairs, Index j) {
        const Losses<V, kind> loss(pairs.slack, epsilon);
        const V weight = pairs.weight(), step = pairs.signed_weight * loss.slope;
        Memory<V>::store(gradient + j, Memory<V>::load(gradient + j) + step);
        own += step;
        all += weight;
        value += weight * loss.value;
        slope += weight * loss.slope;
        slacks += weight * at_least_zero(pairs.slack);
        violations += either(pairs.slack > 0.0, weight, V{});
        curvature += weight * loss.curvature;
        if constexpr (kind == PairLoss::huber) inner += weight * at_least_zero(pairs.slack + -epsilon);
    });
    return {{value.sum(), slacks.sum(), inner.sum(), violations.sum(), curvature.sum()},
            slope.sum(), all.sum(), -own.sum()};
}

template <PairLoss::Kind kind>
double multiply_by_curvatures(double epsilon, const SwapRow &row, const SwapRows &others, double v, const double *with,
                double *out) {
    Total own;
    for_each_pair(row, others, [&]<class V>(const Pairs<V> &pairs, Index j) {
        const V bent = pairs.weight() * Losses<V, kind>(pairs.slack, epsilon).curvature;
        const V step = bent * (v - Memory<V>::load(with + j));
        own += step;
        Memory<V>::store(out + j, Memory<V>::load(out + j) + -step);
    });
    return own.sum();
}

template <PairLoss::Kind kind>
void curvatures(double epsilon, const SwapRow &row, const SwapRows &others, double *out) {
    for_each_pair(row, others, [&]<class V>(const Pairs<V> &pairs, Index j) {
        Memory<V>::store(out + j, pairs.weight() * Losses<V, kind>(pairs.slack, epsilon).curvature);
    });
}

/// work.operator()<kind>() for the kind of a loss.
template <class Work>
auto with_kind(PairLoss loss, const Work &work) {
    if (loss.kind == PairLoss::squared_hinge) return work.template operator()<PairLoss::squared_hinge>();
    if (loss.kind == PairLoss::hinge) return work.template operator()<PairLoss::hinge>();
    return work.template operator()<PairLoss::huber>();
}

SwapSums add_swaps(PairLoss loss, const SwapRow &row, const SwapRows &others, double *gradient) {
    return with_kind(loss, [&]<PairLoss::Kind kind>() {
        return add_losses<kind>(loss.epsilon, row, others, gradient);
    });
}

double multiply_swaps(PairLoss loss, const SwapRow &row, const SwapRows &others, double v, const double *with,
                      double *out) {
    return with_kind(loss, [&]<PairLoss::Kind kind>() {
        return multiply_by_curvatures<kind>(loss.epsilon, row, others, v, with, out);
    });
}

void swap_curvatures(PairLoss loss, const SwapRow &row, const SwapRows &others, double *out) {
    with_kind(loss, [&]<PairLoss::Kind kind>() { curvatures<kind>(loss.epsilon, row, others, out); });
}

}  // namespace
}  // namespace linrank::LINRANK_ISA
