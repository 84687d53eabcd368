// What a stochastic learner remembers beside its vectors.
#pragma once

#include "rows.hpp"

namespace linrank {

/// The rule of a step on a pair with the difference x = x_winner - x_loser.
enum class Algorithm : std::int32_t { sgd_svm, pegasos, passive_aggressive, romma, logistic };

/// The weight ρ of an iterate in the average: none, 1, or how many iterates there are with it.
enum class Average : std::int32_t { none, uniform, weighted };

/// The scalars of one model. Its weights are w = scale·v with a vector v that a step changes by a
/// multiple of x only: shrinking w costs nothing.
///
/// sgd_svm, pegasos and logistic shrink by (1 - 1/t) at every step; with η_t = 1/(λt) the whole product
/// is scale = a/(λt), exactly, after any number of steps. The other two have scale = a.
///
/// The sum Σ ρ_s w_s of iterates is K v - z, where K_t = Σ_{s≤t} ρ_s scale_s and z += K_{t-1} δ x when
/// step t adds δ x to v: summation by parts.
struct Learner {
    Algorithm algorithm = Algorithm::pegasos;
    double strength = 0;      // λ; of passive_aggressive its largest step
    double a = 1;             // factor of the projections (pegasos), of the updates (romma)
    double t = 0;             // steps behind it, those it was told to start from included
    double square = 0;        // ‖v‖², kept step by step where the rule needs it
    double first = 0;         // t where its average began
    double K = 0;             // Σ ρ scale
    double total = 0;         // Σ ρ
    double loss = 0;          // Σ of the losses that its steps met, each before its update
    Index n_updates = 0;

    [[gnu::always_inline]] bool shrinks() const {
        return algorithm != Algorithm::passive_aggressive && algorithm != Algorithm::romma;
    }
    /// w = scale()·v; before the first step of a learner that shrinks, w = 0.
    [[gnu::always_inline]] double scale() const {
        if (!shrinks()) return a;
        return t > 0 ? a / (strength * t) : 0;
    }
};

/// Steps on some pairs by `width` models side by side: element c of the vectors of all models is
/// v[c*width .. (c+1)*width), width 1 or `lanes`. v and z are aligned to 64 bytes and padded to lines of
/// eight numbers, which are 0 beyond the columns.
struct DescentBatch {
    Learner *learners;
    int n_models;        // lanes in use, the first ones
    Index n_columns;
    double *v;
    double *z;           // null if nothing is averaged
    double *scratch;     // one number a column, padded; zeros before and after
    Average average;
    const RowPair *pairs;
    Index n_pairs;
    Index n_known;  // pairs that may be looked at, to ask for their rows ahead: >= n_pairs
};

/// Models that share a pass through the pairs.
inline constexpr int lanes = 8;

}  // namespace linrank
