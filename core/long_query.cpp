// Queries that leave the cache. All vectors are by place, so that the sweeps run through memory in order;
// only the first gather and the last scatter jump. Every loop is cut into the same parts whatever the
// number of threads, and sums are reduced in the order of the parts.
#include "pair_sweep.hpp"

namespace linrank {
namespace {

constexpr Index n_parts = 64;

/// Calls body(first, last) for the parts of [0, n).
template <class Body>
void for_ranges(Index n, int n_threads, const Body &body) {
    for_parts(n, n_parts, n_threads, [&](Index, Index first, Index last) { body(first, last); });
}

/// The sum of body(first, last) over the parts of [0, n), in order.
template <class Body>
auto sum_ranges(Index n, int n_threads, const Body &body) {
    std::array<decltype(body(n, n)), n_parts> parts{};
    for_parts(n, n_parts, n_threads, [&](Index part, Index first, Index last) {
        parts[part] = body(first, last);
    });
    decltype(body(n, n)) total{};
    for (const auto &part : parts) total += part;
    return total;
}

PageArray<double> vector_of(Index n) {
    return PageArray<double>(n, PageArray<double>::huge);
}

}  // namespace

// Where a part begins is found by bisection with the test of the walk itself, which is monotone in both
// scores. With NaN it is not: the maximum and the ends of the walks keep everything within bounds then.
void find_windows_parallel(const double *s, Index n, double margin, std::int32_t *upto,
                           std::int32_t *from, int n_threads) {
    const auto is_violated = [&](Index e, double other) { return (margin - s[e]) + other > 0.0; };
    std::array<Index, n_parts + 1> starts{};
    for (Index part = 1; part <= n_parts; ++part) {
        const Index first = n * part / n_parts;
        Index low = starts[part - 1], high = first == 0 ? low : n;
        while (low < high) {
            const Index middle = (low + high) / 2;
            if (is_violated(middle, s[first - 1])) low = middle + 1;
            else high = middle;
        }
        starts[part] = low;
    }
    for_parts(n, n_parts, n_threads, [&](Index part, Index first, Index last) {
        Index end = starts[part];
        const Index next = starts[part + 1];
        for (Index t = first; t < last; ++t) {
            while (end < next && is_violated(end, s[t])) from[end++] = std::int32_t(t);
            upto[t] = std::int32_t(end);
        }
        std::fill(from + end, from + next, std::int32_t(last));
    });
    std::fill(from + starts[n_parts], from + n, std::int32_t(n));
}

/// s: the scores about their median; a and b: sums, and what is made of them.
struct PairPoint::LongScratch {
    PageArray<double> s, a, b;
};

// above = Σ weight_ij v_j / u_i over the pairs above each row, below the same over those below it, or the
// sum of both where they are one array. With gains |g_j - g_i| u_j v_j = ±(g_j u_j v_j - g_i u_j v_j), + above and - below: two
// sweeps, the first one times -g_i. v = u·(some vector) is used up.
void PairPoint::add_pair_sums(Index q, const Windows &w, double *v, double *above, double *below,
                              int n_threads) const {
    const Index n = w.n;
    for_ranges(n, n_threads, [&](Index first, Index last) {
        std::fill(above + first, above + last, 0.0);
        std::fill(below + first, below + last, 0.0);
    });
    if (problem_.gain.empty()) return add_level_sums(w, v, above, 1.0, below, n_threads);
    add_level_sums(w, v, above, -1.0, below, n_threads);
    const double *gain = problem_.gain.data() + problem_.begin(q);
    for_ranges(n, n_threads, [&](Index first, Index last) {
        for (Index t = first; t < last; ++t) {
            const double g = gain[w.order[t]];
            above[t] *= -g;
            if (below != above) below[t] *= -g;
            v[t] *= g;
        }
    });
    add_level_sums(w, v, above, -1.0, below, n_threads);
}

// After the first sums: the degrees, and of the slopes all but the second sums. The formulas are those of
// sweep_margin; Σ ξ² is taken as θ Σ ξ + sᵀ(AᵀA s - θ Aᵀe), which needs the slopes and nothing else.
PairPoint::Moments PairPoint::finish_degrees(Index q, double margin, bool is_inner,
                                             LongScratch &scratch, int n_threads) {
    const Index n = problem_.length(q), begin = problem_.begin(q);
    const std::int32_t *order = this->order(q);
    const bool is_hinge = loss_.kind == PairLoss::hinge;
    const double c = problem_.c(q);
    return sum_ranges(n, n_threads, [&](Index first, Index last) {
        Moments sum;
        for (Index t = first; t < last; ++t) {
            const Index i = begin + order[t];
            const double s = scratch.s[t], weight = c * problem_.u(i);
            const double l_above = weight * scratch.a[t];
            const double l_below = weight * scratch.b[t];
            const double balance = l_below - l_above, degree = l_above + l_below;
            double &degree_i = degree_[i];
            degree_i = is_inner ? degree_i - degree : degree;
            if (is_hinge) gradient[i] = -balance;
            else scratch.b[t] = degree * s - margin * balance;
            sum.violations += l_above;
            sum.slacks += margin * l_above - balance * s;
            scratch.a[t] = degree;  // which is not needed any more
        }
        sum.add_rows(last - first, scratch.s.data() + first, scratch.a.data() + first);
        return sum;
    });
}

// After the second sums: the slopes; returns sᵀ(AᵀA s - θ Aᵀe).
double PairPoint::finish_slopes(Index q, bool is_inner, LongScratch &scratch, int n_threads) {
    const Index n = problem_.length(q), begin = problem_.begin(q);
    const std::int32_t *order = this->order(q);
    const double c = problem_.c(q);
    // Of a band, (slope - inner slope) / 2ε; else twice the half that is at hand.
    const double scale = loss_.kind == PairLoss::huber ? 1.0 / loss_.epsilon : 2.0;
    return sum_ranges(n, n_threads, [&](Index first, Index last) {
        double sum = 0;
        for (Index t = first; t < last; ++t) {
            const Index i = begin + order[t];
            const double half = scratch.b[t] - c * problem_.u(i) * scratch.a[t];
            double &slope_i = gradient[i];
            slope_i = is_inner ? slope_i - scale * half : scale * half;
            sum += half * scratch.s[t];
        }
        return sum;
    });
}

PairPoint::Moments PairPoint::sweep_margin_long(Index q, double margin, bool is_inner, double *v,
                                                LongScratch &scratch, int n_threads) {
    const Index n = problem_.length(q), begin = problem_.begin(q);
    const std::int32_t *order = this->order(q);
    const Windows w = windows_of(q, is_inner, [&](std::int32_t *upto, std::int32_t *from) {
        find_windows_parallel(scratch.s.data(), n, margin, upto, from, n_threads);
    });
    const auto weigh = [&](const double *s) {
        for_ranges(n, n_threads, [&](Index first, Index last) {
            for (Index t = first; t < last; ++t)
                v[t] = problem_.u(begin + order[t]) * (s ? s[t] : 1.0);
        });
    };
    weigh(nullptr);
    add_pair_sums(q, w, v, scratch.a.data(), scratch.b.data(), n_threads);
    Moments m = finish_degrees(q, margin, is_inner, scratch, n_threads);
    if (loss_.kind == PairLoss::hinge) return m;
    weigh(scratch.s.data());
    add_pair_sums(q, w, v, scratch.a.data(), scratch.a.data(), n_threads);
    m.squares = margin * m.slacks + finish_slopes(q, is_inner, scratch, n_threads);
    return m;
}

PairPoint::Sums PairPoint::evaluate_long(Index q, Doubles z, int n_threads) {
    const Index n = problem_.length(q), begin = problem_.begin(q);
    std::int32_t *order = order_.data() + begin;
    LongScratch scratch{vector_of(n), {}, {}};
    double sum = 0;
    {
        // About the median, as in PairPoint::sort.
        PageArray<double> s = vector_of(n);
        const auto sort_about = [&](double origin) {
            for_ranges(n, n_threads, [&](Index first, Index last) {
                for (Index i = first; i < last; ++i)
                    s[i] = z[begin + i] - origin;
            });
            sort_scores_parallel(s.data(), n, order, n_threads);
        };
        const double mean = sum_ranges(n, n_threads, [&](Index first, Index last) {
            return std::accumulate(z.data() + begin + first, z.data() + begin + last, 0.0);
        }) / double(n);
        sort_about(mean);
        const double median = std::isfinite(mean) ? z[begin + order[n / 2]] : mean;
        if (std::abs(mean - median) > far_away) sort_about(median);
        sum = sum_ranges(n, n_threads, [&](Index first, Index last) {
            double sum = 0;
            for (Index t = first; t < last; ++t) {
                const std::size_t i = std::size_t(begin + order[t]);
                const double centered = scratch.s[t] = z[i] - median;
                level_[begin + t] = problem_.levels[i];
                sum += problem_.u(Index(i)) * std::abs(centered);
            }
            return sum;
        });
    }
    const auto errors = [&](const Moments &m) { return errors_of(q, m, sum, scratch.s.data(), order); };
    scratch.a = vector_of(n);
    scratch.b = vector_of(n);
    // The gradient's memory is free until the slopes are known, and those of the inner margin need both.
    const Moments outside =
        sweep_margin_long(q, 1.0, false, gradient.data() + begin, scratch, n_threads);
    if (loss_.kind != PairLoss::huber) return summary(outside, errors(outside), {}, {});
    PageArray<double> v = vector_of(n);
    const Moments inside = sweep_margin_long(q, 1.0 - loss_.epsilon, true, v.data(), scratch, n_threads);
    return summary(outside, errors(outside), inside, errors(inside));
}

// The memory of out holds the vector by place until the sums are there.
void PairPoint::multiply_long(Index q, const double *v, double *out, int n_threads) const {
    const Index n = problem_.length(q), begin = problem_.begin(q);
    const std::int32_t *order = this->order(q);
    const double *degree = this->degree(q);
    const double curve = curvature(), scale = curve * problem_.c(q);
    PageArray<double> sums = vector_of(n);
    for_ranges(n, n_threads, [&](Index first, Index last) {
        for (Index t = first; t < last; ++t)
            out[t] = problem_.u(begin + order[t]) * v[order[t]];
    });
    add_pair_sums(q, windows(q), out, sums.data(), sums.data(), n_threads);
    for_ranges(n, n_threads, [&](Index first, Index last) {
        for (Index t = first; t < last; ++t) {
            const Index i = order[t];
            out[i] = curve * degree[i] * v[i] - scale * problem_.u(begin + i) * sums[t];
        }
    });
}

}  // namespace linrank
