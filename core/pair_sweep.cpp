#include "pair_sweep.hpp"

#include <algorithm>

#include "level_sums.hpp"
#include "parallel.hpp"

namespace linrank {

std::vector<Chunk> chunks_of(const PairProblem &problem, std::int64_t n_target) {
    const std::int64_t share = std::max<std::int64_t>(1, problem.n_rows() / n_target);
    std::vector<Chunk> chunks;
    std::int64_t first = 0;
    const auto close = [&](std::int64_t last) {
        if (first < last) chunks.push_back({first, last, false});
        first = last;
    };
    for (std::int64_t q = 0; q < problem.n_queries(); ++q) {
        if (problem.length(q) >= long_query && problem.has_pairs(q)) {
            close(q);
            chunks.push_back({q, q + 1, true});
            first = q + 1;
        } else if (problem.begin(q + 1) - problem.begin(first) >= share) {
            close(q + 1);
        }
    }
    close(problem.n_queries());
    return chunks;
}

std::vector<std::int32_t> level_order(const PairProblem &problem) {
    std::vector<std::int32_t> order, next;
    for (std::int64_t q = 0; q < problem.n_queries(); ++q) {
        const std::int64_t k = problem.n_levels[std::size_t(q)], begin = problem.begin(q);
        if (problem.adjacent || !sums_by_rank(problem.length(q), k)) continue;
        if (order.empty()) order.resize(std::size_t(problem.n_rows()));
        next.assign(std::size_t(k + 1), 0);
        const std::int32_t *level = problem.levels.data() + begin;
        const std::int32_t n = std::int32_t(problem.length(q));
        for (std::int32_t i = 0; i < n; ++i) ++next[std::size_t(level[i] + 1)];
        for (std::int64_t r = 0; r < k; ++r) next[std::size_t(r + 1)] += next[std::size_t(r)];
        for (std::int32_t i = 0; i < n; ++i)
            order[std::size_t(begin + next[std::size_t(level[i])]++)] = i;
    }
    return order;
}

void PairPoint::Sums::operator+=(const Sums &other) {
    value += other.value;
    slacks += other.slacks;
    inner_slacks += other.inner_slacks;
    violations += other.violations;
    curved += other.curved;
}

PairPoint::PairPoint(const PairProblem &problem, PairLoss loss, std::span<const double> z,
                     const PairPoint *near, int n_threads)
    : gradient(z.size(), PageArray<double>::huge), problem_(problem), loss_(loss),
      order_(z.size(), PageArray<double>::huge), level_(z.size(), PageArray<double>::huge),
      upto_(z.size(), PageArray<double>::huge), from_(z.size(), PageArray<double>::huge),
      upto_inner_(loss.kind == PairLoss::huber ? z.size() : 0, PageArray<double>::huge),
      from_inner_(loss.kind == PairLoss::huber ? z.size() : 0, PageArray<double>::huge),
      place_(problem.by_level.size(), PageArray<double>::huge),
      degree_(z.size(), PageArray<double>::huge) {
    const std::vector<Chunk> chunks = chunks_of(problem_, 64);
    std::vector<Sums> sums(chunks.size());
    parallel_for(std::int64_t(chunks.size()), n_threads, [&](std::int64_t k) {
        const Chunk &chunk = chunks[std::size_t(k)];
        if (chunk.is_long) return;
        SweepScratch scratch;
        for (std::int64_t q = chunk.first; q < chunk.last; ++q)
            if (problem_.has_pairs(q))
                sums[std::size_t(k)] += evaluate(q, z, near, scratch);
            else
                std::fill_n(gradient.data() + problem_.begin(q), problem_.length(q), 0.0);
    });
    Sums total;
    for (std::size_t k = 0; k < chunks.size(); ++k) {
        if (chunks[k].is_long) sums[k] = evaluate_long(chunks[k].first, z, n_threads);
        total += sums[k];
    }
    value = total.value;
    sum_of_slacks = total.slacks;
    inner_slacks = total.inner_slacks;
    n_violations = total.violations;
    total_curvature = curvature() * total.curved;
}

PairPoint::Ends PairPoint::outer(std::int64_t q) {
    return {upto_.data() + problem_.begin(q), from_.data() + problem_.begin(q)};
}

PairPoint::Ends PairPoint::inner(std::int64_t q) {
    return {upto_inner_.data() + problem_.begin(q), from_inner_.data() + problem_.begin(q)};
}

Windows PairPoint::windows(std::int64_t q, const std::int32_t *upto,
                           const std::int32_t *from) const {
    const std::int64_t begin = problem_.begin(q);
    const bool has_places = !place_.empty();
    return {std::int32_t(problem_.length(q)),
            problem_.n_levels[std::size_t(q)],
            problem_.adjacent,
            order_.data() + begin,
            level_.data() + begin,
            upto,
            from,
            nullptr,
            nullptr,
            has_places ? place_.data() + begin : nullptr,
            has_places ? problem_.by_level.data() + begin : nullptr};
}

Windows PairPoint::windows(std::int64_t q) const {
    const std::int64_t begin = problem_.begin(q);
    Windows w = windows(q, upto_.data() + begin, from_.data() + begin);
    if (loss_.kind == PairLoss::huber) {
        w.upto_inner = upto_inner_.data() + begin;
        w.from_inner = from_inner_.data() + begin;
    }
    return w;
}

namespace {

/// s = the scores of a query about their mean: pairs see differences only, and the expanded squares
/// below would cancel under a large common offset.
void centre(const double *z, std::int64_t n, std::vector<double> &s) {
    double mean = 0;
    for (std::int64_t i = 0; i < n; ++i) mean += z[i];
    mean /= double(n);
    s.resize(std::size_t(n));
    for (std::int64_t i = 0; i < n; ++i) s[std::size_t(i)] = z[i] - mean;
}

}  // namespace

void PairPoint::sort(std::int64_t q, const double *s, const PairPoint *near, SortScratch &scratch) {
    const std::int64_t n = problem_.length(q), begin = problem_.begin(q);
    std::int32_t *order = order_.data() + begin;
    sort_scores(s, n, near ? near->order(q) : nullptr, order, scratch);
    for (std::int64_t t = 0; t < n; ++t) level_[std::size_t(begin + t)] =
        problem_.levels[std::size_t(begin + order[t])];
    if (!place_.empty())
        for (std::int64_t t = 0; t < n; ++t)
            place_[std::size_t(begin + order[t])] = std::int32_t(t);
}

// A pair (preferred, other) is violated iff (margin - s_preferred) + s_other > 0. Both windows come from
// one walk over that one test: rounding is monotone, so each is the exact inverse of the other and the
// counts of the two sides add up to the same number.
void PairPoint::find_windows(std::int64_t q, const double *s, double margin, Ends ends) const {
    const std::int64_t n = problem_.length(q);
    const std::int32_t *order = this->order(q);
    std::int64_t end = 0;
    for (std::int64_t t = 0; t < n; ++t) {
        const double other = s[order[t]];
        while (end < n && (margin - s[order[end]]) + other > 0.0) ends.from[end++] = std::int32_t(t);
        ends.upto[t] = std::int32_t(end);
    }
    std::fill(ends.from + end, ends.from + n, std::int32_t(n));
}

// out = u v (u where v is null), and u g v after it where there are gains.
void PairPoint::weigh(std::int64_t q, const double *v, double *out) const {
    const std::int64_t n = problem_.length(q), begin = problem_.begin(q);
    for (std::int64_t i = 0; i < n; ++i) out[i] = v ? problem_.u(begin + i) * v[i] : problem_.u(begin + i);
    if (!problem_.gain.empty())
        for (std::int64_t i = 0; i < n; ++i)
            out[n + i] = problem_.gain[std::size_t(begin + i)] * out[i];
}

// Σ_j u_j |g_j - g_i| v_j from sums of u v and of u g v: gains are ordered as the levels are, so with
// sign = +1 above row i and -1 below it, |g_j - g_i| = sign (g_j - g_i). Without gains the sum of u v.
double PairPoint::combined(std::int64_t i, std::int64_t n, const double *sums, double sign) const {
    if (problem_.gain.empty()) return *sums;
    return sign * (sums[n] - problem_.gain[std::size_t(i)] * *sums);
}

// The squared-hinge sums for one margin θ: sets degree_ and gradient, or for the inner margin of a band
// takes its own off them. With l⁺, l⁻ the weights of the violators above and below row i, and γ⁺, γ⁻ the
// same sums of weight·s (Lee & Lin 2014, eqs. 16-19, with weights):
//   (AᵀA s)_i = c u_i [(l⁺ + l⁻) s_i - γ⁺ - γ⁻],   (Aᵀe)_i = c u_i (l⁻ - l⁺),   p = Σ_i c u_i l⁺
//   Σ ξ = θ p - sᵀAᵀe,   Σ ξ² = θ² p - 2 θ sᵀAᵀe + sᵀAᵀA s,   ½ ∂Σξ²/∂s = AᵀA s - θ Aᵀe
// The hinge's sub-gradient is -Aᵀe.
PairPoint::Moments PairPoint::sweep_margin(std::int64_t q, double margin, Ends ends, bool is_inner,
                                           SweepScratch &scratch) {
    const std::int64_t n = problem_.length(q), begin = problem_.begin(q);
    const int width = n_vectors();
    const double *v = scratch.v.data();
    double *above = scratch.above.data(), *below = scratch.below.data();
    find_windows(q, scratch.s.data(), margin, ends);
    const Windows w = windows(q, ends.upto, ends.from);
    level_sums(w, 2 * width, v, above, below, scratch);
    const bool is_hinge = loss_.kind == PairLoss::hinge;
    const double c = problem_.c(q);
    Moments total;
    for (std::int64_t i = 0; i < n; ++i) {
        const double s = scratch.s[std::size_t(i)], weight = c * problem_.u(begin + i);
        const double l_above = weight * combined(begin + i, n, above + i, 1.0);
        const double l_below = weight * combined(begin + i, n, below + i, -1.0);
        const double g_above = combined(begin + i, n, above + width * n + i, 1.0);
        const double g_below = combined(begin + i, n, below + width * n + i, -1.0);
        const double laplacian = (l_above + l_below) * s - weight * (g_above + g_below);
        const double balance = l_below - l_above;
        const double slope = is_hinge ? -balance : 2.0 * (laplacian - margin * balance);
        double &degree_i = degree_[std::size_t(begin + i)], &slope_i = gradient[std::size_t(begin + i)];
        degree_i = is_inner ? degree_i - (l_above + l_below) : l_above + l_below;
        slope_i = is_inner ? slope_i - slope : slope;
        total.violations += l_above;
        total.slacks += margin * l_above - balance * s;
        total.squares += margin * margin * l_above + (laplacian - 2.0 * margin * balance) * s;
    }
    return total;
}

PairPoint::Sums PairPoint::evaluate(std::int64_t q, std::span<const double> z, const PairPoint *near,
                                    SweepScratch &scratch) {
    const std::int64_t n = problem_.length(q), begin = problem_.begin(q);
    const int width = n_vectors();
    centre(z.data() + begin, n, scratch.s);
    sort(q, scratch.s.data(), near, scratch.sort);
    for (auto *vector : {&scratch.v, &scratch.above, &scratch.below})
        vector->resize(std::size_t(2 * width * n));
    weigh(q, nullptr, scratch.v.data());
    weigh(q, scratch.s.data(), scratch.v.data() + width * n);
    const Moments m = sweep_margin(q, 1.0, outer(q), false, scratch);
    if (loss_.kind != PairLoss::huber) return summary(m, {});
    const Moments inside = sweep_margin(q, 1.0 - loss_.epsilon, inner(q), true, scratch);
    const double half = 0.5 / loss_.epsilon;
    for (std::int64_t i = begin; i < begin + n; ++i) gradient[std::size_t(i)] *= half;
    return summary(m, inside);
}

PairPoint::Sums PairPoint::summary(const Moments &m, const Moments &inside) const {
    if (loss_.kind == PairLoss::squared_hinge)
        return {m.squares, m.slacks, 0.0, m.violations, m.violations};
    if (loss_.kind == PairLoss::hinge) return {m.slacks, m.slacks, 0.0, m.violations, 0.0};
    // Of slacks that are large against ε the difference of squares keeps no digit; but h_ε is at most
    // ε/2 below the hinge. Without that limit, doubled for rounding, a step far out looks like progress.
    const double least = m.slacks - loss_.epsilon * m.violations;
    return {std::max(least, 0.5 / loss_.epsilon * (m.squares - inside.squares)), m.slacks,
            inside.slacks, m.violations, m.violations - inside.violations};
}

// out_i = l'' (degree_i v_i - c u_i (Σ weight·v above + below)).
void PairPoint::combine(std::int64_t q, const double *v, const double *above, const double *below,
                        double *out) const {
    const std::int64_t n = problem_.length(q), begin = problem_.begin(q);
    const double curve = curvature(), scale = curve * problem_.c(q);
    const double *degree = this->degree(q);
    if (problem_.row_weight.empty() && problem_.gain.empty())
        for (std::int64_t i = 0; i < n; ++i)
            out[i] = curve * degree[i] * v[i] - scale * (above[i] + below[i]);
    else
        for (std::int64_t i = 0; i < n; ++i)
            out[i] = curve * degree[i] * v[i] -
                     scale * problem_.u(begin + i) *
                         (combined(begin + i, n, above + i, 1.0) +
                          combined(begin + i, n, below + i, -1.0));
}

void PairPoint::multiply(std::int64_t q, const double *v, double *out, SweepScratch &scratch) const {
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

void PairPoint::multiply(std::span<const double> v, std::span<double> out, int n_threads) const {
    const std::vector<Chunk> chunks = chunks_of(problem_, 64);
    std::fill(out.begin(), out.end(), 0.0);
    parallel_for(std::int64_t(chunks.size()), n_threads, [&](std::int64_t k) {
        const Chunk &chunk = chunks[std::size_t(k)];
        if (chunk.is_long) return;
        SweepScratch scratch;
        for (std::int64_t q = chunk.first; q < chunk.last; ++q)
            if (problem_.has_pairs(q))
                multiply(q, v.data() + problem_.begin(q), out.data() + problem_.begin(q), scratch);
    });
    for (const Chunk &chunk : chunks)
        if (chunk.is_long)
            multiply_long(chunk.first, v.data() + problem_.begin(chunk.first),
                          out.data() + problem_.begin(chunk.first), n_threads);
}

}  // namespace linrank
