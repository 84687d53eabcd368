// Samplers against listed pairs, and the tables that they are made of; exits non-zero on the first failure.
#include <algorithm>
#include <cmath>
#include <map>
#include <stdexcept>
#include <utility>
#include <vector>

#include "pair_sampler.hpp"
#include "check.hpp"

using namespace linrank;
using namespace linrank_test;

namespace {

using Ints = std::vector<std::int64_t>;
using Weights = std::map<std::pair<std::int64_t, std::int64_t>, double>;

template <class Make>
void check_refused(const Make &make) {
    bool is_refused = false;
    try {
        make();
    } catch (const std::invalid_argument &) {
        is_refused = true;
    }
    CHECK(is_refused);
}

void test_alias(Rng &rng) {
    for (int round = 0; round < 300; ++round) {
        std::vector<double> weights(std::size_t(draw(rng, 1, 40)));
        for (double &w : weights) w = draw(rng, 0, 2) == 0 ? 0.0 : std::exp(draw_normal(rng, 1, 4.0)[0]);
        weights[weights.size() / 2] += 1e-3;
        double total = 0.0;
        for (const double w : weights) total += w;
        const auto slots = alias_slots(weights);
        std::vector<double> implied(weights.size(), 0.0);
        for (std::size_t s = 0; s < slots.size(); ++s) {
            const double below = std::ldexp(double(slots[s].threshold), -64);
            implied[s] += below / double(slots.size());
            CHECK(slots[s].alias < slots.size());
            implied[slots[s].alias] += (1.0 - below) / double(slots.size());
            if (weights[s] == 0.0) CHECK(slots[s].threshold == 0);
            CHECK(weights[slots[s].alias] > 0.0);
        }
        for (std::size_t i = 0; i < weights.size(); ++i) CHECK(close(implied[i], weights[i] / total, 1e-14));
    }
    for (const std::vector<double> &bad : {std::vector<double>{}, {0.0}, {-1.0, 2.0}, {std::nan(""), 1.0}})
        check_refused([&] { alias_slots(bad); });
}

/// A draw at both ends of the random numbers and at a threshold.
void test_draws_of_a_slot() {
    const auto slots = alias_slots(std::vector<double>{1.0, 3.0});
    CHECK(slots[0].threshold == std::uint64_t(1) << 63 && slots[0].alias == 1);
    const auto drawn = [&](std::uint64_t bits) {
        const auto from = AliasDraw::from(bits, 2);
        return from.choose(slots[from.slot].threshold, slots[from.slot].alias);
    };
    const std::uint64_t quarter = std::uint64_t(1) << 62;
    CHECK(drawn(0) == 0 && drawn(quarter - 1) == 0 && drawn(quarter) == 1 && drawn(~std::uint64_t(0)) == 1);
}

void test_running_sums() {
    const std::vector<double> weights = {1.0, 0.0, 3.0, 0.0, 1e-30, 0.0};
    const RunningSums sums(weights, Ints{0, 3});
    const std::uint64_t last = ~std::uint64_t(0), quarter = std::uint64_t(1) << 62;
    const auto whole = sums.range(0, 3), tail = sums.range(3, 3), two = sums.range(1, 2);
    std::vector<RunningSums::Search> searches = {
        sums.search(whole, 0),   sums.search(whole, quarter - 2048), sums.search(whole, quarter),
        sums.search(whole, last), sums.search(two, 0),                sums.search(sums.range(0, 1), last),
        sums.search(tail, 0),    sums.search(tail, last)};
    RunningSums::finish(searches);
    const Ints expected = {0, 0, 2, 2, 2, 0, 4, 4};
    for (std::size_t k = 0; k < expected.size(); ++k) CHECK(sums.place(searches[k]) == expected[k]);
    check_refused([&] { sums.range(2, 2); });  // crosses a restart
    check_refused([&] { sums.range(1, 1); });  // nothing to find
    check_refused([&] { sums.range(5, 1); });
    check_refused([&] { RunningSums(std::vector<double>{-1.0}, Ints{0}); });
    check_refused([&] { RunningSums(weights, Ints{}); });
}

struct Case {
    Ints offsets{0}, order;
    std::vector<std::int32_t> levels, n_levels;
    std::vector<double> c, u;

