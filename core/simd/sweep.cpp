// Two ways to sum a vector over the pairs of a query, both without a branch that depends on a level.
#include "sweep.hpp"

#include "radix_tree.hpp"
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

template <int depth>
void sweep_above(const Windows &q, const double *v, std::int64_t first, std::int64_t last,
                 double *tree, double *above) {
    const RadixTree layout(q.n_levels);
    std::int64_t inserted = first == 0 ? 0 : q.upto[first - 1];
    for (std::int64_t t = first; t < last; ++t) {
        for (; inserted < q.upto[t]; ++inserted) {
            std::int32_t level = q.level[inserted];
            for (int d = 0; d < depth; ++d, level >>= 4)
                insert(tree + layout.start[d] + (level & ~15), digit_masks.beyond[level & 15],
                       v[inserted]);
        }
        double sum = 0;
        std::int32_t level = q.level[t];
        for (int d = 0; d < depth; ++d, level >>= 4) sum += tree[layout.start[d] + level];
        above[t] = sum;
    }
}

template <int depth>
void sweep_below(const Windows &q, const double *v, std::int64_t first, std::int64_t last,
                 double *tree, double *below) {
    const RadixTree layout(q.n_levels);
    std::int64_t inserted = last == q.n ? q.n : q.from[last];
    for (std::int64_t t = last; t-- > first;) {
        while (inserted > q.from[t]) {
            --inserted;
            std::int32_t level = q.level[inserted];
            for (int d = 0; d < depth; ++d, level >>= 4)
                insert(tree + layout.start[d] + (level & ~15), digit_masks.short_of[level & 15],
                       v[inserted]);
        }
        double sum = 0;
        std::int32_t level = q.level[t];
        for (int d = 0; d < depth; ++d, level >>= 4) sum += tree[layout.start[d] + level];
        below[t] = sum;
    }
}

using Sweep = void (*)(const Windows &, const double *, std::int64_t, std::int64_t, double *,
                       double *);
constexpr Sweep sweeps_above[] = {sweep_above<1>, sweep_above<2>, sweep_above<3>, sweep_above<4>,
                                  sweep_above<5>, sweep_above<6>, sweep_above<7>, sweep_above<8>};
constexpr Sweep sweeps_below[] = {sweep_below<1>, sweep_below<2>, sweep_below<3>, sweep_below<4>,
                                  sweep_below<5>, sweep_below<6>, sweep_below<7>, sweep_below<8>};

}  // namespace

// table[t][r] = Σ v over the first t rows with level < r, and over all of them for r = 0. Then
//   above = table[upto][0] - table[upto][level + 1]   (level 7: index 8 wraps to 0, the sum to 0)
//   below = table[n][level] - table[from][level]      (level 0 has nothing below)
void prefix_table(const Windows &q, const double *v, double *above, double *below, double *table) {
    F64x8 running{};
    store8(table, running);
    for (std::int64_t t = 0; t < q.n; ++t) {
        running += load8<double>(indicator.at[q.level[t]]) * v[t];
        store8(table + 8 * (t + 1), running);
    }
    const double *all = table + 8 * std::int64_t(q.n);
    for (std::int64_t t = 0; t < q.n; ++t) {
        const std::int32_t level = q.level[t];
        const double *upto = table + 8 * std::int64_t(q.upto[t]);
        const double *from = table + 8 * std::int64_t(q.from[t]);
        above[t] = upto[0] - upto[(level + 1) & 7];
        below[t] = level == 0 ? 0.0 : all[level] - from[level];
    }
}

// The tree holds, at leaf `level` of each depth, the sum of v over the inserted rows in the same node
// whose digit lies beyond (or short of) the leaf's own: a lookup adds one number per depth. The caller
// hands over a tree that already holds the rows before `first` (or after `last`).
void radix_above(const Windows &q, const double *v, std::int64_t first, std::int64_t last,
                 double *tree, double *above) {
    sweeps_above[RadixTree(q.n_levels).depth - 1](q, v, first, last, tree, above);
}

void radix_below(const Windows &q, const double *v, std::int64_t first, std::int64_t last,
                 double *tree, double *below) {
    sweeps_below[RadixTree(q.n_levels).depth - 1](q, v, first, last, tree, below);
}

}  // namespace linrank::LINRANK_ISA
