#include "pair_sweep.hpp"

#include "parallel.hpp"

namespace linrank {
namespace {

/// Out of cache the table is still twice as fast as a tree; its memory, 128 bytes a row and thread,
/// is what ends it.
constexpr Index longest_table = long_query;

/// The sum of each level, in the slots of depth 0, made into a tree in its place; sums_beyond =
/// true for lookups "above".
void build_tree(const RadixTree &layout, bool sums_beyond, double *tree) {
    for (int depth = 0; depth < layout.depth; ++depth) {
        const bool is_top = depth + 1 == layout.depth;
        const Index end = is_top ? layout.size : layout.start[depth + 1];
        for (Index node = layout.start[depth]; node < end; node += 16) {
            double running = 0;
            for (int step = 0; step < 16; ++step)
                running += std::exchange(tree[node + (sums_beyond ? 15 - step : step)], running);
            if (!is_top) tree[end + (node - layout.start[depth]) / 16] = running;
        }
    }
}

/// Pairs of neighboring levels need no tree: running totals of the levels and one look at the next.
/// `totals` holds a number for each level and what the places before (or after) have left in it.
template <bool is_above>
void add_neighbors(const Windows &q, const double *v, Index first, Index last, double *totals,
                   double sign, double *sums) {
    walk_windows<is_above>(q, q.upto_inner != nullptr, first, last, [&](Index e, double s) {
        totals[q.level[e]] += s * v[e];
    }, [&](Index t) {
        const std::int32_t level = q.level[t] + (is_above ? 1 : -1);
        sums[t] += level >= 0 && level < q.n_levels ? sign * totals[level] : 0.0;
    });
}

/// The sums of one direction for the places [first, last), from the totals that the others have
/// left.
template <bool is_above>
void add_sums(const Windows &q, const double *v, Index first, Index last, double *totals,
              double sign, double *sums) {
    if (q.adjacent) add_neighbors<is_above>(q, v, first, last, totals, sign, sums);
    else simd().radix_sums[is_above](q, v, first, last, totals, sign, sums);
}

/// One vector, by level.
void sums_by_level(const Windows &q, const double *v, double *above, double *below,
                   std::vector<double> &scratch) {
    const std::size_t n = std::size_t(q.n), size = std::size_t(RadixTree(q.n_levels).size);
    scratch.assign(3 * n + size, 0.0);
    double *by_place = scratch.data(), *up = by_place + n, *down = up + n, *tree = down + n;
    for (std::size_t t = 0; t < n; ++t) by_place[t] = v[q.order[t]];
    add_sums<true>(q, by_place, 0, q.n, tree, 1.0, up);
    std::fill_n(tree, size, 0.0);
    add_sums<false>(q, by_place, 0, q.n, tree, 1.0, down);
    for (std::size_t t = 0; t < n; ++t) {
        above[q.order[t]] = up[t];
        below[q.order[t]] = down[t];
    }
}

/// The score axis of a long query, cut into pieces that threads sweep.
class Pieces {
public:
    // The totals of all pieces take pieces × levels numbers: at most four a row, whatever the
    // labels.
    explicit Pieces(const Windows &q)
        : q_(q), n_(std::clamp<Index>(4 * Index(q.n) / q.n_levels, 1, 16)),
          layout_(q.n_levels), totals_(n_ * layout_.size, huge_pages) {}

    template <bool is_above>
    void add(const double *v, double sign, double *sums, int n_threads) {
        parallel_for(n_, n_threads, [&](Index p) { insert<is_above>(v, p); });
        scan(!is_above, n_threads);
        parallel_for(n_, n_threads, [&](Index p) { sweep<is_above>(v, sign, sums, p); });
    }

