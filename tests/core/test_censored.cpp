// Comparable pairs of censored times against a loop over all of them.
#include <cmath>
#include <memory>

#include "metrics.hpp"
#include "check.hpp"

using namespace linrank;
using namespace linrank_test;

namespace {

struct Case {
    std::vector<std::int64_t> offsets{0};
    std::unique_ptr<bool[]> event;
    std::vector<double> time, risk;
};

Case draw_case(Rng &rng) {
    Case c;
    const std::int64_t n_strata = draw(rng, 1, 4);
    for (std::int64_t q = 0; q < n_strata; ++q)
        c.offsets.push_back(c.offsets.back() + draw(rng, 0, 30));
    const auto n = static_cast<std::size_t>(c.offsets.back());
    c.event = std::make_unique<bool[]>(n + 1);
    for (std::size_t i = 0; i < n; ++i) {
        c.event[i] = draw(rng, 0, 1) == 1;
        c.time.push_back(static_cast<double>(draw(rng, 0, 9)));
        c.risk.push_back(0.25 * static_cast<double>(draw(rng, -8, 8)));
    }
    return c;
}

CensoredCounts by_definition(const Case &c, double tolerance) {
    CensoredCounts counts;
    for (std::size_t q = 0; q + 1 < c.offsets.size(); ++q)
        for (auto a = c.offsets[q]; a < c.offsets[q + 1]; ++a)
            for (auto b = c.offsets[q]; b < c.offsets[q + 1]; ++b) {
                const auto i = static_cast<std::size_t>(a), j = static_cast<std::size_t>(b);
                const bool at_once = c.time[i] == c.time[j] && !c.event[j];
                if (!c.event[i] || !(c.time[j] > c.time[i] || at_once)) continue;
                const bool tied = std::abs(c.risk[i] - c.risk[j]) <= tolerance;
                counts.tied += tied;
                counts.concordant += !tied && c.risk[i] > c.risk[j];
                counts.discordant += !tied && c.risk[i] < c.risk[j];
                counts.tied_time += at_once;
            }
    return counts;
}

}  // namespace

int main() {
    Rng rng(1);
    for (int round = 0; round < 300; ++round) {
        const Case c = draw_case(rng);
        for (const double tolerance : {0.0, 0.25, 0.3, 100.0}) {
            const CensoredCounts got = censored_concordance(
                c.offsets, {{c.event.get(), c.time.size()}, c.time, c.risk, tolerance});
            const CensoredCounts truth = by_definition(c, tolerance);
            CHECK(got.concordant == truth.concordant);
            CHECK(got.discordant == truth.discordant);
            CHECK(got.tied == truth.tied);
            CHECK(got.tied_time == truth.tied_time);
        }
    }
    return 0;
}
