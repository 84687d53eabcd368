// The checksum of stored bytes.
#include "checksum.hpp"

#include "arrays.hpp"
#include "module.hpp"

void bind_checksum(nb::module_ &m) {
    m.def("crc32c", [](Vector<std::uint8_t> bytes, std::uint32_t before) {
              return unlocked([&] { return crc32c(span_of(bytes), before); });
          },
          nb::arg("bytes").noconvert(), nb::arg("before") = 0,
          "CRC-32C of the bytes, which continues that of what came before.");
}
