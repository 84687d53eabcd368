// Differences of two rows, x = x_winner - x_loser: ⟨v, x⟩, ‖x‖² and v += δ x.
//
// A model alone is vectorized over the columns, several are vectorized over the models: then a sparse
// entry meets one cache line with its weight in all of them. The difference is taken in the type of the
// rows, everything else in double; of sparse rows it is never formed.
#pragma once
#include "vector.hpp"

namespace linrank::LINRANK_ISA {
namespace {

// The compiler tires of inlining long before all the combinations below are done, and a call costs as much
// as a vector or two of work.
#define LINRANK_INLINE [[gnu::always_inline]] inline

/// All lines that n numbers lie in; the first may begin in the middle of one.
template <class Value>
LINRANK_INLINE void prefetch_lines(const Value *row, Index n) {
    constexpr Index line = 64 / Index(sizeof(Value));
    for (Index c = 0; c < n; c += line) prefetch_line(row + c);
    if (n > 0) prefetch_line(row + n - 1);
}

/// Σ term(k) over k in [first, last), by four sums: each addition waits for the one before.
template <class Sum, class Term>
LINRANK_INLINE Sum sum_by_four(Index first, Index last, const Term &term) {
    Sum sums[4]{};
    for (; first + 4 <= last; first += 4)
        for (int k = 0; k < 4; ++k) sums[k] += term(first + k);
    for (; first < last; ++first) sums[0] += term(first);
    return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

/// The rows of dense pairs.
template <class Value>
class DensePairs {
  public:
    explicit DensePairs(const DenseRows<Value> &rows) : rows_(rows), n_(rows.n_columns) {}

    LINRANK_INLINE void prefetch(RowPair pair) const {
        prefetch_lines(row(pair.winner), n_);
        prefetch_lines(row(pair.loser), n_);
    }
    LINRANK_INLINE void prefetch_far(RowPair) const {}

  protected:
    LINRANK_INLINE const Value *row(Index i) const { return rows_.values + i * rows_.stride; }

    const DenseRows<Value> &rows_;
    Index n_;
};

/// Of dense rows, for one model.
template <class Value>
class DenseDifference : public DensePairs<Value> {
    using DensePairs<Value>::n_, DensePairs<Value>::row;
    using Vec = Vec8<Value>;

  public:
    static constexpr bool is_short = true;  // to add nothing takes less than to guess that it is nothing

    DenseDifference(const DenseRows<Value> &rows, const DescentBatch &batch)
        : DensePairs<Value>(rows), whole_(n_ / 8 * 8), v_(batch.v), z_(batch.z),
          load_rest_(n_ - whole_) {}

    LINRANK_INLINE void take(RowPair pair) { winner_ = row(pair.winner), loser_ = row(pair.loser); }

    /// ⟨v, x⟩; and ‖x‖², for `square`, where it is wanted.
    template <bool with_square>
    LINRANK_INLINE double dot() {
        F64x8 even{}, odd{}, squares{};
        Index c = 0;
        const auto both = [&](F64x8 &sum, Index at, F64x8 x) __attribute__((always_inline)) {
            sum += x * load8<double>(v_ + at);
            if constexpr (with_square) squares += x * x;
        };
        for (; c + 16 <= whole_; c += 16) {
            both(even, c, widen(whole(c)));
            both(odd, c + 8, widen(whole(c + 8)));
        }
        if (c < whole_) both(even, c, widen(whole(c)));
        if (whole_ < n_) both(odd, whole_, widen(tail()));
        if constexpr (with_square) square_ = sum_lanes(squares);
        return sum_lanes(even + odd);
    }
    LINRANK_INLINE double square() const { return square_; }

    LINRANK_INLINE void add(double delta) const {
        each([&](Index c, F64x8 x) __attribute__((always_inline)) { store8(v_ + c, load8<double>(v_ + c) + delta * x); });
    }
    /// The same, and returned is by how much ‖v‖² has grown.
    LINRANK_INLINE double add_tracked(double delta, double dot) const {
        F64x8 sum{};
        each([&](Index c, F64x8 x) __attribute__((always_inline)) {
            store8(v_ + c, load8<double>(v_ + c) + delta * x);
            sum += x * x;
        });
        return delta * (2 * dot + delta * sum_lanes(sum));
    }
    LINRANK_INLINE void add_to_average(double weight) const {
        each([&](Index c, F64x8 x) __attribute__((always_inline)) { store8(z_ + c, load8<double>(z_ + c) + weight * x); });
    }

  private:
    LINRANK_INLINE Vec whole(Index c) const { return load8<Value>(winner_ + c) - load8<Value>(loser_ + c); }
    LINRANK_INLINE Vec tail() const { return load_rest_(winner_ + whole_) - load_rest_(loser_ + whole_); }
    template <class Body>
    LINRANK_INLINE void each(const Body &body) const {
        for (Index c = 0; c < whole_; c += 8) body(c, widen(whole(c)));
        if (whole_ < n_) body(whole_, widen(tail()));
    }

    Index whole_;
    double *v_, *z_;
    LoadFirst load_rest_;  // behind the last columns of a row may be no memory
    const Value *winner_ = nullptr, *loser_ = nullptr;
    double square_ = 0;
};

/// Of dense rows, for all lanes: x is written down once, then every column meets a line of v.
template <class Value>
class DenseLanesDifference : public DensePairs<Value> {
    using DensePairs<Value>::n_, DensePairs<Value>::row;

  public:
    DenseLanesDifference(const DenseRows<Value> &rows, const DescentBatch &batch)
        : DensePairs<Value>(rows), v_(batch.v), z_(batch.z), x_(batch.scratch) {}
    ~DenseLanesDifference() {
        for (Index c = 0; c < n_; ++c) x_[c] = 0;
    }

    LINRANK_INLINE void take(RowPair pair) {
        const Value *winner = row(pair.winner), *loser = row(pair.loser);
        for (Index c = 0; c < n_; ++c) x_[c] = double(Value(winner[c] - loser[c]));
    }
    template <bool with_square>
    LINRANK_INLINE F64x8 dot() const {
        return sum_by_four<F64x8>(0, n_, [&](Index c) __attribute__((always_inline)) {
            return x_[c] * load8<double>(v_ + 8 * c);
        });
    }
    LINRANK_INLINE double square() const {
        return sum_by_four<double>(0, n_, [&](Index c) __attribute__((always_inline)) { return x_[c] * x_[c]; });
    }
    LINRANK_INLINE void add(F64x8 delta) const { add_to(v_, delta); }
    LINRANK_INLINE F64x8 add_tracked(F64x8 delta, F64x8 dot) const {
        add_to(v_, delta);
        return delta * (2.0 * dot + delta * square());
    }
    LINRANK_INLINE void add_to_average(F64x8 weight) const { add_to(z_, weight); }

  private:
    LINRANK_INLINE void add_to(double *target, F64x8 delta) const {
        for (Index c = 0; c < n_; ++c)
            store8(target + 8 * c, load8<double>(target + 8 * c) + x_[c] * delta);
    }

    double *v_, *z_, *x_;
};

/// Of sparse rows, for one model (Lanes = double) or all lanes (F64x8): winner and loser one after the
/// other.
template <class Storage, class Lanes>
class SparseDifference {
    using Value = typename Storage::value_type;
    static constexpr Index width = sizeof(Lanes) / sizeof(double);

  public:
    static constexpr bool is_short = false;

    SparseDifference(const Storage &rows, const DescentBatch &batch)
        : rows_(rows), v_(batch.v), z_(batch.z), scratch_(batch.scratch) {}

    LINRANK_INLINE void prefetch_far(RowPair pair) const {
        prefetch_line(rows_.offsets + pair.winner);
        prefetch_line(rows_.offsets + pair.loser);
    }
    LINRANK_INLINE void prefetch(RowPair pair) const { prefetch_row(pair.winner), prefetch_row(pair.loser); }

    LINRANK_INLINE void take(RowPair pair) { winner_ = entries(pair.winner), loser_ = entries(pair.loser); }

    template <bool with_square>
    LINRANK_INLINE Lanes dot() const { return dot(winner_) - dot(loser_); }

    /// The difference is spread out for this: of ‖x_winner‖² + ‖x_loser‖² - 2⟨x_winner, x_loser⟩ rounding
    /// would leave something even where the rows are equal, and a step divides by it.
    LINRANK_INLINE double square() const {
        for (Index k = winner_.first; k < winner_.last; ++k)
            scratch_[rows_.columns[k]] += double(rows_.values[k]);
        for (Index k = loser_.first; k < loser_.last; ++k)
            scratch_[rows_.columns[k]] -= double(rows_.values[k]);
        return take_squares(winner_) + take_squares(loser_);
    }

    LINRANK_INLINE void add(Lanes delta) const { add_to(v_, winner_, delta), add_to(v_, loser_, -delta); }
    LINRANK_INLINE Lanes add_tracked(Lanes delta, Lanes) const {
        return add_measured(winner_, delta) + add_measured(loser_, -delta);
    }
    LINRANK_INLINE void add_to_average(Lanes weight) const {
        add_to(z_, winner_, weight), add_to(z_, loser_, -weight);
    }

  private:
    struct Entries {
        Index first, last;
    };
    LINRANK_INLINE Entries entries(Index i) const { return {rows_.offsets[i], rows_.offsets[i + 1]}; }

    LINRANK_INLINE void prefetch_row(Index i) const {
        const Entries e = entries(i);
        prefetch_lines(rows_.values + e.first, e.last - e.first);
        prefetch_lines(rows_.columns + e.first, e.last - e.first);
    }
    /// The squares of the scratch in the columns of a row, which are 0 afterwards: none is counted twice.
    LINRANK_INLINE double take_squares(Entries e) const {
        double sum = 0;
        for (Index k = e.first; k < e.last; ++k) {
            double &x = scratch_[rows_.columns[k]];
            sum += x * x;
            x = 0;
        }
        return sum;
    }
    LINRANK_INLINE Lanes weights(Index k) const { return Memory<Lanes>::load(v_ + width * rows_.columns[k]); }

    LINRANK_INLINE Lanes dot(Entries e) const {
        return sum_by_four<Lanes>(e.first, e.last, [&](Index k) __attribute__((always_inline)) {
            return double(rows_.values[k]) * weights(k);
        });
    }
    LINRANK_INLINE void add_to(double *target, Entries e, Lanes delta) const {
        for (Index k = e.first; k < e.last; ++k) {
            double *p = target + width * rows_.columns[k];
            Memory<Lanes>::store(p, Memory<Lanes>::load(p) + double(rows_.values[k]) * delta);
        }
    }
    /// Columns of a row differ, so what an entry adds to ‖v‖² does not depend on the others.
    LINRANK_INLINE Lanes add_measured(Entries e, Lanes delta) const {
        Lanes grown{};
        for (Index k = e.first; k < e.last; ++k) {
            double *p = v_ + width * rows_.columns[k];
            const Lanes before = Memory<Lanes>::load(p), step = double(rows_.values[k]) * delta;
            Memory<Lanes>::store(p, before + step);
            grown += step * (2.0 * before + step);
        }
        return grown;
    }

    const Storage &rows_;
    double *v_, *z_, *scratch_;
    Entries winner_{}, loser_{};
};

}  // namespace
}  // namespace linrank::LINRANK_ISA
