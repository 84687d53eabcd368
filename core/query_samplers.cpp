#include "query_samplers.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <stdexcept>
#include <vector>

#include "alias.hpp"
#include "cell_sampler.hpp"

namespace linrank {

namespace {

/// The places of one query in the order of the levels; within a level as they came.
class LevelOrder {
  public:
    /// starts[r] .. starts[r+1) of positions are those of level r.
    std::vector<std::int64_t> starts, positions;

    void sort(const LevelledQueries &queries, std::size_t q) {
        const std::int64_t first = queries.offsets[q], end = queries.offsets[q + 1];
        const auto n_levels = std::size_t(queries.n_levels[q]);
        // One place ahead, so that filling a level leaves its start where the next one belongs.
        starts.assign(n_levels + 2, 0);
        for (std::int64_t t = first; t < end; ++t) ++starts[std::size_t(queries.levels[std::size_t(t)]) + 2];
        for (std::size_t r = 2; r < starts.size(); ++r) starts[r] += starts[r - 1];
        positions.resize(std::size_t(end - first));
        for (std::int64_t t = first; t < end; ++t)
            positions[std::size_t(starts[std::size_t(queries.levels[std::size_t(t)]) + 1]++)] = t;
        starts.pop_back();
    }
    std::int64_t rows_in(std::size_t r) const { return starts[r + 1] - starts[r]; }
};

std::int64_t row_at(const LevelledQueries &queries, std::int64_t t) {
    return queries.order.empty() ? t : queries.order[std::size_t(t)];
}

bool takes_part(const LevelledQueries &queries, std::span<const double> query_weight, std::size_t q) {
    return queries.n_levels[q] > 1 && query_weight[q] > 0.0;
}

// ---- cells ------------------------------------------------------------------------------------

/// The cells of all queries, as they are gathered.
struct GatheredCells {
    std::vector<std::int64_t> rows, restarts;
    std::vector<double> row_weights;
    std::vector<Cell> cells;
    std::vector<double> weights;

    Cells view() const { return {rows, cells, weights}; }

    void add_cell(const Cell &cell, double weight) {
        if (!(weight > 0.0)) return;
        cells.push_back(cell);
        weights.push_back(weight);
    }
    void add_rows(const LevelledQueries &queries, const LevelOrder &sorted) {
        for (const std::int64_t t : sorted.positions) rows.push_back(row_at(queries, t));
    }
};

GatheredCells gather(const LevelledQueries &queries, std::span<const double> query_weight) {
    GatheredCells out;
    out.rows.reserve(queries.levels.size());
    LevelOrder sorted;
    for (std::size_t q = 0; q < queries.n_levels.size(); ++q) {
        if (!takes_part(queries, query_weight, q)) continue;
        sorted.sort(queries, q);
        const auto first = std::int64_t(out.rows.size());
        out.add_rows(queries, sorted);
        for (std::size_t r = 1; r + 1 < sorted.starts.size(); ++r) {
            const std::int64_t n = sorted.rows_in(r), below = sorted.starts[r];
            if (n == 0 || below == 0) continue;  // levels without rows: a part of the rows of others
            out.add_cell({first + below, n, first, below}, query_weight[q] * (double(n) * double(below)));
        }
    }
    return out;
}

/// With weights every row is there twice: among the losers, whose sums run over the whole query so that any
/// prefix may be drawn from, and among the winners, whose sums start anew with each level.
GatheredCells gather(const LevelledQueries &queries, std::span<const double> query_weight,
                     std::span<const double> row_weight) {
    GatheredCells out;
    LevelOrder sorted;
    for (std::size_t q = 0; q < queries.n_levels.size(); ++q) {
        if (!takes_part(queries, query_weight, q)) continue;
        sorted.sort(queries, q);
        const auto losers = std::int64_t(out.rows.size());
        const std::int64_t winners = losers + std::int64_t(sorted.positions.size());
        for (int copy = 0; copy < 2; ++copy) {
            out.add_rows(queries, sorted);
            for (const std::int64_t t : sorted.positions) out.row_weights.push_back(row_weight[std::size_t(t)]);
        }
        out.restarts.push_back(losers);
        double below = 0.0;  // Σ u of the levels so far
        for (std::size_t r = 0; r + 1 < sorted.starts.size(); ++r) {
            const std::int64_t start = sorted.starts[r], n = sorted.rows_in(r);
            double u = 0.0;
            for (std::int64_t t = start; t < start + n; ++t) u += out.row_weights[std::size_t(winners + t)];
            out.restarts.push_back(winners + start);
            if (n > 0 && start > 0) out.add_cell({winners + start, n, losers, start}, query_weight[q] * (u * below));
            below += u;
        }
    }
    return out;
}

// ---- the sampler of the paper -----------------------------------------------------------------

class QueryLevelSampler final : public PairSampler {
  public:
    QueryLevelSampler(const LevelledQueries &queries, std::span<const double> query_weight) {
        LevelOrder sorted;
        std::vector<double> weights;
        for (std::size_t q = 0; q < queries.n_levels.size(); ++q) {
            if (!takes_part(queries, query_weight, q)) continue;
            sorted.sort(queries, q);
            for (std::size_t r = 0; r + 1 < sorted.starts.size(); ++r)
                if (sorted.rows_in(r) == 0) throw std::invalid_argument("a level has no rows to draw from");
            weights.push_back(query_weight[q]);
            queries_.push_back({starts_.size(), std::uint64_t(queries.n_levels[q])});
            for (const std::int64_t start : sorted.starts) starts_.push_back(std::int64_t(rows_.size()) + start);
            for (const std::int64_t t : sorted.positions) rows_.push_back(row_at(queries, t));
        }
        table_ = AliasTable(weights);
        n_rows_ = *std::max_element(rows_.begin(), rows_.end()) + 1;
    }

