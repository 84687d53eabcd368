// Decimal text to double, rounded to nearest with ties to even: the same bits as Python's float().
#pragma once
#include "basics.hpp"
#include <charconv>
#include <system_error>
#if defined(__SSE2__)
#include <emmintrin.h>
#endif

// Text is read up to a byte that cannot be part of a number (a line end at the latest), so no loop
// here tests for the end of a buffer. The routines that load words say how far they look ahead.
namespace linrank::decimal {

static_assert(std::endian::native == std::endian::little, "digit words are read low byte first");

inline bool is_digit(char c) { return static_cast<unsigned char>(c - '0') <= 9; }

inline std::uint64_t load_word(const char *p) {
    std::uint64_t word;
    std::memcpy(&word, p, sizeof word);
    return word;
}

/// Number of digits at the start of the eight characters in `word`.
inline int leading_digits(std::uint64_t word) {
    // A digit is 0x30..0x39. After ^ 0x30 it is 0..9, everything else is >= 10, so adding 118
    // (or having the top bit set already) puts 1 into the top bit of the bytes that are no digit.
    const std::uint64_t t = word ^ 0x3030303030303030u;
    const std::uint64_t low = t & 0x7F7F7F7F7F7F7F7Fu;
    const std::uint64_t other = ((low + 0x7676767676767676u) | t) & 0x8080808080808080u;
    return std::countr_zero(other) >> 3;  // 64 >> 3 = 8 when all are digits
}

/// The number written by the first n characters of `word`, all digits; 1 <= n <= 8.
inline std::uint64_t digits_to_integer(std::uint64_t word, int n) {
    // Digits are moved to the high bytes and zeros fill the low ones: leading zeros of the number.
    // Neighbors are then joined, first to pairs (base 100), then to fours, then to eight.
    std::uint64_t v = (word ^ 0x3030303030303030u) << (64 - 8 * n);
    v = (v & 0x00FF00FF00FF00FFu) * 10 + ((v >> 8) & 0x00FF00FF00FF00FFu);
    v = (v & 0x0000FFFF0000FFFFu) * 100 + ((v >> 16) & 0x0000FFFF0000FFFFu);
    return (v & 0xFFFFFFFFu) * 10000 + (v >> 32);
}

constexpr int max_power = 27;  // 5^27 < 2^63

template <class T, T base, int count>
constexpr std::array<T, count> powers() {
    std::array<T, count> table{};
    T power = 1;
    for (int k = 0; k < count; ++k, power *= base) table[k] = power;
    return table;
}
inline constexpr auto power_of_5 = powers<std::uint64_t, 5, max_power + 1>();
inline constexpr auto power_of_10 = powers<std::uint64_t, 10, 9>();
// 10^22 = 2^22 · 5^22 is the last power of ten with 5^k < 2^53, that is, exact as a double.
inline constexpr auto exact_power_of_10 = powers<double, 10.0, 23>();

/// q·2^e for q >= 2^62 whose lowest bit is set when the true value is not exactly q: the conversion
/// then rounds the true value, since that bit is far below the half-way bit. The result is normal.
inline double round_sticky(std::uint64_t q, int e) {
    return double(q) * std::bit_cast<double>(std::uint64_t(1023 + e) << 52);
}

/// m·10^e10, exactly rounded, for m > 0 and |e10| <= max_power.
inline double scale_exactly(std::uint64_t m, int e10) {
    __extension__ using Wide = unsigned __int128;
    const int k = e10 < 0 ? -e10 : e10;
    if (m <= (std::uint64_t{1} << 53) && k <= 22) {
        // Both operands are exact, so the one operation rounds once.
        const double power = exact_power_of_10[k];
        return e10 < 0 ? double(m) / power : double(m) * power;
    }
    const std::uint64_t five = power_of_5[k];
    if (e10 < 0) {
        // m / (5^k 2^k): with M = m·2^a and D = 5^k·2^b in [2^63, 2^64) the quotient M·2^63 / D is in
        // (2^62, 2^64); the remainder only says whether something is left below its last bit.
        const int a = std::countl_zero(m), b = std::countl_zero(five);
        const Wide numerator = static_cast<Wide>(m << a) << 63;
        const std::uint64_t divisor = five << b;
        const auto q = std::uint64_t(numerator / divisor);
        const bool rest = numerator != static_cast<Wide>(q) * divisor;
        return round_sticky(q | (rest ? 1 : 0), b - a - 63 - k);
    }
    const Wide product = static_cast<Wide>(m) * five;
    const auto high = std::uint64_t(product >> 64);
    const int shift = high ? std::countl_zero(high) : 64 + std::countl_zero(std::uint64_t(product));
    const Wide top = product << shift;
    const bool rest = std::uint64_t(top) != 0;
    return round_sticky(std::uint64_t(top >> 64) | (rest ? 1 : 0), 64 - shift + k);
}

enum class Outcome { number, not_a_number, overflow };

/// The digits of a number as far as 19 of them, which fit in 64 bits.
struct Digits {
    std::uint64_t mantissa = 0;
    int n_significant = 0;
    bool any = false;       // a digit was seen
    bool inexact = false;   // a non-zero digit did not fit
    Index exponent = 0;

