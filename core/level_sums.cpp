#include "pair_sweep.hpp"

#include <algorithm>
#include <utility>

#include "parallel.hpp"

namespace linrank {
namespace {

/// Out of cache the table is still twice as fast as a tree; its memory, 128 bytes a row and thread, is
/// what ends it.
constexpr std::int64_t longest_table = long_query;

/// The sum of each level, in the slots of depth 0, made into a tree in its place; sums_beyond = true for
/// lookups "above".
void build_tree(const RadixTree &layout, bool sums_beyond, double *tree) {
    for (int depth = 0; depth < layout.depth; ++depth) {
        const bool is_top = depth + 1 == layout.depth;
        const std::int64_t end = is_top ? layout.size : layout.start[depth + 1];
        for (std::int64_t node = layout.start[depth]; node < end; node += 16) {
            double running = 0;
            for (int step = 0; step < 16; ++step)
                running += std::exchange(tree[node + (sums_beyond ? 15 - step : step)], running);
            if (!is_top) tree[end + (node - layout.start[depth]) / 16] = running;
        }
    }
}

/// Rows of the places [first, last) added to the totals of their levels, times sign; v by place.
void add_places(const Windows &q, const double *v, std::int64_t first, std::int64_t last, double sign,
                double *totals) {
    for (std::int64_t t = first; t < last; ++t) totals[q.level[t]] += sign * v[t];
}

// Pairs of neighboring levels need no tree: running totals of the levels and one look at the next.
// `totals` holds a number for each level and what the places before (or after) have left in it; row(t)
// is where the number of place t stands in v and in the sums.
template <class Row>
void adjacent_above(const Windows &q, const Row &row, const double *v, std::int64_t first,
                    std::int64_t last, double *totals, double *above) {
    std::int64_t inserted = first == 0 ? 0 : q.upto[first - 1];
    std::int64_t removed = first == 0 || !q.upto_inner ? 0 : q.upto_inner[first - 1];
    for (std::int64_t t = first; t < last; ++t) {
        for (; inserted < q.upto[t]; ++inserted) totals[q.level[inserted]] += v[row(inserted)];
        if (q.upto_inner)
            for (; removed < q.upto_inner[t]; ++removed) totals[q.level[removed]] -= v[row(removed)];
        above[row(t)] += q.level[t] + 1 < q.n_levels ? totals[q.level[t] + 1] : 0.0;
    }
}

template <class Row>
void adjacent_below(const Windows &q, const Row &row, const double *v, std::int64_t first,
                    std::int64_t last, double *totals, double sign, double *below) {
    std::int64_t inserted = last == q.n ? q.n : q.from[last];
    std::int64_t removed = last == q.n || !q.from_inner ? q.n : q.from_inner[last];
    for (std::int64_t t = last; t-- > first;) {
        while (inserted > q.from[t]) {
            --inserted;
            totals[q.level[inserted]] += v[row(inserted)];
        }
        if (q.from_inner)
            while (removed > q.from_inner[t]) {
                --removed;
                totals[q.level[removed]] -= v[row(removed)];
            }
        below[row(t)] += q.level[t] > 0 ? sign * totals[q.level[t] - 1] : 0.0;
    }
}

void sums_of_neighbors(const Windows &q, const double *v, double *above, double *below,
                        std::vector<double> &totals) {
    const auto row = [&](std::int64_t t) { return q.order[t]; };
    std::fill_n(above, q.n, 0.0);
    std::fill_n(below, q.n, 0.0);
    totals.assign(q.n_levels, 0.0);
    adjacent_above(q, row, v, 0, q.n, totals.data(), above);
    std::fill(totals.begin(), totals.end(), 0.0);
    adjacent_below(q, row, v, 0, q.n, totals.data(), 1.0, below);
}

/// One vector by a tree over the levels.
void sums_by_level(const Windows &q, const double *v, double *above, double *below,
                   std::vector<double> &scratch) {
    const std::size_t n = std::size_t(q.n), size = std::size_t(RadixTree(q.n_levels).size);
    scratch.assign(3 * n + size, 0.0);
    double *by_place = scratch.data(), *up = by_place + n, *down = up + n, *tree = down + n;
    for (std::size_t t = 0; t < n; ++t) by_place[t] = v[q.order[t]];
    simd().radix_above(q, by_place, 0, q.n, tree, up);
    std::fill_n(tree, size, 0.0);
    simd().radix_below(q, by_place, 0, q.n, tree, 1.0, down);
    for (std::size_t t = 0; t < n; ++t) {
        above[q.order[t]] = up[t];
        below[q.order[t]] = down[t];
    }
}

/// The score axis of a long query, cut into pieces that threads sweep.
class Pieces {
public:
    // The totals of all pieces take pieces × levels numbers: at most four a row, whatever the labels.
    explicit Pieces(const Windows &q)
        : q_(q), n_(std::clamp<std::int64_t>(4 * std::int64_t(q.n) / q.n_levels, 1, 16)),
          layout_(q.n_levels), totals_(n_ * layout_.size, PageArray<double>::huge) {}

