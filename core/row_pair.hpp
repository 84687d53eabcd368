// Two rows that are compared.
#pragma once
#include <cstdint>

namespace linrank {

/// Rows of a matrix; the winner is to be ranked above the loser.
struct RowPair {
    std::int64_t winner, loser;
};

}  // namespace linrank
