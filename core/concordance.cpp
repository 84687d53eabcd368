#include "concordance.hpp"

#include "fenwick.hpp"
#include "parallel.hpp"

namespace linrank {

namespace {

Concordance concordance_of_query(Levels levels, Doubles scores, Doubles weight) {
    const auto n = Index(levels.size());
    std::vector<Index> by_score(n);
    std::iota(by_score.begin(), by_score.end(), Index{0});
    std::sort(by_score.begin(), by_score.end(), [&](Index a, Index b) {
        return scores[a] != scores[b] ? scores[a] > scores[b] : a < b;
    });
    const Index top = n == 0 ? 0 : *std::max_element(levels.begin(), levels.end());
    // The rows with higher scores, from the lowest level up and from the highest down.
    FenwickTree<double> up(top + 1), down(top + 1);
    std::vector<double> at_level(top + 1);  // of the group of equal scores; zero between groups
    Concordance result;
    for (Index begin = 0, end = 0; begin < n; begin = end) {
        double group = 0.0;
        do {
            const Index i = by_score[end];
            const std::int32_t r = levels[i];
            result.right += weight[i] * down.sum_below(top - r);
            result.wrong += weight[i] * up.sum_below(r);
            result.tied += weight[i] * std::max(0.0, group - at_level[r]);
            group += weight[i];
            at_level[r] += weight[i];
        } while (++end < n && scores[by_score[end]] == scores[by_score[begin]]);
        for (Index t = begin; t < end; ++t) {
            const Index i = by_score[t];
            up.add(levels[i], weight[i]);
            down.add(top - levels[i], weight[i]);
            at_level[levels[i]] = 0.0;
        }
    }
    return result;
}

}  // namespace

Concordance weighted_concordance(Integers offsets, Levels levels, Doubles scores, Doubles weight) {
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
    Doubles time;
    Doubles risk;
    double tolerance;
    std::vector<double> sorted;  // the risks, ascending

    Index place(std::size_t i) const {
        return std::lower_bound(sorted.begin(), sorted.end(), risk[i]) - sorted.begin();
    }

    bool is_tied(double a, double b) const { return a == b || std::abs(a - b) <= tolerance; }

    /// Compares i with all that outlast it, counted by the places of their risks. The rounded difference to
    /// risk_i grows with the risk, so the tied ones are a range of the sorted risks.
    void compare(std::size_t i, const FenwickTree<Index> &longer, CensoredCounts &counts) const {
        const double own = risk[i];
        const auto first = std::partition_point(sorted.begin(), sorted.end(), [&](double other) {
            return other < own && !is_tied(other, own);
        });
        const auto last = std::partition_point(first, sorted.end(), [&](double other) {
            return other <= own || is_tied(other, own);
        });
        const Index below = longer.sum_below(first - sorted.begin());
        const Index upto = longer.sum_below(last - sorted.begin());
        counts.concordant += below;
        counts.tied += upto - below;
        counts.discordant += longer.sum_below(Index(sorted.size())) - upto;
    }
};

void count_stratum(const Stratum &s, CensoredCounts &counts) {
    const std::size_t n = s.time.size();
    std::vector<std::size_t> by_time(n);
    std::iota(by_time.begin(), by_time.end(), std::size_t{0});
    std::sort(by_time.begin(), by_time.end(), [&](std::size_t a, std::size_t b) {
        return s.time[a] != s.time[b] ? s.time[a] > s.time[b] : a < b;
    });
    FenwickTree<Index> longer{Index(n)};
    for (std::size_t begin = 0, end = 0; begin < n; begin = end) {
        Index n_censored = 0;
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

CensoredCounts censored_concordance(Integers offsets, std::span<const bool> event, Doubles time,
                                    Doubles risk, double tolerance) {
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
