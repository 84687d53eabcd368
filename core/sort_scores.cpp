#include "queries.hpp"

#include "pages.hpp"

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
void radix_sort(std::uint64_t *keys, std::uint64_t *spare, Index n) {
    constexpr int bits = 11, n_digits = (32 + bits - 1) / bits;
    constexpr std::uint64_t mask = (1u << bits) - 1;
    std::array<std::array<std::uint32_t, mask + 1>, n_digits> counts{};
    for (Index t = 0; t < n; ++t)
        for (int digit = 0; digit < n_digits; ++digit)
            ++counts[digit][(keys[t] >> (32 + bits * digit)) & mask];
    for (int digit = 0; digit < n_digits; ++digit) {
        std::uint32_t start = 0;
        for (auto &count : counts[digit]) start += std::exchange(count, start);
        for (Index t = 0; t < n; ++t)
            spare[counts[digit][(keys[t] >> (32 + bits * digit)) & mask]++] = keys[t];
        std::swap(keys, spare);
    }
    std::copy(keys, keys + n, spare);  // the number of digits is odd
}

struct ByScore {
    const double *scores;
    bool operator()(std::int32_t i, std::int32_t j) const {
        return scores[i] < scores[j] || (scores[i] == scores[j] && i < j);
    }
};

/// The order of ordered_bits: std::sort leaves its range when a NaN contradicts the order.
struct ByBits {
    const double *scores;
    bool operator()(std::int32_t i, std::int32_t j) const {
        const auto a = ordered_bits<std::uint64_t>(scores[i]),
            b = ordered_bits<std::uint64_t>(scores[j]);
        return a < b || (a == b && i < j);
    }
};

/// The score as float32 above the index: one comparison of integers.
std::uint64_t key_of(double score, Index index) {
    return std::uint64_t(ordered_bits<std::uint32_t>(float(score))) << 32 | std::uint32_t(index);
}

/// Insertion sort; gives up, with a valid permutation, after `budget` moves.
template <class T, class Before>
bool insertion_sort(const Before &before, Index n, T *order, Index budget) {
    for (Index t = 1; t < n; ++t) {
        const T element = order[t];
        Index slot = t;
        for (; slot > 0 && before(element, order[slot - 1]); --slot) order[slot] = order[slot - 1];
        order[slot] = element;
        if ((budget -= t - slot) < 0) return false;
    }
    return true;
}

/// Buckets of equal width, fewer than one score a bucket, then insertion: a single pass where a
/// radix sort takes four. False where scores crowd in few buckets, or one of them or their range is
/// not finite.
bool sort_by_buckets(const double *scores, Index n, std::int32_t *order, SortScratch &scratch) {
    const Index n_buckets = 4 * n;
    double low = std::numeric_limits<double>::infinity(), high = -low, sum = 0.0;
    for (Index i = 0; i < n; ++i) {
        low = std::min(low, scores[i]);
        high = std::max(high, scores[i]);
        sum += scores[i] * 0.0;  // NaN where a score is
    }
    const double scale = double(n_buckets - 1) / (high - low);
    if (!(scale > 0.0 && scale <= std::numeric_limits<double>::max() && sum == 0.0)) return false;
    scratch.rows.resize(n);
    scratch.bucket.resize(n);
    scratch.start.assign(n_buckets + 1, 0);
    // Rounding never turns two scores around, so that a bucket holds none that belongs before an
    // earlier one; that of the highest score may exceed the last by one unit of rounding, not by a
    // bucket.
    for (Index i = 0; i < n; ++i) {
        scratch.bucket[i] = std::int32_t((scores[i] - low) * scale);
        ++scratch.start[scratch.bucket[i] + 1];
    }
    std::partial_sum(scratch.start.begin(), scratch.start.end(), scratch.start.begin());
    for (Index i = 0; i < n; ++i)
        scratch.rows[scratch.start[scratch.bucket[i]]++] = {scores[i], std::int32_t(i)};
    const auto before = [](const SortScratch::Row &a, const SortScratch::Row &b) {
        return a.score < b.score;
    };
    if (!insertion_sort(before, n, scratch.rows.data(), 4 * n + 64)) return false;
    for (Index t = 0; t < n; ++t) order[t] = scratch.rows[t].index;
    return true;
}

