// Any bytes as the columns of a table, of all types, with and without bits for missing values: the same matrix
// as a plain double loop makes, and nothing read or written beside the arrays.
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>
#include <string_view>
#include <variant>
#include <vector>

#include "fuzzing.hpp"
#include "interleave.hpp"

using namespace linrank;
using fuzzing::require;
using fuzzing::same;

namespace {

fuzzing::Arena arena;

template <class T>
TableColumn::Values column_of(std::span<const std::uint8_t> bytes, std::size_t n, std::size_t from) {
    const auto values = arena.take<T>(n);
    // Over and over, from a place of its own: few bytes make large tables.
    const auto raw = std::as_writable_bytes(values);
    for (std::size_t k = 0; k < raw.size() && !bytes.empty();) {
        const std::size_t at = (from + k) % bytes.size(), many = std::min(bytes.size() - at, raw.size() - k);
        std::memcpy(raw.data() + k, bytes.data() + at, many);
        k += many;
    }
    return values.data();
}

/// A column of the type with that number among those that there are.
template <class... Types>
TableColumn::Values column_of_type(std::size_t type, std::span<const std::uint8_t> bytes, std::size_t n,
                                   std::size_t from, std::variant<const Types *...> values) {
    std::size_t number = 0;
    ((number++ == type ? void(values = column_of<Types>(bytes, n, from)) : void()), ...);
    return values;
}

/// The values of a column, one every `stride`.
template <class Value>
void expect(const TableColumn &column, std::size_t n_rows, std::size_t stride, Value *out) {
    std::visit([&](const auto *x) {
        for (std::size_t i = 0; i < n_rows; ++i) {
            const auto bit = static_cast<std::size_t>(column.first_bit) + i;
            const bool there = column.valid == nullptr || (column.valid[bit / 8] >> (bit % 8) & 1) != 0;
            out[i * stride] = there ? static_cast<Value>(static_cast<double>(x[i]))
                                    : std::numeric_limits<Value>::quiet_NaN();
        }
    }, column.values);
}

template <class Value>
void test_one(std::span<const TableColumn> columns, std::size_t n_rows, std::size_t stride) {
    const std::size_t size = n_rows == 0 ? 0 : (n_rows - 1) * stride + columns.size();
    const auto out = arena.take<Value>(size), expected = arena.take<Value>(size);  // gaps hold the same bytes
    for (std::size_t j = 0; j < columns.size() && n_rows > 0; ++j)
        expect(columns[j], n_rows, stride, expected.data() + j);
    Specials seen;
    for (const Value value : expected) {
        seen.missing |= std::isnan(value);
        seen.infinite |= std::isinf(value);
    }
    const Specials found = interleave_columns<Value>(columns, static_cast<std::int64_t>(n_rows), out.data(),
                                                     static_cast<std::int64_t>(stride), 1);
    require(found.missing == seen.missing && found.infinite == seen.infinite, "what is no number");
    if (same(out, expected)) return;
    for (std::size_t k = 0; k < size; ++k) {
        const bool nan = std::isnan(out[k]) && std::isnan(expected[k]);  // of any bits
        require(nan || same(out.subspan(k, 1), expected.subspan(k, 1)), "the matrix");
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size) {
    constexpr std::size_t n_types = std::variant_size_v<TableColumn::Values>;
    arena.clear();
    fuzzing::Bytes bytes({reinterpret_cast<const char *>(data), size});
    const bool narrow = bytes.below(2) != 0;
    // Mostly few; now and then beyond the tiles of 256 rows and 16 columns, in one direction.
    const std::size_t shape = bytes.below(16);
    const std::size_t n_rows = shape == 15 ? 200 + bytes.below(100) : bytes.below(10);
    const std::size_t n_columns = shape == 14 ? 8 + bytes.below(24) : bytes.below(4);
    const std::size_t stride = n_columns + bytes.below(3);
    std::vector<TableColumn> columns;
    for (std::size_t j = 0; j < n_columns; ++j) {
        const std::size_t kind = bytes.below(2 * n_types), from = bytes.below(256);
        TableColumn column{column_of_type(kind % n_types, {data, size}, n_rows, from, TableColumn::Values())};
        if (kind >= n_types) {
            const std::size_t first_bit = bytes.below(20);
            const auto bits = arena.take<std::uint8_t>((first_bit + n_rows + 7) / 8);
            for (std::size_t k = 0; k < bits.size(); ++k) bits[k] = data[(from + k) % size];
            column.valid = bits.data();
            column.first_bit = static_cast<std::int64_t>(first_bit);
        }
        columns.push_back(column);
    }
    if (narrow) test_one<float>(columns, n_rows, stride);
    else test_one<double>(columns, n_rows, stride);
    return 0;
}
