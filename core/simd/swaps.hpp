// All pairs of one row with the rows ranked after it, eight at a time and without a branch.
#pragma once
#include "simd.hpp"

#include "vector.hpp"

namespace linrank::LINRANK_ISA {
namespace {

inline F64x8 spread(double x) { return F64x8{} + x; }
template <class V>
inline V at_least_zero(V x) {
    return either(x > 0.0, x, V{});
}

/// σ = ω times the sign of g - g_other, and the slack ξ of the pair.
template <class V>
struct Pairs {
    V signed_weight, slack;

    Pairs(const SwapRow &row, V z, V gain, V second, V weight) {
        const V difference = row.gain - gain, ahead = row.z - z;
        signed_weight = difference * (row.factor * weight) * at_least_zero(row.first - second);
        slack = 1.0 - either(difference < 0.0, -ahead, ahead);
    }
    V weight() const { return either(signed_weight < 0.0, -signed_weight, signed_weight); }
};

template <class V, PairLoss::Kind kind>
struct Losses {
    V value, slope, curvature;

    Losses(V slack, double epsilon) {
        const V positive = at_least_zero(slack);
        if constexpr (kind == PairLoss::squared_hinge) {
            value = positive * positive;
            slope = positive * 2.0;
            curvature = either(slack > 0.0, V{} + 2.0, V{});
        } else if constexpr (kind == PairLoss::hinge) {
            value = positive;
            slope = either(slack > 0.0, V{} + 1.0, V{});
            curvature = V{};
        } else {
            const auto is_steep = slack > epsilon;
            value = either(is_steep, slack + -0.5 * epsilon, positive * positive * (0.5 / epsilon));
            slope = either(is_steep, V{} + 1.0, positive * (1.0 / epsilon));
            curvature = either(is_steep, V{}, either(slack > 0.0, V{} + 1.0 / epsilon, V{}));
        }
    }
};

/// Calls body(load, j) for the others: `load(p)` is p[j], or the eight from there on.
template <class Body>
inline void for_each_pair(const SwapRow &row, const SwapRows &others, const Body &body) {
    Index j = 0;
    for (; j + 8 <= others.n; j += 8)
        body(Pairs<F64x8>(row, load8<double>(others.z + j), load8<double>(others.gain + j),
                          load8<double>(others.second + j),
                          others.weight ? load8<double>(others.weight + j) : spread(1.0)), j);
    for (; j < others.n; ++j)
        body(Pairs<double>(row, others.z[j], others.gain[j], others.second[j],
                           others.weight ? others.weight[j] : 1.0), j);
}

/// A sum over all pairs: eight lanes, and the rest.
struct Total {
    F64x8 lanes{};
    double rest = 0;
    void operator+=(F64x8 v) { lanes += v; }
    void operator+=(double v) { rest += v; }
    double sum() const { return sum_lanes(lanes) + rest; }
};

template <PairLoss::Kind kind>
void add_losses(double epsilon, const SwapRow &row, const SwapRows &others, double *gradient, SwapSums &sums) {
    Total value, slacks, inner, violations, curvature, all, slope, own;
    for_each_pair(row, others, [&]<class V>(const Pairs<V> &pairs, Index j) {
        const Losses<V, kind> loss(pairs.slack, epsilon);
        const V weight = pairs.weight(), step = pairs.signed_weight * loss.slope;
        Memory<V>::store(gradient + j, Memory<V>::load(gradient + j) + step);
        own += step;
        all += weight;
        value += weight * loss.value;
        slope += weight * loss.slope;
        slacks += weight * at_least_zero(pairs.slack);
        violations += either(pairs.slack > 0.0, weight, V{});
        curvature += weight * loss.curvature;
        if constexpr (kind == PairLoss::huber) inner += weight * at_least_zero(pairs.slack + -epsilon);
    });
    sums.gradient -= own.sum();
    sums.all += all.sum();
    sums.value += value.sum();
    sums.slope += slope.sum();
    sums.sum_of_slacks += slacks.sum();
    sums.inner_slacks += inner.sum();
    sums.n_violations += violations.sum();
    sums.total_curvature += curvature.sum();
}

template <PairLoss::Kind kind>
double multiply_by_curvatures(double epsilon, const SwapRow &row, const SwapRows &others, double v, const double *with,
                double *out) {
    Total own;
    for_each_pair(row, others, [&]<class V>(const Pairs<V> &pairs, Index j) {
        const V bent = pairs.weight() * Losses<V, kind>(pairs.slack, epsilon).curvature;
        const V step = bent * (v - Memory<V>::load(with + j));
        own += step;
        Memory<V>::store(out + j, Memory<V>::load(out + j) + -step);
    });
    return own.sum();
}

template <PairLoss::Kind kind>
void curvatures(double epsilon, const SwapRow &row, const SwapRows &others, double *out) {
    for_each_pair(row, others, [&]<class V>(const Pairs<V> &pairs, Index j) {
        Memory<V>::store(out + j, pairs.weight() * Losses<V, kind>(pairs.slack, epsilon).curvature);
    });
}

/// work.operator()<kind>() for the kind of a loss.
template <class Work>
auto with_kind(PairLoss loss, const Work &work) {
    if (loss.kind == PairLoss::squared_hinge) return work.template operator()<PairLoss::squared_hinge>();
    if (loss.kind == PairLoss::hinge) return work.template operator()<PairLoss::hinge>();
    return work.template operator()<PairLoss::huber>();
}

void add_swaps(PairLoss loss, const SwapRow &row, const SwapRows &others, double *gradient, SwapSums &sums) {
    with_kind(loss, [&]<PairLoss::Kind kind>() { add_losses<kind>(loss.epsilon, row, others, gradient, sums); });
}

double multiply_swaps(PairLoss loss, const SwapRow &row, const SwapRows &others, double v, const double *with,
                      double *out) {
    return with_kind(loss, [&]<PairLoss::Kind kind>() {
        return multiply_by_curvatures<kind>(loss.epsilon, row, others, v, with, out);
    });
}

void swap_curvatures(PairLoss loss, const SwapRow &row, const SwapRows &others, double *out) {
    with_kind(loss, [&]<PairLoss::Kind kind>() { curvatures<kind>(loss.epsilon, row, others, out); });
}

}  // namespace
}  // namespace linrank::LINRANK_ISA
