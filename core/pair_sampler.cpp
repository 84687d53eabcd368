#include "pair_sampler.hpp"

namespace linrank {

namespace {

__extension__ typedef unsigned __int128 Wide;
constexpr Wide full = Wide(1) << 64;  // what one slot holds

void check_weights(Doubles weights) {
    for (std::size_t i = 0; i < weights.size(); ++i)
        require(weights[i] >= 0.0 && std::isfinite(weights[i]), "weight ", i,
                " must be finite and >= 0, got ", weights[i]);
    require(std::ranges::any_of(weights, [](double w) { return w > 0.0; }), "none of the ",
            weights.size(), " weights is > 0, so nothing can be drawn");
}

/// Σ w / largest with Neumaier's correction: a plain sum of 10⁷ terms could be off by 10⁻⁹.
double compensated_sum(Doubles weights, double largest) {
    double sum = 0.0, lost = 0.0;
    for (const double weight : weights) {
        const double w = weight / largest, next = sum + w;
        lost += sum >= w ? (sum - next) + w : (w - next) + sum;
        sum = next;
    }
    return sum + lost;
}

/// Integers m_i = 2⁶⁴·n·w_i/Σw that sum to 2⁶⁴·n exactly. The roundings, some 10⁻¹⁶ of the sum, go
/// to the largest: it holds at least a slot, and is the one that they change least.
PageArray<Wide> shares(Doubles weights) {
    const auto heaviest = std::max_element(weights.begin(), weights.end());
    const double n = double(weights.size()), slots = n / compensated_sum(weights, *heaviest);
    PageArray<Wide> share(weights.size());
    Wide total = 0;
    for (std::size_t i = 0; i < weights.size(); ++i) {
        const double whole = weights[i] / *heaviest * slots;  // in slots
        const auto high = std::uint64_t(whole);
        share[i] = (Wide(high) << 64) + std::uint64_t((whole - double(high)) * 0x1p64);
        total += share[i];
    }
    share[heaviest - weights.begin()] += full * weights.size() - total;  // modulo 2¹²⁸
    return share;
}

// ---- checks -----------------------------------------------------------------------------------

void check_range(Index first, Index n, Index n_rows, const char *what, std::size_t c) {
    require(first >= 0 && n > 0 && first <= n_rows && n <= n_rows - first, what, " of cell ", c,
            " are ", n, " rows from ", first, ", but there are ", n_rows, " rows");
}

/// One more than the largest row; throws if anything is out of place.
Index checked_n_rows(const Cells &cells) {
    require(cells.weights.size() == cells.cells.size(), "there are ", cells.cells.size(),
            " cells but ", cells.weights.size(), " weights");
    const auto n_rows = Index(cells.rows.size());
    for (std::size_t c = 0; c < cells.cells.size(); ++c) {
        const Cell &cell = cells.cells[c];
        check_range(cell.winner_first, cell.n_winners, n_rows, "the winners", c);
        check_range(cell.loser_first, cell.n_losers, n_rows, "the losers", c);
    }
    Index largest = -1;
    for (const Index row : cells.rows) {
        require(row >= 0 && row < INT64_MAX, "there is no row ", row);
        largest = std::max(largest, row);
    }
    return largest + 1;
}

// ---- drawing ----------------------------------------------------------------------------------

struct Pending {
    AliasDraw cell;
    std::uint64_t winner, loser;  // random bits, then places in the array of rows
};

/// All samplers of cells; a Slot has a threshold, an alias, and what the Sampler needs of the cell
/// to turn random bits into places (`choose_rows`).
template <class Sampler, class Slot, class Number>
class Blocks : public BlockSampler<Blocks<Sampler, Slot, Number>, Pending> {
  public:
    Index row(std::uint64_t place) const { return Index(rows_[place]); }
    void find_places(Random &random, std::span<Pending> pending) const {
        for (Pending &pair : pending) {
            pair.cell = AliasDraw::from(random.next(), slots_.size());
            pair.winner = random.next();
            pair.loser = random.next();
            __builtin_prefetch(&slots_[pair.cell.slot]);
        }
        for (Pending &pair : pending) {
            const Slot &slot = slots_[pair.cell.slot];
            pair.cell.slot = pair.cell.choose(slot.threshold, slot.alias);
            __builtin_prefetch(&slots_[pair.cell.slot]);
            if constexpr (sizeof(Slot) > 64)
                __builtin_prefetch(&slots_[pair.cell.slot + 1].threshold - 1);
        }
        static_cast<const Sampler &>(*this).choose_rows(pending);
    }

  protected:
    Blocks(const Cells &from, Index n_rows) : slots_(from.cells.size()), rows_(from.rows.size()) {
        this->n_rows_ = n_rows;
        const PageArray<AliasSlot> table = alias_slots(from.weights);
        for (std::size_t c = 0; c < table.size(); ++c) {
            slots_[c].threshold = table[c].threshold;
            slots_[c].alias = Number(table[c].alias);
        }
        std::copy(from.rows.begin(), from.rows.end(), rows_.data());
    }

