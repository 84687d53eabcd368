// PRSVM (Chapelle & Keerthi 2010): the pairs written down, O(p) a product and in memory.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "../pair_sweep.hpp"

namespace linrank::published {

/// Positions of a pair, `preferred` above `other`.
struct Pair {
    std::int32_t preferred, other;
};

/// All pairs of all queries; those of query q are offsets[q] .. offsets[q + 1] - 1.
struct ExplicitPairs {
    explicit ExplicitPairs(const PairProblem &problem);

    PairProblem problem;
    std::vector<Pair> pairs;
    std::vector<std::size_t> offsets{0};
};

/// The squared hinge at one vector of scores: one pass over the pairs, which keeps the violated ones.
class ExplicitPairsPoint : public LossPoint {
public:
    ExplicitPairsPoint(const ExplicitPairs &list, std::span<const double> z);

    void multiply(std::span<const double> v, std::span<double> out) const;

private:
    PairProblem problem_;
    std::vector<Pair> violated_;
    std::vector<std::size_t> offsets_{0};  // of the violated pairs, by query
};

}  // namespace linrank::published
