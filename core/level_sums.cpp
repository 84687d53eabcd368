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

}  // namespace

bool sums_by_rank(std::int64_t n, std::int64_t n_levels) {
    return n_levels > prefix_table_levels && n <= longest_ranked;
}

void level_sums(const Windows &q, int n_vectors, const double *v, double *above, double *below,
                SweepScratch &scratch) {
    const Kernels &kernel = kernels();
    const std::size_t n = std::size_t(q.n), count = std::size_t(n_vectors);
    if (q.n_levels <= prefix_table_levels && q.n <= longest_table) {
        scratch.tree.resize(8 * count * (n + 1));
        const auto sums = n_vectors == 2 ? kernel.prefix_table_two : kernel.prefix_table;
        sums(q, v, above, below, scratch.tree.data());
    } else if (sums_by_rank(q.n, q.n_levels)) {
        scratch.tree.resize(count * (n + 1 + std::size_t(RadixTree(q.n + 1).size)));
        const auto sums = n_vectors == 2 ? kernel.ranked_sums_two : kernel.ranked_sums;
        sums(q, v, above, below, scratch.tree.data());
    } else {
        for (std::size_t k = 0; k < count; ++k) {
            scratch.tree.assign(std::size_t(RadixTree(q.n_levels).size), 0.0);
            kernel.radix_above(q, v + k * n, 0, q.n, scratch.tree.data(), above + k * n);
            std::fill(scratch.tree.begin(), scratch.tree.end(), 0.0);
            kernel.radix_below(q, v + k * n, 0, q.n, scratch.tree.data(), below + k * n);
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
    const auto upto = [&](std::int64_t t) { return t == 0 ? 0 : std::int64_t(q.upto[t - 1]); };
    const auto from = [&](std::int64_t t) { return t == n ? n : std::int64_t(q.from[t]); };
    std::vector<double> before(std::size_t(n_pieces * k)), after(std::size_t(n_pieces * k));

    parallel_for(2 * n_pieces, n_threads, [&](std::int64_t task) {
        const std::int64_t p = task / 2;
        const bool is_above = task % 2 == 0;
        double *totals = (is_above ? before.data() : after.data()) + p * k;
        const std::int64_t first = is_above ? upto(cut(p)) : from(cut(p));
        const std::int64_t last = is_above ? upto(cut(p + 1)) : from(cut(p + 1));
        for (std::int64_t t = first; t < last; ++t) totals[q.level[t]] += v[q.order[t]];
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
        std::vector<double> tree(std::size_t(layout.size));
        if (task % 2 == 0) {
            build_tree(layout, before.data() + p * k, k, true, tree.data());
            kernels().radix_above(q, v, cut(p), cut(p + 1), tree.data(), above);
        } else {
            build_tree(layout, after.data() + p * k, k, false, tree.data());
            kernels().radix_below(q, v, cut(p), cut(p + 1), tree.data(), below);
        }
    });
}

}  // namespace linrank
