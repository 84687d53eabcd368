// The order of the scores: the one that std::stable_sort gives, whatever the route.
#include "queries.hpp"

#include <algorithm>
#include <limits>
#include <numeric>

#include "check.hpp"

using namespace linrank;
using namespace linrank_test;

namespace {

using Order = std::vector<std::int32_t>;

Order identity(std::size_t n) {
    Order order(n);
    std::iota(order.begin(), order.end(), 0);
    return order;
}

Order definition(const std::vector<double> &scores) {
    Order order = identity(scores.size());
    std::stable_sort(order.begin(), order.end(), [&](std::int32_t i, std::int32_t j) {
        return scores[std::size_t(i)] < scores[std::size_t(j)];
    });
    return order;
}

Order sorted(const std::vector<double> &scores, const std::int32_t *guess) {
    Order order(scores.size());
    SortScratch scratch;
    sort_scores(scores.data(), std::int64_t(scores.size()), guess, order.data(), scratch);
    return order;
}

Order sorted_by_threads(const std::vector<double> &scores, int n_threads) {
    Order order(scores.size());
    sort_scores_parallel(scores.data(), std::int64_t(scores.size()), order.data(), n_threads);
    return order;
}

/// Scores of one kind: spread out, many ties with both zeros, equal as floats, or of any size.
std::vector<double> draw_kind(Rng &rng, std::int64_t n, int kind) {
    std::vector<double> scores = draw_normal(rng, n);
    for (double &score : scores) {
        if (kind == 1) score = score < 0.0 ? -0.0 : std::floor(score);
        if (kind == 2) score = 1.0 + 1e-12 * score;
        if (kind == 3) score = std::ldexp(score, int(draw(rng, -1070, 1020)));
    }
    return scores;
}

// 255, 256, 8191 and 8192 are where one way of sorting gives way to the next.
constexpr std::int64_t lengths[] = {0, 1, 2, 15, 16, 17, 255, 256, 1000, 8191, 8192, 20000};

void every_route_is_a_stable_sort(Rng &rng) {
    for (const std::int64_t n : lengths)
        for (int kind = 0; kind < 4; ++kind) {
            const std::vector<double> scores = draw_kind(rng, n, kind);
            const Order expected = definition(scores);
            CHECK(sorted(scores, nullptr) == expected);
            for (const int n_threads : {1, 3}) CHECK(sorted_by_threads(scores, n_threads) == expected);
            Order guess = expected;  // right, nearly right, and worthless
            CHECK(sorted(scores, guess.data()) == expected);
            if (n > 1) std::swap(guess[0], guess[std::size_t(n / 2)]);
            CHECK(sorted(scores, guess.data()) == expected);
            std::shuffle(guess.begin(), guess.end(), rng);
            CHECK(sorted(scores, guess.data()) == expected);
        }
}

/// Whatever a NaN does to the order, every row keeps a place and nothing beyond the arrays is read.
void a_nan_leaves_a_permutation(Rng &rng) {
    for (const std::int64_t n : {2, 200, 1000, 9000}) {
        std::vector<double> scores = draw_kind(rng, n, 2);  // as floats all equal: the last resort
        for (std::int64_t k = 0; k <= n / 20; ++k) {
            double &score = scores[std::size_t(draw(rng, 0, n - 1))];
            score = std::copysign(std::numeric_limits<double>::quiet_NaN(), double(draw(rng, 0, 1)) - 0.5);
        }
        Order guess = identity(scores.size());
        std::shuffle(guess.begin(), guess.end(), rng);
        for (Order order : {sorted(scores, nullptr), sorted(scores, guess.data()),
                            sorted_by_threads(scores, 2)}) {
            std::sort(order.begin(), order.end());
            CHECK(order == identity(scores.size()));
        }
    }
}

}  // namespace

int main() {
    Rng rng(5);
    every_route_is_a_stable_sort(rng);
    a_nan_leaves_a_permutation(rng);
}
