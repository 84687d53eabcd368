// Rectangles of dual variables: every pair has its place; sums and steps are those over the pairs.
#include "rectangles.hpp"

#include "problem.hpp"
#include "queries.hpp"

using namespace linrank;
using namespace linrank_test;

namespace {

std::vector<std::int64_t> with_pairs(const Problem &problem) {
    std::vector<std::int64_t> chosen;
    for (std::size_t q = 0; q < problem.n_levels.size(); ++q)
        if (problem.n_levels[q] > 1) chosen.push_back(std::int64_t(q));
    return chosen;
}

/// Calls body(entry, i, j, rectangle, is_pair) for every entry.
template <class Body>
void for_entries(const Rectangles &at, const Body &body) {
    for (std::int64_t k = 0; k < at.size(); ++k) {
        const auto q = std::size_t(k);
        std::int64_t entry = at.offsets[q];
        for (std::int64_t r = at.first_row[q]; r < at.first_row[q + 1]; ++r)
            for (std::int64_t c = at.first_column[q]; c < at.first_column[q + 1]; ++c, ++entry)
                body(std::size_t(entry), at.upper[std::size_t(r)], at.lower[std::size_t(c)], q,
                     c - at.first_column[q] < at.n_pairs[std::size_t(r)]);
    }
}

void check_problem(Rng &rng, bool weighted) {
    const Problem problem = draw_problem(rng, weighted, 12);
    const double C = 0.5;
    const Rectangles at(problem.view(), with_pairs(problem), C);
    const auto n = std::int64_t(problem.levels.size());
    const std::vector<double> z = draw_normal(rng, n), v = draw_normal(rng, n);
    const std::vector<double> y = draw_normal(rng, at.n_entries());
    const std::vector<double> rho(std::size_t(at.size()), 0.75);
    std::vector<double> alpha(y.size(), -1.0), gradient(z.size(), 0.0), product(z.size(), 0.0);
    at.point(z, y, rho, alpha, 2);
    double value = 0.0;
    std::int64_t n_pairs = 0;
    for_entries(at, [&](std::size_t e, std::int64_t i, std::int64_t j, std::size_t q, bool is_pair) {
        const auto a = std::size_t(i), b = std::size_t(j);
        CHECK(is_pair == (problem.levels[a] > problem.levels[b]));
        if (!is_pair) {
            CHECK(alpha[e] == 0.0);
            return;
        }
        ++n_pairs;
        const double slack = 1.0 - z[a] + z[b], free = y[e] + slack / rho[q];
        double bound = C;
        if (weighted) {
            std::size_t query = 0;
            while (problem.offsets[query + 1] <= i) ++query;
            bound *= problem.c[query] * problem.u[a] * problem.u[b];
        }
        const double best = std::min(std::max(free, 0.0), bound);
        CHECK(close(alpha[e], best, 1e-12));
        value += best * slack - 0.5 * rho[q] * best * (best - 2.0 * y[e]);
        gradient[a] -= best;
        gradient[b] += best;
        if (free > 0.0 && free < bound) {
            product[a] += (v[a] - v[b]) / rho[q];
            product[b] -= (v[a] - v[b]) / rho[q];
        }
    });
    std::int64_t expected = 0;
    for (const std::int64_t p : count_pairs(problem.view())) expected += p;
    CHECK(n_pairs == expected);
    const ProximalLoss loss = at.loss(z, y, rho, 3);
    const std::vector<double> bent = at.curvature(z, y, rho, v, 3);
    const std::vector<double> sums = at.coefficients(alpha, 3);
    CHECK(close(loss.value, value, 1e-10));
    for (std::size_t t = 0; t < z.size(); ++t) {
        CHECK(close(loss.gradient[t], gradient[t], 1e-10));
        CHECK(close(bent[t], product[t], 1e-10));
        CHECK(close(sums[t], -gradient[t], 1e-10));
    }
    CHECK(at.loss(z, y, rho, 1).gradient == loss.gradient);
}

/// A point is settled into A and y, and the sums of the certificate are those of its parts.
void check_steps(Rng &rng) {
    Problem problem;
    problem.add_query({0, 2, 1, 1});
    problem.finish();
    const std::vector<std::int64_t> chosen{0};
    const Rectangles at(problem.view(), chosen, 1.0);
    CHECK(at.n_entries() == 9 && at.size() == 1);
    const std::vector<double> alpha = draw_normal(rng, 9), s = draw_normal(rng, 9);
    std::vector<double> a = draw_normal(rng, 9), y = draw_normal(rng, 9);
    const std::vector<double> before = a, old = y;
    const double square = at.relax(alpha, a, y, 1.5, 1)[0];
    CHECK(close(square, at.squared_norms(y, 1)[0], 1e-14));
    const std::vector<double> m = y;
    for (std::size_t e = 0; e < 9; ++e)
        CHECK(close(m[e], 1.5 * alpha[e] + 0.5 * before[e] - old[e], 1e-14));
    const double change = at.settle(0, s, {0.5, 1.0, 0.25, 2.0}, a, y);
    double moved = 0.0, distance = 0.0;
    for (std::size_t e = 0; e < 9; ++e) {
        CHECK(close(a[e], 0.5 * m[e] + s[e], 1e-14));
        CHECK(close(y[e], 0.25 * m[e] + 2.0 * s[e], 1e-14));
        moved += (a[e] - before[e]) * (a[e] - before[e]);
        distance += (alpha[e] - a[e]) * (alpha[e] - a[e]);
    }
    CHECK(close(change, moved, 1e-13));
    const std::vector<double> z(4, 0.0), rho{2.0};
    const CoupledSums sums = at.sums(z, alpha, a, y, rho, 1)[0];
    CHECK(close(sums.distance, distance, 1e-13));
    CHECK(sums.lowest >= 0.0 && sums.residual >= 0.0);
}

}  // namespace

int main() {
    Rng rng(20190613);
    for (int k = 0; k < 60; ++k) check_problem(rng, k % 2 == 1);
    for (int k = 0; k < 5; ++k) check_steps(rng);
}
