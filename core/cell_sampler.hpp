// Pairs from cells: a cell is a range of winners and a range of losers, any of one above any of the other.
#pragma once
#include <cstdint>
#include <memory>
#include <span>

#include "pair_sampler.hpp"

namespace linrank {

/// Winners and losers are ranges of an array of row numbers, which many cells may share.
struct Cell {
    std::int64_t winner_first, n_winners, loser_first, n_losers;
};

/// Cells, each drawn in proportion to its weight.
struct Cells {
    std::span<const std::int64_t> rows;
    std::span<const Cell> cells;
    std::span<const double> weights;
};

/// How likely the rows of a range are; none: all the same.
///
/// A row is found by binary search in running sums. They start anew at `restarts` (increasing, from 0), so
/// that no sum is dwarfed by another that it has nothing to do with; no range crosses a restart.
struct RowWeights {
    std::span<const double> weights;  // of each element of Cells::rows
    std::span<const std::int64_t> restarts;
};

/// A cell by its weight, its winner and its loser independently: O(1) a pair, whatever the number of
/// cells and rows. Copies what it needs. Throws std::invalid_argument for ranges outside `rows`, empty
/// ranges, negative rows, and weights that cannot be drawn from.
std::unique_ptr<PairSampler> make_cell_sampler(const Cells &cells);

/// The same with rows in proportion to their weights: O(log n) for ranges of n rows.
std::unique_ptr<PairSampler> make_cell_sampler(const Cells &cells, const RowWeights &row_weights);

/// With row numbers and ranges of the type Index, std::uint32_t or std::uint64_t, which must hold them:
/// the smaller it is, the more cells and rows the caches hold.
template <class Index>
std::unique_ptr<PairSampler> make_cell_sampler_of(const Cells &cells);

}  // namespace linrank
