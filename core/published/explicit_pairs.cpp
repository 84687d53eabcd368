#include "explicit_pairs.hpp"

#include <algorithm>
#include <limits>
#include <stdexcept>

namespace linrank::published {

ExplicitPairs::ExplicitPairs(const PairProblem &p) : problem(p) {
    if (p.n_rows() > std::numeric_limits<std::int32_t>::max())
        throw std::invalid_argument("explicit pairs take at most 2^31 - 1 rows");
    for (std::int64_t q = 0; q < p.n_queries(); ++q) {
        if (p.has_pairs(q))
            for (std::int64_t i = p.begin(q); i < p.begin(q + 1); ++i)
                for (std::int64_t j = p.begin(q); j < p.begin(q + 1); ++j)
                    if (p.levels[i] > p.levels[j])
                        pairs.push_back({std::int32_t(i), std::int32_t(j)});
        offsets.push_back(pairs.size());
    }
}

ExplicitPairsPoint::ExplicitPairsPoint(const ExplicitPairs &list, std::span<const double> z)
    : LossPoint(z.size()), problem_(list.problem) {
    std::fill_n(gradient.data(), z.size(), 0.0);
    for (std::int64_t q = 0; q < problem_.n_queries(); ++q) {
        for (std::size_t t = list.offsets[q]; t < list.offsets[q + 1]; ++t) {
            const auto [i, j] = list.pairs[t];
            const double slack = (1.0 - z[i]) + z[j];
            if (!(slack > 0.0)) continue;
            violated_.push_back(list.pairs[t]);
            const double weight = problem_.c(q) * problem_.u(i) * problem_.u(j);
            n_violations += weight;
            sum_of_slacks += weight * slack;
            value += weight * slack * slack;
            gradient[i] -= 2.0 * weight * slack;
            gradient[j] += 2.0 * weight * slack;
        }
        offsets_.push_back(violated_.size());
    }
}

void ExplicitPairsPoint::multiply(std::span<const double> v, std::span<double> out) const {
    std::fill(out.begin(), out.end(), 0.0);
    for (std::int64_t q = 0; q < problem_.n_queries(); ++q)
        for (std::size_t t = offsets_[q]; t < offsets_[q + 1]; ++t) {
            const std::size_t i = std::size_t(violated_[t].preferred);
            const std::size_t j = std::size_t(violated_[t].other);
            const double weight =
                problem_.c(q) * problem_.u(std::int64_t(i)) * problem_.u(std::int64_t(j));
            const double change = 2.0 * weight * (v[i] - v[j]);
            out[i] += change;
            out[j] -= change;
        }
}

}  // namespace linrank::published
