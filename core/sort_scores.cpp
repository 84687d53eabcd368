#include "sort_scores.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <utility>

#include "parallel.hpp"

namespace linrank {
namespace {

/// An unsigned number that grows with x; NaN has its place too, behind the infinity of its sign.
template <class Bits, class Real>
Bits ordered_bits(Real x) {
    constexpr Bits sign = Bits(1) << (8 * sizeof(Bits) - 1);
    // -0 and 0 are equal scores and must get equal keys.
    const Bits bits = std::bit_cast<Bits>(x == Real(0) ? Real(0) : x);
    return bits ^ ((bits & sign) ? ~Bits(0) : sign);
}

/// By the upper 32 bits, least significant digit first.
template <int bits>
void radix_sort(std::uint64_t *keys, std::uint64_t *spare, std::int64_t n) {
    constexpr int n_digits = (32 + bits - 1) / bits;
    constexpr std::uint64_t mask = (1u << bits) - 1;
    std::array<std::array<std::uint32_t, mask + 1>, n_digits> counts{};
    for (std::int64_t t = 0; t < n; ++t)
        for (int digit = 0; digit < n_digits; ++digit)
            ++counts[digit][(keys[t] >> (32 + bits * digit)) & mask];
    for (int digit = 0; digit < n_digits; ++digit) {
        std::uint32_t start = 0;
        for (auto &count : counts[digit]) start += std::exchange(count, start);
        for (std::int64_t t = 0; t < n; ++t)
            spare[counts[digit][(keys[t] >> (32 + bits * digit)) & mask]++] = keys[t];
        std::swap(keys, spare);
    }
    if (n_digits % 2 == 1) std::copy(keys, keys + n, spare);
}

struct ByScore {
    const double *scores;
    bool operator()(std::int32_t i, std::int32_t j) const {
        return scores[i] < scores[j] || (scores[i] == scores[j] && i < j);
    }
};

/// Insertion sort; gives up, with a valid permutation, after `budget` moves.
bool insertion_sort(const ByScore &before, std::int64_t n, std::int32_t *order, std::int64_t budget) {
    for (std::int64_t t = 1; t < n; ++t) {
        const std::int32_t i = order[t];
        std::int64_t slot = t;
        for (; slot > 0 && before(i, order[slot - 1]); --slot) order[slot] = order[slot - 1];
        order[slot] = i;
        if ((budget -= t - slot) < 0) return false;
    }
    return true;
}

}  // namespace

void sort_scores(const double *scores, std::int64_t n, const std::int32_t *guess,
                 std::int32_t *order, SortScratch &scratch) {
    const ByScore before{scores};
    if (guess) {
        std::copy(guess, guess + n, order);
        // Beyond some moves a row the sort below is the faster one.
        if (insertion_sort(before, n, order, 8 * n)) return;
    }
    // A key is the score as float32 above the index: one comparison of integers.
    scratch.keys.resize(static_cast<std::size_t>(n));
    std::uint64_t *keys = scratch.keys.data();
    for (std::int64_t t = 0; t < n; ++t)
        keys[t] = std::uint64_t(ordered_bits<std::uint32_t>(float(scores[t]))) << 32 | std::uint32_t(t);
    if (n < 96) {
        std::sort(keys, keys + n);
    } else {
        scratch.spare.resize(static_cast<std::size_t>(n));
        const auto sort = n < 8192 ? radix_sort<8> : radix_sort<11>;
        sort(keys, scratch.spare.data(), n);
    }
    for (std::int64_t t = 0; t < n; ++t) order[t] = std::int32_t(keys[t] & 0xffffffffu);
    // Scores that round to the same float may still be swapped: almost sorted, unless contrived.
    if (insertion_sort(before, n, order, 8 * n + 64)) return;
    // By bits: std::sort leaves its range when a NaN contradicts the order.
    std::sort(order, order + n, [&](std::int32_t i, std::int32_t j) {
        const auto a = ordered_bits<std::uint64_t>(scores[i]), b = ordered_bits<std::uint64_t>(scores[j]);
        return a < b || (a == b && i < j);
    });
}

void sort_scores_parallel(const double *scores, std::int64_t n, std::int32_t *order, int n_threads) {
    // A fixed number of runs, then rounds of merges; each merge is cut in two at the middle of its
    // output so that the last round still has work for two threads.
    constexpr std::int64_t n_runs = 16;
    std::array<std::int64_t, n_runs + 1> start{};
    for (std::int64_t r = 0; r <= n_runs; ++r) start[std::size_t(r)] = n * r / n_runs;
    parallel_for(n_runs, n_threads, [&](std::int64_t r) {
        SortScratch scratch;
        const std::int64_t first = start[std::size_t(r)], last = start[std::size_t(r) + 1];
        sort_scores(scores + first, last - first, nullptr, order + first, scratch);
        for (std::int64_t t = first; t < last; ++t) order[t] += std::int32_t(first);
    });
    const ByScore before{scores};
    std::vector<std::int32_t> merged(static_cast<std::size_t>(n));
    std::int32_t *source = order, *target = merged.data();
    for (std::int64_t width = 1; width < n_runs; width *= 2) {
        const std::int64_t n_merges = n_runs / (2 * width);
        parallel_for(2 * n_merges, n_threads, [&](std::int64_t task) {
            const std::int64_t m = task / 2, first = start[std::size_t(2 * width * m)],
                               middle = start[std::size_t(2 * width * m + width)],
                               last = start[std::size_t(2 * width * (m + 1))];
            // The half of the output that this task writes begins where `left` rows of the first run
            // and half - left of the second one have gone.
            const std::int64_t half = (last - first) / 2;
            std::int64_t low = std::max<std::int64_t>(0, half - (last - middle)),
                         high = std::min(half, middle - first);
            while (low < high) {
                const std::int64_t left = (low + high) / 2;
                if (before(source[first + left], source[middle + half - left - 1])) low = left + 1;
                else high = left;
            }
            const std::int64_t split_a = first + low, split_b = middle + half - low;
            if (task % 2 == 0)
                std::merge(source + first, source + split_a, source + middle, source + split_b,
                           target + first, before);
            else
                std::merge(source + split_a, source + middle, source + split_b, source + last,
                           target + first + half, before);
        });
        std::swap(source, target);
    }
    if (source != order) std::copy(source, source + n, order);
}

}  // namespace linrank
