#include "pair_sampler.hpp"

#include "queries.hpp"

namespace linrank {

namespace {

/// Writes the positions of query q to `out` in the order of their levels, within a level as they came; returns
/// where each level starts, and the end.
std::vector<Index> sort_by_level(const LeveledQueries &queries, std::size_t q, std::span<Index> out) {
    const Index begin = queries.offsets[q];
    return counting_sort(Index(out.size()), queries.n_levels[q],
                         [&](Index i) { return queries.levels[begin + i]; },
                         [&](Index i, Index place) { out[place] = begin + i; });
}

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

void to_rows(const LeveledQueries &queries, std::span<Index> positions) {
    if (queries.order.empty()) return;
    for (Index &t : positions) t = queries.order[t];
}

std::size_t length(const LeveledQueries &queries, std::size_t q) {
    return std::size_t(queries.offsets[q + 1] - queries.offsets[q]);
}

std::size_t total_levels(const LeveledQueries &queries) {
    std::size_t total = 0;
    for (const std::int32_t n : queries.n_levels) total += std::size_t(n);
    return total;
}

bool takes_part(const LeveledQueries &queries, Doubles query_weight, std::size_t q) {
    return queries.n_levels[q] > 1 && query_weight[q] > 0.0;
}

// ---- cells ------------------------------------------------------------------------------------

/// The cells of all queries, as they are gathered; `copies` of every row.
struct GatheredCells {
    GatheredCells(const LeveledQueries &queries, std::size_t copies)
        : rows(copies * queries.levels.size()), cells(total_levels(queries)), weights(total_levels(queries)) {}
    Filled<Index> rows;
    Filled<Cell> cells;
    Filled<double> weights;

    Cells view() const { return {rows.view(), cells.view(), weights.view()}; }