/// order = the rows of sorted keys, those that are equal as floats by their doubles.
void order_keys(const double *scores, std::span<const std::uint64_t> keys, std::int32_t *order) {
    const ByScore before{scores};
    for (std::size_t first = 0, end; first < keys.size(); first = end) {
        const std::uint64_t score = keys[first] >> 32;
        for (end = first; end < keys.size() && keys[end] >> 32 == score; ++end)
            order[end] = std::int32_t(keys[end] & 0xffffffffu);
        const auto n = Index(end - first);
        if (n > 1 && !insertion_sort(before, n, order + first, 8 * n + 64))
            std::sort(order + first, order + end, ByBits{scores});
    }
}

}  // namespace

void sort_scores(const double *scores, Index n, const std::int32_t *guess, std::int32_t *order,
                 SortScratch &scratch) {
    constexpr Index longest_in_cache = 1 << 13;  // beyond it the buckets leave the cache
    if (guess) {
        std::copy(guess, guess + n, order);
        // Beyond some moves a row the sort below is the faster one.
        if (insertion_sort(ByScore{scores}, n, order, 8 * n)) return;
    }
    if (n > 0 && n < longest_in_cache && sort_by_buckets(scores, n, order, scratch)) return;
    scratch.keys.resize(n);
    scratch.spare.resize(n);
    std::uint64_t *keys = scratch.keys.data();
    for (Index t = 0; t < n; ++t) keys[t] = key_of(scores[t], t);
    radix_sort(keys, scratch.spare.data(), n);
    order_keys(scores, scratch.keys, order);
}

// Keys are cut into buckets of about equal size, which threads sort side by side: a key holds its
// score, so that nothing looks at the scores, out of cache and in random order, until rows equal as
// floats are left.
void sort_scores_parallel(const double *scores, Index n, std::int32_t *order, int n_threads) {
    constexpr Index n_parts = 16, n_buckets = 64, n_samples = 32 * n_buckets;
    PageArray<std::uint64_t> keys(n, huge_pages), sorted(n, huge_pages);
    for_parts(n, n_parts, n_threads, [&](Index, Index first, Index last) {
        for (Index t = first; t < last; ++t) keys[t] = key_of(scores[t], t);
    });
    std::array<std::uint64_t, n_samples> sample;
    for (Index k = 0; k < n_samples; ++k) sample[k] = n > 0 ? keys[n * k / n_samples] >> 32 : 0;
    std::ranges::sort(sample);
    // of scores as floats: equal ones share a bucket
    std::array<std::uint64_t, n_buckets - 1> bounds;
    for (Index b = 1; b < n_buckets; ++b) bounds[b - 1] = sample[b * n_samples / n_buckets];
    const auto bucket_of = [&](std::uint64_t key) {  // without a branch
        Index bucket = 0;
        for (Index half = n_buckets / 2; half > 0; half /= 2)
            bucket += bounds[bucket + half - 1] <= key >> 32 ? half : 0;
        return bucket;
    };
    // Where the keys of each part go: bucket by bucket, and part by part in each, so that they stay
    // by index.
    std::array<std::array<Index, n_buckets>, n_parts> place{};
    for_parts(n, n_parts, n_threads, [&](Index part, Index first, Index last) {
        for (Index t = first; t < last; ++t) ++place[part][bucket_of(keys[t])];
    });
    std::array<Index, n_buckets + 1> start{};
    for (Index b = 0; b < n_buckets; ++b) {
        start[b + 1] = start[b];
        for (auto &own : place) start[b + 1] += std::exchange(own[b], start[b + 1]);
    }
    for_parts(n, n_parts, n_threads, [&](Index part, Index first, Index last) {
        for (Index t = first; t < last; ++t) sorted[place[part][bucket_of(keys[t])]++] = keys[t];
    });
    parallel_for(n_buckets, n_threads, [&](Index b) {
        const Index first = start[b], size = start[b + 1] - first;
        radix_sort(sorted.data() + first, keys.data() + first, size);
        order_keys(scores, {sorted.data() + first, std::size_t(size)}, order + first);
    });
}

}  // namespace linrank