    void add_above(const double *v, double *above, int n_threads) {
        insert(v, q_.upto, q_.upto_inner, [](const std::int32_t *ends, std::int64_t t) {
            return t == 0 ? 0 : std::int64_t(ends[t - 1]);
        }, n_threads);
        scan(false, n_threads);
        sweep(true, n_threads, [&](std::int64_t first, std::int64_t last, double *totals) {
            if (q_.adjacent) adjacent_above(q_, by_place, v, first, last, totals, above);
            else simd().radix_above(q_, v, first, last, totals, above);
        });
    }

    void add_below(const double *v, double sign, double *below, int n_threads) {
        insert(v, q_.from, q_.from_inner, [this](const std::int32_t *ends, std::int64_t t) {
            return t == q_.n ? t : std::int64_t(ends[t]);
        }, n_threads);
        scan(true, n_threads);
        sweep(false, n_threads, [&](std::int64_t first, std::int64_t last, double *totals) {
            if (q_.adjacent) adjacent_below(q_, by_place, v, first, last, totals, sign, below);
            else simd().radix_below(q_, v, first, last, totals, sign, below);
        });
    }

private:
    static std::int64_t by_place(std::int64_t t) { return t; }
    std::int64_t cut(std::int64_t p) const { return q_.n * p / n_; }
    double *totals(std::int64_t p) { return totals_.data() + p * layout_.size; }

    /// What each piece inserts, by level; end(ends, t) is where the insertions for place t begin.
    template <class End>
    void insert(const double *v, const std::int32_t *outer, const std::int32_t *inner, const End &end,
                int n_threads) {
        parallel_for(n_, n_threads, [&](std::int64_t p) {
            std::fill_n(totals(p), layout_.size, 0.0);
            add_places(q_, v, end(outer, cut(p)), end(outer, cut(p + 1)), 1.0, totals(p));
            if (inner) add_places(q_, v, end(inner, cut(p)), end(inner, cut(p + 1)), -1.0, totals(p));
        });
    }
    /// Exclusive: piece p starts with everything inserted by the pieces before (or after) it.
    void scan(bool from_the_end, int n_threads) {
        const std::int64_t k = q_.n_levels, stripe = (k + 15) / 16;
        parallel_for(k < 4096 ? 1 : 16, k < 4096 ? 1 : n_threads, [&](std::int64_t s) {
            const std::int64_t first = k < 4096 ? 0 : s * stripe;
            const std::int64_t last = k < 4096 ? k : std::min(k, first + stripe);
            for (std::int64_t r = first; r < last; ++r) {
                double running = 0;
                for (std::int64_t step = 0; step < n_; ++step)
                    running += std::exchange(totals(from_the_end ? n_ - 1 - step : step)[r], running);
            }
        });
    }
    template <class Body>
    void sweep(bool is_above, int n_threads, const Body &body) {
        parallel_for(n_, n_threads, [&](std::int64_t p) {
            if (!q_.adjacent) build_tree(layout_, is_above, totals(p));
            body(cut(p), cut(p + 1), totals(p));
        });
    }

    const Windows &q_;
    const std::int64_t n_;
    const RadixTree layout_;
    PageArray<double> totals_;
};

}  // namespace

bool sums_by_rank(std::int64_t n, std::int64_t n_levels) {
    return n_levels > prefix_table_levels && n <= longest_ranked;
}

void level_sums(const Windows &q, int n_vectors, const double *v, double *above, double *below,
                SweepScratch &scratch) {
    const std::int64_t n = q.n;
    const bool by_table = q.n_levels <= prefix_table_levels && n <= longest_table;
    for (int k = 0, step; k < n_vectors; k += step) {
        const double *in = v + k * n;
        double *up = above + k * n, *down = below + k * n;
        if (q.adjacent || !(by_table || sums_by_rank(n, q.n_levels))) {
            step = 1;
            (q.adjacent ? sums_of_neighbors : sums_by_level)(q, in, up, down, scratch.tree);
            continue;
        }
        step = std::min(2, n_vectors - k);
        scratch.tree.resize(step * (by_table ? 8 * (n + 1) : n + 1 + RadixTree(n + 1).size));
        (by_table ? simd().prefix_table : simd().ranked_sums)[step - 1](q, in, up, down, scratch.tree.data());
    }
}

// What a piece finds in its tree when it starts are the level totals of the rows inserted before it:
// per-piece totals, then a scan over the pieces. One direction after the other, in the same memory.
void add_level_sums(const Windows &q, const double *v, double *above, double sign, double *below,
                    int n_threads) {
    Pieces pieces(q);
    pieces.add_above(v, above, n_threads);
    pieces.add_below(v, sign, below, n_threads);
}

}  // namespace linrank