    /// Reads digits at p; `step` is what one digit adds to the exponent: 0 before the point, -1 after.
    /// Looks at 8 characters from p.
    const char *read(const char *p, int step) {
        const char *const start = p;
        if (mantissa == 0)
            while (*p == '0') ++p;
        exponent += step * (p - start);
        while (n_significant <= 11) {
            const std::uint64_t word = load_word(p);
            const int n = leading_digits(word);
            if (n == 0) break;
            mantissa = mantissa * power_of_10[n] + digits_to_integer(word, n);
            n_significant += n;
            exponent += step * n;
            p += n;
        }
        for (; is_digit(*p); ++p) {
            const int digit = *p - '0';
            if (n_significant < 19) {
                mantissa = mantissa * 10 + std::uint64_t(digit);
                ++n_significant;
                exponent += step;
            } else {
                inexact |= digit != 0;
                exponent += step + 1;
            }
        }
        any |= p != start;
        return p;
    }
};

/// e[+-]digits at p, added to `exponent`; p unchanged when it is not a whole exponent.
inline const char *read_exponent(const char *p, Index &exponent) {
    if ((*p | 0x20) != 'e') return p;
    const char *q = p + 1;
    const bool negative = *q == '-';
    if (negative || *q == '+') ++q;
    if (!is_digit(*q)) return p;
    Index e = 0;
    for (; is_digit(*q); ++q)
        if (e < 1'000'000'000'000) e = e * 10 + (*q - '0');
    exponent += negative ? -e : e;
    return q;
}

/// Reads [+-]digits[.digits][e[+-]digits] at p and moves p behind it; p stays when there is none.
/// Looks at no more than 8 characters behind the number.
inline Outcome read_number(const char *&p, double &value) {
    const char *q = p;
    const bool negative = *q == '-';
    if (negative || *q == '+') ++q;
    const char *const first = q;
    Digits digits;
    q = digits.read(q, 0);
    if (*q == '.') q = digits.read(q + 1, -1);
    if (!digits.any) return Outcome::not_a_number;
    q = read_exponent(q, digits.exponent);
    p = q;
    double magnitude = 0.0;
    if (digits.mantissa == 0) {
        magnitude = 0.0;
    } else if (!digits.inexact && std::abs(digits.exponent) <= max_power) {
        magnitude = scale_exactly(digits.mantissa, int(digits.exponent));
    } else {
        // More than 19 digits or an extreme exponent: rare, left to the exact library routine.
        const auto result = std::from_chars(first, q, magnitude);
        const bool out = result.ec == std::errc::result_out_of_range || std::isinf(magnitude);
        if (out && digits.exponent + digits.n_significant > 0) return Outcome::overflow;
        if (out) magnitude = 0.0;  // below the smallest subnormal: zero, as in Python
    }
    value = negative ? -magnitude : magnitude;
    return Outcome::number;
}

/// Reads digits[.digits] with at most 8 digits at p, the common case, without a loop; returns the end,
/// or nullptr when the text is longer or of another form. Looks at 16 characters from p.
inline const char *read_short(const char *p, double &value) {
#if defined(__SSE2__)
    const __m128i text = _mm_loadu_si128(reinterpret_cast<const __m128i *>(p));
    // c is a digit when c - '0' + 128, as a signed byte, is below -128 + 10.
    const __m128i moved = _mm_add_epi8(text, _mm_set1_epi8(128 - '0'));
    const auto digit = std::uint32_t(
        _mm_movemask_epi8(_mm_cmplt_epi8(moved, _mm_set1_epi8(-128 + 10))));
    const auto dot = std::uint32_t(_mm_movemask_epi8(_mm_cmpeq_epi8(text, _mm_set1_epi8('.'))));
    const int length = std::countr_one(digit | (dot & -dot));  // with the first point, if it is ours
    const int n_before = std::countr_one(digit);
    const int n_digits = length - (length > n_before);
    if (n_before == 0 || n_before > 7 || n_digits > 8) return nullptr;
    // Left of the point the characters of p, from there on those of p + 1: the point is gone. Without
    // a point nothing of p + 1 is kept. Whether there is one is not to be guessed: no branch.
    const std::uint64_t left = (std::uint64_t{1} << (8 * n_before)) - 1;
    const std::uint64_t word = (load_word(p) & left) | (load_word(p + 1) & ~left);
    const auto mantissa = std::int32_t(digits_to_integer(word, n_digits));
    // Integer and power are exact, so the division rounds once.
    value = mantissa / exact_power_of_10[n_digits - n_before];
    return p + length;
#else
    const char *end = p;
    if (!is_digit(*p) || read_number(end, value) != Outcome::number) return nullptr;
    return end;
#endif
}

}  // namespace linrank::decimal
