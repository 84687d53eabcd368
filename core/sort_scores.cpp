#include "sort_scores.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <utility>

#include "parallel.hpp"

namespace linrank {
namespace {

/// An unsigned number that grows with x.
std::uint32_t ordered_bits(float x) {
    // -0 and 0 are equal scores and must get equal keys.
    const auto bits = std::bit_cast<std::uint32_t>(x == 0.0f ? 0.0f : x);
    return bits ^ ((bits >> 31) ? 0xffffffffu : 0x80000000u);
}

/// Least significant digit first, three digits of 11 bits: about four times a comparison sort at 10^3 keys.
void radix_sort(std::uint64_t *keys, std::uint64_t *spare, std::int64_t n) {
    constexpr int bits = 11, n_buckets = 1 << bits;
    std::array<std::array<std::uint32_t, n_buckets>, 3> counts{};
    for (std::int64_t t = 0; t < n; ++t)
        for (int digit = 0; digit < 3; ++digit)
            ++counts[digit][(keys[t] >> (32 + bits * digit)) & (n_buckets - 1)];
    for (int digit = 0; digit < 3; ++digit) {
        std::uint32_t start = 0;
        for (auto &count : counts[digit]) start += std::exchange(count, start);
        for (std::int64_t t = 0; t < n; ++t)
            spare[counts[digit][(keys[t] >> (32 + bits * digit)) & (n_buckets - 1)]++] = keys[t];
        std::swap(keys, spare);
    }
    // Three passes: the result lies in what was the spare array.
    std::copy(keys, keys + n, spare);
}

/// Finishes an order that is right up to float32: scores that round to the same float may still be
/// swapped. Almost sorted, so insertion is linear; false if it turns out not to be.
bool insertion_sort(const double *scores, std::int64_t n, std::int32_t *order) {
    std::int64_t budget = 8 * n + 64;
    for (std::int64_t t = 1; t < n; ++t) {
        const std::int32_t i = order[t];
        const double s = scores[i];
        std::int64_t slot = t;
        for (; slot > 0 && scores[order[slot - 1]] > s; --slot) order[slot] = order[slot - 1];
        order[slot] = i;
        budget -= t - slot;
        if (budget < 0) return false;
    }
    return true;
}

struct ByScore {
    const double *scores;
    bool operator()(std::int32_t i, std::int32_t j) const {
        return scores[i] < scores[j] || (scores[i] == scores[j] && i < j);
    }
};

}  // namespace

void sort_scores(const double *scores, std::int64_t n, std::int32_t *order, SortScratch &scratch) {
    // A key is the score as float32 above the index: one comparison of integers, and stable.
    scratch.keys.resize(static_cast<std::size_t>(n));
    std::uint64_t *keys = scratch.keys.data();
    for (std::int64_t t = 0; t < n; ++t)
        keys[t] = std::uint64_t(ordered_bits(float(scores[t]))) << 32 | std::uint32_t(t);
    if (n < 400) {
        std::sort(keys, keys + n);
    } else {
        scratch.spare.resize(static_cast<std::size_t>(n));
        radix_sort(keys, scratch.spare.data(), n);
    }
    for (std::int64_t t = 0; t < n; ++t) order[t] = std::int32_t(keys[t] & 0xffffffffu);
    if (!insertion_sort(scores, n, order)) std::sort(order, order + n, ByScore{scores});
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
        sort_scores(scores + first, last - first, order + first, scratch);
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
