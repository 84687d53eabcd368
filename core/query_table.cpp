#include "query_table.hpp"

#include <algorithm>
#include <cstring>
#include <functional>
#include <limits>
#include <stdexcept>

namespace linrank::svmlight {

std::int64_t QueryTable::number(std::string_view id) {
    const std::uint32_t known = slots[slot_of(id)];
    if (known != empty) return known - 1;
    if (ids.size() >= std::numeric_limits<std::uint32_t>::max() - 1)
        throw std::length_error("more than 4,294,967,293 queries");
    // What needs memory comes first: where it runs out, the table is as it was.
    if (2 * (ids.size() + 1) > slots.size()) grow();
    ids.push_back(keep(id));
    slots[slot_of(id)] = static_cast<std::uint32_t>(ids.size());
    std::int64_t value;
    n_others += !parse_integer(id, value);
    return size() - 1;
}

QueryTable::Runs QueryTable::runs(const Piece &piece) {
    if (piece.n_rows == 0) return {};
    if (!piece.has_query) return {{number({})}, {piece.n_rows}};
    std::vector<std::int64_t> of_piece(piece.query_ids.ends.size());
    // Ids of a piece are in the order of their first rows, so numbers are given in that order.
    for (std::size_t q = 0; q < of_piece.size(); ++q) of_piece[q] = number(piece.query_ids[q]);
    Runs found;
    const auto codes = piece.queries.view();
    for (std::size_t row = 0; row < codes.size();) {
        std::size_t end = row + 1;
        while (end < codes.size() && codes[end] == codes[row]) ++end;
        found.numbers.push_back(of_piece[codes[row]]);
        found.sizes.push_back(static_cast<std::int64_t>(end - row));
        row = end;
    }
    return found;
}

std::int64_t QueryTable::n_bytes() const {
    return text_bytes + static_cast<std::int64_t>(slots.size() * sizeof(slots[0]) +
                                                  ids.size() * sizeof(ids[0]));
}

std::string_view QueryTable::keep(std::string_view id) {
    if (id.size() > room) {
        // As much again as there is: a table of few ids takes few bytes.
        const std::size_t usual = std::clamp(static_cast<std::size_t>(text_bytes), first_block, block);
        const std::size_t size = std::max(usual, id.size());
        text.push_back(std::make_unique_for_overwrite<char[]>(size));
        next = text.back().get();
        room = size;
        text_bytes += static_cast<std::int64_t>(room);
    }
    const std::string_view kept(next, id.size());
    if (!id.empty()) std::memcpy(next, id.data(), id.size());
    next += id.size();
    room -= id.size();
    return kept;
}

std::size_t QueryTable::slot_of(std::string_view id) const {
    const std::size_t mask = slots.size() - 1;  // a power of two
    std::size_t slot = std::hash<std::string_view>()(id) & mask;
    while (slots[slot] != empty && ids[slots[slot] - 1] != id) slot = (slot + 1) & mask;
    return slot;
}

void QueryTable::grow() {
    std::vector<std::uint32_t> larger(2 * slots.size(), empty);
    slots.swap(larger);
    for (std::size_t q = 0; q < ids.size(); ++q)
        slots[slot_of(ids[q])] = static_cast<std::uint32_t>(q + 1);
}

}  // namespace linrank::svmlight