    /// Levels that no row of the query is in make no cell, nor do weights that vanish.
    void add_cell(const Cell &cell, double weight) {
        if (cell.n_winners == 0 || cell.n_losers == 0 || !(weight > 0.0)) return;
        cells.add(cell);
        weights.add(weight);
    }
};

std::unique_ptr<PairSampler> sampler_of(const LeveledQueries &queries, Doubles query_weight) {
    GatheredCells out(queries, 1);
    for (std::size_t q = 0; q < queries.n_levels.size(); ++q) {
        if (!takes_part(queries, query_weight, q)) continue;
        const auto first = Index(out.rows.n);
        const std::span<Index> rows = out.rows.extend(length(queries, q));
        const std::vector<Index> starts = sort_by_level(queries, q, rows);
        to_rows(queries, rows);
        for (std::size_t r = 1; r + 1 < starts.size(); ++r) {
            const Index below = starts[r], n = starts[r + 1] - below;
            out.add_cell({first + below, n, first, below}, query_weight[q] * (double(n) * double(below)));
        }
    }
    return make_cell_sampler(out.view());
}

/// With weights every row is there twice: among the losers, whose sums run over the whole query so that any
/// prefix may be drawn from, and among the winners, whose sums start anew with each level.
std::unique_ptr<PairSampler> sampler_of(const LeveledQueries &queries, Doubles query_weight,
                                        Doubles row_weight) {
    GatheredCells out(queries, 2);
    Filled<double> weights(2 * queries.levels.size());
    std::vector<Index> restarts;
    for (std::size_t q = 0; q < queries.n_levels.size(); ++q) {
        if (!takes_part(queries, query_weight, q)) continue;
        const auto losers = Index(out.rows.n), winners = losers + Index(length(queries, q));
        const std::span<Index> first = out.rows.extend(length(queries, q));
        const std::vector<Index> starts = sort_by_level(queries, q, first);
        const std::span<double> u = weights.extend(first.size());
        for (std::size_t t = 0; t < u.size(); ++t) u[t] = row_weight[first[t]];
        to_rows(queries, first);
        std::copy(first.begin(), first.end(), out.rows.extend(first.size()).begin());
        std::copy(u.begin(), u.end(), weights.extend(u.size()).begin());
        restarts.push_back(losers);
        double below = 0.0;  // Σ u of the levels so far
        for (std::size_t r = 0; r + 1 < starts.size(); ++r) {
            const Index start = starts[r], n = starts[r + 1] - start;
            const double here = std::accumulate(u.begin() + start, u.begin() + start + n, 0.0);
            restarts.push_back(winners + start);
            out.add_cell({winners + start, n, losers, start}, query_weight[q] * (here * below));
            below += here;
        }
    }
    return make_cell_sampler(out.view(), {weights.view(), restarts});
}

// ---- the sampler of the paper -----------------------------------------------------------------

struct PendingPair {
    AliasDraw query;
    std::uint64_t levels, winner, loser;  // random bits; in the end places in rows_
    std::uint64_t high, low;              // places in starts_
};

class QueryLevelSampler final : public BlockSampler<QueryLevelSampler, PendingPair> {
  public:
    QueryLevelSampler(const LeveledQueries &queries, Doubles query_weight)
        : rows_(queries.levels.size()), starts_(total_levels(queries) + queries.n_levels.size()) {
        std::vector<double> weights;
        for (std::size_t q = 0; q < queries.n_levels.size(); ++q) {
            if (!takes_part(queries, query_weight, q)) continue;
            const auto first = Index(rows_.n);
            const std::span<Index> rows = rows_.extend(length(queries, q));
            const std::vector<Index> starts = sort_by_level(queries, q, rows);
            to_rows(queries, rows);
            if (std::adjacent_find(starts.begin(), starts.end()) != starts.end())
                throw std::invalid_argument("a level has no rows to draw from");
            weights.push_back(query_weight[q]);
            queries_.push_back({starts_.n, std::uint64_t(queries.n_levels[q])});
            for (const Index start : starts) starts_.add(first + start);
        }
        table_ = alias_slots(weights);
        n_rows_ = *std::max_element(rows_.view().begin(), rows_.view().end()) + 1;
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

    /// Two different levels from 64 bits, the higher one first: the high half of bits·k is one, the low
    /// half gives one of the k - 1 others.
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
    RejectionSampler(const LeveledQueries &queries, std::span<const bool> keep)
        : places_(queries.levels.size()), rows_(queries.levels.size()) {
        if (queries.n_levels.size() > std::numeric_limits<std::uint32_t>::max())
            throw std::invalid_argument("sampling by rejection knows at most 2^32 - 1 queries");
        bool has_pairs = false;
        for (std::size_t q = 0; q < queries.n_levels.size(); ++q) {
            if (!keep.empty() && !keep[q]) continue;
            for (Index t = queries.offsets[q]; t < queries.offsets[q + 1]; ++t) {
                places_.add({std::uint32_t(q), queries.levels[t]});
                rows_.add(row_at(queries.order, t));
                has_pairs |= queries.levels[t] != queries.levels[queries.offsets[q]];
            }
        }
        if (!has_pairs) throw std::invalid_argument("no query has two levels, so no draw would be accepted");
        n_rows_ = *std::max_element(rows_.view().begin(), rows_.view().end()) + 1;
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

std::unique_ptr<PairSampler> make_level_sampler(const LeveledQueries &queries, Doubles query_weight,
                                                Doubles row_weight) {
    return row_weight.empty() ? sampler_of(queries, query_weight) : sampler_of(queries, query_weight, row_weight);
}

std::unique_ptr<PairSampler> make_query_level_sampler(const LeveledQueries &queries,
                                                      Doubles query_weight) {
    return std::make_unique<QueryLevelSampler>(queries, query_weight);
}

std::unique_ptr<PairSampler> make_rejection_sampler(const LeveledQueries &queries,
                                                    std::span<const bool> keep) {
    return std::make_unique<RejectionSampler>(queries, keep);
}

}  // namespace linrank
