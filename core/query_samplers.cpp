#include "pair_sampler.hpp"

namespace linrank {

namespace {

/// Elements added one by one to an array of known capacity; what is not used is never touched.
template <class T>
struct Filled {
    explicit Filled(std::size_t capacity) : array(capacity) {}
    PageArray<T> array;
    std::size_t n = 0;

    void add(const T &element) { array[n++] = element; }
    /// The next elements, to be written by the caller.
    std::span<T> extend(std::size_t more) {
        n += more;
        return {array.data() + n - more, more};
    }
    std::span<const T> view() const { return {array.data(), n}; }
};

/// Writes the positions of query q to `out` in the order of their levels, within a level as they
/// came; returns where each level starts, and the end.
std::vector<Index> sort_by_level(const Queries &queries, Index q, std::span<Index> out) {
    const Index begin = queries.begin(q);
    return counting_sort(queries.length(q), queries.n_levels[q],
                         [&](Index i) { return queries.levels[begin + i]; },
                         [&](Index i, Index place) { out[place] = begin + i; });
}

/// Positions become rows; one more than the largest.
Index to_rows(const Queries &queries, Filled<Index> &positions) {
    Index n_rows = 0;
    for (std::size_t t = 0; t < positions.n; ++t) {
        positions.array[t] = queries.row(positions.array[t]);
        n_rows = std::max(n_rows, positions.array[t] + 1);
    }
    return n_rows;
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
    explicit QueryLevelSampler(const Queries &queries)
        : rows_(queries.levels.size()), starts_(total_levels(queries) + queries.n_levels.size()) {
        std::vector<double> weights;
        for (Index q = 0; q < queries.n_queries(); ++q) {
            if (!takes_part(queries, q)) continue;
            const auto first = Index(rows_.n);
            const std::vector<Index> starts = sort_by_level(queries, q,
                                                            rows_.extend(queries.length(q)));
            if (std::ranges::adjacent_find(starts) != starts.end())
                throw std::invalid_argument("a level has no rows to draw from");
            weights.push_back(queries.c(q));
            queries_.push_back({starts_.n, std::uint64_t(queries.n_levels[q])});
            for (const Index start : starts) starts_.add(first + start);
        }
        table_ = alias_slots(weights);
        n_rows_ = to_rows(queries, rows_);
    }

    Index row(std::uint64_t place) const { return rows_.array[place]; }
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
            __builtin_prefetch(&starts_.array[pair.high]);
            __builtin_prefetch(&starts_.array[pair.low]);
        }
        for (PendingPair &pair : pending) {
            pair.winner = place(pair.high, pair.winner);
            pair.loser = place(pair.low, pair.loser);
            __builtin_prefetch(&rows_.array[pair.winner]);
            __builtin_prefetch(&rows_.array[pair.loser]);
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
        const Index *start = &starts_.array[level];
        return std::uint64_t(start[0]) + scaled(bits, std::uint64_t(start[1] - start[0]));
    }

    PageArray<AliasSlot> table_;
    std::vector<Query> queries_;
    Filled<Index> rows_, starts_;
};

// ---- without an index -------------------------------------------------------------------------

class RejectionSampler final : public PairSampler {
  public:
    explicit RejectionSampler(const Queries &queries)
        : places_(queries.levels.size()), rows_(queries.levels.size()) {
        if (queries.n_levels.size() > std::numeric_limits<std::uint32_t>::max())
            throw std::invalid_argument("sampling by rejection knows at most 2^32 - 1 queries");
        bool has_pairs = false;
        for (Index q = 0; q < queries.n_queries(); ++q) {
            if (!(queries.c(q) > 0.0)) continue;
            for (Index t = queries.begin(q); t < queries.begin(q + 1); ++t) {
                places_.add({std::uint32_t(q), queries.levels[t]});
                rows_.add(t);
                has_pairs |= queries.levels[t] != queries.levels[queries.begin(q)];
            }
        }
        if (!has_pairs)
            throw std::invalid_argument("no query has two levels, so no draw would be accepted");
        n_rows_ = to_rows(queries, rows_);
    }

    void draw(Random &random, std::span<RowPair> out) const override {
        const PageArray<Place> &places = places_.array;
        for (RowPair &pair : out) {
            std::uint64_t a, b;
            do {
                a = scaled(random.next(), places_.n);
                b = scaled(random.next(), places_.n);
            } while (places[a].query != places[b].query || places[a].level == places[b].level);
            if (places[a].level < places[b].level) std::swap(a, b);
            pair = {rows_.array[a], rows_.array[b]};
        }
    }
    Index n_rows() const override { return n_rows_; }

  private:
    struct Place {
        std::uint32_t query;
        std::int32_t level;
    };
    Filled<Place> places_;
    Filled<Index> rows_;
    Index n_rows_;
};

}  // namespace

std::unique_ptr<PairSampler> make_level_sampler(const Queries &queries) {
    // With weights every row is there twice: among the losers, whose sums run over the whole query
    // so that any prefix may be drawn from, and among the winners, whose sums start anew with each
    // level.
    const bool is_weighted = !queries.row_weight.empty();
    const std::size_t n_rows = (is_weighted ? 2 : 1) * queries.levels.size();
    Filled<Index> rows(n_rows);
    Filled<double> weights(is_weighted ? n_rows : 0), cell_weights(total_levels(queries));
    Filled<Cell> cells(cell_weights.array.size());
    std::vector<Index> restarts;
    for (Index q = 0; q < queries.n_queries(); ++q) {
        if (!takes_part(queries, q)) continue;
        const Index losers = Index(rows.n), winners = is_weighted ? losers + queries.length(q)
            : losers;
        const std::span<Index> sorted = rows.extend(queries.length(q));
        const std::vector<Index> starts = sort_by_level(queries, q, sorted);
        if (is_weighted) {
            const std::span<double> u = weights.extend(sorted.size());
            std::ranges::transform(sorted, u.begin(), [&](Index t) {
                return queries.row_weight[t];
            });
            std::ranges::copy(sorted, rows.extend(sorted.size()).begin());
            std::ranges::copy(u, weights.extend(u.size()).begin());
            restarts.push_back(losers);
        }
        double below = 0.0;  // Σ u of the levels so far
        for (std::size_t r = 0; r + 1 < starts.size(); ++r) {
            const Cell cell{winners + starts[r], starts[r + 1] - starts[r], losers, starts[r]};
            double here = double(cell.n_winners);
            if (is_weighted) {
                const double *u = weights.array.data() + cell.winner_first;
                here = std::accumulate(u, u + cell.n_winners, 0.0);
                restarts.push_back(cell.winner_first);
            }
            const double weight = queries.c(q) * (here * below);
            below += here;
            // Levels that no row is in make no cell, nor do weights that vanish.
            if (cell.n_winners == 0 || cell.n_losers == 0 || !(weight > 0.0)) continue;
            cells.add(cell);
            cell_weights.add(weight);
        }
    }
    to_rows(queries, rows);
    const Cells all{rows.view(), cells.view(), cell_weights.view()};
    return is_weighted ? make_cell_sampler(all, {weights.view(), restarts})
        : make_cell_sampler(all);
}

std::unique_ptr<PairSampler> make_query_level_sampler(const Queries &queries) {
    return std::make_unique<QueryLevelSampler>(queries);
}

std::unique_ptr<PairSampler> make_rejection_sampler(const Queries &queries) {
    return std::make_unique<RejectionSampler>(queries);
}

}  // namespace linrank
