#include "pair_sweep.hpp"

#include "queries.hpp"

namespace linrank {
namespace {

/// Σ u |s|, u = 1 where it is null; four sums under way hide the latency of an addition.
double absolute_sum(Index n, const double *s, const double *u) {
    double sum[4] = {0.0, 0.0, 0.0, 0.0};
    Index i = 0;
    if (!u)
        for (; i + 4 <= n; i += 4)
            for (int lane = 0; lane < 4; ++lane) sum[lane] += std::abs(s[i + lane]);
    for (; i < n; ++i) sum[0] += (u ? u[i] : 1.0) * std::abs(s[i]);
    return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

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

void PairPoint::Moments::operator+=(const Moments &other) {
    violations += other.violations;
    slacks += other.slacks;
    squares += other.squares;
    spread += other.spread;
    square_spread += other.square_spread;
    largest = std::max(largest, other.largest);
    n_active += other.n_active;
}

PairPoint::PairPoint(const PairProblem &problem, PairLoss loss, Doubles z,
                     const PairPoint *near, int n_threads)
    : LossPoint(z.size()), problem_(problem), loss_(loss),
      order_(z.size(), PageArray<double>::huge), level_(z.size(), PageArray<double>::huge),
      upto_(z.size(), PageArray<double>::huge), from_(z.size(), PageArray<double>::huge),
      upto_inner_(loss.kind == PairLoss::huber ? z.size() : 0, PageArray<double>::huge),
      from_inner_(loss.kind == PairLoss::huber ? z.size() : 0, PageArray<double>::huge),
      place_(problem.by_level.size(), PageArray<double>::huge),
      degree_(z.size(), PageArray<double>::huge) {
    const std::vector<QueryChunk> chunks = problem_.chunks(64);
    std::vector<Sums> sums(chunks.size());
    for_each_query<SweepScratch>(chunks, n_threads, [&](Index k, Index q, SweepScratch &scratch) {
        if (!problem_.has_pairs(q)) std::fill_n(gradient.data() + problem_.begin(q), problem_.length(q), 0.0);
        else add_sums(sums[k], chunks[k].is_long ? evaluate_long(q, z, n_threads) : evaluate(q, z, near, scratch));
    });
    const Sums total = sum_of(sums);
    set_sums(total);
    total_curvature *= curvature();
    // Beside the rounding of each query, that of their sum: so many additions one after the other.
    Index depth = Index(chunks.size());
    for (const QueryChunk &chunk : chunks) depth = std::max(depth, Index(chunks.size()) + chunk.last - chunk.first);
    const double unit = unit_roundoff * double(depth);
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

// Pairs see differences of scores only, and the expanded squares below cancel under a common offset: s are
// the scores about their median. The mean would do but for far rows: one drags it away from all others, whose
// differences then lose their digits. Where it is far, the order that it gave may be wrong in these digits.
void PairPoint::sort(Index q, const double *z, const PairPoint *near, SweepScratch &scratch) {
    const Index n = problem_.length(q), begin = problem_.begin(q);
    std::int32_t *order = order_.data() + begin;
    const std::int32_t *level = problem_.levels.data() + begin;
    std::vector<double> &s = scratch.s;
    s.resize(n);
    const auto subtract = [&](double origin) {
        for (Index i = 0; i < n; ++i) s[i] = z[i] - origin;
    };
    double mean = 0;
    for (Index i = 0; i < n; ++i) mean += z[i];
    mean /= double(n);
    subtract(mean);
    sort_scores(s.data(), n, near ? near->order(q) : nullptr, order, scratch.sort);
    if (std::isfinite(mean)) {  // else all of s is NaN, and stays so
        const double median = z[order[n / 2]];
        subtract(median);
        if (std::abs(mean - median) > far_away) sort_scores(s.data(), n, order, order, scratch.sort);
    }
    const double largest = std::max(std::abs(s[order[0]]), std::abs(s[order[n - 1]]));
    scratch.sum = absolute_sum(n, s.data(), u_of(q));
    scratch.grid = put_on_grid(n, largest, s.data());
    for (Index t = 0; t < n; ++t) level_[begin + t] = level[order[t]];
    if (!place_.empty())
        for (Index t = 0; t < n; ++t)
            place_[begin + order[t]] = std::int32_t(t);
}

// Slopes of a band are differences of sums over two windows, divided by ε: of the rounding of these sums, 1/ε
// makes more than a certificate can bear. So where pairs are counted, the scores of a band are rounded to
// multiples of a power of two of which n of them together have no more than 51 bits: all sums are exact then,
// and so are the slopes, if ε is a power of two as well. It moves no score by more than half the grid, and
// the dual point that the slopes are is one of the moved scores, as good as any. Returns the grid, or 0.
double PairPoint::put_on_grid(Index n, double largest, double *s) const {
    constexpr double coarsest = 0x1p-30;
    if (loss_.kind != PairLoss::huber || !is_counted()) return 0.0;
    const double reach = 4.0 * double(n) * (2.0 + largest);  // infinite or NaN where a score is
    if (!(reach <= coarsest * 0x1p53)) return 0.0;
    int exponent;
    std::frexp(reach, &exponent);
    const double grid = std::ldexp(1.0, exponent - 53), magic = 0x1.8p52 * grid;
    for (Index i = 0; i < n; ++i) s[i] = (s[i] + magic) - magic;
    return grid;
}

// out = u v (u where v is null), and u g v after it where there are gains.
void PairPoint::weigh(Index q, const double *v, double *out) const {
    const Index n = problem_.length(q), begin = problem_.begin(q);
    for (Index i = 0; i < n; ++i) out[i] = v ? problem_.u(begin + i) * v[i] : problem_.u(begin + i);
    if (!problem_.gain.empty())
        for (Index i = 0; i < n; ++i)
            out[n + i] = problem_.gain[begin + i] * out[i];
}

// Σ_j u_j |g_j - g_i| v_j from sums of u v and of u g v: gains are ordered as the levels are, so with
// sign = +1 above row i and -1 below it, |g_j - g_i| = sign (g_j - g_i). Without gains the sum of u v.
double PairPoint::combined(Index i, Index n, const double *sums, double sign) const {
    if (problem_.gain.empty()) return *sums;
    return sign * (sums[n] - problem_.gain[i] * *sums);
}

// With μ the unit roundoff, sums over a window are differences of two running sums of at most n terms:
// (4n + 4)μ S for both γ of a row, S = Σu|s|, and (4n + 4)μ U for its l, U = Σu; but l is exact where pairs
// are counted, and γ of a row without a violated pair an exact 0. What is made of them adds a few μ times
// the numbers themselves, sums over the rows nμ times; a difference of gains, |g_j - g_i| = ±(g_j - g_i),
// is at most twice the largest. With r = 1 + |s|, all of that is below 10(n + 2)μ times
//
//   slacks: Σ (d + c u U) r,   slopes: d r + c u (S + U r),   squares: Σ r (d r + c u (S + U r)).
PairPoint::Errors PairPoint::errors_of(Index q, const Moments &m, double sum, const double *s,
                                       const std::int32_t *order) const {
    const Index n = problem_.length(q), begin = problem_.begin(q);
    // Sums of long queries are those of at most sixteen pieces, and no differences.
    const double depth = n < long_query ? double(n + 2) : double(n / 16 + 64);
    const double unit = 10.0 * depth * unit_roundoff, c = problem_.c(q);
    if (is_counted()) {
        const double slope = unit * (m.largest + c * sum);
        return {unit * m.spread, unit * m.spread,
                unit * (m.square_spread + c * sum * (m.n_active + sum)), m.n_active * slope * slope};
    }
    double weight = 0, gain = problem_.gain.empty() ? 1.0 : 0.0;
    for (Index i = begin; i < begin + n; ++i) {
        weight += problem_.u(i);
        if (!problem_.gain.empty()) gain = std::max(gain, 2.0 * std::abs(problem_.gain[i]));
    }
    const double loose = c * gain * weight, near = c * gain * sum;
    Errors error{unit * m.spread, 0, unit * m.square_spread, 0};
    for (Index t = 0; t < n; ++t) {
        const double u = problem_.u(begin + (order ? order[t] : t)), r = 1.0 + std::abs(s[t]);
        const double slope = unit * u * (near + loose * r);
        error.slacks += unit * u * loose * r;
        error.squares += slope * r;
        error.slopes += slope * slope;
    }
    error.duals = error.slacks;
    error.slopes = 2.0 * (error.slopes + m.n_active * unit * unit * m.largest * m.largest);
    return error;
}

// On a grid everything is exact but for the last sums; n²μ² of their terms is less than μ. A margin that is
// not on the grid costs some roundings where it enters. As sums at the scores that were given, before these
// were moved by up to half the grid, slacks of violated pairs are off by a grid each, those of others by no more.
PairPoint::Errors PairPoint::errors_on(double grid, Index q, const Moments &m, double margin) const {
    const double c = problem_.c(q), n = double(problem_.length(q));
    const double off = std::fmod(margin, grid) == 0.0 ? 0.0 : 4.0 * unit_roundoff;
    const double moved = grid * (m.violations + 0.5 * c * n * n);
    const double of_slacks = off * m.spread + 8.0 * unit_roundoff * (m.violations + std::abs(m.slacks));
    const double of_squares = off * m.square_spread + 8.0 * unit_roundoff * (m.violations + std::abs(m.squares));
    return {of_slacks + moved, of_slacks, of_squares, m.n_active * off * off * m.largest * m.largest};
}

// The squared-hinge sums for one margin θ: sets degree_ and gradient, or for the inner margin of a band
// takes its own off them. With l⁺, l⁻ the weights of the violators above and below row i, and γ⁺, γ⁻ the
// same sums of weight·s (Lee & Lin 2014, eqs. 16-19, with weights):
//   (AᵀA s)_i = c u_i [(l⁺ + l⁻) s_i - γ⁺ - γ⁻],   (Aᵀe)_i = c u_i (l⁻ - l⁺),   p = Σ_i c u_i l⁺
//   Σ ξ = θ p - sᵀAᵀe,   Σ ξ² = θ² p - 2 θ sᵀAᵀe + sᵀAᵀA s,   ½ ∂Σξ²/∂s = AᵀA s - θ Aᵀe
// The hinge's sub-gradient is -Aᵀe.
PairPoint::Moments PairPoint::sweep_margin(Index q, double margin, bool is_inner, SweepScratch &scratch) {
    const Index n = problem_.length(q), begin = problem_.begin(q);
    const int width = n_vectors();
    const double *v = scratch.v.data();
    double *above = scratch.above.data(), *below = scratch.below.data();
    const auto score = [s = scratch.s.data(), order = order_.data() + begin](Index t) { return s[order[t]]; };
    const Windows w = windows_of(q, is_inner, [&](std::int32_t *upto, std::int32_t *from) {
        find_windows(n, score, margin, upto, from);
    });
    level_sums(w, 2 * width, v, above, below, scratch);
    if (is_counted() && sums_by_rank(n, w.n_levels))  // trees leave rounding where no violator is
        for (Index i = 0; i < n; ++i) {
            if (above[i] == 0.0) above[n + i] = 0.0;
            if (below[i] == 0.0) below[n + i] = 0.0;
        }
    const bool is_hinge = loss_.kind == PairLoss::hinge, is_huber = loss_.kind == PairLoss::huber;
    const bool is_on_grid = scratch.grid > 0.0;
    const double c = problem_.c(q);
    Moments total;
    for (Index i = 0; i < n; ++i) {
        const double s = scratch.s[i], u = problem_.u(begin + i);
        const double l_above = combined(begin + i, n, above + i, 1.0);
        const double l_below = combined(begin + i, n, below + i, -1.0);
        const double g_above = combined(begin + i, n, above + width * n + i, 1.0);
        const double g_below = combined(begin + i, n, below + width * n + i, -1.0);
        const double laplacian = (l_above + l_below) * s - (g_above + g_below);
        const double balance = l_below - l_above, degree = c * u * (l_above + l_below);
        const double slope = is_hinge ? -balance : 2.0 * (laplacian - margin * balance);
        double &degree_i = degree_[begin + i], &slope_i = gradient[begin + i];
        degree_i = is_inner ? degree_i - degree : degree;
        slope_i = is_inner ? slope_i - slope : is_huber ? slope : c * u * slope;
        const double curl = laplacian - 2.0 * margin * balance;
        total.violations += u * l_above;
        total.slacks += u * (margin * l_above - balance * s);
        total.squares += u * (margin * margin * l_above + curl * s);
        above[i] = degree;  // what was there is not needed any more
        below[i] = -balance;
        if (is_on_grid) below[n + i] = curl;
    }
    if (is_on_grid) {  // u = 1, and all but these two sums is exact
        const double *s = scratch.s.data(), p = total.violations;
        total.slacks = margin * p + simd().dot_twice(n, below, s);
        total.squares = margin * margin * p + simd().dot_twice(n, below + n, s);
    }
    for (double *sum : {&total.violations, &total.slacks, &total.squares}) *sum *= c;
    total.add_rows(n, scratch.s.data(), above);
    return total;
}

// Four sums of each kind under way hide the latency of an addition.
void PairPoint::Moments::add_rows(Index n, const double *s, const double *degree) {
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
    for (Index lane = 0; lane < lanes; ++lane) {
        spread += dr[lane];
        square_spread += drr[lane];
        largest = std::max(largest, most[lane]);
        n_active += active[lane];
    }
}

PairPoint::Sums PairPoint::evaluate(Index q, Doubles z, const PairPoint *near,
                                    SweepScratch &scratch) {
    const Index n = problem_.length(q), begin = problem_.begin(q);
    const int width = n_vectors();
    sort(q, z.data() + begin, near, scratch);
    for (auto *vector : {&scratch.v, &scratch.above, &scratch.below})
        vector->resize(std::size_t(2 * width * n));
    weigh(q, nullptr, scratch.v.data());
    weigh(q, scratch.s.data(), scratch.v.data() + width * n);
    const auto errors = [&](const Moments &m, double margin) {
        return scratch.grid > 0.0 ? errors_on(scratch.grid, q, m, margin)
                                  : errors_of(q, m, scratch.sum, scratch.s.data(), nullptr);
    };
    const Moments m = sweep_margin(q, 1.0, false, scratch);
    if (loss_.kind != PairLoss::huber) return summary(m, errors(m, 1.0), {}, {});
    const double inner_margin = 1.0 - loss_.epsilon, scale = problem_.c(q) * 0.5 / loss_.epsilon;
    const Moments inside = sweep_margin(q, inner_margin, true, scratch);
    for (Index i = begin; i < begin + n; ++i)
        gradient[i] *= scale * problem_.u(i);
    return summary(m, errors(m, 1.0), inside, errors(inside, inner_margin));
}

PairPoint::Sums PairPoint::summary(const Moments &m, const Errors &error, const Moments &inside,
                                   const Errors &inner_error) const {
    // Rounding may take a sum of squares, or of slacks, below 0.
    const double slacks = std::max(0.0, m.slacks);
    Sums sums{{.sum_of_slacks = slacks, .n_violations = m.violations}, 0.0, error.slacks, error.duals, error.slopes};
    if (loss_.kind == PairLoss::squared_hinge) {
        sums.value = std::max(0.0, m.squares);
        sums.total_curvature = m.violations;
        sums.value_error = error.squares;
    } else if (loss_.kind == PairLoss::hinge) {
        sums.value = slacks;
        sums.value_error = error.slacks;
    } else {
        // Of slacks that are large against ε the difference of squares keeps no digit; but h_ε is at most
        // ε/2 below the hinge. Without that limit, doubled for rounding, a step far out looks like progress.
        const double least = std::max(0.0, slacks - loss_.epsilon * m.violations);
        const double half = 0.5 / loss_.epsilon;
        sums.value = std::max(least, half * (m.squares - inside.squares));
        sums.inner_slacks = std::max(0.0, inside.slacks);
        sums.total_curvature = m.violations - inside.violations;
        // No loss of a pair is steeper than the hinge: moving the scores costs no more than of slacks.
        sums.value_error = half * (error.squares + inner_error.squares) + error.slacks;
        sums.dual_error = error.duals + inner_error.duals;
        sums.squared_error = 2.0 * half * half * (error.slopes + inner_error.slopes);
    }
    return sums;
}

// out_i = l'' (degree_i v_i - c u_i (Σ weight·v above + below)).
void PairPoint::combine(Index q, const double *v, const double *above, const double *below,
                        double *out) const {
    const Index n = problem_.length(q), begin = problem_.begin(q);
    const double curve = curvature(), scale = curve * problem_.c(q);
    const double *degree = this->degree(q);
    if (problem_.row_weight.empty() && problem_.gain.empty())
        for (Index i = 0; i < n; ++i)
            out[i] = curve * degree[i] * v[i] - scale * (above[i] + below[i]);
    else
        for (Index i = 0; i < n; ++i)
            out[i] = curve * degree[i] * v[i] -
                     scale * problem_.u(begin + i) *
                         (combined(begin + i, n, above + i, 1.0) +
                          combined(begin + i, n, below + i, -1.0));
}

void PairPoint::multiply(Index q, const double *v, double *out, SweepScratch &scratch) const {
    const std::size_t size = std::size_t(n_vectors() * problem_.length(q));
    scratch.above.resize(size);
    scratch.below.resize(size);
    const double *in = v;
    if (!problem_.row_weight.empty() || !problem_.gain.empty()) {
        scratch.v.resize(size);
        weigh(q, v, scratch.v.data());
        in = scratch.v.data();
    }
    level_sums(windows(q), n_vectors(), in, scratch.above.data(), scratch.below.data(), scratch);
    combine(q, v, scratch.above.data(), scratch.below.data(), out);
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
