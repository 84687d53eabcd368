#include "censored.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "fenwick.hpp"

namespace linrank {
namespace {

/// Those known to outlast the time at hand, by the places of their risks.
struct Longer {
    FenwickTree<std::int64_t> risks;
    std::int64_t total = 0;

    void add(std::size_t place) {
        ++total;
        risks.add(std::int64_t(place), 1);
    }
};

struct Stratum {
    std::span<const bool> event;
    std::span<const double> time;
    std::span<const double> risk;
    double tolerance;
    std::vector<double> sorted;  // the risks, ascending

    std::size_t place(std::size_t i) const {
        return static_cast<std::size_t>(
            std::lower_bound(sorted.begin(), sorted.end(), risk[i]) - sorted.begin());
    }

    bool is_tied(double a, double b) const { return a == b || std::abs(a - b) <= tolerance; }

    /// Compares i with all that outlast it. The rounded difference to risk_i grows with the risk, so
    /// the tied ones are a range of the sorted risks.
    void compare(std::size_t i, const Longer &longer, CensoredCounts &counts) const {
        const double own = risk[i];
        const auto first = std::partition_point(sorted.begin(), sorted.end(), [&](double other) {
            return other < own && !is_tied(other, own);
        });
        const auto last = std::partition_point(first, sorted.end(), [&](double other) {
            return other <= own || is_tied(other, own);
        });
        const std::int64_t below = longer.risks.sum_below(first - sorted.begin());
        const std::int64_t upto = longer.risks.sum_below(last - sorted.begin());
        counts.concordant += below;
        counts.tied += upto - below;
        counts.discordant += longer.total - upto;
    }
};

void count_stratum(const Stratum &s, CensoredCounts &counts) {
    const std::size_t n = s.time.size();
    std::vector<std::size_t> by_time(n);
    std::iota(by_time.begin(), by_time.end(), std::size_t{0});
    std::sort(by_time.begin(), by_time.end(), [&](std::size_t a, std::size_t b) {
        return s.time[a] != s.time[b] ? s.time[a] > s.time[b] : a < b;
    });
    Longer longer{FenwickTree<std::int64_t>(std::int64_t(n))};
    for (std::size_t begin = 0, end = 0; begin < n; begin = end) {
        std::int64_t n_censored = 0;
        for (end = begin; end < n && s.time[by_time[end]] == s.time[by_time[begin]]; ++end)
            if (!s.event[by_time[end]]) {
                longer.add(s.place(by_time[end]));
                ++n_censored;
            }
        for (std::size_t t = begin; t < end; ++t)
            if (s.event[by_time[t]]) {
                s.compare(by_time[t], longer, counts);
                counts.tied_time += n_censored;
            }
        for (std::size_t t = begin; t < end; ++t)
            if (s.event[by_time[t]]) longer.add(s.place(by_time[t]));
    }
}

}  // namespace

CensoredCounts censored_concordance(std::span<const std::int64_t> offsets,
                                    std::span<const bool> event, std::span<const double> time,
                                    std::span<const double> risk, double tolerance) {
    CensoredCounts counts;
    for (std::size_t q = 0; q + 1 < offsets.size(); ++q) {
        const auto first = static_cast<std::size_t>(offsets[q]);
        const auto size = static_cast<std::size_t>(offsets[q + 1]) - first;
        Stratum stratum{event.subspan(first, size), time.subspan(first, size),
                        risk.subspan(first, size), tolerance, {}};
        stratum.sorted.assign(stratum.risk.begin(), stratum.risk.end());
        std::sort(stratum.sorted.begin(), stratum.sorted.end());
        count_stratum(stratum, counts);
    }
    return counts;
}

}  // namespace linrank
