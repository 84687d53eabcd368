#include "pair_sweep.hpp"

#include <algorithm>

#include "level_sums.hpp"
#include "parallel.hpp"
#include "sort_scores.hpp"

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

PairPoint::PairPoint(const PairProblem &problem, std::span<const double> z, int n_threads)
    : gradient(z.size()), problem_(problem), order_(z.size()), level_(z.size()), upto_(z.size()),
      from_(z.size()), degree_(z.size()) {
    const std::vector<Chunk> chunks = chunks_of(problem_, 64);
    std::vector<Sums> sums(chunks.size());
    parallel_for(std::int64_t(chunks.size()), n_threads, [&](std::int64_t k) {
        const Chunk &chunk = chunks[std::size_t(k)];
        if (chunk.is_long) return;
        SweepScratch scratch;
        Sums &total = sums[std::size_t(k)];
        for (std::int64_t q = chunk.first; q < chunk.last; ++q) {
            if (!problem_.has_pairs(q)) continue;
            const Sums one = evaluate(q, z, scratch);
            total.value += one.value;
            total.slacks += one.slacks;
            total.violations += one.violations;
        }
    });
    for (std::size_t k = 0; k < chunks.size(); ++k) {
        if (chunks[k].is_long) sums[k] = evaluate_long(chunks[k].first, z, n_threads);
        value += sums[k].value;
        sum_of_slacks += sums[k].slacks;
        n_violations += sums[k].violations;
    }
}

Windows PairPoint::windows(std::int64_t q) const {
    const std::int64_t begin = problem_.begin(q);
    return {std::int32_t(problem_.length(q)), problem_.n_levels[std::size_t(q)],
            level_.data() + begin, upto_.data() + begin, from_.data() + begin};
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

/// Brings s into the order found, and the levels with it.
void arrange(std::vector<double> &s, const std::int32_t *order, const std::int32_t *levels,
             std::int32_t *sorted_levels, std::vector<double> &spare) {
    spare.resize(s.size());
    for (std::size_t t = 0; t < s.size(); ++t) {
        spare[t] = s[std::size_t(order[t])];
        sorted_levels[t] = levels[order[t]];
    }
    s.swap(spare);
}

}  // namespace

// A pair (preferred, other) is violated iff (1 - s_preferred) + s_other > 0, written in this one form
// for both windows: rounding is monotone, so each is the exact inverse of the other and the counts of
// the two sides add up to the same number.
void PairPoint::find_windows(std::int64_t q, const double *s) {
    const std::int64_t n = problem_.length(q), begin = problem_.begin(q);
    std::int32_t *upto = upto_.data() + begin, *from = from_.data() + begin;
    std::int64_t end = 0, start = 0;
    for (std::int64_t t = 0; t < n; ++t) {
        while (end < n && (1.0 - s[end]) + s[t] > 0.0) ++end;
        upto[t] = std::int32_t(end);
        while (start < n && !((1.0 - s[t]) + s[start] > 0.0)) ++start;
        from[t] = std::int32_t(start);
    }
}

PairPoint::Sums PairPoint::evaluate(std::int64_t q, std::span<const double> z,
                                    SweepScratch &scratch) {
    thread_local SortScratch sort_scratch;
    const std::int64_t n = problem_.length(q), begin = problem_.begin(q);
    centre(z.data() + begin, n, scratch.s);
    sort_scores(scratch.s.data(), n, order_.data() + begin, sort_scratch);
    arrange(scratch.s, order(q), problem_.levels.data() + begin, level_.data() + begin, scratch.v);
    find_windows(q, scratch.s.data());

    std::vector<double> &v = scratch.v;
    scratch.above.resize(std::size_t(2 * n));
    scratch.below.resize(std::size_t(2 * n));
    for (std::int64_t t = 0; t < n; ++t) v[std::size_t(t)] = problem_.u(begin + order(q)[t]);
    level_sums(windows(q), v.data(), scratch.above.data(), scratch.below.data(), scratch);
    for (std::int64_t t = 0; t < n; ++t) v[std::size_t(t)] *= scratch.s[std::size_t(t)];
    level_sums(windows(q), v.data(), scratch.above.data() + n, scratch.below.data() + n, scratch);
    return finish(q, scratch.s.data(), scratch.above.data(), scratch.below.data(),
                  scratch.above.data() + n, scratch.below.data() + n);
}

