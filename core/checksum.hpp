// CRC-32C (Castagnoli): the checksum of the files of a store.
#pragma once
#include <cstdint>
#include <span>

namespace linrank {

/// The checksum of the bytes, which continues that of what came before (0 at the start).
std::uint32_t crc32c(std::span<const std::uint8_t> bytes, std::uint32_t before);

/// The same by tables alone, for processors without an instruction for it, and for tests.
std::uint32_t crc32c_by_tables(std::span<const std::uint8_t> bytes, std::uint32_t before);

}  // namespace linrank
