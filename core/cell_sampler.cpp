#include "cell_sampler.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

#include "alias.hpp"

namespace linrank {

namespace {

// ---- checks -----------------------------------------------------------------------------------

void check_range(std::int64_t first, std::int64_t n, std::int64_t n_rows, const char *what, std::size_t c) {
    if (first >= 0 && n > 0 && first <= n_rows && n <= n_rows - first) return;
    throw std::invalid_argument(std::string(what) + " of cell " + std::to_string(c) + " are " +
                                std::to_string(n) + " rows from " + std::to_string(first) + ", but there are " +
                                std::to_string(n_rows) + " rows");
}

/// One more than the largest row; throws if anything is out of place.
std::int64_t checked_n_rows(const Cells &cells) {
    if (cells.weights.size() != cells.cells.size())
        throw std::invalid_argument("there are " + std::to_string(cells.cells.size()) + " cells but " +
                                    std::to_string(cells.weights.size()) + " weights");
    const auto n_rows = std::int64_t(cells.rows.size());
    for (std::size_t c = 0; c < cells.cells.size(); ++c) {
        const Cell &cell = cells.cells[c];
        check_range(cell.winner_first, cell.n_winners, n_rows, "the winners", c);
        check_range(cell.loser_first, cell.n_losers, n_rows, "the losers", c);
    }
    std::int64_t largest = -1;
    for (const std::int64_t row : cells.rows) {
        if (row < 0 || row == std::numeric_limits<std::int64_t>::max())
            throw std::invalid_argument("there is no row " + std::to_string(row));
        largest = std::max(largest, row);
    }
    return largest + 1;
}

// ---- drawing ----------------------------------------------------------------------------------

/// Pairs that are drawn together. Each waits for memory three times (alias, cell, rows), and the waits of a
/// block overlap; its state of 40 bytes a pair stays in the first cache.
constexpr std::size_t block = 128;

struct Pending {
    AliasTable::Draw draw;
    std::uint64_t winner, loser;  // random bits, then places in the array of rows
};

/// Random numbers, three a pair and one pair after the other; then the cells, while the table is on its
/// way. `chosen[k]` is the cell of pair k.
void draw_cells(const AliasTable &table, Random &random, std::span<Pending> pending,
                std::span<std::uint64_t> chosen) {
    for (Pending &pair : pending) {
        pair.draw = table.draw(random.next());
        pair.winner = random.next();
        pair.loser = random.next();
        table.prefetch(pair.draw);
    }
    for (std::size_t k = 0; k < pending.size(); ++k) chosen[k] = table.chosen(pending[k].draw);
}

template <class Index>
class CellSampler final : public PairSampler {
  public:
    CellSampler(const Cells &from, std::int64_t n_rows)
        : table_(from.weights), rows_(from.rows.begin(), from.rows.end()), n_rows_(n_rows) {
        ranges_.reserve(from.cells.size());
        for (const Cell &cell : from.cells)
            ranges_.push_back({Index(cell.winner_first), Index(cell.n_winners), Index(cell.loser_first),
                               Index(cell.n_losers)});
    }

    void draw(Random &random, std::span<RowPair> out) const override {
        Random local = random;  // in registers: nothing else can point at it
        for (std::size_t first = 0; first < out.size(); first += block)
            draw_block(local, out.subspan(first, std::min(block, out.size() - first)));
        random = local;
    }
    std::int64_t n_rows() const override { return n_rows_; }

  private:
    struct Ranges {
        Index winner_first, n_winners, loser_first, n_losers;
    };

    void draw_block(Random &random, std::span<RowPair> out) const {
        std::array<Pending, block> buffer;
        std::array<std::uint64_t, block> chosen;
        const std::span<Pending> pending = std::span(buffer).first(out.size());
        draw_cells(table_, random, pending, chosen);
        for (std::size_t k = 0; k < out.size(); ++k) __builtin_prefetch(&ranges_[chosen[k]]);
        for (std::size_t k = 0; k < out.size(); ++k) {
            const Ranges &ranges = ranges_[chosen[k]];
            Pending &pair = pending[k];
            pair.winner = ranges.winner_first + scaled(pair.winner, ranges.n_winners);
            pair.loser = ranges.loser_first + scaled(pair.loser, ranges.n_losers);
            __builtin_prefetch(&rows_[pair.winner]);
            __builtin_prefetch(&rows_[pair.loser]);
        }
        for (std::size_t k = 0; k < out.size(); ++k)
            out[k] = {std::int64_t(rows_[pending[k].winner]), std::int64_t(rows_[pending[k].loser])};
    }

    AliasTable table_;
    std::vector<Ranges> ranges_;
    std::vector<Index> rows_;
    std::int64_t n_rows_;
};

// ---- rows by weight ---------------------------------------------------------------------------

/// Running sums that start anew at the restarts.
class RunningSums {
  public:
    /// A range of rows and the sums before and at its end: a row lies where a number between them falls.
    struct Range {
        std::int64_t first, n;
        double low, high;
    };

