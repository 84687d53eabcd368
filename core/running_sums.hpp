// A row of a range in proportion to its weight, by binary search in running sums.
#pragma once
#include <algorithm>
#include <cstdint>
#include <limits>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "pages.hpp"

namespace linrank {

/// Sums of weights that start anew at the restarts (increasing, from 0).
class RunningSums {
  public:
    /// Places first .. first + n, and the sums before and at their end: a place lies where a number
    /// between these falls.
    struct Range {
        std::int64_t first, n;
        double low, high;
    };

    /// Throws std::invalid_argument for weights that are negative or not finite, and for disorder.
    RunningSums(std::span<const double> weights, std::span<const std::int64_t> restarts)
        : restarts_(restarts.begin(), restarts.end()), sums_(weights.size()) {
        if (restarts_.empty() || restarts_.front() != 0 || !std::is_sorted(restarts_.begin(), restarts_.end()))
            throw std::invalid_argument("restarts of the running sums must increase from 0");
        auto restart = restarts_.begin();
        double sum = 0.0;
        for (std::size_t t = 0; t < weights.size(); ++t) {
            if (!(weights[t] >= 0.0 && weights[t] <= std::numeric_limits<double>::max()))
                throw std::invalid_argument("row weight " + std::to_string(t) + " must be finite and >= 0, got " +
                                            std::to_string(weights[t]));
            for (; restart != restarts_.end() && *restart == std::int64_t(t); ++restart) sum = 0.0;
            sums_[t] = sum += weights[t];
        }
    }

    std::size_t size() const { return sums_.size(); }

    /// Throws std::invalid_argument if the range crosses a restart, or if nothing in it has weight.
    Range range(std::int64_t first, std::int64_t n) const {
        const auto next = std::upper_bound(restarts_.begin(), restarts_.end(), first);
        if (next != restarts_.end() && *next < first + n)
            throw std::invalid_argument("the rows of a cell cross a restart of the running sums at " +
                                        std::to_string(*next));
        const double low = *(next - 1) == first ? 0.0 : sums_[first - 1];
        const double high = sums_[first + n - 1];
        if (!(low < high && high <= std::numeric_limits<double>::max()))
            throw std::invalid_argument("the weights of elements " + std::to_string(first) + " to " +
                                        std::to_string(first + n - 1) + " of the rows vanish or overflow");
        return {first, n, low, high};
    }

    /// The search for the first place of a range whose sum exceeds `target`; done when n is 1.
    struct Search {
        const double *base;
        std::int64_t n;
        double target;
    };

    /// For a uniform number of [low, high): what has weight zero adds nothing and is never found.
    Search search(const Range &range, std::uint64_t bits) const {
        const double drawn = range.low + double(bits >> 11) * 0x1p-53 * (range.high - range.low);
        __builtin_prefetch(sums_.data() + range.first + range.n / 2);
        // Rounding may lift the last numbers to the end of the range, where nothing exceeds them.
        return {sums_.data() + range.first, range.n, drawn < range.high ? drawn : range.low};
    }
    std::int64_t place(const Search &done) const { return done.base - sums_.data(); }

    /// All searches step by step together, so that their waits for memory overlap. No branch on the data:
    /// one that is mispredicted costs more than the step.
    static void finish(std::span<Search> searches) {
        std::int64_t longest = 1;
        for (const Search &search : searches) longest = std::max(longest, search.n);
        for (; longest > 1; longest -= longest / 2) {
            for (Search &search : searches) {
                const std::int64_t half = search.n / 2;  // 0 once n is 1: nothing moves any more
                search.base += half & -std::int64_t(search.base[half - (search.n > 1)] <= search.target);
                search.n -= half;
                __builtin_prefetch(search.base + search.n / 2);
            }
        }
    }

  private:
    std::vector<std::int64_t> restarts_;
    PageArray<double> sums_;
};

}  // namespace linrank
