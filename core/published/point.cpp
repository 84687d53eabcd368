#include "point.hpp"

namespace linrank::published {

PublishedPoint::PublishedPoint(const PairProblem &problem, Doubles z, Count count)
    : LossPoint(z.size()), hinge_gradient(z.size()), problem_(problem), count_(count),
      order_(z.size()), z_(z.size()), degree_(z.size()), level_(z.size()) {
    Scratch scratch;
    std::fill_n(gradient.data(), z.size(), 0.0);
    for (Index q = 0; q < problem_.n_queries(); ++q) {
        if (!problem_.has_pairs(q)) continue;
        sort(q, z);
        evaluate(q, scratch);
    }
    value = std::max(0.0, value);  // a sum of squares, which rounding may take below 0
}

void PublishedPoint::sort(Index q, Doubles z) {
    const Index begin = problem_.begin(q), end = problem_.begin(q + 1);
    // Centered scores: Σ ω ξ² is computed by expansion, which cancels when scores have an offset.
    const double mean = std::accumulate(z.begin() + begin, z.begin() + end, 0.0) / double(end - begin);
    std::vector<double> s(z.begin() + begin, z.begin() + end);
    for (double &score : s) score -= mean;
    std::iota(order_.begin() + begin, order_.begin() + end, begin);
    const auto score = [&](Index i) { return s[i - begin]; };
    std::sort(order_.begin() + begin, order_.begin() + end,
              [&](Index i, Index j) { return score(i) < score(j); });
    for (std::size_t t = std::size_t(begin); t < std::size_t(end); ++t) {
        z_[t] = score(order_[t]);
        level_[t] = problem_.levels[order_[t]];
    }
}

template <class Value>
void PublishedPoint::count(Index q, const Value &v, Scratch &scratch) const {
    const std::size_t begin = std::size_t(problem_.begin(q)), n = std::size_t(problem_.length(q));
    scratch.v.resize(n);
    scratch.above.resize(n);
    scratch.below.resize(n);
    for (std::size_t t = 0; t < n; ++t)
        scratch.v[t] = problem_.u(order_[begin + t]) * v(begin + t);
    const SortedQuery query{{z_.data() + begin, n}, {level_.data() + begin, n}, problem_.n_levels[q]};
    count_(query, scratch.v, scratch.above, scratch.below);
}

void PublishedPoint::evaluate(Index q, Scratch &scratch) {
    const std::size_t begin = std::size_t(problem_.begin(q)), n = std::size_t(problem_.length(q));
    const auto weight = [&](std::size_t t) { return problem_.c(q) * problem_.u(order_[t]); };
    count(q, [](std::size_t) { return 1.0; }, scratch);
    for (std::size_t t = begin; t < begin + n; ++t) {
        const double above = weight(t) * scratch.above[t - begin];
        const double below = weight(t) * scratch.below[t - begin];
        degree_[t] = above + below;
        hinge_gradient[order_[t]] = above - below;
        n_violations += above;
        sum_of_slacks += above + (above - below) * z_[t];
        value += above;
    }
    count(q, [&](std::size_t t) { return z_[t]; }, scratch);
    for (std::size_t t = begin; t < begin + n; ++t) {
        const double sums = scratch.above[t - begin] + scratch.below[t - begin];
        const double laplacian = degree_[t] * z_[t] - weight(t) * sums;
        const double slope = hinge_gradient[order_[t]];
        gradient[order_[t]] = 2.0 * (laplacian + slope);
        value += (laplacian + 2.0 * slope) * z_[t];
    }
}

void PublishedPoint::multiply(Doubles v, std::span<double> out) const {
    std::fill(out.begin(), out.end(), 0.0);
    const auto value = [&](std::size_t t) { return v[order_[t]]; };
    Scratch scratch;
    for (Index q = 0; q < problem_.n_queries(); ++q) {
        if (!problem_.has_pairs(q)) continue;
        count(q, value, scratch);
        const std::size_t begin = std::size_t(problem_.begin(q));
        for (std::size_t t = 0; t < scratch.v.size(); ++t) {
            const double weight = problem_.c(q) * problem_.u(order_[begin + t]);
            out[order_[begin + t]] =
                2.0 * (degree_[begin + t] * value(begin + t) -
                       weight * (scratch.above[t] + scratch.below[t]));
        }
    }
}

PreferenceList explicit_pairs(const PairProblem &p) {
    std::vector<Index> winners, losers;
    std::vector<double> weights;
    for (Index q = 0; q < p.n_queries(); ++q)
        for (Index i = p.begin(q); i < p.begin(q + 1); ++i)
            for (Index j = p.begin(q); j < p.begin(q + 1); ++j) {
                if (p.levels[i] <= p.levels[j]) continue;
                winners.push_back(i);
                losers.push_back(j);
                if (!p.row_weight.empty() || !p.query_weight.empty()) weights.push_back(p.c(q) * p.u(i) * p.u(j));
            }
    return PreferenceList(winners, losers, weights, p.n_rows());
}

}  // namespace linrank::published
