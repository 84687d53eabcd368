// Numbers found by keys that lie elsewhere.
#pragma once
#include "basics.hpp"

namespace linrank {

/// A hash of a number whose bits are all mixed: the finalizer of SplitMix64. Keys in arithmetic progression must
/// not share sequences of slots.
inline std::uint64_t mixed_hash(std::uint64_t key) {
    key += 0x9e3779b97f4a7c15u;
    key = (key ^ (key >> 30)) * 0xbf58476d1ce4e5b9u;
    key = (key ^ (key >> 27)) * 0x94d049bb133111ebu;
    return key ^ (key >> 31);
}

/// The numbers 0, 1, 2, ... by the hashes of their keys: open addressing in slots that are at most half full.
template <class Number>
class HashIndex {
public:
    /// The number among those of this hash for which `is_key(number)` holds, or -1.
    template <class IsKey>
    Index find(std::uint64_t hash, const IsKey &is_key) const {
        for (std::size_t at = hash & (slots_.size() - 1);; at = (at + 1) & (slots_.size() - 1))
            if (slots_[at] == 0 || is_key(Index(slots_[at]) - 1)) return Index(slots_[at]) - 1;
    }

    /// Makes room for one more. Where memory runs out, the index is as it was.
    template <class HashOf>
    void reserve(const HashOf &hash_of) {
        if (2 * (size_ + 1) <= slots_.size()) return;
        HashIndex larger;
        larger.slots_.assign(2 * slots_.size(), 0);
        for (std::size_t number = 0; number < size_; ++number) larger.insert(hash_of(Index(number)));
        *this = std::move(larger);
    }
    /// Inserts the next number, for which there is room.
    void insert(std::uint64_t hash) {
        std::size_t at = hash & (slots_.size() - 1);
        while (slots_[at] != 0) at = (at + 1) & (slots_.size() - 1);
        slots_[at] = Number(++size_);
    }
    std::size_t n_bytes() const { return slots_.size() * sizeof(Number); }

private:
    std::vector<Number> slots_ = std::vector<Number>(64, 0);  // number + 1, 0 where free; a power of two of them
    std::size_t size_ = 0;
};

}  // namespace linrank