    Queries view(const std::vector<double> &row_weight = {}) const {
        return {offsets, levels, n_levels, row_weight, c, order};
    }
};

Case draw_case(Rng &rng) {
    Case out;
    for (std::int64_t q = draw(rng, 1, 5); q > 0; --q) {
        const auto k = std::int32_t(draw(rng, 1, 4)), extra = std::int32_t(draw(rng, 0, 4));
        std::vector<std::int32_t> levels;
        for (std::int32_t t = 0; t < k + extra; ++t) levels.push_back(t < k ? t : std::int32_t(draw(rng, 0, k - 1)));
        std::shuffle(levels.begin(), levels.end(), rng);
        out.levels.insert(out.levels.end(), levels.begin(), levels.end());
        out.n_levels.push_back(k);
        out.offsets.push_back(std::int64_t(out.levels.size()));
        out.c.push_back(double(draw(rng, 0, 2)));
    }
    for (std::size_t t = 0; t < out.levels.size(); ++t) {
        out.order.push_back(std::int64_t(2 * t));
        out.u.push_back(double(draw(rng, 0, 3)));
    }
    std::shuffle(out.order.begin(), out.order.end(), rng);
    return out;
}

/// c_q u_i u_j of all pairs by rows; those of weight zero are left out.
Weights listed(const Case &from, const std::vector<double> &c, const std::vector<double> &u) {
    Weights out;
    for (std::size_t q = 0; q + 1 < from.offsets.size(); ++q)
        for (auto i = std::size_t(from.offsets[q]); i < std::size_t(from.offsets[q + 1]); ++i)
            for (auto j = std::size_t(from.offsets[q]); j < std::size_t(from.offsets[q + 1]); ++j)
                if (from.levels[i] > from.levels[j] && c[q] * u[i] * u[j] > 0.0)
                    out[{from.order[i], from.order[j]}] = c[q] * u[i] * u[j];
    return out;
}

/// Only listed pairs are drawn, and so often that no frequency is off by six standard deviations.
void check_frequencies(const PairSampler &sampler, const Weights &expected) {
    const std::size_t n = 3000;
    std::vector<RowPair> pairs(n);
    Random random(3);
    sampler.draw(random, pairs);
    double total = 0.0;
    for (const auto &[pair, weight] : expected) total += weight;
    std::map<std::pair<std::int64_t, std::int64_t>, double> drawn;
    for (const RowPair &pair : pairs) {
        CHECK(expected.count({pair.winner, pair.loser}) == 1);
        CHECK(pair.winner < sampler.n_rows() && pair.loser < sampler.n_rows());
        drawn[{pair.winner, pair.loser}] += 1.0;
    }
    for (const auto &[pair, weight] : expected) {
        const double p = weight / total, deviation = std::sqrt(double(n) * p * (1.0 - p));
        CHECK(std::abs(drawn[pair] - double(n) * p) <= 6.0 * deviation + 1.0);
    }
}

template <class Make>
void check_sampler(const Weights &expected, const Make &make) {
    if (expected.empty()) return check_refused(make);
    const auto sampler = make();
    check_frequencies(*sampler, expected);
    std::vector<RowPair> whole(300), part(1);
    Random one(9), other(9);
    sampler->draw(one, whole);
    for (const RowPair &pair : whole) {
        sampler->draw(other, part);
        CHECK(part[0].winner == pair.winner && part[0].loser == pair.loser);
    }
    CHECK(one.state() == other.state());
}

/// u = 1/n of the level and c·2/(k (k - 1)): the weights of the sampler of the paper.
Weights listed_by_level(const Case &from) {
    std::vector<double> c = from.c, u(from.levels.size());
    for (std::size_t q = 0; q + 1 < from.offsets.size(); ++q) {
        const double k = from.n_levels[q];
        c[q] *= k > 1 ? 2.0 / (k * (k - 1.0)) : 0.0;
        const auto first = from.levels.begin() + from.offsets[q], end = from.levels.begin() + from.offsets[q + 1];
        for (auto t = first; t < end; ++t)
            u[std::size_t(t - from.levels.begin())] = 1.0 / double(std::count(first, end, *t));
    }
    return listed(from, c, u);
}

void test_samplers_of_queries(Rng &rng) {
    for (int round = 0; round < 60; ++round) {
        const Case from = draw_case(rng);
        const std::vector<double> ones(from.levels.size(), 1.0);
        check_sampler(listed(from, from.c, ones), [&] { return make_level_sampler(from.view()); });
        check_sampler(listed(from, from.c, from.u), [&] { return make_level_sampler(from.view(from.u)); });
        check_sampler(listed_by_level(from), [&] { return make_query_level_sampler(from.view()); });
        std::vector<double> kept;
        for (const double c : from.c) kept.push_back(c > 0.0 ? 1.0 : 0.0);
        check_sampler(listed(from, kept, ones), [&] { return make_rejection_sampler(from.view()); });
    }
}

/// Indices of either width, and one cell: the same pairs.
void test_cells() {
    const Ints rows = {5, 1, 8, 3};
    const std::vector<Cell> cells = {{2, 2, 0, 2}, {1, 1, 0, 1}};
    const std::vector<double> weights = {4.0, 1.0};
    const Weights expected = {{{8, 5}, 1.0}, {{8, 1}, 1.0}, {{3, 5}, 1.0}, {{3, 1}, 1.0}, {{1, 5}, 1.0}};
    const Cells from{rows, cells, weights};
    std::vector<RowPair> narrow(100), wide(100);
    Random one(1), other(1);
    make_cell_sampler_of<std::uint32_t>(from)->draw(one, narrow);
    const auto sampler = make_cell_sampler_of<std::uint64_t>(from);
    sampler->draw(other, wide);
    for (std::size_t k = 0; k < wide.size(); ++k)
        CHECK(narrow[k].winner == wide[k].winner && narrow[k].loser == wide[k].loser);
    CHECK(sampler->n_rows() == 9);
    check_sampler(expected, [&] { return make_cell_sampler(from); });
    const std::vector<Cell> one_cell = {{0, 1, 3, 1}};
    check_sampler({{{5, 3}, 1.0}}, [&] { return make_cell_sampler({rows, one_cell, std::vector<double>{2.0}}); });

    // A row number beyond 32 bits is kept.
    const Ints far = {std::int64_t(1) << 40, 2};
    const std::vector<Cell> two = {{0, 1, 1, 1}};
    check_sampler({{{far[0], 2}, 1.0}}, [&] { return make_cell_sampler({far, two, std::vector<double>{1.0}}); });
    const std::vector<Cell> outside = {{3, 2, 0, 1}};
    check_refused([&] { make_cell_sampler({rows, outside, std::vector<double>{1.0}}); });
    check_refused([&] { make_cell_sampler({Ints{-1, 2}, two, std::vector<double>{1.0}}); });
    check_refused([&] { make_cell_sampler({rows, two, weights}); });
}

}  // namespace

int main() {
    Rng rng(1);
    test_alias(rng);
    test_draws_of_a_slot();
    test_running_sums();
    test_samplers_of_queries(rng);
    test_cells();
}
