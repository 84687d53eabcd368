// One query of a pair loss: what the sweeps over short and over long queries have in common.
#pragma once
#include "pair_sweep.hpp"

namespace linrank {

/// Of the mean of a query's scores from their median, in margins: differences of scores about the
/// mean have lost digits that count.
inline constexpr double far_away = 16.0;

/// Σ ω ξ, Σ ω ξ² and Σ ω over the pairs with ξ > 0 for one margin, and what bounds their rounding:
/// with d the weight of a row's pairs and r = 1 + |s|, Σ d r, Σ d r², max d r, and the rows with
/// pairs.
struct PairMoments {
    double violations = 0, slacks = 0, squares = 0;
    double spread = 0, square_spread = 0, largest = 0, n_active = 0;

    // Four sums of each kind under way hide the latency of an addition.
    void add_rows(Index n, const double *s, const double *degree) {
        constexpr Index lanes = 4;
        double dr[lanes] = {}, drr[lanes] = {}, most[lanes] = {}, active[lanes] = {};
        for (Index first = 0; first < n; first += lanes) {
            const Index width = std::min(lanes, n - first);
            for (Index lane = 0; lane < width; ++lane) {
                const double r = 1.0 + std::abs(s[first + lane]), d = degree[first + lane];
                dr[lane] += d * r;
                drr[lane] += d * r * r;
                most[lane] = std::max(most[lane], d * r);
                active[lane] += d != 0.0 ? 1.0 : 0.0;
            }
        }
        for (Index lane = 0; lane < lanes; ++lane)
            *this += {0, 0, 0, dr[lane], drr[lane], most[lane], active[lane]};
    }
    void operator+=(const PairMoments &other) {
        const double most = std::max(largest, other.largest);
        add_sums(*this, other);
        largest = most;
    }
};

/// Of one query or of several; the curvature in units of l''.
struct PairTotals : PairSums {
    double value_error = 0, slacks_error = 0, dual_error = 0, squared_error = 0;  // of the gradient
};

/// A query of a point that is being made.
class QuerySweep {
protected:
    QuerySweep(PairPoint &point, Index q)
        : problem_(point.problem_), loss_(point.loss_), q_(q), begin_(problem_.begin(q)),
          n_(problem_.length(q)), c_(problem_.c(q)), order_(point.order_.data() + begin_),
          level_(point.level_.data() + begin_),
          place_(point.place_.empty() ? nullptr : point.place_.data() + begin_),
          degree_(point.degree_.data() + begin_), gradient_(point.gradient.data() + begin_),
          point_(point) {}

    /// Bounds of the rounding of slacks, of slacks as sums over a dual point, of squares, and of
    /// all slopes together (2-norm, squared).
    struct Errors {
        double slacks = 0, duals = 0, squares = 0, slopes = 0;
    };

    bool is_huber() const { return loss_.kind == PairLoss::huber; }
    /// Whether pairs are counted: whole numbers, and sums of them exact.
    bool is_counted() const { return problem_.row_weight.empty() && problem_.gain.empty(); }
    double u(Index i) const { return problem_.u(begin_ + i); }

    /// The windows of one margin, outer or inner, whose ends find(upto, from) writes.
    template <class Find>
    Windows windows_of(bool is_inner, const Find &find) {
        std::int32_t *upto = (is_inner ? point_.upto_inner_ : point_.upto_).data() + begin_;
        std::int32_t *from = (is_inner ? point_.from_inner_ : point_.from_).data() + begin_;
        find(upto, from);
        Windows w = point_.windows(q_);
        w.upto = upto;
        w.from = from;
        w.upto_inner = w.from_inner = nullptr;
        return w;
    }

