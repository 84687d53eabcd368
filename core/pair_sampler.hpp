// Drawing pairs (i, j), "i above j", at a cost that does not depend on how many there are.
#pragma once

#include "pages.hpp"
#include "queries.hpp"
#include "random.hpp"
#include "rows.hpp"

namespace linrank {

/// A distribution over pairs.
///
/// The random numbers of a pair follow each other in the stream, so a sequence of pairs does not
/// depend on the batches that it was drawn in.
class PairSampler {
  public:
    virtual ~PairSampler() = default;
    virtual void draw(Random &random, std::span<RowPair> out) const = 0;
    /// One more than the largest row that may be drawn.
    virtual Index n_rows() const = 0;
};

/// A sampler that finds the places of many pairs together: each waits for memory several times, and
/// the waits of a block overlap; its state stays in the first cache. Random numbers come one pair
/// after the other: the blocks leave no trace. `Pending` has the random bits of a pair, of which
/// find_places(random, pending) makes the places of a winner and a loser, whose rows are
/// row(place).
template <class Sampler, class Pending>
class BlockSampler : public PairSampler {
  public:
    void draw(Random &random, std::span<RowPair> out) const override {
        const auto &sampler = static_cast<const Sampler &>(*this);
        Random local = random;  // in registers: nothing else can point at it
        std::array<Pending, block> buffer;
        for (std::size_t first = 0; first < out.size(); first += block) {
            const std::span pending = std::span(buffer).first(std::min(block, out.size() - first));
            sampler.find_places(local, pending);
            for (std::size_t k = 0; k < pending.size(); ++k)
                out[first + k] = {sampler.row(pending[k].winner), sampler.row(pending[k].loser)};
        }
        random = local;
    }
    Index n_rows() const override { return n_rows_; }

  protected:
    static constexpr std::size_t block = 128;
    Index n_rows_ = 0;
};

// Drawing one of many with given weights, in constant time: Walker's alias method, built as Vose
// does.

/// A distribution over 0 .. n - 1 as n slots.
///
/// A draw takes 64 random bits. The high half of bits·n is a slot, uniform; the low half, uniform
/// within the slot, is compared with its threshold: below it the slot itself is drawn, else its
/// alias. All in integers: the slots say exactly how likely everything is.
struct AliasSlot {
    std::uint64_t threshold, alias;
};

struct AliasDraw {
    std::uint64_t slot, fraction;

    static AliasDraw from(std::uint64_t bits, std::uint64_t n_slots) {
        return {scaled(bits, n_slots), bits * n_slots};
    }
    /// `alias` if the fraction does not lie below the threshold, without a branch: it would be
    /// mispredicted whenever the weights differ.
    std::uint64_t choose(std::uint64_t threshold, std::uint64_t alias) const {
        const std::uint64_t take_alias = -std::uint64_t(fraction >= threshold);
        return slot ^ ((slot ^ alias) & take_alias);
    }
};

/// Weights are finite, >= 0, and one of them is > 0; throws std::invalid_argument otherwise. What
/// has weight zero is never drawn. O(n), and the same slots on every machine.
PageArray<AliasSlot> alias_slots(Doubles weights);

// A row of a range in proportion to its weight, by binary search in running sums.

/// Sums of weights that start anew at the restarts (increasing, from 0).
class RunningSums {
  public:
    /// Places first .. first + n, and the sums before and at their end: a place lies where a number
    /// between these falls.
    struct Range {
        Index first, n;
        double low, high;
    };

    /// Throws std::invalid_argument for weights that are negative or not finite, and for disorder.
    RunningSums(Doubles weights, Integers restarts)
        : restarts_(restarts.begin(), restarts.end()), sums_(weights.size()) {
        require(!restarts_.empty() && restarts_.front() == 0 && std::ranges::is_sorted(restarts_),
                "restarts of the running sums must increase from 0");
        auto restart = restarts_.begin();
        double sum = 0.0;
        for (std::size_t t = 0; t < weights.size(); ++t) {
            require(weights[t] >= 0.0 && std::isfinite(weights[t]), "row weight ", t,
                    " must be finite and >= 0, got ", weights[t]);
            for (; restart != restarts_.end() && *restart == Index(t); ++restart) sum = 0.0;
            sums_[t] = sum += weights[t];
        }
    }

    std::size_t size() const { return sums_.size(); }

