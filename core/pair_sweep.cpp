#include "pair_sweep.hpp"

#include "query_sweep.hpp"

namespace linrank {
namespace {

/// Σ u |s|, u = 1 where it is empty; four sums under way hide the latency of an addition.
double absolute_sum(Doubles s, const double *u) {
    double sum[4] = {0.0, 0.0, 0.0, 0.0};
    std::size_t i = 0;
    if (!u)
        for (; i + 4 <= s.size(); i += 4)
            for (int lane = 0; lane < 4; ++lane) sum[lane] += std::abs(s[i + lane]);
    for (; i < s.size(); ++i) sum[0] += (u ? u[i] : 1.0) * std::abs(s[i]);
    return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

/// Vectors whose sums over pairs make up those of one: with gains two.
int n_vectors(const PairProblem &problem) { return problem.gain.empty() ? 1 : 2; }

/// out = u v (u where v is null), and u g v after it where there are gains.
void weigh(const PairProblem &problem, Index q, const double *v, double *out) {
    const Index n = problem.length(q), begin = problem.begin(q);
    for (Index i = 0; i < n; ++i) out[i] = v ? problem.u(begin + i) * v[i] : problem.u(begin + i);
    if (!problem.gain.empty())
        for (Index i = 0; i < n; ++i) out[n + i] = problem.gain[begin + i] * out[i];
}

/// Σ_j u_j |g_j - g_i| v_j from sums of u v and of u g v: gains are ordered as the levels are, so
/// with sign = +1 above row i and -1 below it, |g_j - g_i| = sign (g_j - g_i). Without gains the
/// sum of u v.
double combined(const PairProblem &problem, Index i, Index n, const double *sums, double sign) {
    if (problem.gain.empty()) return *sums;
    return sign * (sums[n] - problem.gain[i] * *sums);
}

/// Of a query that one thread sweeps; all numbers are by row.
class ShortSweep : QuerySweep {
    friend class QuerySweep;

public:
    ShortSweep(PairPoint &point, Index q, SweepScratch &scratch)
        : QuerySweep(point, q), scratch_(scratch), width_(n_vectors(problem_)) {}

    PairTotals evaluate(const double *z, const PairPoint *near) {
        sort(z, near);
        for (auto *vector : {&scratch_.v, &scratch_.above, &scratch_.below})
            vector->resize(std::size_t(2 * width_ * n_));
        weigh(problem_, q_, nullptr, scratch_.v.data());
        weigh(problem_, q_, scratch_.s.data(), scratch_.v.data() + width_ * n_);
        return sum_margins(*this);
    }

private:
    // Pairs see differences of scores only, and the expanded squares below cancel under a common
    // offset: s are the scores about their median. The mean would do but for far rows: one drags it
    // away from all others, whose differences then lose their digits. Where it is far, the order
    // that it gave may be wrong in these digits.
    void sort(const double *z, const PairPoint *near) {
        std::vector<double> &s = scratch_.s;
        s.resize(n_);
        const auto subtract = [&](double origin) {
            for (Index i = 0; i < n_; ++i) s[i] = z[i] - origin;
        };
        double mean = 0;
        for (Index i = 0; i < n_; ++i) mean += z[i];
        mean /= double(n_);
        subtract(mean);
        sort_scores(s.data(), n_, near ? near->order(q_) : nullptr, order_, scratch_.sort);
        if (std::isfinite(mean)) {  // else all of s is NaN, and stays so
            const double median = z[order_[n_ / 2]];
            subtract(median);
            if (std::abs(mean - median) > far_away)
                sort_scores(s.data(), n_, order_, order_, scratch_.sort);
        }
        const double largest = std::max(std::abs(s[order_[0]]), std::abs(s[order_[n_ - 1]]));
        sum_ = absolute_sum(s, problem_.row_weight.empty() ? nullptr : problem_.row_weight.data()
                            + begin_);
        grid_ = put_on_grid(largest, s.data());
        for (Index t = 0; t < n_; ++t) level_[t] = problem_.levels[begin_ + order_[t]];
        if (place_)
            for (Index t = 0; t < n_; ++t) place_[order_[t]] = std::int32_t(t);
    }

    // Slopes of a band are differences of sums over two windows, divided by ε: of the rounding of
    // these sums, 1/ε makes more than a certificate can bear. So where pairs are counted, the
    // scores of a band are rounded to multiples of a power of two of which n of them together have
    // no more than 51 bits: all sums are exact then, and so are the slopes, if ε is a power of two
    // as well. It moves no score by more than half the grid, and the dual point that the slopes are
    // is one of the moved scores, as good as any. Returns the grid, or 0.
    double put_on_grid(double largest, double *s) const {
        constexpr double coarsest = 0x1p-30;
        if (!is_huber() || !is_counted()) return 0.0;
        // infinite or NaN where a score is
        const double reach = 4.0 * double(n_) * (2.0 + largest);
        if (!(reach <= coarsest * 0x1p53)) return 0.0;
        int exponent;
        std::frexp(reach, &exponent);
        const double grid = std::ldexp(1.0, exponent - 53), magic = 0x1.8p52 * grid;
        for (Index i = 0; i < n_; ++i) s[i] = (s[i] + magic) - magic;
        return grid;
    }

    // The squared-hinge sums for one margin θ: sets the degrees and the gradient, or for the inner
    // margin of a band takes its own off them. With l⁺, l⁻ the weights of the violators above and
    // below row i, and γ⁺, γ⁻ the same sums of weight·s (Lee & Lin 2014, eqs. 16-19, with weights):
    //   (AᵀA s)_i = c u_i [(l⁺ + l⁻) s_i - γ⁺ - γ⁻],   (Aᵀe)_i = c u_i (l⁻ - l⁺),   p = Σ_i c u_i
    // l⁺
    //   Σ ξ = θ p - sᵀAᵀe,   Σ ξ² = θ² p - 2 θ sᵀAᵀe + sᵀAᵀA s,   ½ ∂Σξ²/∂s = AᵀA s - θ Aᵀe
    // The hinge's sub-gradient is -Aᵀe.
    PairMoments sweep_margin(double margin, bool is_inner) {
        const Index n = n_, g = width_ * n;  // where the sums of weight·s begin
        const double *s = scratch_.s.data();
        double *above = scratch_.above.data(), *below = scratch_.below.data();
        const Windows w = windows_of(is_inner, [&](std::int32_t *upto, std::int32_t *from) {
            const auto score = [s, order = order_](Index t) { return s[order[t]]; };
            find_windows(n, score, margin, upto, from);
        });
        level_sums(w, 2 * width_, scratch_.v.data(), above, below, scratch_);
        // trees leave rounding where no violator is
        if (is_counted() && sums_by_rank(n, w.n_levels))
            for (Index i = 0; i < n; ++i) {
                if (above[i] == 0.0) above[n + i] = 0.0;
                if (below[i] == 0.0) below[n + i] = 0.0;
            }
        const bool is_hinge = loss_.kind == PairLoss::hinge, is_band = is_huber();
        const bool is_on_grid = grid_ > 0.0;
        const double c = c_, scale = c * 0.5 / loss_.epsilon;  // of the slopes of a band
        PairMoments total;
        for (Index i = 0; i < n; ++i) {
            const Index t = begin_ + i;
            const double s_i = s[i], u = problem_.u(t);
            const double l_above = combined(problem_, t, n, above + i, 1.0);
            const double l_below = combined(problem_, t, n, below + i, -1.0);
            const double g_above = combined(problem_, t, n, above + g + i, 1.0);
            const double g_below = combined(problem_, t, n, below + g + i, -1.0);
            const double laplacian = (l_above + l_below) * s_i - (g_above + g_below);
            const double balance = l_below - l_above, degree = c * u * (l_above + l_below);
            const double slope = is_hinge ? -balance : 2.0 * (laplacian - margin * balance);
            double &degree_i = degree_[i], &slope_i = gradient_[i];
            degree_i = is_inner ? degree_i - degree : degree;
            slope_i = is_inner ? (slope_i - slope) * (scale * u) : is_band ? slope : c * u * slope;
            const double curl = laplacian - 2.0 * margin * balance;
            total.violations += u * l_above;
            total.slacks += u * (margin * l_above - balance * s_i);
            total.squares += u * (margin * margin * l_above + curl * s_i);
            above[i] = degree;  // what was there is not needed any more
            below[i] = -balance;
            if (is_on_grid) below[n + i] = curl;
        }
        if (is_on_grid) {  // u = 1, and all but these two sums is exact
            const double p = total.violations;
            total.slacks = margin * p + simd().dot_twice(n, below, s);
            total.squares = margin * margin * p + simd().dot_twice(n, below + n, s);
        }
        for (double *sum : {&total.violations, &total.slacks, &total.squares}) *sum *= c;
        total.add_rows(n, s, above);
        return total;
    }

    // On a grid everything is exact but for the last sums; n²μ² of their terms is less than μ. A
    // margin that is not on the grid costs some roundings where it enters. As sums at the scores
    // that were given, before these were moved by up to half the grid, slacks of violated pairs are
    // off by a grid each, those of others by no more.
    Errors errors(const PairMoments &m, double margin) const {
        if (!(grid_ > 0.0)) return errors_of(m, sum_, scratch_.s.data(), std::identity());
        const double n = double(n_);
        const double off = std::fmod(margin, grid_) == 0.0 ? 0.0 : 4.0 * unit_roundoff;
        const double moved = grid_ * (m.violations + 0.5 * c_ * n * n), few = 8.0 * unit_roundoff;
        const double of_slacks = off * m.spread + few * (m.violations + std::abs(m.slacks));
        const double of_squares = off * m.square_spread
                                  + few * (m.violations + std::abs(m.squares));
        return {of_slacks + moved, of_slacks, of_squares,
                m.n_active * off * off * m.largest * m.largest};
    }

    SweepScratch &scratch_;
    const int width_;
    double sum_ = 0;   // Σ u |s|
    double grid_ = 0;  // s are multiples of it, small enough for sums of them to be exact; or 0
};

}  // namespace

std::vector<std::int32_t> level_order(const PairProblem &problem) {
    std::vector<std::int32_t> order;
    for (Index q = 0; q < problem.n_queries(); ++q) {
        const Index begin = problem.begin(q), n = problem.length(q), n_levels = problem.n_levels[q];
        if (problem.adjacent || !sums_by_rank(n, n_levels)) continue;
        if (order.empty()) order.resize(problem.n_rows());
        counting_sort(n, n_levels, [&](Index i) { return problem.levels[begin + i]; },
                      [&](Index i, Index place) { order[begin + place] = std::int32_t(i); });
    }
    return order;
}

PairPoint::PairPoint(const PairProblem &problem, PairLoss loss, Doubles z, const PairPoint *near,
                     int n_threads)
    : LossPoint(z.size()), problem_(problem), loss_(loss), order_(z.size(), huge_pages),
      level_(z.size(), huge_pages), upto_(z.size(), huge_pages), from_(z.size(), huge_pages),
      upto_inner_(loss.kind == PairLoss::huber ? z.size() : 0, huge_pages),
      from_inner_(upto_inner_.size(), huge_pages),
      place_(problem.by_level.size(), huge_pages), degree_(z.size(), huge_pages) {
    const std::vector<QueryChunk> chunks = problem_.chunks(64);
    std::vector<PairTotals> sums(chunks.size());
    for_each_query<SweepScratch>(chunks, n_threads, [&](Index k, Index q, SweepScratch &scratch) {
        const double *own = z.data() + problem_.begin(q);
        if (!problem_.has_pairs(q))
            std::fill_n(gradient.data() + problem_.begin(q), problem_.length(q), 0.0);
        else if (chunks[k].is_long) add_sums(sums[k], evaluate_long(*this, q, own, n_threads));
        else add_sums(sums[k], ShortSweep(*this, q, scratch).evaluate(own, near));
    });
    const PairTotals total = sum_of(sums);
    set_sums(total);
    total_curvature *= curvature();
    // Beside the rounding of each query, that of their sum: so many additions one after the other.
    Index depth = 0;
    for (const QueryChunk &chunk : chunks) depth = std::max(depth, chunk.last - chunk.first);
    const double unit = unit_roundoff * double(depth + std::ssize(chunks));
    const double off = unit * (std::abs(sum_of_slacks) + std::abs(inner_slacks) + n_violations);
    value_error = total.value_error + unit * std::abs(value);
    slacks_error = total.slacks_error + off;
    dual_error = total.dual_error + off;
    gradient_error = std::sqrt(total.squared_error);
}

Windows PairPoint::windows(Index q) const {
    const Index begin = problem_.begin(q);
    const bool has_places = !place_.empty(), is_band = loss_.kind == PairLoss::huber;
    return {.n = std::int32_t(problem_.length(q)),
            .n_levels = problem_.n_levels[q],
            .adjacent = problem_.adjacent,
            .order = order_.data() + begin,
            .level = level_.data() + begin,
            .upto = upto_.data() + begin,
            .from = from_.data() + begin,
            .upto_inner = is_band ? upto_inner_.data() + begin : nullptr,
            .from_inner = is_band ? from_inner_.data() + begin : nullptr,
            .place = has_places ? place_.data() + begin : nullptr,
            .by_level = has_places ? problem_.by_level.data() + begin : nullptr};
}

// out_i = l'' (degree_i v_i - c u_i (Σ weight·v above + below)).
void PairPoint::multiply(Index q, const double *v, double *out, SweepScratch &scratch) const {
    const Index n = problem_.length(q), begin = problem_.begin(q);
    const int width = n_vectors(problem_);
    const bool is_weighted = !problem_.row_weight.empty() || !problem_.gain.empty();
    for (auto *vector : {&scratch.above, &scratch.below}) vector->resize(std::size_t(width * n));
    if (is_weighted) {
        scratch.v.resize(scratch.above.size());
        weigh(problem_, q, v, scratch.v.data());
    }
    const double *above = scratch.above.data(), *below = scratch.below.data(),
        *degree = this->degree(q);
    level_sums(windows(q), width, is_weighted ? scratch.v.data() : v, scratch.above.data(),
               scratch.below.data(), scratch);
    const double curve = curvature(), scale = curve * problem_.c(q);
    if (!is_weighted)
        for (Index i = 0; i < n; ++i)
            out[i] = curve * degree[i] * v[i] - scale * (above[i] + below[i]);
    else
        for (Index i = 0; i < n; ++i)
            out[i] = curve * degree[i] * v[i] - scale * problem_.u(begin + i) *
                         (combined(problem_, begin + i, n, above + i, 1.0) +
                          combined(problem_, begin + i, n, below + i, -1.0));
}

void PairPoint::multiply(Doubles v, std::span<double> out, int n_threads) const {
    const std::vector<QueryChunk> chunks = problem_.chunks(64);
    for_each_query<SweepScratch>(chunks, n_threads, [&](Index k, Index q, SweepScratch &scratch) {
        const double *in = v.data() + problem_.begin(q);
        double *to = out.data() + problem_.begin(q);
        if (!problem_.has_pairs(q)) std::fill_n(to, problem_.length(q), 0.0);
        else if (chunks[k].is_long) multiply_long(q, in, to, n_threads);
        else multiply(q, in, to, scratch);
    });
}

}  // namespace linrank
