// A pair loss over preferences that are listed one by one: value, gradient and curvature in the scores.
//
//   L(z) = Σ_t ω_t l(1 - z_win(t) + z_lose(t))
//
// in O(p) for p preferences. Each row knows the preferences that it takes part in, so sums over them are
// formed row by row, in a fixed order: no two threads write to the same number.
#pragma once

#include "loss_point.hpp"
#include "products.hpp"

namespace linrank {

/// Which position is preferred to which, by ascending winner, then loser: neighbors in the list look
/// at neighboring scores, which makes sweeps up to four times as fast as in a random order.
class PreferenceList {
public:
    /// In any order; `weight` is empty for ones, winners and losers lie in [0, n_rows).
    PreferenceList(Integers winners, Integers losers, Doubles weight, Index n_rows);

    Index n_pairs() const { return Index(winners_.size()); }
    Index n_rows() const { return Index(offsets_.size()) - 1; }
    /// Preferences of the row that has most.
    Index largest_degree() const { return longest_range(offsets_); }
    Index winner(Index t) const { return winners_[t]; }
    Index loser(Index t) const { return losers_[t]; }
    double weight(Index t) const { return weight_.empty() ? 1.0 : weight_[t]; }

    /// The preferences of row i, each as 2t where the row is the winner of t, 2t + 1 where the loser.
    Integers of_row(Index i) const {
        const Index first = offsets_[i];
        return {incident_.data() + first, std::size_t(offsets_[i + 1] - first)};
    }
    /// The other row of such an entry.
    Index other(Index entry) const {
        return entry & 1 ? winner(entry >> 1) : loser(entry >> 1);
    }
    /// Bounds of at most n_parts ranges of rows with about equally many preferences; depends on
    /// the list only.
    std::vector<Index> row_parts(Index n_parts) const;

private:
    std::vector<Index> winners_, losers_;
    std::vector<double> weight_;
    std::vector<Index> offsets_, incident_;
};

/// The loss at one vector of scores.
class PreferencePoint : public LossPoint {
public:
    PreferencePoint(const PreferenceList &list, PairLoss loss, Doubles z, int n_threads);

    /// out = ∇²L(z)·v.
    void multiply(Doubles v, std::span<double> out, int n_threads) const;

    const PreferenceList &list() const { return list_; }
    /// ω_t l''(ξ_t).
    double curvature(Index t) const { return curvature_.data()[t]; }

private:
    const PreferenceList &list_;
    PageArray<double> curvature_;
};

/// Xᵀ∇²L(z)X in full, n_columns × n_columns, in double.
std::vector<double> hessian_matrix(const Positions &x, const PreferencePoint &point, int n_threads);

/// Its diagonal, exact up to rounding: one pass over the non-zeros of both rows of each preference.
std::vector<double> hessian_diagonal(const Positions &x, const PreferencePoint &point,
                                     int n_threads);

}  // namespace linrank