PairPoint::Sums PairPoint::evaluate_long(std::int64_t q, std::span<const double> z, int n_threads) {
    const std::int64_t n = problem_.length(q), begin = problem_.begin(q);
    std::vector<double> s, v, above(std::size_t(2 * n)), below(std::size_t(2 * n));
    centre(z.data() + begin, n, s);
    sort_scores_parallel(s.data(), n, order_.data() + begin, n_threads);
    arrange(s, order(q), problem_.levels.data() + begin, level_.data() + begin, v);
    find_windows(q, s.data());
    for (std::int64_t t = 0; t < n; ++t) v[std::size_t(t)] = problem_.u(begin + order(q)[t]);
    level_sums_parallel(windows(q), v.data(), above.data(), below.data(), n_threads);
    for (std::int64_t t = 0; t < n; ++t) v[std::size_t(t)] *= s[std::size_t(t)];
    level_sums_parallel(windows(q), v.data(), above.data() + n, below.data() + n, n_threads);
    return finish(q, s.data(), above.data(), below.data(), above.data() + n, below.data() + n);
}

// With l⁺, l⁻ the weights of the violators above and below row i, and γ⁺, γ⁻ the same sums of u·s
// (Lee & Lin 2014, eqs. 16-19, with weights):
//   (AᵀA s)_i = c u_i [(l⁺ + l⁻) s_i - γ⁺ - γ⁻],   (Aᵀe)_i = c u_i (l⁻ - l⁺)
//   Σ ξ = p + Σ_i c u_i (l⁺ - l⁻) s_i,   Σ ξ² = p - 2 sᵀAᵀe + sᵀAᵀA s,   p = Σ_i c u_i l⁺
PairPoint::Sums PairPoint::finish(std::int64_t q, const double *s, const double *counts_above,
                                  const double *counts_below, const double *sums_above,
                                  const double *sums_below) {
    const std::int64_t n = problem_.length(q), begin = problem_.begin(q);
    const double c = problem_.c(q);
    Sums total;
    for (std::int64_t t = 0; t < n; ++t) {
        const std::int64_t i = begin + order(q)[t];
        const double weight = c * problem_.u(i);
        const double degree = weight * (counts_above[t] + counts_below[t]);
        const double laplacian = degree * s[t] - weight * (sums_above[t] + sums_below[t]);
        const double balance = weight * (counts_below[t] - counts_above[t]);
        degree_[std::size_t(begin + t)] = degree;
        gradient[std::size_t(i)] = 2.0 * (laplacian - balance);
        total.violations += weight * counts_above[t];
        total.slacks += weight * counts_above[t] - balance * s[t];
        total.value += weight * counts_above[t] + (laplacian - 2.0 * balance) * s[t];
    }
    return total;
}

namespace {

/// w[t] = u v in order of score, from v by row.
void gather(const PairProblem &problem, std::int64_t begin, const std::int32_t *order,
            std::int64_t n, const double *v, double *w) {
    if (problem.row_weight.empty())
        for (std::int64_t t = 0; t < n; ++t) w[t] = v[order[t]];
    else
        for (std::int64_t t = 0; t < n; ++t) w[t] = problem.u(begin + order[t]) * v[order[t]];
}

/// out_i = 2 (degree_i v_i - c u_i (above_i + below_i)).
void scatter(const PairProblem &problem, std::int64_t q, const std::int32_t *order,
             const double *degree, const double *v, const double *above, const double *below,
             double *out) {
    const std::int64_t n = problem.length(q), begin = problem.begin(q);
    const double twice_c = 2.0 * problem.c(q);
    for (std::int64_t t = 0; t < n; ++t) {
        const std::int32_t i = order[t];
        out[i] = 2.0 * degree[t] * v[i] - twice_c * problem.u(begin + i) * (above[t] + below[t]);
    }
}

}  // namespace

void PairPoint::multiply(std::int64_t q, const double *v, double *out, SweepScratch &scratch) const {
    const std::size_t n = std::size_t(problem_.length(q));
    scratch.v.resize(n);
    scratch.above.resize(n);
    scratch.below.resize(n);
    gather(problem_, problem_.begin(q), order(q), std::int64_t(n), v, scratch.v.data());
    level_sums(windows(q), scratch.v.data(), scratch.above.data(), scratch.below.data(), scratch);
    scatter(problem_, q, order(q), degree(q), v, scratch.above.data(), scratch.below.data(), out);
}

void PairPoint::multiply_long(std::int64_t q, const double *v, double *out, int n_threads) const {
    const std::size_t n = std::size_t(problem_.length(q));
    std::vector<double> w(n), above(n), below(n);
    gather(problem_, problem_.begin(q), order(q), std::int64_t(n), v, w.data());
    level_sums_parallel(windows(q), w.data(), above.data(), below.data(), n_threads);
    scatter(problem_, q, order(q), degree(q), v, above.data(), below.data(), out);
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