    RunningSums(const RowWeights &from, std::size_t n_rows)
        : restarts_(from.restarts.begin(), from.restarts.end()), sums_(from.weights.begin(), from.weights.end()) {
        if (sums_.size() != n_rows)
            throw std::invalid_argument("there are " + std::to_string(n_rows) + " rows but " +
                                        std::to_string(sums_.size()) + " row weights");
        for (std::size_t t = 0; t < n_rows; ++t)
            if (!(sums_[t] >= 0.0 && sums_[t] <= std::numeric_limits<double>::max()))
                throw std::invalid_argument("row weight " + std::to_string(t) + " must be finite and >= 0, got " +
                                            std::to_string(sums_[t]));
        if (restarts_.empty() || restarts_.front() != 0 || !std::is_sorted(restarts_.begin(), restarts_.end()))
            throw std::invalid_argument("restarts of the running sums must increase from 0");
        auto restart = restarts_.begin();
        double sum = 0.0;
        for (std::size_t t = 0; t < n_rows; ++t) {
            for (; restart != restarts_.end() && *restart == std::int64_t(t); ++restart) sum = 0.0;
            sums_[t] = sum += sums_[t];
        }
    }

    /// Throws if the range crosses a restart, or if nothing in it has weight.
    Range range(std::int64_t first, std::int64_t n) const {
        const auto next = std::upper_bound(restarts_.begin(), restarts_.end(), first);
        if (next != restarts_.end() && *next < first + n)
            throw std::invalid_argument("the rows of a cell cross a restart of the running sums at " +
                                        std::to_string(*next));
        const double low = *(next - 1) == first ? 0.0 : sums_[std::size_t(first - 1)];
        const double high = sums_[std::size_t(first + n - 1)];
        if (!(low < high && high <= std::numeric_limits<double>::max()))
            throw std::invalid_argument("the weights of rows " + std::to_string(first) + " to " +
                                        std::to_string(first + n - 1) + " of the cells vanish or overflow");
        return {first, n, low, high};
    }

    /// The first place of the range whose running sum exceeds a uniform number of [low, high): a row
    /// of weight zero adds nothing and is never found.
    std::int64_t find(const Range &range, std::uint64_t bits) const {
        const double drawn = range.low + double(bits >> 11) * 0x1p-53 * (range.high - range.low);
        const double target = drawn < range.high ? drawn : range.low;  // rounded up, once in 2⁵³ times
        const double *base = sums_.data() + range.first;
        // No branch on the data: a mispredicted one costs more than the whole step.
        for (std::int64_t n = range.n; n > 1;) {
            const std::int64_t half = n / 2;
            base += base[half - 1] <= target ? half : 0;
            n -= half;
        }
        return base - sums_.data();
    }

  private:
    std::vector<std::int64_t> restarts_;
    std::vector<double> sums_;
};

class WeightedCellSampler final : public PairSampler {
  public:
    WeightedCellSampler(const Cells &from, const RowWeights &row_weights, std::int64_t n_rows)
        : table_(from.weights), sums_(row_weights, from.rows.size()), rows_(from.rows.begin(), from.rows.end()),
          n_rows_(n_rows) {
        ranges_.reserve(from.cells.size());
        for (std::size_t c = 0; c < from.cells.size(); ++c) {
            const Cell &cell = from.cells[c];
            // What is never drawn need not be drawable.
            if (from.weights[c] > 0.0)
                ranges_.push_back({sums_.range(cell.winner_first, cell.n_winners),
                                   sums_.range(cell.loser_first, cell.n_losers)});
            else
                ranges_.push_back({});
        }
    }

    void draw(Random &random, std::span<RowPair> out) const override {
        for (std::size_t first = 0; first < out.size(); first += block)
            draw_block(random, out.subspan(first, std::min(block, out.size() - first)));
    }
    std::int64_t n_rows() const override { return n_rows_; }

  private:
    struct Ranges {
        RunningSums::Range winners, losers;
    };

    void draw_block(Random &random, std::span<RowPair> out) const {
        std::array<Pending, block> buffer;
        std::array<std::uint64_t, block> chosen;
        const std::span<Pending> pending = std::span(buffer).first(out.size());
        draw_cells(table_, random, pending, chosen);
        for (std::size_t k = 0; k < out.size(); ++k) {
            __builtin_prefetch(&ranges_[chosen[k]]);
            __builtin_prefetch(&ranges_[chosen[k]].losers);
        }
        for (std::size_t k = 0; k < out.size(); ++k) {
            const Ranges &ranges = ranges_[chosen[k]];
            out[k] = {rows_[std::size_t(sums_.find(ranges.winners, pending[k].winner))],
                      rows_[std::size_t(sums_.find(ranges.losers, pending[k].loser))]};
        }
    }

    AliasTable table_;
    RunningSums sums_;
    std::vector<Ranges> ranges_;
    std::vector<std::int64_t> rows_;
    std::int64_t n_rows_;
};

}  // namespace

template <class Index>
std::unique_ptr<PairSampler> make_cell_sampler_of(const Cells &cells) {
    return std::make_unique<CellSampler<Index>>(cells, checked_n_rows(cells));
}
template std::unique_ptr<PairSampler> make_cell_sampler_of<std::uint32_t>(const Cells &);
template std::unique_ptr<PairSampler> make_cell_sampler_of<std::uint64_t>(const Cells &);

std::unique_ptr<PairSampler> make_cell_sampler(const Cells &cells) {
    const std::int64_t n_rows = checked_n_rows(cells);
    if (std::max(n_rows, std::int64_t(cells.rows.size())) <= std::numeric_limits<std::uint32_t>::max())
        return std::make_unique<CellSampler<std::uint32_t>>(cells, n_rows);
    return std::make_unique<CellSampler<std::uint64_t>>(cells, n_rows);
}

std::unique_ptr<PairSampler> make_cell_sampler(const Cells &cells, const RowWeights &row_weights) {
    return std::make_unique<WeightedCellSampler>(cells, row_weights, checked_n_rows(cells));
}

}  // namespace linrank