    /// Both directions side by side: `down` has memory of its own.
    void add_both(Pieces &down, const double *v, double *above, double sign, double *below,
                  int n_threads) {
        const auto share = [&](const auto &one, const auto &other) {
            parallel_for(2 * n_, n_threads, [&](Index p) { p < n_ ? one(p) : other(p - n_); });
        };
        const bool is_one = above == below;
        PageArray<double> own(is_one ? q_.n : 0, huge_pages);
        share([&](Index p) { insert<true>(v, p); }, [&](Index p) { down.insert<false>(v, p); });
        scan(false, n_threads);
        down.scan(true, n_threads);
        share([&](Index p) { sweep<true>(v, 1.0, above, p); }, [&](Index p) {
            if (is_one) std::fill(own.data() + cut(p), own.data() + cut(p + 1), 0.0);
            down.sweep<false>(v, sign, is_one ? own.data() : below, p);
        });
        for_blocks(is_one ? q_.n : 0, 1 << 16, n_threads, [&](Index first, Index last) {
            for (Index t = first; t < last; ++t) above[t] += own[t];
        });
    }

    Index size() const { return n_; }

private:
    Index cut(Index p) const { return q_.n * p / n_; }
    double *totals(Index p) { return totals_.data() + p * layout_.size; }

    /// What piece p inserts, by level.
    template <bool is_above>
    void insert(const double *v, Index p) {
        double *own = totals(p);
        const auto add = [&](const std::int32_t *ends, double sign) {
            const Index last = first_inserted<is_above>(q_, ends, cut(p + 1));
            for (Index t = first_inserted<is_above>(q_, ends, cut(p)); t < last; ++t)
                own[q_.level[t]] += sign * v[t];
        };
        std::fill_n(own, layout_.size, 0.0);
        add(is_above ? q_.upto : q_.from, 1.0);
        if (q_.upto_inner) add(is_above ? q_.upto_inner : q_.from_inner, -1.0);
    }
    template <bool is_above>
    void sweep(const double *v, double sign, double *sums, Index p) {
        if (!q_.adjacent) build_tree(layout_, is_above, totals(p));
        add_sums<is_above>(q_, v, cut(p), cut(p + 1), totals(p), sign, sums);
    }
    /// Exclusive: piece p starts with everything inserted by the pieces before (or after) it.
    void scan(bool from_the_end, int n_threads) {
        const bool is_small = q_.n_levels < 4096;
        for_blocks(q_.n_levels, is_small ? 4096 : q_.n_levels / 16, n_threads,
                   [&](Index first, Index last) {
            for (Index r = first; r < last; ++r) {
                double running = 0;
                for (Index step = 0; step < n_; ++step)
                    running += std::exchange(totals(from_the_end ? n_ - 1 - step : step)[r],
                                             running);
            }
        });
    }

    const Windows &q_;
    const Index n_;
    const RadixTree layout_;
    PageArray<double> totals_;
};

}  // namespace

bool sums_by_rank(Index n, Index n_levels) {
    return n_levels > prefix_table_levels && n <= longest_ranked;
}

void level_sums(const Windows &q, int n_vectors, const double *v, double *above, double *below,
                SweepScratch &scratch) {
    const Index n = q.n;
    const bool by_table = q.n_levels <= prefix_table_levels && n <= longest_table;
    for (int k = 0, step; k < n_vectors; k += step) {
        const double *in = v + k * n;
        double *up = above + k * n, *down = below + k * n;
        if (q.adjacent || !(by_table || sums_by_rank(n, q.n_levels))) {
            step = 1;
            sums_by_level(q, in, up, down, scratch.tree);
            continue;
        }
        step = std::min(2, n_vectors - k);
        scratch.tree.resize(step * (by_table ? 8 * (n + 1) : n + 1 + RadixTree(n + 1).size));
        (by_table ? simd().prefix_table : simd().ranked_sums)[step - 1](q, in, up, down,
                                                                        scratch.tree.data());
    }
}

// What a piece finds in its tree when it starts are the level totals of the rows inserted before
// it: per-piece totals, then a scan over the pieces. One direction after the other, in the same
// memory, unless that leaves threads without a piece; a sum gets the same terms in the same order.
void add_level_sums(const Windows &q, const double *v, double *above, double sign, double *below,
                    int n_threads) {
    Pieces pieces(q);
    if (pieces.size() < n_threads) {
        Pieces down(q);
        return pieces.add_both(down, v, above, sign, below, n_threads);
    }
    pieces.add<true>(v, 1.0, above, n_threads);
    pieces.add<false>(v, sign, below, n_threads);
}

}  // namespace linrank
