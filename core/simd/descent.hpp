// One pass over pairs of rows for one model, or for eight side by side.
#pragma once
#include "differences.hpp"

namespace linrank::LINRANK_ISA {
namespace {

// ---- rules -------------------------------------------------------------------------------------
// The rules of the stochastic learners: scalars only.
//
// A step is told ⟨v, x⟩, may ask for ‖x‖², and answers with δ: v += δ x. What depends on the new v comes
// after. x is the difference winner - loser; its sign is never needed, y = +1.
//
// Where ⟨v, x⟩ or ‖x‖² overflows the loss becomes no number, by a term d - d, which is 0 otherwise: the
// caller looks at it.

/// The average of the iterates goes on: K_t = K_{t-1} + ρ_t scale_t.
inline void count_iterate(Learner &m, Average average, double scale) {
    const double weight = average == Average::uniform ? 1.0 : m.t - m.first;
    m.K += weight * scale;
    m.total += weight;
}

/// x or 0, by the bits: of a choice the compiler makes a branch.
inline double only_if(bool condition, double x) {
    std::int64_t bits;
    __builtin_memcpy(&bits, &x, sizeof bits);
    bits &= -std::int64_t(condition);
    __builtin_memcpy(&x, &bits, sizeof bits);
    return x;
}

/// w ← (1 - 1/t) w + [⟨w, x⟩ < 1] x/(λt). With w = a v/(λt) the margin is below 1 iff
/// a⟨v, x⟩ < λ(t-1), and v grows by x/a.
///
/// No branch: whether a pair is violated is anyone's guess, and a wrong guess costs as much as the step.
inline double hinge_step(Learner &m, double dot) {
    const double bound = m.strength * m.t, margin = m.a * dot;
    m.t += 1;
    // Before the first step w = 0 and v = 0: a violation.
    const bool violated = (margin < bound) | (bound == 0);
    const double slack = 1 - margin / (bound == 0 ? 1 : bound);
    m.loss += only_if(violated, slack) + (dot - dot);
    m.n_updates += violated;
    return only_if(violated, 1 / m.a);
}

/// Pegasos afterwards: w ← min(1, 1/(√λ‖w‖)) w, that is a²‖v‖² ≤ λt².
inline void project(Learner &m) {
    const double limit = m.strength * m.t * m.t;
    if (m.a * m.a * m.square > limit) m.a = __builtin_sqrt(limit / m.square);
}

/// w ← (1 - 1/t) w + σ(-⟨w, x⟩) x/(λt), σ the logistic function.
inline double logistic_step(Learner &m, double dot) {
    const double margin = m.t > 0 ? m.a * dot / (m.strength * m.t) : 0;
    m.t += 1;
    m.n_updates += 1;
    // log(1 + e^-margin) without overflow.
    const double e = __builtin_exp(margin < 0 ? margin : -margin);
    m.loss += __builtin_log1p(e) + (margin < 0 ? -margin : 0);
    return (margin < 0 ? 1 : e) / ((1 + e) * m.a);
}

/// PA-I: w ← w + min(C, (1 - ⟨w, x⟩)/‖x‖²) x where the margin is below 1; nothing for x = 0.
///
/// Where ‖x‖² is at hand (`eager`) there is no branch, as above.
template <bool eager, class Square>
inline double passive_aggressive_step(Learner &m, double dot, const Square &square) {
    m.t += 1;
    const double slack = 1 - m.a * dot;
    m.loss += dot - dot;
    if (!eager && !(slack > 0)) return 0;
    const double xx = square(), step = slack / xx;
    m.loss += only_if(slack > 0, slack + (xx - xx));
    const bool moves = (slack > 0) & (xx > 0);
    m.n_updates += moves;
    return only_if(moves, (step < m.strength ? step : m.strength) / m.a);
}

/// Aggressive ROMMA: the v of least norm with ⟨v, x⟩ ≥ 1 and ⟨v, w⟩ ≥ ‖w‖², where ⟨w, x⟩ < 1.
///
/// Two cases are missing in the paper: w = 0 and ⟨w, x⟩ ≥ ‖x‖²‖w‖², where the second constraint holds of
/// itself, give x/‖x‖². So does w antiparallel to x, where the constraints contradict each other.
///
/// `rescale(factor)` makes v ← factor·v and a ← 1.
template <class Square, class Rescale>
inline double romma_step(Learner &m, double dot, const Square &square, const Rescale &rescale) {
    m.t += 1;
    const double b = m.a * dot;
    m.loss += dot - dot;
    if (!(b < 1)) return 0;
    const double xx = square();
    m.loss += 1 - b + (xx - xx);
    if (!(xx > 0)) return 0;
    m.n_updates += 1;
    const double ww = m.a * m.a * m.square, product = xx * ww, rest = product - b * b;
    if (!(ww > 0) || b >= product || rest <= 1e-12 * product) {
        rescale(0);
        return 1 / xx;
    }
    const double factor = (product - b) / rest;
    // Little is left of w: in a its factor would make the change of v so large, that the average, the
    // difference of two sums over the changes, lost the digits of what was before.
    if (factor < 0x1p-8) rescale(m.a * factor);
    else m.a *= factor;
    return ww * (1 - b) / (rest * m.a);
}

// How many pairs ahead rows are asked for, and where they begin.
constexpr int near = 8, far = 16;

template <class Difference>
LINRANK_INLINE void look_ahead(const Difference &x, const DescentBatch &batch, Index k) {
    if (k + far < batch.n_known) x.prefetch_far(batch.pairs[k + far]);
    if (k + near < batch.n_known) x.prefetch(batch.pairs[k + near]);
}

// ---- one model -------------------------------------------------------------------------------------

/// v ← factor·v and a ← 1 for the model of a lane. The average is settled at the same time, z ← z - K v and
/// K ← 0, which leaves K v - z as it is: as long as old and new scales differ little, the difference loses no
/// digits.
void rescale(const DescentBatch &batch, Index width, int lane, double factor) {
    Learner &m = batch.learners[lane];
    for (Index c = 0; c < batch.n_columns; ++c) {
        double &v = batch.v[c * width + lane];
        if (batch.z) batch.z[c * width + lane] -= m.K * v;
        v *= factor;
    }
    m.K = 0;
    m.square *= factor * factor;
    m.a = 1;
}

/// Whether a has strayed so far from 1 that it has to be taken into v.
inline bool must_fold(const Learner &m) { return !(m.a > 0x1p-16 && m.a < 0x1p16); }

/// w = a v becomes w = v.
inline void fold(const DescentBatch &batch, Index width, int lane) {
    rescale(batch, width, lane, batch.learners[lane].a);
}

/// A step by a rule. Where ‖x‖² is at hand (`eager`) nothing branches on whether it is wanted.
template <bool eager, class Square, class Rescale>
LINRANK_INLINE double step_of(Algorithm rule, Learner &m, double dot, const Square &square, const Rescale &rescale_v) {
    switch (rule) {
        case Algorithm::passive_aggressive: return passive_aggressive_step<eager>(m, dot, square);
        case Algorithm::romma: return romma_step(m, dot, square, rescale_v);
        case Algorithm::logistic: return logistic_step(m, dot);
        default: return hinge_step(m, dot);
    }
}

constexpr bool tracks_norm(Algorithm rule) { return rule == Algorithm::pegasos || rule == Algorithm::romma; }
constexpr bool asks_for_square(Algorithm rule) {
    return rule == Algorithm::passive_aggressive || rule == Algorithm::romma;
}

/// A rule that the compiler knows: on short dense rows a choice at every step would show. Of sparse rows only
/// whether ‖v‖² is kept is known, and the rule is asked at every step: nothing beside their cache misses.
template <bool is_known, Algorithm known, class Difference, class Storage>
void descend(const Storage &rows, const DescentBatch &batch) {
    constexpr bool eager = is_known && asks_for_square(known);
    Learner m = batch.learners[0];
    Difference x(rows, batch);
    for (Index k = 0; k < batch.n_pairs; ++k) {
        const Algorithm rule = is_known ? known : m.algorithm;
        look_ahead(x, batch, k);
        x.take(batch.pairs[k]);
        double dot = x.template dot<eager>();
        const double delta = step_of<eager>(rule, m, dot, [&] { return x.square(); }, [&](double factor) {
            batch.learners[0] = m;
            rescale(batch, 1, 0, factor);
            m = batch.learners[0];
            dot *= factor;
        });
        if (Difference::is_short || delta != 0) {
            if (batch.z) x.add_to_average(m.K * delta);
            if constexpr (tracks_norm(known)) m.square += x.add_tracked(delta, dot);
            else x.add(delta);
        }
        if (rule == Algorithm::pegasos) project(m);
        if constexpr (tracks_norm(known)) {
            if (must_fold(m)) {
                batch.learners[0] = m;
                fold(batch, 1, 0);
                m = batch.learners[0];
            }
        }
        if (batch.z) count_iterate(m, batch.average, m.scale());
    }
    batch.learners[0] = m;
}

template <class Value>
void descend_by_rule(const DenseRows<Value> &rows, const DescentBatch &batch) {
    const auto run = [&]<Algorithm rule>() { descend<true, rule, DenseDifference<Value>>(rows, batch); };
    switch (batch.learners[0].algorithm) {
        case Algorithm::sgd_svm: return run.template operator()<Algorithm::sgd_svm>();
        case Algorithm::pegasos: return run.template operator()<Algorithm::pegasos>();
        case Algorithm::passive_aggressive: return run.template operator()<Algorithm::passive_aggressive>();
        case Algorithm::romma: return run.template operator()<Algorithm::romma>();
        case Algorithm::logistic: return run.template operator()<Algorithm::logistic>();
    }
}

template <class Value>
void descend_by_rule(const CsrRows<Value> &rows, const DescentBatch &batch) {
    using Difference = SparseDifference<CsrRows<Value>, double>;
    if (tracks_norm(batch.learners[0].algorithm)) descend<false, Algorithm::pegasos, Difference>(rows, batch);
    else descend<false, Algorithm::sgd_svm, Difference>(rows, batch);
}

// ---- eight models ----------------------------------------------------------------------------------

/// Models of any rules: the scalars lane by lane.
template <class Difference, class Storage>
void descend_mixed(const Storage &rows, const DescentBatch &batch) {
    Difference x(rows, batch);
    for (Index k = 0; k < batch.n_pairs; ++k) {
        look_ahead(x, batch, k);
        x.take(batch.pairs[k]);
        F64x8 dot = x.template dot<false>(), delta{}, weight{};
        double xx = -1;
        const auto square = [&] { return xx < 0 ? xx = x.square() : xx; };
        bool moves = false;
        for (int lane = 0; lane < batch.n_models; ++lane) {
            Learner &m = batch.learners[lane];
            delta[lane] = step_of<false>(m.algorithm, m, dot[lane], square, [&](double factor) {
                rescale(batch, lanes, lane, factor);
                dot[lane] *= factor;
            });
            weight[lane] = m.K * delta[lane];
            moves |= delta[lane] != 0;
        }
        F64x8 grown{};
        if (moves) {
            if (batch.z) x.add_to_average(weight);
            grown = x.add_tracked(delta, dot);
        }
        for (int lane = 0; lane < batch.n_models; ++lane) {
            Learner &m = batch.learners[lane];
            m.square += grown[lane];
            if (m.algorithm == Algorithm::pegasos) project(m);
            if (must_fold(m)) fold(batch, lanes, lane);
            if (batch.z) count_iterate(m, batch.average, m.scale());
        }
    }
}

/// hinge_step, project and count_iterate for all lanes at once.
struct HingeLanes {
    F64x8 strength, a, t, square, first, K, total, loss, n_updates;
    I64x8 active, projects;

