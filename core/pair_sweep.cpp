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
        if (!sums_by_rank(problem.length(q), k)) continue;
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

PairPoint::PairPoint(const PairProblem &problem, std::span<const double> z, const PairPoint *near,
                     int n_threads)
    : gradient(z.size(), PageArray<double>::huge), problem_(problem),
      order_(z.size(), PageArray<double>::huge), level_(z.size(), PageArray<double>::huge),
      upto_(z.size(), PageArray<double>::huge), from_(z.size(), PageArray<double>::huge),
      place_(problem.by_level.size(), PageArray<double>::huge),
      degree_(z.size(), PageArray<double>::huge) {
    const std::vector<Chunk> chunks = chunks_of(problem_, 64);
    std::vector<Sums> sums(chunks.size());
    parallel_for(std::int64_t(chunks.size()), n_threads, [&](std::int64_t k) {
        const Chunk &chunk = chunks[std::size_t(k)];
        if (chunk.is_long) return;
        SweepScratch scratch;
        Sums &total = sums[std::size_t(k)];
        for (std::int64_t q = chunk.first; q < chunk.last; ++q) {
            if (!problem_.has_pairs(q)) {
                std::fill_n(gradient.data() + problem_.begin(q), problem_.length(q), 0.0);
                continue;
            }
            const Sums one = evaluate(q, z, near, scratch, 1);
            total.value += one.value;
            total.slacks += one.slacks;
            total.violations += one.violations;
        }
    });
    for (std::size_t k = 0; k < chunks.size(); ++k) {
        if (chunks[k].is_long) {
            SweepScratch scratch;
            sums[k] = evaluate(chunks[k].first, z, near, scratch, n_threads);
        }
        value += sums[k].value;
        sum_of_slacks += sums[k].slacks;
        n_violations += sums[k].violations;
    }
}

