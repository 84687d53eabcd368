// Drawing one of many with given weights, in constant time: Walker's alias method, built as Vose does.
#pragma once
#include <cstdint>
#include <span>

#include "pages.hpp"
#include "random.hpp"

namespace linrank {

/// A distribution over 0 .. n - 1 as n slots.
///
/// A draw takes 64 random bits. The high half of bits·n is a slot, uniform; the low half, uniform
/// within the slot, is compared with its threshold: below it the slot itself is drawn, else its
/// alias. All in integers: the slots say exactly how likely everything is.
struct AliasSlot {
    std::uint64_t threshold, alias;
};

struct AliasDraw {
    std::uint64_t slot, fraction;

    static AliasDraw from(std::uint64_t bits, std::uint64_t n_slots) {
        return {scaled(bits, n_slots), bits * n_slots};
    }
    /// `alias` if the fraction does not lie below the threshold, without a branch: it would be
    /// mispredicted whenever the weights differ.
    std::uint64_t choose(std::uint64_t threshold, std::uint64_t alias) const {
        const std::uint64_t take_alias = -std::uint64_t(fraction >= threshold);
        return slot ^ ((slot ^ alias) & take_alias);
    }
};

/// Weights are finite, >= 0, and one of them is > 0; throws std::invalid_argument otherwise. What has
/// weight zero is never drawn. O(n), and the same slots on every machine.
PageArray<AliasSlot> alias_slots(std::span<const double> weights);

}  // namespace linrank