    explicit HingeLanes(const DescentBatch &batch) { load(batch); }

    void load(const DescentBatch &batch) {
        strength = a = t = F64x8{} + 1.0;
        square = first = K = total = loss = n_updates = F64x8{};
        active = projects = I64x8{};
        for (int lane = 0; lane < batch.n_models; ++lane) {
            const Learner &m = batch.learners[lane];
            strength[lane] = m.strength, a[lane] = m.a, t[lane] = m.t, square[lane] = m.square;
            first[lane] = m.first, K[lane] = m.K, total[lane] = m.total, loss[lane] = m.loss;
            n_updates[lane] = double(m.n_updates);
            active[lane] = -1;
            projects[lane] = m.algorithm == Algorithm::pegasos ? -1 : 0;
        }
    }
    void store(const DescentBatch &batch) const {
        for (int lane = 0; lane < batch.n_models; ++lane) {
            Learner &m = batch.learners[lane];
            m.a = a[lane], m.t = t[lane], m.square = square[lane];
            m.K = K[lane], m.total = total[lane], m.loss = loss[lane];
            m.n_updates = Index(n_updates[lane]);
        }
    }

    F64x8 step(F64x8 dot) {
        const F64x8 bound = strength * t, margin = a * dot, one = F64x8{} + 1.0;
        t += 1.0;
        const I64x8 violated = active & ((margin < bound) | (bound == 0.0));
        const F64x8 slack = either(bound > 0.0, 1.0 - margin / bound, one);
        loss += either(violated, slack, F64x8{}) + (dot - dot);
        n_updates += either(violated, one, F64x8{});
        return either(violated, 1.0 / a, F64x8{});
    }
    void project() {
        const F64x8 limit = strength * t * t;
        const I64x8 outside = projects & (a * a * square > limit);
        if (!any(outside)) return;
        for (int lane = 0; lane < lanes; ++lane)
            if (outside[lane]) a[lane] = __builtin_sqrt(limit[lane] / square[lane]);
    }
    void count_iterate(Average average) {
        const F64x8 weight = average == Average::uniform ? F64x8{} + 1.0 : t - first;
        K += weight * a / (strength * t);
        total += weight;
    }
    bool must_fold() const { return any(active & ~((a > 0x1p-16) & (a < 0x1p16))); }

