#include "column_scan.hpp"

#ifdef LINRANK_X86
#include <nmmintrin.h>

#include "processor.hpp"
#endif

namespace linrank {
namespace {

// x³² + x²⁸ + x²⁷ + ... + 1 with the bits of a word reversed: the lowest bit is the highest power.
constexpr std::uint32_t polynomial = 0x82f63b78u;

using Table = std::array<std::uint32_t, 256>;

/// tables[k][b]: the remainder after byte b and k bytes of zeros.
constexpr std::array<Table, 8> make_tables() {
    std::array<Table, 8> tables{};
    for (std::uint32_t b = 0; b < 256; ++b) {
        std::uint32_t r = b;
        for (int bit = 0; bit < 8; ++bit) r = (r >> 1) ^ (r & 1u ? polynomial : 0u);
        tables[0][b] = r;
    }
    for (std::size_t k = 1; k < 8; ++k)
        for (std::size_t b = 0; b < 256; ++b)
            tables[k][b] = (tables[k - 1][b] >> 8) ^ tables[0][tables[k - 1][b] & 0xffu];
    return tables;
}

constexpr std::array<Table, 8> tables = make_tables();

std::uint32_t step(std::uint32_t r, std::uint8_t byte) {
    return (r >> 8) ^ tables[0][(r ^ byte) & 0xffu];
}

std::uint64_t load(const std::uint8_t *p) {
    std::uint64_t word;
    std::memcpy(&word, p, sizeof word);
    return word;
}

/// Eight bytes at a time: the remainder of a sum is the sum of the remainders.
std::uint32_t remainder_by_tables(std::uint32_t r, const std::uint8_t *p, std::size_t n) {
    for (; n >= 8; p += 8, n -= 8) {
        const std::uint64_t word = load(p) ^ r;
        r = 0;
        for (std::size_t k = 0; k < 8; ++k) r ^= tables[7 - k][(word >> (8 * k)) & 0xffu];
    }
    for (; n > 0; ++p, --n) r = step(r, *p);
    return r;
}

/// The product of two polynomials modulo the one above, bits reversed as there.
std::uint32_t multiply(std::uint32_t a, std::uint32_t b) {
    std::uint32_t product = 0;
    for (std::uint32_t bit = 1u << 31; bit; bit >>= 1) {
        if (a & bit) product ^= b;
        b = (b >> 1) ^ (b & 1u ? polynomial : 0u);
    }
    return product;
}

/// x^(8n): what a remainder is multiplied by when n bytes of zeros follow.
std::uint32_t power_of_bytes(std::uint64_t n) {
    std::uint32_t power = 1u << 31, square = 1u << 23;  // x⁰, x⁸
    for (; n > 0; n >>= 1) {
        if (n & 1u) power = multiply(square, power);
        square = multiply(square, square);
    }
    return power;
}

#ifdef LINRANK_X86
// The instruction takes a word a cycle but answers after three cycles: three blocks that lie one
// behind the other are summed side by side, then joined.
constexpr std::size_t lane = 1024;

/// What a remainder becomes by a block of zeros, a linear map: a table for each of its four bytes.
struct BlockOfZeros {
    std::array<Table, 4> images{};

    BlockOfZeros() {
        const std::uint32_t power = power_of_bytes(lane);
        for (std::uint32_t k = 0; k < 4; ++k)
            for (std::uint32_t b = 0; b < 256; ++b) images[k][b] = multiply(power, b << 8 * k);
    }

    std::uint32_t operator()(std::uint32_t r) const {
        return images[0][r & 0xffu] ^ images[1][r >> 8 & 0xffu] ^ images[2][r >> 16 & 0xffu] ^
               images[3][r >> 24];
    }
};

__attribute__((target("sse4.2,crc32"))) std::uint32_t remainder_by_instruction(std::uint32_t start,
                                                                         const std::uint8_t *p,
                                                                         std::size_t n) {
    static const BlockOfZeros after_block;
    std::uint64_t r = start;
    for (; n >= 3 * lane; p += 3 * lane, n -= 3 * lane) {
        std::uint64_t second = 0, third = 0;
        for (std::size_t k = 0; k < lane; k += 8) {
            r = _mm_crc32_u64(r, load(p + k));
            second = _mm_crc32_u64(second, load(p + lane + k));
            third = _mm_crc32_u64(third, load(p + 2 * lane + k));
        }
        const std::uint32_t two = after_block(std::uint32_t(r)) ^ std::uint32_t(second);
        r = after_block(two) ^ std::uint32_t(third);
    }
    for (; n >= 8; p += 8, n -= 8) r = _mm_crc32_u64(r, load(p));
    return remainder_by_tables(std::uint32_t(r), p, n);
}
#endif

}  // namespace

std::uint32_t join_crc32c(std::uint32_t first, std::uint32_t second, std::uint64_t n_bytes) {
    return multiply(power_of_bytes(n_bytes), first) ^ second;
}

std::uint32_t crc32c_by_tables(std::span<const std::uint8_t> bytes, std::uint32_t before) {
    return ~remainder_by_tables(~before, bytes.data(), bytes.size());
}

std::uint32_t crc32c(std::span<const std::uint8_t> bytes, std::uint32_t before) {
#ifdef LINRANK_X86
    static const bool has_instruction = Processor().has(bit_SSE4_2);
    if (has_instruction) return ~remainder_by_instruction(~before, bytes.data(), bytes.size());
#endif
    return crc32c_by_tables(bytes, before);
}

}  // namespace linrank
