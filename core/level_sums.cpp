#include "level_sums.hpp"

#include <algorithm>
#include <utility>

#include "parallel.hpp"
#include "radix_tree.hpp"

namespace linrank {
namespace {

/// Out of cache the table is still twice as fast as a tree; its memory, 128 bytes a row and thread, is
/// what ends it.
constexpr std::int64_t longest_table = long_query;

/// Fills a tree from the sum of each level; sums_beyond = true for RadixTree lookups "above".
void build_tree(const RadixTree &layout, const double *level_totals, std::int64_t n_levels,
                bool sums_beyond, double *tree) {
    std::fill(tree, tree + layout.size, 0.0);
    std::vector<double> totals(level_totals, level_totals + n_levels), parents;
    for (int depth = 0; depth < layout.depth; ++depth) {
        const std::int64_t n_nodes = (std::int64_t(totals.size()) + 15) / 16;
        totals.resize(std::size_t(16 * n_nodes), 0.0);
        parents.assign(std::size_t(n_nodes), 0.0);
        for (std::int64_t node = 0; node < n_nodes; ++node) {
            const double *in = totals.data() + 16 * node;
            double *out = tree + layout.start[depth] + 16 * node;
            double running = 0;
            for (int step = 0; step < 16; ++step) {
                const int digit = sums_beyond ? 15 - step : step;
                out[digit] = running;
                running += in[digit];
            }
            parents[std::size_t(node)] = running;
        }
        totals.swap(parents);
    }
}

/// Rows of the places [first, last) added to the totals of their levels, times sign.
void add_places(const Windows &q, const double *v, std::int64_t first, std::int64_t last, double sign,
                double *totals) {
    for (std::int64_t t = first; t < last; ++t) totals[q.level[t]] += sign * v[q.order[t]];
}

// Pairs of neighbouring levels need no tree: running totals of the levels and one look at the next.
// `totals` holds a number for each level and what the places before (or after) have left in it.
void adjacent_above(const Windows &q, const double *v, std::int64_t first, std::int64_t last,
                    double *totals, double *above) {
    std::int64_t inserted = first == 0 ? 0 : q.upto[first - 1];
    std::int64_t removed = first == 0 || !q.upto_inner ? 0 : q.upto_inner[first - 1];
    for (std::int64_t t = first; t < last; ++t) {
        for (; inserted < q.upto[t]; ++inserted) totals[q.level[inserted]] += v[q.order[inserted]];
        if (q.upto_inner)
            for (; removed < q.upto_inner[t]; ++removed)
                totals[q.level[removed]] -= v[q.order[removed]];
        above[q.order[t]] = q.level[t] + 1 < q.n_levels ? totals[q.level[t] + 1] : 0.0;
    }
}

void adjacent_below(const Windows &q, const double *v, std::int64_t first, std::int64_t last,
                    double *totals, double *below) {
    std::int64_t inserted = last == q.n ? q.n : q.from[last];
    std::int64_t removed = last == q.n || !q.from_inner ? q.n : q.from_inner[last];
    for (std::int64_t t = last; t-- > first;) {
        while (inserted > q.from[t]) {
            --inserted;
            totals[q.level[inserted]] += v[q.order[inserted]];
        }
        if (q.from_inner)
            while (removed > q.from_inner[t]) {
                --removed;
                totals[q.level[removed]] -= v[q.order[removed]];
            }
        below[q.order[t]] = q.level[t] > 0 ? totals[q.level[t] - 1] : 0.0;
    }
}

/// One vector by totals (neighbouring levels) or by a tree over the levels.
void sums_by_level(const Windows &q, const double *v, double *above, double *below,
                   std::vector<double> &tree) {
    const Kernels &kernel = kernels();
    const std::int64_t size = q.adjacent ? q.n_levels : RadixTree(q.n_levels).size;
    tree.assign(std::size_t(size), 0.0);
    (q.adjacent ? adjacent_above : kernel.radix_above)(q, v, 0, q.n, tree.data(), above);
    std::fill(tree.begin(), tree.end(), 0.0);
    (q.adjacent ? adjacent_below : kernel.radix_below)(q, v, 0, q.n, tree.data(), below);
}

}  // namespace

bool sums_by_rank(std::int64_t n, std::int64_t n_levels) {
    return n_levels > prefix_table_levels && n <= longest_ranked;
}

void level_sums(const Windows &q, int n_vectors, const double *v, double *above, double *below,
                SweepScratch &scratch) {
    const Kernels &kernel = kernels();
    const std::int64_t n = q.n;
    const bool by_table = q.n_levels <= prefix_table_levels && n <= longest_table;
    for (int k = 0, step; k < n_vectors; k += step) {
        const double *in = v + k * n;
        double *up = above + k * n, *down = below + k * n;
        step = std::min(2, n_vectors - k);
        if (q.adjacent || !(by_table || sums_by_rank(n, q.n_levels))) {
            step = 1;
            sums_by_level(q, in, up, down, scratch.tree);
        } else if (by_table) {
            scratch.tree.resize(std::size_t(8 * step * (n + 1)));
            const auto sums = step == 2 ? kernel.prefix_table_two : kernel.prefix_table;
            sums(q, in, up, down, scratch.tree.data());
        } else {
            scratch.tree.resize(std::size_t(step * (n + 1 + RadixTree(n + 1).size)));
            const auto sums = step == 2 ? kernel.ranked_sums_two : kernel.ranked_sums;
            sums(q, in, up, down, scratch.tree.data());
        }
    }
}

// The score axis is cut into pieces. What a piece finds in its tree when it starts are the level
// totals of the rows inserted before it: per-piece totals, then a scan over the pieces.
void level_sums_parallel(const Windows &q, const double *v, double *above, double *below,
                         int n_threads) {
    const std::int64_t n = q.n, k = q.n_levels;
    // Each of the two totals takes pieces × levels numbers: at most two per row, whatever the labels.
    const std::int64_t n_pieces = std::clamp<std::int64_t>(2 * n / k, 1, 16);
    const RadixTree layout(k);
    const auto cut = [&](std::int64_t p) { return n * p / n_pieces; };
    const auto upto = [](const std::int32_t *ends, std::int64_t t) {
        return t == 0 ? 0 : std::int64_t(ends[t - 1]);
    };
    const auto from = [n](const std::int32_t *ends, std::int64_t t) {
        return t == n ? n : std::int64_t(ends[t]);
    };
    std::vector<double> before(std::size_t(n_pieces * k)), after(std::size_t(n_pieces * k));

    parallel_for(2 * n_pieces, n_threads, [&](std::int64_t task) {
        const std::int64_t p = task / 2, first = cut(p), last = cut(p + 1);
        if (task % 2 == 0) {
            double *totals = before.data() + p * k;
            add_places(q, v, upto(q.upto, first), upto(q.upto, last), 1.0, totals);
            if (q.upto_inner)
                add_places(q, v, upto(q.upto_inner, first), upto(q.upto_inner, last), -1.0, totals);
        } else {
            double *totals = after.data() + p * k;
            add_places(q, v, from(q.from, first), from(q.from, last), 1.0, totals);
            if (q.from_inner)
                add_places(q, v, from(q.from_inner, first), from(q.from_inner, last), -1.0, totals);
        }
    });
    // Exclusive scans: piece p starts with everything inserted by the pieces before (or after) it.
    const std::int64_t stripe = (k + 15) / 16;
    parallel_for(16, n_threads, [&](std::int64_t s) {
        for (std::int64_t r = s * stripe; r < std::min(k, (s + 1) * stripe); ++r) {
            double running = 0;
            for (std::int64_t p = 0; p < n_pieces; ++p)
                running += std::exchange(before[std::size_t(p * k + r)], running);
            running = 0;
            for (std::int64_t p = n_pieces; p-- > 0;)
                running += std::exchange(after[std::size_t(p * k + r)], running);
        }
    });
    parallel_for(2 * n_pieces, n_threads, [&](std::int64_t task) {
        const std::int64_t p = task / 2;
        const bool is_above = task % 2 == 0;
        double *totals = (is_above ? before.data() : after.data()) + p * k;
        double *out = is_above ? above : below;
        if (q.adjacent)
            return (is_above ? adjacent_above : adjacent_below)(q, v, cut(p), cut(p + 1), totals, out);
        std::vector<double> tree(std::size_t(layout.size));
        build_tree(layout, totals, k, is_above, tree.data());
        (is_above ? kernels().radix_above : kernels().radix_below)(q, v, cut(p), cut(p + 1),
                                                                    tree.data(), out);
    });
}

}  // namespace linrank
