#include "pair_sampler.hpp"

namespace linrank {

namespace {

/// Makes room for elements behind the last, to be written by the caller.
template <class T>
std::span<T> extend(std::vector<T> &elements, Index more) {
    elements.resize(elements.size() + more);
    return std::span(elements).last(more);
}

/// Writes the positions of query q to `out` in the order of their levels, within a level as they
/// came; returns where each level starts, and the end.
std::vector<Index> sort_by_level(const Queries &queries, Index q, std::span<Index> out) {
    const Index begin = queries.begin(q);
    return counting_sort(queries.length(q), queries.n_levels[q],
                         [&](Index i) { return queries.levels[begin + i]; },
                         [&](Index i, Index place) { out[place] = begin + i; });
}

/// Positions become rows; one more than the largest.
Index to_rows(const Queries &queries, std::vector<Index> &positions) {
    for (Index &position : positions) position = queries.row(position);
    return positions.empty() ? 0 : std::ranges::max(positions) + 1;
}

std::size_t total_levels(const Queries &queries) {
    return std::accumulate(queries.n_levels.begin(), queries.n_levels.end(), std::size_t(0));
}

bool takes_part(const Queries &queries, Index q) {
    return queries.has_pairs(q) && queries.c(q) > 0.0;
}

// ---- the sampler of the paper -----------------------------------------------------------------

struct PendingPair {
    AliasDraw query;
    std::uint64_t levels, winner, loser;  // random bits; in the end places in rows_
    std::uint64_t high, low;              // places in starts_
};

class QueryLevelSampler final : public BlockSampler<QueryLevelSampler, PendingPair> {
  public:
    explicit QueryLevelSampler(const Queries &queries) {
        rows_.reserve(queries.levels.size());
        starts_.reserve(total_levels(queries) + queries.n_levels.size());
        std::vector<double> weights;
        for (Index q = 0; q < queries.n_queries(); ++q) {
            if (!takes_part(queries, q)) continue;
            const Index first = std::ssize(rows_);
            const std::vector<Index> starts = sort_by_level(queries, q,
                                                            extend(rows_, queries.length(q)));
            require(std::ranges::adjacent_find(starts) == starts.end(),
                    "a level has no rows to draw from");
            weights.push_back(queries.c(q));
            queries_.push_back({starts_.size(), std::uint64_t(queries.n_levels[q])});
            for (const Index start : starts) starts_.push_back(first + start);
        }
        table_ = alias_slots(weights);
        n_rows_ = to_rows(queries, rows_);
    }

    Index row(std::uint64_t place) const { return rows_[place]; }
    void find_places(Random &random, std::span<PendingPair> pending) const {
        for (PendingPair &pair : pending) {
            pair.query = AliasDraw::from(random.next(), table_.size());
            pair.levels = random.next();
            pair.winner = random.next();
            pair.loser = random.next();
            __builtin_prefetch(&table_[pair.query.slot]);
        }
        for (PendingPair &pair : pending) {
            choose_levels(pair);
            __builtin_prefetch(&starts_[pair.high]);
            __builtin_prefetch(&starts_[pair.low]);
        }
        for (PendingPair &pair : pending) {
            pair.winner = place(pair.high, pair.winner);
            pair.loser = place(pair.low, pair.loser);
            __builtin_prefetch(&rows_[pair.winner]);
            __builtin_prefetch(&rows_[pair.loser]);
        }
    }

  private:
    struct Query {
        std::uint64_t first_start, n_levels;
    };

    /// Two different levels from 64 bits, the higher one first: the high half of bits·k is one, the
    /// low half gives one of the k - 1 others.
    void choose_levels(PendingPair &pair) const {
        const AliasSlot &slot = table_[pair.query.slot];
        const Query &query = queries_[pair.query.choose(slot.threshold, slot.alias)];
        const std::uint64_t one = scaled(pair.levels, query.n_levels);
        std::uint64_t other = scaled(pair.levels * query.n_levels, query.n_levels - 1);
        other += other >= one;
        pair.high = query.first_start + std::max(one, other);
        pair.low = query.first_start + std::min(one, other);
    }

    std::uint64_t place(std::uint64_t level, std::uint64_t bits) const {
        const Index *start = &starts_[level];
        return std::uint64_t(start[0]) + scaled(bits, std::uint64_t(start[1] - start[0]));
    }

