// Queries that leave the cache. All vectors are by place, so that the sweeps run through memory in
// order; only the first gather and the last scatter jump. Every loop is cut into the same parts
// whatever the number of threads, and sums are reduced in the order of the parts.
#include "query_sweep.hpp"

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

/// above = Σ weight_ij v_j / u_i over the pairs above each row, below the same over those below it,
/// or the sum of both where they are one array. With gains |g_j - g_i| u_j v_j = ±(g_j u_j v_j -
/// g_i u_j v_j), + above and
/// - below: two sweeps, the first one times -g_i. v = u·(some vector) is used up.
void add_pair_sums(const PairProblem &problem, Index q, const Windows &w, double *v, double *above,
                   double *below, int n_threads) {
    for_ranges(w.n, n_threads, [&](Index first, Index last) {
        std::fill(above + first, above + last, 0.0);
        std::fill(below + first, below + last, 0.0);
    });
    if (problem.gain.empty()) return add_level_sums(w, v, above, 1.0, below, n_threads);
    add_level_sums(w, v, above, -1.0, below, n_threads);
    const double *gain = problem.gain.data() + problem.begin(q);
    for_ranges(w.n, n_threads, [&](Index first, Index last) {
        for (Index t = first; t < last; ++t) {
            const double g = gain[w.order[t]];
            above[t] *= -g;
            if (below != above) below[t] *= -g;
            v[t] *= g;
        }
    });
    add_level_sums(w, v, above, -1.0, below, n_threads);
}

/// Of a query that all threads sweep; all numbers but degrees and slopes are by place.
class LongSweep : QuerySweep {
    friend class QuerySweep;

public:
    LongSweep(PairPoint &point, Index q, int n_threads)
        : QuerySweep(point, q), n_threads_(n_threads), s_(n_, huge_pages) {}

    PairTotals evaluate(const double *z) {
        sort(z);
        a_ = PageArray<double>(n_, huge_pages);
        b_ = PageArray<double>(n_, huge_pages);
        return sum_margins(*this);
    }

private:
    template <class Body>
    void ranges(const Body &body) const { for_ranges(n_, n_threads_, body); }
    template <class Body>
    auto sum(const Body &body) const { return sum_ranges(n_, n_threads_, body); }

    /// About the median, as in ShortSweep::sort.
    void sort(const double *z) {
        PageArray<double> s(n_, huge_pages);
        const auto sort_about = [&](double origin) {
            ranges([&](Index first, Index last) {
                for (Index i = first; i < last; ++i) s[i] = z[i] - origin;
            });
            sort_scores_parallel(s.data(), n_, order_, n_threads_);
        };
        const double mean = sum([&](Index first, Index last) {
            return std::accumulate(z + first, z + last, 0.0);
        }) / double(n_);
        sort_about(mean);
        const double median = std::isfinite(mean) ? z[order_[n_ / 2]] : mean;
        if (std::abs(mean - median) > far_away) sort_about(median);
        sum_ = sum([&](Index first, Index last) {
            double sum = 0;
            for (Index t = first; t < last; ++t) {
                const Index i = order_[t];
                s_[t] = z[i] - median;
                level_[t] = problem_.levels[begin_ + i];
                sum += u(i) * std::abs(s_[t]);
            }
            return sum;
        });
    }

    PairMoments sweep_margin(double margin, bool is_inner) {
        const Windows w = windows_of(is_inner, [&](std::int32_t *upto, std::int32_t *from) {
            find_windows_parallel(s_.data(), n_, margin, upto, from, n_threads_);
        });
        // The gradient's memory is free until the slopes are known, and those of the inner margin
        // need both.
        PageArray<double> own(is_inner ? n_ : 0, huge_pages);
        double *v = is_inner ? own.data() : gradient_;
        const auto weigh = [&](const double *s) {
            ranges([&](Index first, Index last) {
                for (Index t = first; t < last; ++t) v[t] = u(order_[t]) * (s ? s[t] : 1.0);
            });
        };
        weigh(nullptr);
        add_pair_sums(problem_, q_, w, v, a_.data(), b_.data(), n_threads_);
        PairMoments m = finish_degrees(margin, is_inner);
        if (loss_.kind == PairLoss::hinge) return m;
        weigh(s_.data());
        add_pair_sums(problem_, q_, w, v, a_.data(), a_.data(), n_threads_);
        m.squares = margin * m.slacks + finish_slopes(is_inner);
        return m;
    }

