#include "rows.hpp"

#include <atomic>

#include "parallel.hpp"

namespace linrank {

namespace {

// All exponent bits set: NaN or infinity. On integers the compiler may reorder the "or" and so vectorize the loop,
// which it may not do for a sum of floats. The upper 32 bits decide, and comparisons of so many exist in the oldest
// vector set (SSE2).
template <class Value>
bool any_non_finite(const Value *x, Index n) {
    using Bits = std::conditional_t<sizeof(Value) == 4, std::uint32_t, std::uint64_t>;
    constexpr std::uint32_t exponent = sizeof(Value) == 4 ? 0x7f800000u : 0x7ff00000u;
    std::uint32_t found = 0;
    for (Index k = 0; k < n; ++k) {
        const auto high = std::uint32_t(std::bit_cast<Bits>(x[k]) >> (8 * sizeof(Value) - 32));
        found |= std::uint32_t((high & exponent) == exponent);
    }
    return found != 0;
}

constexpr Index values_per_task = 1 << 18;  // about 1 MB: tasks long against a thread's start

/// The lowest row for which `row_is_bad`; tasks of whole rows, searched in parallel.
template <class Storage, class RowIsBad>
Index first_row(const Storage &x, int n_threads, const RowIsBad &row_is_bad) {
    const Index width = std::max<Index>(1, n_entries(x) / std::max<Index>(1, x.n_rows));
    const Index task_rows = std::max<Index>(1, values_per_task / width);
    std::atomic<Index> found{x.n_rows};
    for_blocks(x.n_rows, task_rows, x.n_rows <= 3 * task_rows ? 1 : n_threads,
               [&](Index i, Index last) {
        Index lowest = found.load(std::memory_order_relaxed);
        if (i >= lowest) return;
        while (i < last && !row_is_bad(i)) ++i;
        while (i < last && i < lowest && !found.compare_exchange_weak(lowest, i)) {}
    });
    return found.load();
}

/// The numbers of a row.
template <class Value>
std::span<const Value> row_of(const DenseRows<Value> &x, Index i) {
    return {x.values + i * x.stride, std::size_t(x.n_columns)};
}
template <class Value>
std::span<const Value> row_of(const CsrRows<Value> &x, Index i) {
    return {x.values + x.offsets[i], std::size_t(x.offsets[i + 1] - x.offsets[i])};
}

}  // namespace

void check_csr(std::size_t n_values, Levels columns, Integers offsets,
               Index n_columns, Index n_checked) {
    require(columns.size() == n_values, "values and columns differ in length");
    require(!offsets.empty() && offsets.front() == 0 && offsets.back() <= Index(n_values),
            "row offsets do not match the values");
    // Beyond 2^48 sizes in bytes would overflow, and no vector of weights could be held.
    require(n_columns >= 0 && n_columns <= Index(1) << 48,
            "n_columns must lie in [0, 2^48], got ", n_columns);
    require(n_checked >= 0 && n_checked < std::ssize(offsets),
            "n_checked must lie in [0, n_rows], got ", n_checked);
    const Integers unchecked = offsets.subspan(n_checked);
    const Index first = unchecked.front();
    require(first >= 0 && std::ranges::is_sorted(unchecked), "row offsets decrease");
    for (const std::int32_t column : columns.subspan(first, offsets.back() - first))
        require(column >= 0 && column < n_columns, "a column index is out of range");
}

std::optional<std::pair<Index, Index>> first_non_finite(const Rows &rows, int n_threads) {
    return std::visit([&](const auto &x) -> std::optional<std::pair<Index, Index>> {
        const Index row = first_row(x, n_threads, [&](Index i) {
            return any_non_finite(row_of(x, i).data(), std::ssize(row_of(x, i)));
        });
        if (row == x.n_rows) return std::nullopt;
        Index k = 0;
        while (!any_non_finite(row_of(x, row).data() + k, 1)) ++k;
        if constexpr (requires { x.columns; }) return {{row, x.columns[x.offsets[row] + k]}};
        else return {{row, k}};
    }, rows);
}

bool columns_increase(const Rows &rows, int n_threads) {
    return std::visit([&](const auto &x) {
        if constexpr (requires { x.columns; })
            return first_row(x, n_threads, [&](Index i) {
                bool found = false;
                for (Index k = x.offsets[i] + 1; k < x.offsets[i + 1]; ++k)
                    found |= x.columns[k - 1] >= x.columns[k];
                return found;
            }) == x.n_rows;
        else return true;
    }, rows);
}

}  // namespace linrank
