#include "concordance.hpp"

#include "fenwick.hpp"

namespace linrank {

namespace {

/// The positions [begin, end) from the highest value down, equal ones as they come.
std::vector<Index> descending(Doubles values, Index begin, Index end) {
    std::vector<Index> positions(end - begin);
    std::iota(positions.begin(), positions.end(), begin);
    std::ranges::stable_sort(positions, std::greater(), [&](Index t) { return values[t]; });
    return positions;
}

Concordance concordance_of_query(const Queries &queries, Index q, Doubles scores) {
    const std::vector<Index> by_score = descending(scores, queries.begin(q), queries.begin(q + 1));
    const Levels levels = queries.levels;
    std::int32_t top = 0;
    for (const Index t : by_score) top = std::max(top, levels[t]);
    // The rows with higher scores, from the lowest level up and from the highest down.
    FenwickTree<double> up(top + 1), down(top + 1);
    std::vector<double> at_level(top + 1);  // of the group of equal scores; zero between groups
    Concordance result;
    for (auto begin = by_score.begin(), end = begin; begin != by_score.end(); begin = end) {
        double group = 0.0;
        for (; end != by_score.end() && scores[*end] == scores[*begin]; ++end) {
            const double u = queries.u(*end);
            const std::int32_t r = levels[*end];
            result.right += u * down.sum_below(top - r);
            result.wrong += u * up.sum_below(r);
            result.tied += u * std::max(0.0, group - at_level[r]);
            group += u;
            at_level[r] += u;
        }
        for (const Index t : std::span(begin, end)) {
            up.add(levels[t], queries.u(t));
            down.add(top - levels[t], queries.u(t));
            at_level[levels[t]] = 0.0;
        }
    }
    return result;
}

/// The positions [begin, end) of a stratum.
class Stratum {
public:
    Stratum(const Times &times, Index begin, Index end)
        : times_(times), by_time_(descending(times.time, begin, end)), longer_(end - begin),
          risks_(times.risk.begin() + begin, times.risk.begin() + end) {
        std::ranges::sort(risks_);
    }

    void count(CensoredCounts &counts) {
        const auto &[event, time, risk, tolerance] = times_;
        for (auto begin = by_time_.begin(), end = begin; begin != by_time_.end(); begin = end) {
            Index n_censored = 0;
            for (; end != by_time_.end() && time[*end] == time[*begin]; ++end)
                if (!event[*end]) {
                    longer_.add(place(*end), 1);
                    ++n_censored;
                }
            for (const Index t : std::span(begin, end))
                if (event[t]) {
                    compare(risk[t], counts);
                    counts.tied_time += n_censored;
                }
            for (const Index t : std::span(begin, end))
                if (event[t]) longer_.add(place(t), 1);
        }
    }

private:
    Index place(Index t) const {
        return std::ranges::lower_bound(risks_, times_.risk[t]) - risks_.begin();
    }

    /// Compares a row of this risk with all that outlast it, counted by the places of their risks.
    /// The rounded difference to it grows with the risk, so the tied ones are a range of the sorted
    /// risks.
    void compare(double own, CensoredCounts &counts) const {
        const auto is_tied = [&](double other) {
            return other == own || std::abs(other - own) <= times_.tolerance;
        };
        const auto n_where = [&](const auto &holds) {  // it holds for the lowest risks
            return longer_.sum_below(std::ranges::partition_point(risks_, holds) - risks_.begin());
        };
        const Index below = n_where([&](double other) { return other < own && !is_tied(other); });
        const Index upto = n_where([&](double other) { return other <= own || is_tied(other); });
        counts.concordant += below;
        counts.tied += upto - below;
        counts.discordant += longer_.sum_below(std::ssize(risks_)) - upto;
    }

    const Times &times_;
    std::vector<Index> by_time_;
    FenwickTree<Index> longer_;
    std::vector<double> risks_;  // ascending
};

}  // namespace

Concordance weighted_concordance(const Queries &queries, Doubles scores) {
    Concordance total;
    for (Index q = 0; q < queries.n_queries(); ++q)
        add_sums(total, concordance_of_query(queries, q, scores));
    return total;
}

CensoredCounts censored_concordance(Integers offsets, const Times &times) {
    CensoredCounts counts;
    for (std::size_t q = 0; q + 1 < offsets.size(); ++q)
        Stratum(times, offsets[q], offsets[q + 1]).count(counts);
    return counts;
}

}  // namespace linrank
