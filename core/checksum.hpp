// CRC-32C (Castagnoli): the checksum of rows, and of the files of a store.
#pragma once
#include "basics.hpp"

namespace linrank {

/// The checksum of the bytes, which continues that of what came before (0 at the start).
std::uint32_t crc32c(std::span<const std::uint8_t> bytes, std::uint32_t before);

/// The checksum of bytes followed by others, from the checksums of both and the number of the others.
std::uint32_t join_crc32c(std::uint32_t first, std::uint32_t second, std::uint64_t n_bytes);

/// The same as crc32c by tables alone, for processors without an instruction for it, and for tests.
std::uint32_t crc32c_by_tables(std::span<const std::uint8_t> bytes, std::uint32_t before);

}  // namespace linrank