    void draw(Random &random, std::span<RowPair> out) const override {
        Random local = random;
        for (std::size_t first = 0; first < out.size(); first += block)
            draw_block(local, out.subspan(first, std::min(block, out.size() - first)));
        random = local;
    }
    std::int64_t n_rows() const override { return n_rows_; }

  private:
    static constexpr std::size_t block = 128;
    struct Query {
        std::uint64_t first_start, n_levels;
    };
    struct Pending {
        AliasTable::Draw query;
        std::uint64_t levels, winner, loser;  // random bits; in the end places in rows_
        std::uint64_t high, low;              // places in starts_
    };

    /// Two different levels from 64 bits, the higher one first: the high half of bits·k is one, the low
    /// half gives one of the k - 1 others.
    void choose_levels(Pending &pair) const {
        const Query &query = queries_[table_.chosen(pair.query)];
        const std::uint64_t one = scaled(pair.levels, query.n_levels);
        std::uint64_t other = scaled(pair.levels * query.n_levels, query.n_levels - 1);
        other += other >= one;
        pair.high = query.first_start + std::max(one, other);
        pair.low = query.first_start + std::min(one, other);
    }

    std::uint64_t place(std::uint64_t level, std::uint64_t bits) const {
        return std::uint64_t(starts_[level]) + scaled(bits, std::uint64_t(starts_[level + 1] - starts_[level]));
    }

    void draw_block(Random &random, std::span<RowPair> out) const {
        std::array<Pending, block> buffer;
        const std::span<Pending> pending = std::span(buffer).first(out.size());
        for (Pending &pair : pending) {
            pair.query = table_.draw(random.next());
            pair.levels = random.next();
            pair.winner = random.next();
            pair.loser = random.next();
            table_.prefetch(pair.query);
        }
        for (Pending &pair : pending) {
            choose_levels(pair);
            __builtin_prefetch(&starts_[pair.high]);
            __builtin_prefetch(&starts_[pair.low]);
        }
        for (Pending &pair : pending) {
            pair.winner = place(pair.high, pair.winner);
            pair.loser = place(pair.low, pair.loser);
            __builtin_prefetch(&rows_[pair.winner]);
            __builtin_prefetch(&rows_[pair.loser]);
        }
        for (std::size_t k = 0; k < out.size(); ++k) out[k] = {rows_[pending[k].winner], rows_[pending[k].loser]};
    }

    AliasTable table_;
    std::vector<Query> queries_;
    std::vector<std::int64_t> starts_, rows_;
    std::int64_t n_rows_;
};

// ---- without an index -------------------------------------------------------------------------

class RejectionSampler final : public PairSampler {
  public:
    RejectionSampler(const LevelledQueries &queries, std::span<const bool> keep) {
        if (queries.n_levels.size() > std::numeric_limits<std::uint32_t>::max())
            throw std::invalid_argument("sampling by rejection knows at most 2^32 - 1 queries");
        bool has_pairs = false;
        for (std::size_t q = 0; q < queries.n_levels.size(); ++q) {
            if (!keep.empty() && !keep[q]) continue;
            for (std::int64_t t = queries.offsets[q]; t < queries.offsets[q + 1]; ++t) {
                places_.push_back({std::uint32_t(q), queries.levels[std::size_t(t)]});
                rows_.push_back(row_at(queries, t));
                has_pairs |= queries.levels[std::size_t(t)] != queries.levels[std::size_t(queries.offsets[q])];
            }
        }
        if (!has_pairs) throw std::invalid_argument("no query has two levels, so no draw would be accepted");
        n_rows_ = *std::max_element(rows_.begin(), rows_.end()) + 1;
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
    std::int64_t n_rows() const override { return n_rows_; }

  private:
    struct Place {
        std::uint32_t query;
        std::int32_t level;
    };
    std::vector<Place> places_;
    std::vector<std::int64_t> rows_;
    std::int64_t n_rows_;
};

}  // namespace

std::unique_ptr<PairSampler> make_level_sampler(const LevelledQueries &queries,
                                                std::span<const double> query_weight,
                                                std::span<const double> row_weight) {
    if (row_weight.empty()) {
        const GatheredCells cells = gather(queries, query_weight);
        return make_cell_sampler(cells.view());
    }
    const GatheredCells cells = gather(queries, query_weight, row_weight);
    return make_cell_sampler(cells.view(), {cells.row_weights, cells.restarts});
}

std::unique_ptr<PairSampler> make_query_level_sampler(const LevelledQueries &queries,
                                                      std::span<const double> query_weight) {
    return std::make_unique<QueryLevelSampler>(queries, query_weight);
}

std::unique_ptr<PairSampler> make_rejection_sampler(const LevelledQueries &queries,
                                                    std::span<const bool> keep) {
    return std::make_unique<RejectionSampler>(queries, keep);
}

}  // namespace linrank