Windows PairPoint::windows(std::int64_t q) const {
    const std::int64_t begin = problem_.begin(q);
    const bool has_places = !place_.empty();
    return {std::int32_t(problem_.length(q)),
            problem_.n_levels[std::size_t(q)],
            order_.data() + begin,
            level_.data() + begin,
            upto_.data() + begin,
            from_.data() + begin,
            has_places ? place_.data() + begin : nullptr,
            has_places ? problem_.by_level.data() + begin : nullptr};
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

void PairPoint::sort(std::int64_t q, const double *s, const PairPoint *near, SortScratch &scratch,
                     int n_threads) {
    const std::int64_t n = problem_.length(q), begin = problem_.begin(q);
    std::int32_t *order = order_.data() + begin;
    if (n >= long_query)
        sort_scores_parallel(s, n, order, n_threads);
    else
        sort_scores(s, n, near ? near->order(q) : nullptr, order, scratch);
    for (std::int64_t t = 0; t < n; ++t) level_[std::size_t(begin + t)] =
        problem_.levels[std::size_t(begin + order[t])];
    if (!place_.empty())
        for (std::int64_t t = 0; t < n; ++t)
            place_[std::size_t(begin + order[t])] = std::int32_t(t);
}

// A pair (preferred, other) is violated iff (1 - s_preferred) + s_other > 0. Both windows come from one
// walk over that one test: rounding is monotone, so each is the exact inverse of the other and the
// counts of the two sides add up to the same number.
void PairPoint::find_windows(std::int64_t q, const double *s) {
    const std::int64_t n = problem_.length(q), begin = problem_.begin(q);
    const std::int32_t *order = order_.data() + begin;
    std::int32_t *upto = upto_.data() + begin, *from = from_.data() + begin;
    std::int64_t end = 0;
    for (std::int64_t t = 0; t < n; ++t) {
        const double other = s[order[t]];
        while (end < n && (1.0 - s[order[end]]) + other > 0.0) from[end++] = std::int32_t(t);
        upto[t] = std::int32_t(end);
    }
    std::fill(from + end, from + n, std::int32_t(n));
}

PairPoint::Sums PairPoint::evaluate(std::int64_t q, std::span<const double> z, const PairPoint *near,
                                    SweepScratch &scratch, int n_threads) {
    const std::int64_t n = problem_.length(q), begin = problem_.begin(q);
    centre(z.data() + begin, n, scratch.s);
    sort(q, scratch.s.data(), near, scratch.sort, n_threads);
    find_windows(q, scratch.s.data());
    for (auto *vector : {&scratch.v, &scratch.above, &scratch.below})
        vector->resize(std::size_t(2 * n));
    double *v = scratch.v.data(), *above = scratch.above.data(), *below = scratch.below.data();
    for (std::int64_t i = 0; i < n; ++i) {
        v[i] = problem_.u(begin + i);
        v[n + i] = v[i] * scratch.s[std::size_t(i)];
    }
    if (n >= long_query) {
        level_sums_parallel(windows(q), v, above, below, n_threads);
        level_sums_parallel(windows(q), v + n, above + n, below + n, n_threads);
    } else {
        level_sums(windows(q), 2, v, above, below, scratch);
    }
    return finish(q, scratch);
}

// With l⁺, l⁻ the weights of the violators above and below row i, and γ⁺, γ⁻ the same sums of u·s
// (Lee & Lin 2014, eqs. 16-19, with weights):
//   (AᵀA s)_i = c u_i [(l⁺ + l⁻) s_i - γ⁺ - γ⁻],   (Aᵀe)_i = c u_i (l⁻ - l⁺)
//   Σ ξ = p + Σ_i c u_i (l⁺ - l⁻) s_i,   Σ ξ² = p - 2 sᵀAᵀe + sᵀAᵀA s,   p = Σ_i c u_i l⁺
PairPoint::Sums PairPoint::finish(std::int64_t q, const SweepScratch &scratch) {
    const std::int64_t n = problem_.length(q), begin = problem_.begin(q);
    const double *above = scratch.above.data(), *below = scratch.below.data();
    const double c = problem_.c(q);
    Sums total;
    for (std::int64_t i = 0; i < n; ++i) {
        const double s = scratch.s[std::size_t(i)], weight = c * scratch.v[std::size_t(i)];
        const double degree = weight * (above[i] + below[i]);
        const double laplacian = degree * s - weight * (above[n + i] + below[n + i]);
        const double balance = weight * (below[i] - above[i]);
        degree_[std::size_t(begin + i)] = degree;
        gradient[std::size_t(begin + i)] = 2.0 * (laplacian - balance);
        total.violations += weight * above[i];
        total.slacks += weight * above[i] - balance * s;
        total.value += weight * above[i] + (laplacian - 2.0 * balance) * s;
    }
    return total;
}

namespace {

/// u v where there are weights, else v itself.
const double *weighted(const PairProblem &problem, std::int64_t q, const double *v,
                       std::vector<double> &scratch) {
    if (problem.row_weight.empty()) return v;
    const std::int64_t n = problem.length(q), begin = problem.begin(q);
    scratch.resize(std::size_t(n));
    for (std::int64_t i = 0; i < n; ++i) scratch[std::size_t(i)] = problem.u(begin + i) * v[i];
    return scratch.data();
}

/// out_i = 2 (degree_i v_i - c u_i (above_i + below_i)).
void combine(const PairProblem &problem, std::int64_t q, const double *degree, const double *v,
             const double *above, const double *below, double *out) {
    const std::int64_t n = problem.length(q), begin = problem.begin(q);
    const double twice_c = 2.0 * problem.c(q);
    if (problem.row_weight.empty())
        for (std::int64_t i = 0; i < n; ++i)
            out[i] = 2.0 * degree[i] * v[i] - twice_c * (above[i] + below[i]);
    else
        for (std::int64_t i = 0; i < n; ++i)
            out[i] = 2.0 * degree[i] * v[i] -
                     twice_c * problem.u(begin + i) * (above[i] + below[i]);
}

}  // namespace

void PairPoint::multiply(std::int64_t q, const double *v, double *out, SweepScratch &scratch) const {
    const std::size_t n = std::size_t(problem_.length(q));
    scratch.above.resize(n);
    scratch.below.resize(n);
    level_sums(windows(q), 1, weighted(problem_, q, v, scratch.v), scratch.above.data(),
               scratch.below.data(), scratch);
    combine(problem_, q, degree(q), v, scratch.above.data(), scratch.below.data(), out);
}

void PairPoint::multiply_long(std::int64_t q, const double *v, double *out, int n_threads) const {
    const std::size_t n = std::size_t(problem_.length(q));
    std::vector<double> scratch, above(n), below(n);
    level_sums_parallel(windows(q), weighted(problem_, q, v, scratch), above.data(), below.data(),
                        n_threads);
    combine(problem_, q, degree(q), v, above.data(), below.data(), out);
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
