// Random ranking problems with ties, one-level and one-row queries, and their definition by pairs.
#pragma once
#include <algorithm>
#include <map>

#include "check.hpp"
#include "pair_sweep.hpp"

namespace linrank_test {

/// Owns what a PairProblem looks at.
struct Problem {
    std::vector<std::int64_t> offsets{0};
    std::vector<std::int32_t> levels, n_levels, by_level;
    std::vector<double> u, c, gain;
    bool adjacent = false;

    linrank::PairProblem view() const {
        return {{offsets, levels, n_levels, u, c}, by_level, gain, adjacent};
    }
    /// Gains that grow with the level, some of them negative.
    void add_gains() {
        for (const std::int32_t level : levels) gain.push_back(0.25 * level * level - 1.5);
    }

    /// Adds a query whose labels are replaced by their dense ranks.
    void add_query(const std::vector<std::int64_t> &labels) {
        std::map<std::int64_t, std::int32_t> rank;
        for (const std::int64_t label : labels) rank[label] = 0;
        std::int32_t next = 0;
        for (auto &entry : rank) entry.second = next++;
        for (const std::int64_t label : labels) levels.push_back(rank[label]);
        n_levels.push_back(next);
        offsets.push_back(std::int64_t(levels.size()));
    }
    void finish() { by_level = linrank::level_order(view()); }
};

inline std::vector<std::int64_t> draw_labels(Rng &rng, std::int64_t n, std::int64_t n_labels) {
    std::vector<std::int64_t> labels(static_cast<std::size_t>(n));
    for (auto &label : labels) label = draw(rng, 0, n_labels - 1);
    return labels;
}

inline Problem draw_problem(Rng &rng, bool weighted, std::int64_t most_rows = 60) {
    Problem problem;
    for (std::int64_t q = draw(rng, 1, 8); q > 0; --q) {
        const std::int64_t n = draw(rng, 1, most_rows), k = draw(rng, 1, 40);
        problem.add_query(draw_labels(rng, n, k));
    }
    problem.finish();
    if (weighted) {
        std::uniform_real_distribution<double> weight(0.0, 2.0);
        problem.u.resize(problem.levels.size());
        problem.c.resize(problem.n_levels.size());
        for (double &value : problem.u) value = weight(rng);
        for (double &value : problem.c) value = weight(rng);
    }
    return problem;
}

/// Scores on a grid of 0.3: equal scores occur, margins of 1 do not. The sweeps center the scores, whose
/// rounding may move a pair that is exactly on the boundary to either side.
inline std::vector<double> draw_scores(Rng &rng, std::int64_t n) {
    std::vector<double> z(static_cast<std::size_t>(n));
    for (double &value : z) value = 0.3 * double(draw(rng, -10, 10));
    return z;
}

/// Calls visit(i, j, weight, slack) for every violated pair, i above j.
template <class Visit>
void for_each_violation(const linrank::PairProblem &p, const std::vector<double> &z,
                        const Visit &visit) {
    for (std::int64_t q = 0; q < p.n_queries(); ++q)
        for (std::int64_t i = p.begin(q); i < p.begin(q + 1); ++i)
            for (std::int64_t j = p.begin(q); j < p.begin(q + 1); ++j) {
                const std::size_t a = std::size_t(i), b = std::size_t(j);
                const double slack = (1.0 - z[a]) + z[b];
                if (p.levels[a] <= p.levels[b] || slack <= 0.0) continue;
                if (p.adjacent && p.levels[a] != p.levels[b] + 1) continue;
                const double gain = p.gain.empty() ? 1.0 : p.gain[a] - p.gain[b];
                visit(a, b, p.c(q) * p.u(i) * p.u(j) * gain, slack);
            }
}

/// l(ξ), l'(ξ) and l''(ξ) of a violated pair.
struct OfSlack {
    double value, slope, curve;
};
inline OfSlack of_slack(linrank::PairLoss loss, double slack) {
    using linrank::PairLoss;
    if (loss.kind == PairLoss::squared_hinge) return {slack * slack, 2.0 * slack, 2.0};
    if (loss.kind == PairLoss::hinge) return {slack, 1.0, 0.0};
    if (slack > loss.epsilon) return {slack - 0.5 * loss.epsilon, 1.0, 0.0};
    return {0.5 * slack * slack / loss.epsilon, slack / loss.epsilon, 1.0 / loss.epsilon};
}
inline const linrank::PairLoss losses[] = {{linrank::PairLoss::squared_hinge, 1.0},
                                           {linrank::PairLoss::hinge, 1.0},
                                           {linrank::PairLoss::huber, 0.35},
                                           {linrank::PairLoss::huber, 0.85}};

}  // namespace linrank_test
