#include "rows.hpp"

// Instantiated here once so that the header is checked on its own.
namespace linrank {
static_assert(std::variant_size_v<Rows> == 6);
}  // namespace linrank
