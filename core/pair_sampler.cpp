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

namespace {

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
            if constexpr (sizeof(Slot) > 64) __builtin_prefetch(&slots_[pair.cell.slot
                                                                        + 1].threshold - 1);
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

}  // namespace

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

}  // namespace linrank
