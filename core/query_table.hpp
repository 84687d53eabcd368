// Query ids numbered by first appearance, over a text of any length.
#pragma once
#include <cstdint>
#include <deque>
#include <memory>
#include <string_view>
#include <vector>

#include "svmlight.hpp"

namespace linrank::svmlight {

/// The bytes of ids are kept, so equal numbers mean equal ids. Nothing that has been stored moves: growing
/// needs no second copy, and about 40 bytes a query are all that is taken.
class QueryTable {
public:
    /// Rows that follow one another with the same id: `sizes[k]` of query `numbers[k]`.
    struct Runs {
        std::vector<std::int64_t> numbers, sizes;
    };

    QueryTable() = default;
    QueryTable(const QueryTable &) = delete;  // the views are of its own text
    QueryTable &operator=(const QueryTable &) = delete;

    /// The number of an id: that of its first appearance.
    std::int64_t number(std::string_view id);
    /// The runs of a piece; without ids, one run of query 0, whose id is empty.
    Runs runs(const Piece &piece);

    std::int64_t size() const { return static_cast<std::int64_t>(ids.size()); }
    std::string_view operator[](std::int64_t number) const {
        return ids[number];
    }
    /// Whether every id is an integer in its shortest form that fits 64 bits.
    bool all_integers() const { return n_others == 0; }
    /// Bytes held.
    std::int64_t n_bytes() const;

private:
    static constexpr std::uint32_t empty = 0;         // of a slot; number + 1 otherwise
    static constexpr std::size_t first_block = 1 << 8, block = 1 << 16;  // bytes of text allocated at a time

    std::deque<std::string_view> ids;                 // views of `text`
    std::vector<std::unique_ptr<char[]>> text;
    std::vector<std::uint32_t> slots = std::vector<std::uint32_t>(64, empty);
    std::size_t room = 0;                             // bytes left in the last block
    char *next = nullptr;
    std::int64_t text_bytes = 0, n_others = 0;

    std::string_view keep(std::string_view id);
    std::size_t slot_of(std::string_view id) const;
    void grow();
};

/// The integer that a text is the shortest form of; false if it is none of 64 bits.
bool parse_integer(std::string_view text, std::int64_t &value);

}  // namespace linrank::svmlight
