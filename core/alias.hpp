// Drawing one of many with given weights, in constant time: Walker's alias method, built as Vose does.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

namespace linrank {

/// A distribution over 0 .. size() - 1.
///
/// A draw takes 64 random bits. The high half of bits·n is a slot, uniform; the low half, uniform
/// within the slot, is compared with the threshold of the slot: below it the slot itself is drawn,
/// else its alias. All in integers: the table says exactly how likely everything is.
class AliasTable {
  public:
    struct Entry {
        std::uint64_t threshold, alias;
    };
    struct Draw {
        std::uint64_t slot, fraction;
    };

    AliasTable() = default;
    /// Weights are finite, >= 0, and one of them is > 0; throws std::invalid_argument otherwise. What
    /// has weight zero is never drawn. O(n), and the same table on every machine.
    explicit AliasTable(std::span<const double> weights);

    std::uint64_t size() const { return entries_.size(); }
    std::span<const Entry> entries() const { return entries_; }

    Draw draw(std::uint64_t bits) const {
        __extension__ typedef unsigned __int128 Wide;
        const Wide product = Wide(bits) * entries_.size();
        return {std::uint64_t(product >> 64), std::uint64_t(product)};
    }
    void prefetch(const Draw &draw) const { __builtin_prefetch(&entries_[draw.slot]); }
    std::uint64_t chosen(const Draw &draw) const {
        const Entry &entry = entries_[draw.slot];
        // A mask, since a branch would be mispredicted whenever the weights differ.
        const std::uint64_t take_alias = -std::uint64_t(draw.fraction >= entry.threshold);
        return draw.slot ^ ((draw.slot ^ entry.alias) & take_alias);
    }

  private:
    std::vector<Entry> entries_;
};

}  // namespace linrank
