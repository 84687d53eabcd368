#include "concordance.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "fenwick.hpp"
#include "parallel.hpp"

namespace linrank {

namespace {

Concordance concordance_of_query(std::span<const std::int32_t> levels,
                                 std::span<const double> scores, std::span<const double> weight) {
    const auto n = std::int64_t(levels.size());
    std::vector<std::int64_t> by_score(n);
    std::iota(by_score.begin(), by_score.end(), std::int64_t{0});
    std::sort(by_score.begin(), by_score.end(), [&](std::int64_t a, std::int64_t b) {
        return scores[a] != scores[b] ? scores[a] > scores[b] : a < b;
    });
    const std::int64_t top = n == 0 ? 0 : *std::max_element(levels.begin(), levels.end());
    // The rows with higher scores, from the lowest level up and from the highest down.
    FenwickTree<double> up(top + 1), down(top + 1);
    std::vector<double> at_level(top + 1);  // of the group of equal scores; zero between groups
    Concordance result;
    for (std::int64_t begin = 0, end = 0; begin < n; begin = end) {
        double group = 0.0;
        do {
            const std::int64_t i = by_score[end];
            const std::int32_t r = levels[i];
            result.right += weight[i] * down.sum_below(top - r);
            result.wrong += weight[i] * up.sum_below(r);
            result.tied += weight[i] * std::max(0.0, group - at_level[r]);
            group += weight[i];
            at_level[r] += weight[i];
        } while (++end < n && scores[by_score[end]] == scores[by_score[begin]]);
        for (std::int64_t t = begin; t < end; ++t) {
            const std::int64_t i = by_score[t];
            up.add(levels[i], weight[i]);
            down.add(top - levels[i], weight[i]);
            at_level[levels[i]] = 0.0;
        }
    }
    return result;
}

}  // namespace

Concordance weighted_concordance(std::span<const std::int64_t> offsets,
                                 std::span<const std::int32_t> levels,
                                 std::span<const double> scores, std::span<const double> weight) {
    Concordance total;
    for (std::size_t q = 0; q + 1 < offsets.size(); ++q) {
        const auto size = std::size_t(offsets[q + 1] - offsets[q]);
        const auto first = std::size_t(offsets[q]);
        const Concordance part = concordance_of_query(
            levels.subspan(first, size), scores.subspan(first, size), weight.subspan(first, size));
        add_sums(total, part);
    }
    return total;
}

namespace {

struct Stratum {
    std::span<const bool> event;
    std::span<const double> time;
    std::span<const double> risk;
    double tolerance;
    std::vector<double> sorted;  // the risks, ascending

    std::int64_t place(std::size_t i) const {
        return std::lower_bound(sorted.begin(), sorted.end(), risk[i]) - sorted.begin();
    }

    bool is_tied(double a, double b) const { return a == b || std::abs(a - b) <= tolerance; }

    /// Compares i with all that outlast it, counted by the places of their risks. The rounded difference to
    /// risk_i grows with the risk, so the tied ones are a range of the sorted risks.
    void compare(std::size_t i, const FenwickTree<std::int64_t> &longer, CensoredCounts &counts) const {
        const double own = risk[i];
        const auto first = std::partition_point(sorted.begin(), sorted.end(), [&](double other) {
            return other < own && !is_tied(other, own);
        });
        const auto last = std::partition_point(first, sorted.end(), [&](double other) {
            return other <= own || is_tied(other, own);
        });
        const std::int64_t below = longer.sum_below(first - sorted.begin());
        const std::int64_t upto = longer.sum_below(last - sorted.begin());
        counts.concordant += below;
        counts.tied += upto - below;
        counts.discordant += longer.sum_below(std::int64_t(sorted.size())) - upto;
    }
};

void count_stratum(const Stratum &s, CensoredCounts &counts) {
    const std::size_t n = s.time.size();
    std::vector<std::size_t> by_time(n);
    std::iota(by_time.begin(), by_time.end(), std::size_t{0});
    std::sort(by_time.begin(), by_time.end(), [&](std::size_t a, std::size_t b) {
        return s.time[a] != s.time[b] ? s.time[a] > s.time[b] : a < b;
    });
    FenwickTree<std::int64_t> longer{std::int64_t(n)};
    for (std::size_t begin = 0, end = 0; begin < n; begin = end) {
        std::int64_t n_censored = 0;
        for (end = begin; end < n && s.time[by_time[end]] == s.time[by_time[begin]]; ++end)
            if (!s.event[by_time[end]]) {
                longer.add(s.place(by_time[end]), 1);
                ++n_censored;
            }
        for (std::size_t t = begin; t < end; ++t)
            if (s.event[by_time[t]]) {
                s.compare(by_time[t], longer, counts);
                counts.tied_time += n_censored;
            }
        for (std::size_t t = begin; t < end; ++t)
            if (s.event[by_time[t]]) longer.add(s.place(by_time[t]), 1);
    }
}

}  // namespace

CensoredCounts censored_concordance(std::span<const std::int64_t> offsets,
                                    std::span<const bool> event, std::span<const double> time,
                                    std::span<const double> risk, double tolerance) {
    CensoredCounts counts;
    for (std::size_t q = 0; q + 1 < offsets.size(); ++q) {
        const auto first = std::size_t(offsets[q]);
        const auto size = std::size_t(offsets[q + 1]) - first;
        Stratum stratum{event.subspan(first, size), time.subspan(first, size),
                        risk.subspan(first, size), tolerance, {}};
        stratum.sorted.assign(stratum.risk.begin(), stratum.risk.end());
        std::sort(stratum.sorted.begin(), stratum.sorted.end());
        count_stratum(stratum, counts);
    }
    return counts;
}

}  // namespace linrank
