#include "interleave.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>
#include <vector>

#include "parallel.hpp"

namespace linrank {
namespace {

// A tile of the result, rows_per_tile × columns_per_tile, stays in the first cache while its columns are
// written one after the other: without it every value would fetch a cache line of its own. Sixteen
// float32 fill a line.
constexpr std::int64_t rows_per_tile = 256;
constexpr std::int64_t columns_per_tile = 16;
constexpr std::int64_t values_per_task = 1 << 18;

/// Copies n values apart by `stride`; whether one of the results is NaN or infinite.
template <class Source, class Value>
bool copy_values(const Source *x, std::int64_t n, Value *out, std::int64_t stride) {
    if constexpr (std::is_integral_v<Source>) {
        for (std::int64_t i = 0; i < n; ++i)
            out[i * stride] = Value(double(x[i]));
        return false;
    } else {
        // |v| <= largest fails for NaN as well.
        constexpr Value largest = std::numeric_limits<Value>::max();
        bool ordinary = true;
        for (std::int64_t i = 0; i < n; ++i) {
            const auto v = Value(x[i]);
            out[i * stride] = v;
            ordinary &= std::abs(v) <= largest;
        }
        return !ordinary;
    }
}

template <class Value>
void mark_missing(const TableColumn &column, std::int64_t begin, std::int64_t n, Value *out,
                  std::int64_t stride) {
    for (std::int64_t i = 0; i < n; ++i) {
        const std::int64_t bit = column.first_bit + begin + i;
        if ((column.valid[bit >> 3] >> (bit & 7) & 1) == 0)
            out[i * stride] = std::numeric_limits<Value>::quiet_NaN();
    }
}

template <class Value>
void find_specials(const Value *out, std::int64_t n, std::int64_t stride, Specials &seen) {
    for (std::int64_t i = 0; i < n; ++i) {
        seen.missing |= std::isnan(out[i * stride]);
        seen.infinite |= std::isinf(out[i * stride]);
    }
}

template <class Value>
void fill_tile(std::span<const TableColumn> columns, std::int64_t begin, std::int64_t n, Value *out,
               std::int64_t stride, Specials &seen) {
    for (std::size_t j = 0; j < columns.size(); ++j) {
        const TableColumn &column = columns[j];
        Value *const to = out + j;
        bool special = std::visit(
            [&](const auto *x) { return copy_values(x + begin, n, to, stride); }, column.values);
        if (column.valid != nullptr) {
            mark_missing(column, begin, n, to, stride);
            special = true;
        }
        if (special) find_specials(to, n, stride, seen);
    }
}

}  // namespace

template <class Value>
Specials interleave_columns(std::span<const TableColumn> columns, std::int64_t n_rows, Value *out,
                            std::int64_t stride, int n_threads) {
    const auto n_columns = std::int64_t(columns.size());
    const std::int64_t tiles_per_task = std::max<std::int64_t>(
        1, values_per_task / (rows_per_tile * std::max<std::int64_t>(1, n_columns)));
    const std::int64_t rows_per_task = tiles_per_task * rows_per_tile;
    const std::int64_t n_tasks = (n_rows + rows_per_task - 1) / rows_per_task;
    std::vector<Specials> seen(n_tasks);
    parallel_for(n_tasks, n_tasks < 4 ? 1 : n_threads, [&](std::int64_t task) {
        const std::int64_t last = std::min((task + 1) * rows_per_task, n_rows);
        for (std::int64_t i = task * rows_per_task; i < last; i += rows_per_tile)
            for (std::int64_t j = 0; j < n_columns; j += columns_per_tile)
                fill_tile(columns.subspan(j,
                                          
                                              std::min(columns_per_tile, n_columns - j)),
                          i, std::min(rows_per_tile, last - i), out + i * stride + j, stride, seen[task]);
    });
    Specials all;
    for (const Specials &part : seen) {
        all.missing |= part.missing;
        all.infinite |= part.infinite;
    }
    return all;
}

template Specials interleave_columns(std::span<const TableColumn>, std::int64_t, float *, std::int64_t,
                                     int);
template Specials interleave_columns(std::span<const TableColumn>, std::int64_t, double *,
                                     std::int64_t, int);

}  // namespace linrank
