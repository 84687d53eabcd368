// What all of the core is written with: the type of an index, views of arrays, and the standard
// headers that nearly every file needs.
#pragma once
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <numeric>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace linrank {

/// Of rows, columns, queries and entries, and how many there are: signed, so that differences are.
using Index = std::int64_t;

// Arrays that belong to others.
using Doubles = std::span<const double>;
using Integers = std::span<const Index>;
using Levels = std::span<const std::int32_t>;

/// The length of the longest of the ranges [offsets[i], offsets[i + 1]).
inline Index longest_range(Integers offsets) {
    Index longest = 0;
    for (std::size_t i = 1; i < offsets.size(); ++i)
        longest = std::max(longest, offsets[i] - offsets[i - 1]);
    return longest;
}

/// Throws std::invalid_argument with these words and numbers, one after the other.
template <class... Parts>
[[noreturn, gnu::cold, gnu::noinline]] void refuse(Parts... parts) {
    std::string message;
    const auto add = [&](const auto &part) {
        if constexpr (requires { std::to_string(part); }) message += std::to_string(part);
        else message += part;
    };
    (add(parts), ...);
    throw std::invalid_argument(message);
}

/// What callers give is refused, with a message of these parts, unless it holds.
template <class... Parts>
void require(bool holds, Parts... parts) {
    if (!holds) [[unlikely]] refuse(parts...);
}

}  // namespace linrank
