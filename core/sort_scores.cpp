#include "sort_scores.hpp"

#include "pages.hpp"
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
        const auto a = ordered_bits<std::uint64_t>(scores[i]), b = ordered_bits<std::uint64_t>(scores[j]);
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

/// Buckets of equal width, fewer than one score a bucket, then insertion: a single pass where a radix sort takes
/// four. False where scores crowd in few buckets, or one of them or their range is not finite.
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
    // Rounding never turns two scores around, so that a bucket holds none that belongs before an earlier
    // one; that of the highest score may exceed the last by one unit of rounding, not by a bucket.
    for (Index i = 0; i < n; ++i) {
        scratch.bucket[i] = std::int32_t((scores[i] - low) * scale);
        ++scratch.start[scratch.bucket[i] + 1];
    }
    std::partial_sum(scratch.start.begin(), scratch.start.end(), scratch.start.begin());
    for (Index i = 0; i < n; ++i)
        scratch.rows[scratch.start[scratch.bucket[i]]++] = {scores[i], std::int32_t(i)};
    const auto before = [](const SortScratch::Row &a, const SortScratch::Row &b) { return a.score < b.score; };
    if (!insertion_sort(before, n, scratch.rows.data(), 4 * n + 64)) return false;
    for (Index t = 0; t < n; ++t) order[t] = scratch.rows[t].index;
    return true;
}

}  // namespace

void sort_scores(const double *scores, Index n, const std::int32_t *guess,
                 std::int32_t *order, SortScratch &scratch) {
    constexpr Index longest_in_cache = 1 << 13;  // beyond it the buckets leave the cache
    const ByScore before{scores};
    if (guess) {
        std::copy(guess, guess + n, order);
        // Beyond some moves a row the sort below is the faster one.
        if (insertion_sort(before, n, order, 8 * n)) return;
    }
    if (n > 0 && n < longest_in_cache && sort_by_buckets(scores, n, order, scratch)) return;
    scratch.keys.resize(n);
    scratch.spare.resize(n);
    std::uint64_t *keys = scratch.keys.data();
    for (Index t = 0; t < n; ++t) keys[t] = key_of(scores[t], t);
    radix_sort(keys, scratch.spare.data(), n);
    for (Index t = 0; t < n; ++t) order[t] = std::int32_t(keys[t] & 0xffffffffu);
    // Scores that round to the same float may still be swapped: almost sorted, unless contrived.
    if (insertion_sort(before, n, order, 8 * n + 64)) return;
    std::sort(order, order + n, ByBits{scores});
}

namespace {

/// Where the output of a merge is cut: `taken` rows of the first run and at - taken of the second one are
/// the first `at` of both. No two keys are equal.
Index taken_of_first(const std::uint64_t *a, Index n_a, const std::uint64_t *b,
                            Index n_b, Index at) {
    Index low = std::max<Index>(0, at - n_b), high = std::min(at, n_a);
    while (low < high) {
        const Index taken = (low + high) / 2;
        if (a[taken] < b[at - taken - 1]) low = taken + 1;
        else high = taken;
    }
    return low;
}

/// The rows of the places [first, last) of sorted keys, and those that are equal as floats by their doubles.
void order_equal_floats(const ByScore &before, const std::uint64_t *keys, Index first, Index last,
            std::int32_t *order) {
    for (Index end; first < last; first = end) {
        const std::uint64_t score = keys[first] >> 32;
        for (end = first; end < last && keys[end] >> 32 == score; ++end)
            order[end] = std::int32_t(keys[end] & 0xffffffffu);
        if (end - first > 1 && !insertion_sort(before, end - first, order + first, 8 * (end - first) + 64))
            std::sort(order + first, order + end, ByBits{before.scores});
    }
}

}  // namespace

// Runs of keys are sorted and merged by all threads: a key holds its score, so that nothing looks at the
// scores, out of cache and in random order, until rows equal as floats are left.
void sort_scores_parallel(const double *scores, Index n, std::int32_t *order, int n_threads) {
    constexpr Index n_runs = 16;
    const auto start = [n](Index run) { return n * run / n_runs; };
    PageArray<std::uint64_t> keys(n, huge_pages),
        spare(std::size_t(n), huge_pages);
    parallel_for(n_runs, n_threads, [&](Index r) {
        for (Index t = start(r); t < start(r + 1); ++t) keys[t] = key_of(scores[t], t);
        radix_sort(keys.data() + start(r), spare.data() + start(r), start(r + 1) - start(r));
    });
    std::uint64_t *source = keys.data(), *target = spare.data();
    for (Index width = 1; width < n_runs; width *= 2) {
        // Each merge is cut at equal shares of its output: always sixteen tasks.
        parallel_for(n_runs, n_threads, [&](Index task) {
            const Index merge = task / (2 * width), part = task % (2 * width);
            const Index first = start(2 * width * merge), middle = start(2 * width * merge + width),
                               last = start(2 * width * (merge + 1));
            const std::uint64_t *a = source + first, *b = source + middle;
            const Index begin = (last - first) * part / (2 * width),
                               end = (last - first) * (part + 1) / (2 * width);
            const Index a_begin = taken_of_first(a, middle - first, b, last - middle, begin),
                               a_end = taken_of_first(a, middle - first, b, last - middle, end);
            std::merge(a + a_begin, a + a_end, b + (begin - a_begin), b + (end - a_end),
                       target + first + begin);
        });
        std::swap(source, target);
    }
    // A part begins where a new float does.
    const auto part = [&](Index p) -> Index {
        const Index t = start(p);
        if (t == 0 || t == n) return t;
        return std::upper_bound(source + t, source + n, source[t - 1] | 0xffffffffu) - source;
    };
    parallel_for(n_runs, n_threads, [&](Index p) {
        order_equal_floats(ByScore{scores}, source, part(p), part(p + 1), order);
    });
}

}  // namespace linrank
