// Runs of bytes of different lengths, one a row: entries of sparse rows, comments.
#pragma once
#include "basics.hpp"

namespace linrank {

/// Copies span order[0], then order[1], ... to `to`; span i is the elements offsets[i] to offsets[i + 1] of `from`,
/// each of `width` bytes. All indices have been checked.
inline void gather_spans(const std::byte *from, std::size_t width, Integers offsets,
                         Integers order, std::byte *to) {
    for (const Index i : order) {
        const auto row = std::size_t(i);
        const auto begin = std::size_t(offsets[row]) * width;
        const auto n_bytes = std::size_t(offsets[row + 1] - offsets[row]) * width;
        if (n_bytes > 0) std::memcpy(to, from + begin, n_bytes);
        to += n_bytes;
    }
}

}  // namespace linrank
