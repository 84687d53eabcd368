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
        const double low = *(next - 1) == first ? 0.0 : sums_[std::size_t(first - 1)];
        const double high = sums_[std::size_t(first + n - 1)];
        if (!(low < high && high <= std::numeric_limits<double>::max()))
            throw std::invalid_argument("the weights of elements " + std::to_string(first) + " to " +
                                        std::to_string(first + n - 1) + " of the rows vanish or overflow");
        return {first, n, low, high};
    }

    /// The first place of the range whose sum exceeds a uniform number of [low, high): what has weight
    /// zero adds nothing and is never found.
    std::int64_t find(const Range &range, std::uint64_t bits) const {
        const double drawn = range.low + double(bits >> 11) * 0x1p-53 * (range.high - range.low);
        const double target = drawn < range.high ? drawn : range.low;  // rounded up, once in 2⁵³ times
        const double *base = sums_.data() + range.first;
        // No branch on the data: a mispredicted one costs more than the whole step.
        for (std::int64_t n = range.n; n > 1;) {
            const std::int64_t half = n / 2;
            base += half & -std::int64_t(base[half - 1] <= target);
            n -= half;
        }
        return base - sums_.data();
    }

  private:
    std::vector<std::int64_t> restarts_;
    PageArray<double> sums_;
};

}  // namespace linrank