    static bool any(I64x8 mask) {
        Index sum = 0;
        for (int lane = 0; lane < lanes; ++lane) sum |= mask[lane];
        return sum != 0;
    }
};

template <class Difference, class Storage>
void descend_hinge(const Storage &rows, const DescentBatch &batch) {
    HingeLanes models(batch);
    Difference x(rows, batch);
    for (Index k = 0; k < batch.n_pairs; ++k) {
        look_ahead(x, batch, k);
        x.take(batch.pairs[k]);
        const F64x8 dot = x.template dot<false>(), delta = models.step(dot);
        if (HingeLanes::any(delta != 0.0)) {
            if (batch.z) x.add_to_average(models.K * delta);
            models.square += x.add_tracked(delta, dot);
        }
        models.project();
        if (models.must_fold()) {
            models.store(batch);
            for (int lane = 0; lane < batch.n_models; ++lane)
                if (must_fold(batch.learners[lane])) fold(batch, lanes, lane);
            models.load(batch);
        }
        if (batch.z) models.count_iterate(batch.average);
    }
    models.store(batch);
}

template <class Difference, class Storage>
void descend_lanes(const Storage &rows, const DescentBatch &batch) {
    for (int lane = 0; lane < batch.n_models; ++lane) {
        const Algorithm algorithm = batch.learners[lane].algorithm;
        if (algorithm != Algorithm::sgd_svm && algorithm != Algorithm::pegasos)
            return descend_mixed<Difference>(rows, batch);
    }
    descend_hinge<Difference>(rows, batch);
}

}  // namespace
}  // namespace linrank::LINRANK_ISA