    /// The sums of the query, by sweep_margin(margin, is_inner) and errors(moments, margin) of a
    /// sweep.
    template <class Sweep>
    PairTotals sum_margins(Sweep &sweep) const {
        const PairMoments m = sweep.sweep_margin(1.0, false);
        const Errors error = sweep.errors(m, 1.0);
        // Rounding may take a sum of squares, or of slacks, below 0.
        const double slacks = std::max(0.0, m.slacks);
        PairTotals sums{{.sum_of_slacks = slacks, .n_violations = m.violations},
                        0.0, error.slacks, error.duals, error.slopes};
        if (loss_.kind == PairLoss::squared_hinge) {
            sums.value = std::max(0.0, m.squares);
            sums.total_curvature = m.violations;
            sums.value_error = error.squares;
        } else if (loss_.kind == PairLoss::hinge) {
            sums.value = slacks;
            sums.value_error = error.slacks;
        } else {
            const double inner_margin = 1.0 - loss_.epsilon;
            const PairMoments inside = sweep.sweep_margin(inner_margin, true);
            const Errors inner_error = sweep.errors(inside, inner_margin);
            // Of slacks that are large against ε the difference of squares keeps no digit; but h_ε
            // is at most ε/2 below the hinge. Without that limit, doubled for rounding, a step far
            // out looks like progress.
            const double least = std::max(0.0, slacks - loss_.epsilon * m.violations);
            const double half = 0.5 / loss_.epsilon;
            sums.value = std::max(least, half * (m.squares - inside.squares));
            sums.inner_slacks = std::max(0.0, inside.slacks);
            sums.total_curvature = m.violations - inside.violations;
            // No loss of a pair is steeper than the hinge: moving the scores costs no more than of
            // slacks.
            sums.value_error = half * (error.squares + inner_error.squares) + error.slacks;
            sums.dual_error = error.duals + inner_error.duals;
            sums.squared_error = 2.0 * half * half * (error.slopes + inner_error.slopes);
        }
        return sums;
    }

    // With μ the unit roundoff, sums over a window are differences of two running sums of at most n
    // terms: (4n + 4)μ S for both γ of a row, S = Σu|s|, and (4n + 4)μ U for its l, U = Σu; but l
    // is exact where pairs are counted, and γ of a row without a violated pair an exact 0. What is
    // made of them adds a few μ times the numbers themselves, sums over the rows nμ times; a
    // difference of gains, |g_j - g_i| = ±(g_j - g_i), is at most twice the largest. With r = 1 +
    // |s|, all of that is below 10(n + 2)μ times
    //
    //   slacks: Σ (d + c u U) r,   slopes: d r + c u (S + U r),   squares: Σ r (d r + c u (S + U
    // r)).
    //
    // The scores s, about their median and with the absolute sum given, are those of row(t).
    template <class Row>
    Errors errors_of(const PairMoments &m, double sum, const double *s, const Row &row) const {
        // Sums of long queries are those of at most sixteen pieces, and no differences.
        const double depth = n_ < long_query ? double(n_ + 2) : double(n_ / 16 + 64);
        const double unit = 10.0 * depth * unit_roundoff;
        if (is_counted()) {
            const double slope = unit * (m.largest + c_ * sum);
            return {unit * m.spread, unit * m.spread,
                    unit * (m.square_spread + c_ * sum * (m.n_active + sum)),
                    m.n_active * slope * slope};
        }
        double weight = 0, gain = problem_.gain.empty() ? 1.0 : 0.0;
        for (Index i = 0; i < n_; ++i) {
            weight += u(i);
            if (!problem_.gain.empty())
                gain = std::max(gain, 2.0 * std::abs(problem_.gain[begin_ + i]));
        }
        const double loose = c_ * gain * weight, near = c_ * gain * sum;
        Errors error{unit * m.spread, 0, unit * m.square_spread, 0};
        for (Index t = 0; t < n_; ++t) {
            const double u_t = u(row(t)), r = 1.0 + std::abs(s[t]);
            const double slope = unit * u_t * (near + loose * r);
            error.slacks += unit * u_t * loose * r;
            error.squares += slope * r;
            error.slopes += slope * slope;
        }
        error.duals = error.slacks;
        error.slopes = 2.0 * (error.slopes + m.n_active * unit * unit * m.largest * m.largest);
        return error;
    }

    const PairProblem &problem_;
    const PairLoss loss_;
    const Index q_, begin_, n_;
    const double c_;
    // place_ is null where nothing asks for it
    std::int32_t *const order_, *const level_, *const place_;
    double *const degree_, *const gradient_;

private:
    PairPoint &point_;
};

/// The sums of a long query, which all threads sweep.
PairTotals evaluate_long(PairPoint &point, Index q, const double *z, int n_threads);

}  // namespace linrank
