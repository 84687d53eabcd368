// Drawing pairs (i, j), "i above j", at a cost that does not depend on how many there are.
#pragma once
#include <cstdint>
#include <span>

#include "random.hpp"
#include "row_pair.hpp"

namespace linrank {

/// A distribution over pairs.
///
/// The random numbers of a pair follow each other in the stream, so a sequence of pairs does not depend
/// on the batches that it was drawn in.
class PairSampler {
  public:
    virtual ~PairSampler() = default;
    virtual void draw(Random &random, std::span<RowPair> out) const = 0;
    /// One more than the largest row that may be drawn.
    virtual std::int64_t n_rows() const = 0;
};

}  // namespace linrank
