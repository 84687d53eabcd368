#include "factors.hpp"

#include <algorithm>
#include <cmath>

namespace linrank {

void LevelTotals::compute(const FactorQuery &query, const double *values, const double *weight) {
    const std::int64_t K = n_factors_ = query.n_factors, n_levels = query.n_levels;
    for (auto *sums : {&of_, &below_, &difference_}) sums->assign(std::size_t(n_levels * K), 0.0);
    all_.assign(K, 0.0);
    for (std::int64_t i = 0; i < query.n_rows(); ++i) {
        double *total = of_.data() + query.levels[i] * K;
        const double factor = weight ? weight[i] : 1.0;
        for (std::int64_t k = 0; k < K; ++k) total[k] += factor * values[i * K + k];
    }
    for (std::int64_t r = 0; r < n_levels; ++r)
        for (std::int64_t k = 0; k < K; ++k) {
            below_[r * K + k] = all_[k];
            all_[k] += of_[r * K + k];
        }
    std::vector<double> &above = scratch_;  // summed from the top: nothing cancels
    above.assign(K, 0.0);
    for (std::int64_t r = n_levels - 1; r >= 0; --r)
        for (std::int64_t k = 0; k < K; ++k) {
            const auto at = std::size_t(r * K + k);
            difference_[at] = below_[at] - above[k];
            above[k] += of_[at];
        }
}

double pair_sum(const FactorQuery &query, const LevelTotals &a, const LevelTotals &b) {
    double sum = 0;
    for (std::int64_t r = 1; r < query.n_levels; ++r) {
        const double *upper = a.of(r), *lower = b.below(r);
        for (std::int64_t k = 0; k < query.n_factors; ++k) sum += upper[k] * lower[k];
    }
    return sum;
}

void add_coefficients(const FactorQuery &query, const double *a, const LevelTotals &b, double *out) {
    const std::int64_t K = query.n_factors;
    for (std::int64_t i = 0; i < query.n_rows(); ++i) {
        const double *s = b.difference(query.levels[i]);
        double sum = 0;
        for (std::int64_t k = 0; k < K; ++k) sum += a[i * K + k] * s[k];
        out[i] += sum;
    }
}

void project(const FactorQuery &query, Constraint constraint, double *factors) {
    const std::int64_t K = query.n_factors;
    const double per_component = 1.0 / std::sqrt(double(K));
    for (std::int64_t i = 0; i < query.n_rows(); ++i) {
        double *v = factors + i * K;
        const double b = query.bound[i];
        if (constraint == Constraint::box) {
            const double largest = b * per_component;
            for (std::int64_t k = 0; k < K; ++k) v[k] = std::min(std::max(v[k], 0.0), largest);
            continue;
        }
        double square = 0;
        for (std::int64_t k = 0; k < K; ++k) {
            v[k] = std::max(v[k], 0.0);
            square += v[k] * v[k];
        }
        if (square <= b * b) continue;
        const double factor = b / std::sqrt(square);
        for (std::int64_t k = 0; k < K; ++k) v[k] *= factor;
    }
}

void factor_gradient(const FactorQuery &query, const double *factors, const double *t, const LevelTotals &v,
                     LevelTotals &tv, double *out) {
    const std::int64_t K = query.n_factors;
    tv.compute(query, factors, t);
    for (std::int64_t i = 0; i < query.n_rows(); ++i) {
        const std::int64_t r = query.levels[i];
        const double *S = v.difference(r), *T = tv.difference(r), *own = v.of(r), *all = v.all();
        for (std::int64_t k = 0; k < K; ++k) out[i * K + k] = t[i] * S[k] - T[k] - (all[k] - own[k]);
    }
}

double linear_decrease(const FactorQuery &query, Constraint constraint, const double *factors,
                       const double *gradient) {
    const std::int64_t K = query.n_factors;
    const double per_component = 1.0 / std::sqrt(double(K));
    double sum = 0;
    for (std::int64_t i = 0; i < query.n_rows(); ++i) {
        const double *v = factors + i * K, *g = gradient + i * K;
        const double b = query.bound[i];
        double here = 0, fall = 0;  // <g, v>, and the largest <-g, v'> over feasible v'
        for (std::int64_t k = 0; k < K; ++k) {
            here += g[k] * v[k];
            const double down = std::max(-g[k], 0.0);
            fall += constraint == Constraint::box ? b * per_component * down : down * down;
        }
        sum += here + (constraint == Constraint::box ? fall : b * std::sqrt(fall));
    }
    return sum;
}

}  // namespace linrank