    PageArray<Slot> slots_;
    PageArray<Number> rows_;
};

/// With 32-bit indices a slot is half a cache line.
template <class Number>
struct UniformSlot {
    std::uint64_t threshold;
    Number alias, winner_first, n_winners, loser_first, n_losers;
};

template <class Number>
class UniformCells final : public Blocks<UniformCells<Number>, UniformSlot<Number>, Number> {
  public:
    UniformCells(const Cells &from, Index n_rows)
        : Blocks<UniformCells<Number>, UniformSlot<Number>, Number>(from, n_rows) {
        for (std::size_t c = 0; c < from.cells.size(); ++c) {
            const Cell &cell = from.cells[c];
            UniformSlot<Number> &slot = this->slots_[c];
            slot = {slot.threshold, slot.alias, Number(cell.winner_first), Number(cell.n_winners),
                    Number(cell.loser_first), Number(cell.n_losers)};
        }
    }

    void choose_rows(std::span<Pending> pending) const {
        for (Pending &pair : pending) {
            const UniformSlot<Number> &slot = this->slots_[pair.cell.slot];
            pair.winner = slot.winner_first + scaled(pair.winner, slot.n_winners);
            pair.loser = slot.loser_first + scaled(pair.loser, slot.n_losers);
            __builtin_prefetch(&this->rows_[pair.winner]);
            __builtin_prefetch(&this->rows_[pair.loser]);
        }
    }
};

struct WeightedSlot {
    std::uint64_t threshold, alias;
    RunningSums::Range winners, losers;
};

class WeightedCells final : public Blocks<WeightedCells, WeightedSlot, std::uint64_t> {
  public:
    WeightedCells(const Cells &from, const RowWeights &row_weights, Index n_rows)
        : Blocks(from, n_rows), sums_(row_weights.weights, row_weights.restarts) {
        for (std::size_t c = 0; c < from.cells.size(); ++c) {
            if (!(from.weights[c] > 0.0)) continue;  // what is never drawn need not be drawable
            const Cell &cell = from.cells[c];
            slots_[c].winners = sums_.range(cell.winner_first, cell.n_winners);
            slots_[c].losers = sums_.range(cell.loser_first, cell.n_losers);
        }
    }

    void choose_rows(std::span<Pending> pending) const {
        std::array<RunningSums::Search, 2 * block> buffer;
        const std::span<RunningSums::Search> searches = std::span(buffer).first(2 * pending.size());
        for (std::size_t k = 0; k < pending.size(); ++k) {
            const WeightedSlot &slot = slots_[pending[k].cell.slot];
            searches[2 * k] = sums_.search(slot.winners, pending[k].winner);
            searches[2 * k + 1] = sums_.search(slot.losers, pending[k].loser);
        }
        RunningSums::finish(searches);
        for (std::size_t k = 0; k < pending.size(); ++k) {
            pending[k].winner = std::uint64_t(sums_.place(searches[2 * k]));
            pending[k].loser = std::uint64_t(sums_.place(searches[2 * k + 1]));
            __builtin_prefetch(&rows_[pending[k].winner]);
            __builtin_prefetch(&rows_[pending[k].loser]);
        }
    }

  private:
    RunningSums sums_;
};

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

PageArray<AliasSlot> alias_slots(Doubles weights) {
    check_weights(weights);
    PageArray<Wide> share = shares(weights);
    PageArray<AliasSlot> slots(weights.size());
    for (std::size_t i = 0; i < slots.size(); ++i) slots[i] = {0, i};
    // A slot that is not full is filled up by `donor`, which holds more than one slot; a donor that
    // falls below one is next in need. The shares sum to n slots exactly, so as long as one lacks
    // something, another has too much: no case is left over for rounding to decide.
    std::size_t donor = 0;
    for (std::size_t i = 0; i < share.size(); ++i) {
        for (std::size_t needy = i; share[needy] < full;) {
            while (share[donor] <= full) ++donor;
            slots[needy] = {std::uint64_t(share[needy]), donor};
            share[donor] -= full - share[needy];
            share[needy] = full;
            needy = donor;
        }
    }
    return slots;
}

template <class Number>
std::unique_ptr<PairSampler> make_cell_sampler_of(const Cells &cells) {
    return std::make_unique<UniformCells<Number>>(cells, checked_n_rows(cells));
}
template std::unique_ptr<PairSampler> make_cell_sampler_of<std::uint32_t>(const Cells &);
template std::unique_ptr<PairSampler> make_cell_sampler_of<std::uint64_t>(const Cells &);

std::unique_ptr<PairSampler> make_cell_sampler(const Cells &cells) {
    const Index n_rows = checked_n_rows(cells);
    const auto largest = std::max({n_rows, Index(cells.rows.size()), Index(cells.cells.size())});
    if (largest <= std::numeric_limits<std::uint32_t>::max())
        return std::make_unique<UniformCells<std::uint32_t>>(cells, n_rows);
    return std::make_unique<UniformCells<std::uint64_t>>(cells, n_rows);
}

std::unique_ptr<PairSampler> make_cell_sampler(const Cells &cells, const RowWeights &row_weights) {
    const Index n_rows = checked_n_rows(cells);
    require(row_weights.weights.size() == cells.rows.size(), "there are ", cells.rows.size(),
            " rows but ", row_weights.weights.size(), " row weights");
    return std::make_unique<WeightedCells>(cells, row_weights, n_rows);
}

// ---- the pairs of queries ---------------------------------------------------------------------

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
