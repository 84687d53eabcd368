// Pairs of a ranking: value, gradient, curvature and Hessian agree with the sum over listed pairs.
#include "swaps.hpp"

#include <algorithm>

#include "check.hpp"
#include "preferences.hpp"

using namespace linrank;
using namespace linrank_test;

namespace {

/// Queries of up to `longest` rows, some without any, gains with ties, places that fall.
std::shared_ptr<SwapProblem> draw_problem(Rng &rng, std::int64_t n_queries, std::int64_t longest) {
    auto problem = std::make_shared<SwapProblem>();
    problem->offsets.push_back(0);
    const bool is_weighted = draw(rng, 0, 1) == 1;
    for (std::int64_t q = 0; q < n_queries; ++q) {
        const std::int64_t n = draw(rng, 0, longest);
        problem->offsets.push_back(problem->offsets.back() + n);
        problem->depth.push_back(std::int32_t(draw(rng, 0, n)));
        for (std::int64_t t = 0; t < n; ++t) {
            problem->gain.push_back(double(draw(rng, 0, 3)));
            problem->first.push_back(1.0 / double(t + 1));
            problem->second.push_back(0.9 / double(t + 1));
            problem->factor.push_back(0.25 * double(draw(rng, 0, 4)));
            if (is_weighted) problem->row_weight.push_back(0.5 * double(draw(rng, 0, 3)));
        }
    }
    return problem;
}

PreferenceList listed(const SwapProblem &p) {
    std::vector<std::int64_t> winners, losers;
    std::vector<double> weights;
    for (std::int64_t q = 0; q < p.n_queries(); ++q) {
        const std::int64_t begin = p.offsets[std::size_t(q)], end = p.offsets[std::size_t(q) + 1];
        for (std::int64_t t = begin; t < begin + p.depth[std::size_t(q)]; ++t)
            for (std::int64_t j = t + 1; j < end; ++j) {
                const auto a = std::size_t(t), b = std::size_t(j);
                const double u = p.u(std::int64_t(a)) * p.u(std::int64_t(b));
                const double difference = p.gain[a] - p.gain[b];
                const double weight =
                    std::abs(difference) * p.factor[a] * u * std::max(0.0, p.first[a] - p.second[b]);
                if (weight == 0.0) continue;
                winners.push_back(difference > 0 ? t : j);
                losers.push_back(difference > 0 ? j : t);
                weights.push_back(weight);
            }
    }
    return PreferenceList(winners, losers, weights, p.n_rows());
}

void check_case(Rng &rng, std::int64_t n_queries, std::int64_t longest) {
    const auto problem = draw_problem(rng, n_queries, longest);
    const PreferenceList list = listed(*problem);
    const std::int64_t n = problem->n_rows(), n_columns = draw(rng, 1, 20);
    const std::vector<double> z = draw_normal(rng, n), v = draw_normal(rng, n);
    const SwapTotals totals = swap_totals(*problem, 1);
    for (const int n_threads : {2, 5}) {
        const SwapTotals same = swap_totals(*problem, n_threads);
        CHECK(same.weight == totals.weight && same.n_pairs == totals.n_pairs);
    }
    double weight = 0;
    std::int64_t n_pairs = 0;
    for (const double w : totals.weight) weight += w;
    for (const std::int64_t k : totals.n_pairs) n_pairs += k;
    double expected = 0;
    for (std::int64_t t = 0; t < list.n_pairs(); ++t) expected += list.weight(t);
    CHECK(close(weight, expected, 1e-12));
    CHECK(n_pairs == list.n_pairs());
    for (const PairLoss loss : {PairLoss{PairLoss::squared_hinge, 1.0}, PairLoss{PairLoss::hinge, 1.0},
                                PairLoss{PairLoss::huber, 0.3}}) {
        const SwapPoint point(*problem, loss, z, 2);
        const PreferencePoint truth(list, loss, z, 1);
        CHECK(close(point.value, truth.value, 1e-12));
        CHECK(close(point.sum_of_slacks, truth.sum_of_slacks, 1e-12));
        CHECK(close(point.inner_slacks, truth.inner_slacks, 1e-12));
        CHECK(close(point.n_violations, truth.n_violations, 1e-12));
        CHECK(close(point.total_curvature, truth.total_curvature, 1e-12));
        CHECK(std::abs(point.value - truth.value) <= point.value_error + truth.value_error);
        std::vector<double> ours(static_cast<std::size_t>(n)), theirs(ours.size());
        point.multiply(v, ours, 2);
        truth.multiply(v, theirs, 1);
        for (std::int64_t i = 0; i < n; ++i) {
            CHECK(close(point.gradient.data()[i], truth.gradient.data()[i], 1e-11));
            CHECK(close(ours[std::size_t(i)], theirs[std::size_t(i)], 1e-11));
        }
        const std::vector<double> x = draw_normal(rng, n * n_columns);
        const Rows rows = DenseRows<double>{x.data(), n_columns, n, n_columns};
        const std::vector<double> found = hessian_matrix({rows}, point, 2);
        const std::vector<double> wanted = hessian_matrix({rows}, truth, 1);
        for (std::size_t k = 0; k < found.size(); ++k) CHECK(close(found[k], wanted[k], 1e-9));
        for (const double d : hessian_diagonal({rows}, point, 2)) CHECK(d >= 0.0);
    }
}

}  // namespace

int main() {
    Rng rng(7);
    for (int k = 0; k < 40; ++k) check_case(rng, draw(rng, 1, 8), 30);
    check_case(rng, 2, 4500);  // longer than a piece
    return 0;
}
