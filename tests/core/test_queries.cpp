// Grouping and ranking against their definitions; exits non-zero on the first failure.
#include "queries.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <random>
#include <stdexcept>

#include "check.hpp"

using namespace linrank;
using linrank_test::check;
using Ints = std::vector<std::int64_t>;

namespace {

Ints random_ints(std::mt19937 &rng, std::size_t n, std::int64_t low, std::int64_t high) {
    std::uniform_int_distribution<std::int64_t> draw(low, high);
    Ints values(n);
    for (auto &value : values) value = draw(rng);
    return values;
}

void test_factorize(std::mt19937 &rng) {
    for (int round = 0; round < 200; ++round) {
        const Ints ids = random_ints(rng, round, -round / 3, round / 3);
        const Codes got = factorize(ids);
        std::map<std::int64_t, std::int64_t> code;
        for (std::size_t i = 0; i < ids.size(); ++i) {
            const auto next = static_cast<std::int64_t>(code.size());
            const bool is_new = code.emplace(ids[i], next).second;
            check(got.codes[i] == code[ids[i]], "codes follow first appearance");
            if (is_new) check(got.first[next] == static_cast<std::int64_t>(i), "first rows");
        }
        check(got.first.size() == code.size(), "one first row per id");
    }
    const std::int64_t extreme = std::numeric_limits<std::int64_t>::min();
    check(factorize(Ints{extreme, -1, extreme, 0}).codes == Ints({0, 1, 0, 2}), "extreme ids");
}

void test_group_rows(std::mt19937 &rng) {
    for (int round = 0; round < 200; ++round) {
        const std::int64_t n_queries = 1 + round % 7;
        Ints codes = random_ints(rng, round, 0, n_queries - 1);
        if (round % 3 == 0) std::sort(codes.begin(), codes.end());
        const Grouping got = group_rows(codes, n_queries);
        Ints order(codes.size());
        for (std::size_t i = 0; i < order.size(); ++i) order[i] = static_cast<std::int64_t>(i);
        std::stable_sort(order.begin(), order.end(),
                         [&](auto a, auto b) { return codes[a] < codes[b]; });
        check(got.is_identity == std::is_sorted(codes.begin(), codes.end()), "identity");
        check(got.is_identity ? got.order.empty() : got.order == order, "stable order");
        for (std::int64_t q = 0; q <= n_queries; ++q)
            check(got.offsets[q] == std::count_if(codes.begin(), codes.end(),
                                                  [&](auto c) { return c < q; }),
                  "offsets");
    }
    for (const std::int64_t bad : {-1, 2}) {
        bool thrown = false;
        try {
            group_rows(Ints{0, bad}, 2);
        } catch (const std::invalid_argument &) {
            thrown = true;
        }
        check(thrown, "codes out of range are refused");
    }
}

void check_levels(const std::vector<double> &labels, const Ints &offsets, const Ints &order,
                  int n_threads) {
    const RankedLevels got = rank_levels(labels, offsets, order, n_threads);
    const auto pairs = count_pairs({offsets, got.levels, got.n_levels});
    for (std::size_t q = 0; q + 1 < offsets.size(); ++q) {
        std::map<double, std::int64_t> rows_at;
        const auto label = [&](std::int64_t t) { return labels[order.empty() ? t : order[t]]; };
        for (std::int64_t t = offsets[q]; t < offsets[q + 1]; ++t) ++rows_at[label(t)];
        std::map<double, std::int32_t> rank;
        std::int64_t below = 0, expected_pairs = 0;
        for (const auto &[value, n] : rows_at) {
            rank.emplace(value, static_cast<std::int32_t>(rank.size()));
            expected_pairs += n * below;
            below += n;
        }
        check(got.n_levels[q] == static_cast<std::int32_t>(rank.size()), "number of levels");
        check(pairs[q] == expected_pairs, "number of pairs");
        for (std::int64_t t = offsets[q]; t < offsets[q + 1]; ++t)
            check(got.levels[t] == rank[label(t)], "levels are dense ranks");
    }
}

void test_rank_levels(std::mt19937 &rng) {
    for (int round = 0; round < 300; ++round) {
        const std::size_t n = 1 + round % 60;
        std::vector<double> labels;
        // 1 to 40 values: both sides of the limit between the list and the sort.
        for (const auto k : random_ints(rng, n, 0, round % 40)) labels.push_back(k * 0.25 - 3);
        const Grouping groups = group_rows(random_ints(rng, n, 0, 3), 4);  // may leave one empty
        for (const int n_threads : {1, 3})
            check_levels(labels, groups.offsets, groups.order, n_threads);
    }
    // A giant query between small ones: chunks, merges and an uneven number of threads.
    std::vector<double> labels;
    for (const auto k : random_ints(rng, 200'003, -100'000, 100'000)) labels.push_back(k / 3.0);
    for (const int n_threads : {1, 2, 5})
        check_levels(labels, {0, 3, 150'000, 150'000, 200'003}, {}, n_threads);
    check_levels({}, {0}, {}, 2);
}

}  // namespace

int main() {
    std::mt19937 rng(7);
    test_factorize(rng);
    test_group_rows(rng);
    test_rank_levels(rng);
    std::puts("queries: ok");
}