    PageArray<AliasSlot> table_;
    std::vector<Query> queries_;
    std::vector<Index> rows_, starts_;
};

// ---- without an index -------------------------------------------------------------------------

class RejectionSampler final : public PairSampler {
  public:
    explicit RejectionSampler(const Queries &queries) {
        places_.reserve(queries.levels.size());
        rows_.reserve(queries.levels.size());
        require(queries.n_levels.size() <= UINT32_MAX,
                "sampling by rejection knows at most 2^32 - 1 queries");
        bool has_pairs = false;
        for (Index q = 0; q < queries.n_queries(); ++q) {
            if (!(queries.c(q) > 0.0)) continue;
            for (Index t = queries.begin(q); t < queries.begin(q + 1); ++t) {
                places_.push_back({std::uint32_t(q), queries.levels[t]});
                rows_.push_back(t);
                has_pairs |= queries.levels[t] != queries.levels[queries.begin(q)];
            }
        }
        require(has_pairs, "no query has two levels, so no draw would be accepted");
        n_rows_ = to_rows(queries, rows_);
    }

    void draw(Random &random, std::span<RowPair> out) const override {
        for (RowPair &pair : out) {
            std::uint64_t a, b;
            do {
                a = scaled(random.next(), places_.size());
                b = scaled(random.next(), places_.size());
            } while (places_[a].query != places_[b].query || places_[a].level == places_[b].level);
            if (places_[a].level < places_[b].level) std::swap(a, b);
            pair = {rows_[a], rows_[b]};
        }
    }
    Index n_rows() const override { return n_rows_; }

  private:
    struct Place {
        std::uint32_t query;
        std::int32_t level;
    };
    std::vector<Place> places_;
    std::vector<Index> rows_;
    Index n_rows_;
};

}  // namespace

std::unique_ptr<PairSampler> make_level_sampler(const Queries &queries) {
    // With weights every row is there twice: among the losers, whose sums run over the whole query
    // so that any prefix may be drawn from, and among the winners, whose sums start anew with each
    // level.
    const bool is_weighted = !queries.row_weight.empty();
    const std::size_t n_rows = (is_weighted ? 2 : 1) * queries.levels.size();
    std::vector<Index> rows, restarts;
    std::vector<double> weights, cell_weights;
    std::vector<Cell> cells;
    rows.reserve(n_rows);
    weights.reserve(is_weighted ? n_rows : 0);
    cell_weights.reserve(total_levels(queries));
    cells.reserve(total_levels(queries));
    for (Index q = 0; q < queries.n_queries(); ++q) {
        if (!takes_part(queries, q)) continue;
        const Index n = queries.length(q), losers = std::ssize(rows);
        const Index winners = is_weighted ? losers + n : losers;
        const std::vector<Index> starts = sort_by_level(queries, q, extend(rows, n));
        if (is_weighted) {
            std::copy_n(rows.begin() + losers, n, extend(rows, n).begin());
            for (Index t = losers; t < std::ssize(rows); ++t)
                weights.push_back(queries.row_weight[rows[t]]);
            restarts.push_back(losers);
        }
        double below = 0.0;  // Σ u of the levels so far
        for (std::size_t r = 0; r + 1 < starts.size(); ++r) {
            const Cell cell{winners + starts[r], starts[r + 1] - starts[r], losers, starts[r]};
            double here = double(cell.n_winners);
            if (is_weighted) {
                const double *u = weights.data() + cell.winner_first;
                here = std::accumulate(u, u + cell.n_winners, 0.0);
                restarts.push_back(cell.winner_first);
            }
            const double weight = queries.c(q) * (here * below);
            below += here;
            // Levels that no row is in make no cell, nor do weights that vanish.
            if (cell.n_winners == 0 || cell.n_losers == 0 || !(weight > 0.0)) continue;
            cells.push_back(cell);
            cell_weights.push_back(weight);
        }
    }
    to_rows(queries, rows);
    const Cells all{rows, cells, cell_weights};
    return is_weighted ? make_cell_sampler(all, {weights, restarts}) : make_cell_sampler(all);
}

std::unique_ptr<PairSampler> make_query_level_sampler(const Queries &queries) {
    return std::make_unique<QueryLevelSampler>(queries);
}

std::unique_ptr<PairSampler> make_rejection_sampler(const Queries &queries) {
    return std::make_unique<RejectionSampler>(queries);
}

}  // namespace linrank