    /// Throws std::invalid_argument if the range crosses a restart, or if nothing in it has weight.
    Range range(Index first, Index n) const {
        const auto next = std::upper_bound(restarts_.begin(), restarts_.end(), first);
        if (next != restarts_.end() && *next < first + n)
            refuse("the rows of a cell cross a restart of the running sums at ", *next);
        const double low = *(next - 1) == first ? 0.0 : sums_[first - 1];
        const double high = sums_[first + n - 1];
        require(low < high && std::isfinite(high), "the weights of elements ", first, " to ",
                first + n - 1, " of the rows vanish or overflow");
        return {first, n, low, high};
    }

    /// The search for the first place of a range whose sum exceeds `target`; done when n is 1.
    struct Search {
        const double *base;
        Index n;
        double target;
    };

    /// For a uniform number of [low, high): what has weight zero adds nothing and is never found.
    Search search(const Range &range, std::uint64_t bits) const {
        const double drawn = range.low + double(bits >> 11) * 0x1p-53 * (range.high - range.low);
        __builtin_prefetch(sums_.data() + range.first + range.n / 2);
        // Rounding may lift the last numbers to the end of the range, where nothing exceeds them.
        return {sums_.data() + range.first, range.n, drawn < range.high ? drawn : range.low};
    }
    Index place(const Search &done) const { return done.base - sums_.data(); }

    /// All searches step by step together, so that their waits for memory overlap. No branch on the
    /// data: one that is mispredicted costs more than the step.
    static void finish(std::span<Search> searches) {
        Index longest = 1;
        for (const Search &search : searches) longest = std::max(longest, search.n);
        for (; longest > 1; longest -= longest / 2) {
            for (Search &search : searches) {
                const Index half = search.n / 2;  // 0 once n is 1: nothing moves any more
                const bool is_beyond = search.base[half - (search.n > 1)] <= search.target;
                search.base += half & -std::int64_t(is_beyond);
                search.n -= half;
                __builtin_prefetch(search.base + search.n / 2);
            }
        }
    }

  private:
    std::vector<Index> restarts_;
    PageArray<double> sums_;
};

// Pairs from cells: a cell is a range of winners and a range of losers, any of one above any of the
// other.

/// Winners and losers are ranges of an array of row numbers, which many cells may share.
struct Cell {
    Index winner_first, n_winners, loser_first, n_losers;
};

/// Cells, each drawn in proportion to its weight.
struct Cells {
    Integers rows;
    std::span<const Cell> cells;
    Doubles weights;
};

/// How likely the rows of a range are; none: all the same.
///
/// A row is found by binary search in running sums. They start anew at `restarts` (increasing, from
/// 0), so that no sum is dwarfed by another that it has nothing to do with; no range crosses a
/// restart.
struct RowWeights {
    Doubles weights;  // of each element of Cells::rows
    Integers restarts;
};

/// A cell by its weight, its winner and its loser independently: O(1) a pair, whatever the number
/// of cells and rows. Copies what it needs. Throws std::invalid_argument for ranges outside `rows`,
/// empty ranges, negative rows, and weights that cannot be drawn from.
std::unique_ptr<PairSampler> make_cell_sampler(const Cells &cells);

/// The same with rows in proportion to their weights: O(log n) for ranges of n rows.
std::unique_ptr<PairSampler> make_cell_sampler(const Cells &cells, const RowWeights &row_weights);

/// With row numbers and ranges of the type Number, std::uint32_t or std::uint64_t, which must hold
/// them: the smaller it is, the more cells and rows the caches hold.
template <class Number>
std::unique_ptr<PairSampler> make_cell_sampler_of(const Cells &cells);

// Samplers of the pairs of queries: the distributions that `sampling` names. Queries of one level,
// or of weight 0, are left out.

/// P(i, j) ∝ c_q u_i u_j over level_i > level_j: O(1) a pair without row weights, else O(log l_q).
///
/// A cell is a level r >= 1 of a query: its rows as winners, all rows below as losers. Sorted by
/// level the latter are a prefix of the query, so one array of rows serves all cells; O(l) to
/// build.
std::unique_ptr<PairSampler> make_level_sampler(const Queries &queries);

/// Sculley's indexed sampler: a query by its weight, two different levels of it, a row of each.
/// P(i, j) = c_q/Σc · 2/(k_q (k_q - 1)) · 1/(n_qr n_qs). The paper forgets queries of one level,
/// which have no second one to draw from.
std::unique_ptr<PairSampler> make_query_level_sampler(const Queries &queries);

/// Two uniform rows, again and again until they make a pair: P(i, j) = 1/p, after l²/2p draws on
/// average. Throws std::invalid_argument if there is no pair: it would search for ever.
std::unique_ptr<PairSampler> make_rejection_sampler(const Queries &queries);

}  // namespace linrank
