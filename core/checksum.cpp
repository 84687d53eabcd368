#include "checksum.hpp"

#include <array>
#include <cstddef>
#include <cstring>

#ifdef LINRANK_X86
#include <nmmintrin.h>
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

#ifdef LINRANK_X86
// The instruction takes a word a cycle but answers after three cycles: three blocks that lie one
// behind the other are summed side by side, then joined.
constexpr std::size_t block = 8192;

/// What a remainder becomes by a block of zeros, a linear map: a table for each of its four bytes.
struct BlockOfZeros {
    std::array<Table, 4> images{};

    BlockOfZeros() {
        std::array<std::uint32_t, 32> of_bit{};
        for (std::uint32_t bit = 0; bit < 32; ++bit) {
            std::uint32_t r = 1u << bit;
            for (std::size_t k = 0; k < block; ++k) r = step(r, 0);
            of_bit[bit] = r;
        }
        for (std::size_t k = 0; k < 4; ++k)
            for (std::uint32_t b = 0; b < 256; ++b)
                for (std::uint32_t bit = 0; bit < 8; ++bit)
                    if (b >> bit & 1u) images[k][b] ^= of_bit[8 * k + bit];
    }

    std::uint32_t operator()(std::uint32_t r) const {
        return images[0][r & 0xffu] ^ images[1][r >> 8 & 0xffu] ^ images[2][r >> 16 & 0xffu] ^
               images[3][r >> 24];
    }
};

__attribute__((target("sse4.2"))) std::uint32_t remainder_by_instruction(std::uint32_t start,
                                                                         const std::uint8_t *p,
                                                                         std::size_t n) {
    static const BlockOfZeros after_block;
    std::uint64_t r = start;
    for (; n >= 3 * block; p += 3 * block, n -= 3 * block) {
        std::uint64_t second = 0, third = 0;
        for (std::size_t k = 0; k < block; k += 8) {
            r = _mm_crc32_u64(r, load(p + k));
            second = _mm_crc32_u64(second, load(p + block + k));
            third = _mm_crc32_u64(third, load(p + 2 * block + k));
        }
        const std::uint32_t two = after_block(std::uint32_t(r)) ^ std::uint32_t(second);
        r = after_block(two) ^ std::uint32_t(third);
    }
    for (; n >= 8; p += 8, n -= 8) r = _mm_crc32_u64(r, load(p));
    return remainder_by_tables(std::uint32_t(r), p, n);
}
#endif

}  // namespace

std::uint32_t crc32c_by_tables(std::span<const std::uint8_t> bytes, std::uint32_t before) {
    return ~remainder_by_tables(~before, bytes.data(), bytes.size());
}

std::uint32_t crc32c(std::span<const std::uint8_t> bytes, std::uint32_t before) {
#ifdef LINRANK_X86
    static const bool has_instruction = [] {
        __builtin_cpu_init();
        return bool(__builtin_cpu_supports("sse4.2"));
    }();
    if (has_instruction) return ~remainder_by_instruction(~before, bytes.data(), bytes.size());
#endif
    return crc32c_by_tables(bytes, before);
}

}  // namespace linrank
