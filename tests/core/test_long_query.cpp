// A query of all threads: the bits of one, the sums of the published trees and of the short queries.
#include "pair_sweep.hpp"

#include <algorithm>
#include <limits>

#include "problem.hpp"

using namespace linrank;
using namespace linrank_test;

namespace {

using Places = std::vector<std::int32_t>;

/// One walk through the scores.
void walk(const std::vector<double> &s, double margin, Places &upto, Places &from) {
    const std::size_t n = s.size();
    std::size_t end = 0;
    for (std::size_t t = 0; t < n; ++t) {
        while (end < n && (margin - s[end]) + s[t] > 0.0) from[end++] = std::int32_t(t);
        upto[t] = std::int32_t(end);
    }
    std::fill(from.begin() + std::ptrdiff_t(end), from.end(), std::int32_t(n));
}

void windows_are_those_of_one_walk(Rng &rng) {
    for (const std::int64_t n : {1, 2, 5, 63, 64, 65, 300, 5000})
        for (const double spread : {0.0, 0.01, 1.0, 30.0})
            for (const double grid : {0.0, 0.25}) {  // 0.25: slacks of exactly 0
                std::vector<double> s = draw_normal(rng, n, spread);
                if (grid > 0.0)
                    for (double &score : s) score = grid * std::floor(score / grid);
                std::sort(s.begin(), s.end());
                Places upto(s.size()), from(s.size()), upto_walk(s.size()), from_walk(s.size());
                for (const double margin : {1.0, 0.4}) {
                    walk(s, margin, upto_walk, from_walk);
                    find_windows_parallel(s.data(), n, margin, upto.data(), from.data(), 3);
                    CHECK(upto == upto_walk && from == from_walk);
                }
            }
}

void windows_without_an_order_stay_within_bounds(Rng &rng) {
    const double infinity = std::numeric_limits<double>::infinity();
    for (int repetition = 0; repetition < 50; ++repetition) {
        std::vector<double> s = draw_normal(rng, 500);
        for (double &score : s)
            if (draw(rng, 0, 3) == 0) score = repetition % 2 ? std::nan("") : infinity;
        Places upto(s.size(), -1), from(s.size(), -1);
        find_windows_parallel(s.data(), 500, 1.0, upto.data(), from.data(), 2);
        for (const std::int32_t end : upto) CHECK(end >= 0 && end <= 500);
        for (const std::int32_t end : from) CHECK(end >= 0 && end <= 500);
        CHECK(std::is_sorted(upto.begin(), upto.end()) && std::is_sorted(from.begin(), from.end()));
    }
}

bool equal(const PageArray<double> &a, const PageArray<double> &b) {
    return std::equal(a.data(), a.data() + a.size(), b.data(), b.data() + b.size());
}

/// Rows of weight zero change no sum, but the way to it.
void rows_of_weight_zero_make_a_short_query_long(Rng &rng, PairLoss loss, std::int64_t n_labels,
                                                 bool with_gains, bool adjacent) {
    const std::int64_t n = 3000, n_long = long_query + 5;
    Problem small, large;
    std::vector<std::int64_t> labels = draw_labels(rng, n, n_labels);
    for (std::int64_t r = 0; r < std::min(n, n_labels); ++r) labels[std::size_t(r)] = r;
    small.add_query(labels);
    for (std::int64_t i = n; i < n_long; ++i) labels.push_back(labels[std::size_t(i % n)]);
    large.add_query(labels);
    std::uniform_real_distribution<double> weight(0.1, 2.0);
    for (std::int64_t i = 0; i < n; ++i) small.u.push_back(weight(rng));
    large.u = small.u;
    large.u.resize(std::size_t(n_long), 0.0);
    small.c = large.c = {0.7};
    for (Problem *problem : {&small, &large}) {
        if (with_gains) problem->add_gains();
        problem->adjacent = adjacent;
        problem->finish();
    }
    const PairProblem p = small.view(), whole = large.view();
    const std::vector<double> z_long = draw_normal(rng, n_long), v_long = draw_normal(rng, n_long);
    const std::vector<double> z(z_long.begin(), z_long.begin() + n), v(v_long.begin(), v_long.begin() + n);
    const PairPoint truth(p, loss, z, nullptr, 1);
    const PairPoint alone(whole, loss, z_long, nullptr, 1), shared(whole, loss, z_long, nullptr, 3);
    std::vector<double> expected(z.size()), one(z_long.size()), many(z_long.size());
    truth.multiply(v, expected, 1);
    alone.multiply(v_long, one, 1);
    shared.multiply(v_long, many, 3);
    CHECK(alone.value == shared.value && equal(alone.gradient, shared.gradient) && one == many);
    CHECK(alone.sum_of_slacks == shared.sum_of_slacks && alone.inner_slacks == shared.inner_slacks);
    CHECK(close(alone.value, truth.value, 1e-9) && close(alone.sum_of_slacks, truth.sum_of_slacks, 1e-9));
    CHECK(close(alone.inner_slacks, truth.inner_slacks, 1e-9));
    CHECK(close(alone.n_violations, truth.n_violations, 1e-9));
    CHECK(close(alone.total_curvature, truth.total_curvature, 1e-9));
    const double size = std::abs(*std::max_element(truth.gradient.data(), truth.gradient.data() + n));
    for (std::size_t i = 0; i < z.size(); ++i) {
        CHECK(close(alone.gradient[i], truth.gradient[i], 1e-7 * std::max(1.0, size)));
        CHECK(close(one[i], expected[i], 1e-7 * std::max(1.0, size)));
    }
    for (std::size_t i = z.size(); i < z_long.size(); ++i) CHECK(alone.gradient[i] == 0.0 && one[i] == 0.0);
}

}  // namespace

int main() {
    Rng rng(11);
    windows_are_those_of_one_walk(rng);
    windows_without_an_order_stay_within_bounds(rng);
    for (const PairLoss loss : {losses[0], losses[1], losses[2]})
        for (const bool with_gains : {false, true})
            for (const bool adjacent : {false, true})
                rows_of_weight_zero_make_a_short_query_long(rng, loss, with_gains ? 30 : 700, with_gains,
                                                            adjacent);
}