    // After the first sums: the degrees, and of the slopes all but the second sums. The formulas
    // are those of ShortSweep; Σ ξ² is taken as θ Σ ξ + sᵀ(AᵀA s - θ Aᵀe), which needs the slopes
    // and nothing else.
    PairMoments finish_degrees(double margin, bool is_inner) {
        const bool is_hinge = loss_.kind == PairLoss::hinge;
        return sum([&](Index first, Index last) {
            PairMoments sum;
            for (Index t = first; t < last; ++t) {
                const Index i = order_[t];
                const double weight = c_ * u(i), l_above = weight * a_[t], l_below = weight * b_[t];
                const double balance = l_below - l_above, degree = l_above + l_below;
                degree_[i] = is_inner ? degree_[i] - degree : degree;
                if (is_hinge) gradient_[i] = -balance;
                else b_[t] = degree * s_[t] - margin * balance;
                sum.violations += l_above;
                sum.slacks += margin * l_above - balance * s_[t];
                a_[t] = degree;  // which is not needed any more
            }
            sum.add_rows(last - first, s_.data() + first, a_.data() + first);
            return sum;
        });
    }

    // After the second sums: the slopes; returns sᵀ(AᵀA s - θ Aᵀe).
    double finish_slopes(bool is_inner) {
        // Of a band, (slope - inner slope) / 2ε; else twice the half that is at hand.
        const double scale = is_huber() ? 1.0 / loss_.epsilon : 2.0;
        return sum([&](Index first, Index last) {
            double sum = 0;
            for (Index t = first; t < last; ++t) {
                const Index i = order_[t];
                const double half = b_[t] - c_ * u(i) * a_[t];
                gradient_[i] = is_inner ? gradient_[i] - scale * half : scale * half;
                sum += half * s_[t];
            }
            return sum;
        });
    }

    Errors errors(const PairMoments &m, double) const {
        return errors_of(m, sum_, s_.data(), [&](Index t) { return order_[t]; });
    }

    const int n_threads_;
    PageArray<double> s_, a_, b_;  // the scores about their median; sums, and what is made of them
    double sum_ = 0;               // Σ u |s|
};

}  // namespace

// Where a part begins is found by bisection with the test of the walk itself, which is monotone in
// both scores. With NaN it is not: the maximum and the ends of the walks keep everything within
// bounds then.
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

PairTotals evaluate_long(PairPoint &point, Index q, const double *z, int n_threads) {
    return LongSweep(point, q, n_threads).evaluate(z);
}

// The memory of out holds the vector by place until the sums are there.
void PairPoint::multiply_long(Index q, const double *v, double *out, int n_threads) const {
    const Index n = problem_.length(q), begin = problem_.begin(q);
    const std::int32_t *order = this->order(q);
    const double *degree = this->degree(q);
    const double curve = curvature(), scale = curve * problem_.c(q);
    PageArray<double> sums(n, huge_pages);
    for_ranges(n, n_threads, [&](Index first, Index last) {
        for (Index t = first; t < last; ++t) out[t] = problem_.u(begin + order[t]) * v[order[t]];
    });
    add_pair_sums(problem_, q, windows(q), out, sums.data(), sums.data(), n_threads);
    for_ranges(n, n_threads, [&](Index first, Index last) {
        for (Index t = first; t < last; ++t) {
            const Index i = order[t];
            out[i] = curve * degree[i] * v[i] - scale * problem_.u(begin + i) * sums[t];
        }
    });
}

}  // namespace linrank
