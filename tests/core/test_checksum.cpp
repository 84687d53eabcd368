// CRC-32C: published values, one bit at a time, and ranges that continue one another.
#include "column_scan.hpp"

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "check.hpp"

using namespace linrank;
using linrank_test::check;

namespace {

/// The definition: division by the polynomial, a bit at a time.
std::uint32_t by_bits(const std::vector<std::uint8_t> &bytes) {
    std::uint32_t r = ~0u;
    for (const std::uint8_t byte : bytes) {
        r ^= byte;
        for (int bit = 0; bit < 8; ++bit) r = r & 1u ? (r >> 1) ^ 0x82f63b78u : r >> 1;
    }
    return ~r;
}

void test_published() {
    const std::string digits = "123456789";
    const std::vector<std::uint8_t> bytes(digits.begin(), digits.end());
    check(crc32c(bytes, 0) == 0xe3069283u, "the check value of CRC-32C");
    check(crc32c(std::vector<std::uint8_t>(32, 0), 0) == 0x8a9136aau, "32 zeros, RFC 3720");
    check(crc32c(std::vector<std::uint8_t>(32, 0xff), 0) == 0x62a8ab43u, "32 ones, RFC 3720");
    check(crc32c({}, 7) == 7, "nothing changes nothing");
}

void test_lengths() {
    std::mt19937 rng(1);
    for (const std::size_t n : {1, 7, 8, 9, 1000, 3071, 3072, 3073, 60001}) {
        std::vector<std::uint8_t> bytes(n);
        std::generate(bytes.begin(), bytes.end(), [&] { return std::uint8_t(rng()); });
        const std::uint32_t expected = by_bits(bytes);
        check(crc32c(bytes, 0) == expected, "equals the definition");
        check(crc32c_by_tables(bytes, 0) == expected, "the tables equal the definition");
        const std::span<const std::uint8_t> all(bytes);
        const std::size_t cut = rng() % (n + 1);
        const std::uint32_t head = crc32c(all.first(cut), 0);
        check(crc32c(all.subspan(cut), head) == expected, "two ranges make the whole");
        const std::uint32_t tail = crc32c(all.subspan(cut), 0);
        check(join_crc32c(head, tail, n - cut) == expected, "two checksums make that of the whole");
    }
}

}  // namespace

int main() {
    test_published();
    test_lengths();
}
