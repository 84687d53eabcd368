// Three ways to sum a vector over the pairs of a query, none with a branch that depends on a level.
#pragma once
#include "simd.hpp"

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

}  // namespace
}  // namespace linrank::LINRANK_ISA
