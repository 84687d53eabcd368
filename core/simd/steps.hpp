// The rules of the stochastic learners: scalars only.
//
// A step is told ⟨v, x⟩, may ask for ‖x‖², and answers with δ: v += δ x. What depends on the new v comes
// after. x is the difference winner - loser; its sign is never needed, y = +1.
//
// Where ⟨v, x⟩ or ‖x‖² overflows the loss becomes no number, by a term d - d, which is 0 otherwise: the
// caller looks at it.
#pragma once
#include "../learner.hpp"

namespace linrank::LINRANK_ISA {

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

}  // namespace linrank::LINRANK_ISA
