// Any bytes as a decimal number: the same bits, from the same characters, as the C library reads.
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "decimal.hpp"
#include "fuzzing.hpp"

using namespace linrank;
using fuzzing::require;

namespace {

fuzzing::Arena arena;

std::size_t n_digits(std::string_view text) {
    std::size_t n = 0;
    while (n < text.size() && text[n] >= '0' && text[n] <= '9') ++n;
    return n;
}

/// How many characters [+-]digits[.digits][e[+-]digits] takes; there is a digit before the exponent.
std::size_t length_of(std::string_view text) {
    const auto at = [&](std::size_t k) { return k < text.size() ? text[k] : '\0'; };
    std::size_t n = at(0) == '-' || at(0) == '+' ? 1 : 0;
    const std::size_t before = n_digits(text.substr(n));
    n += before;
    std::size_t after = 0;
    if (at(n) == '.') {
        after = n_digits(text.substr(n + 1));
        n += 1 + after;
    }
    if (before + after == 0) return 0;
    if (at(n) == 'e' || at(n) == 'E') {
        const std::size_t sign = at(n + 1) == '-' || at(n + 1) == '+' ? 1 : 0;
        const std::size_t digits = n + 1 + sign < text.size() ? n_digits(text.substr(n + 1 + sign)) : 0;
        if (digits > 0) n += 1 + sign + digits;
    }
    return n;
}

bool same_bits(double a, double b) {
    return std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size) {
    constexpr std::size_t look_ahead = 15;  // of read_short, behind a character that is of no number
    const std::string_view input(reinterpret_cast<const char *>(data), size);
    arena.clear();
    const auto text = arena.take<char>(size + 1 + look_ahead);
    std::fill(std::copy(input.begin(), input.end(), text.begin()), text.end(), '\n');

    const std::size_t length = length_of(input);
    const double expected = length > 0 ? std::strtod(std::string(input.substr(0, length)).c_str(), nullptr) : 0.0;
    const char *end = text.data();
    double value = 0.0;
    const auto outcome = decimal::read_number(end, value);
    require((outcome == decimal::Outcome::not_a_number) == (length == 0), "what is a number");
    require(end == text.data() + length, "where the number ends");
    require((outcome == decimal::Outcome::overflow) == std::isinf(expected), "what is too large");
    if (outcome != decimal::Outcome::number) return 0;
    require(same_bits(value, expected), "the number");

    if (!decimal::is_digit(text[0])) return 0;
    const char *const short_end = decimal::read_short(text.data(), value);
    if (short_end == nullptr || (*short_end | 0x20) == 'e') return 0;
    require(short_end == end, "where the short number ends");
    require(same_bits(value, expected), "the short number");
    return 0;
}
