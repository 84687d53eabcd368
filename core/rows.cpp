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

using Place = std::pair<Index, Index>;
constexpr Index values_per_task = 1 << 18;  // about 1 MB: tasks long against a thread's start

/// The lowest row for which `row_is_bad`; tasks of whole rows, searched in parallel.
template <class RowIsBad>
Index first_row(Index n_rows, Index rows_per_task, int n_threads, const RowIsBad &row_is_bad) {
    const Index n_tasks = (n_rows + rows_per_task - 1) / rows_per_task;
    std::atomic<Index> found{n_rows};
    parallel_for(n_tasks, n_tasks < 4 ? 1 : n_threads, [&](Index task) {
        const Index begin = task * rows_per_task;
        if (begin >= found.load(std::memory_order_relaxed)) return;
        const Index end = std::min(begin + rows_per_task, n_rows);
        for (Index i = begin; i < end; ++i) {
            if (!row_is_bad(i)) continue;
            Index lowest = found.load(std::memory_order_relaxed);
            while (i < lowest && !found.compare_exchange_weak(lowest, i)) {}
            return;
        }
    });
    return found.load();
}

Index task_rows(Index n_rows, Index n_values) {
    return std::max<Index>(1, values_per_task / std::max<Index>(
                                         1, n_values / std::max<Index>(1, n_rows)));
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

template <class Storage>
std::optional<Place> first_non_finite_in(const Storage &x, int n_threads) {
    const Index row = first_row(x.n_rows, task_rows(x.n_rows, n_entries(x)), n_threads, [&](Index i) {
        return any_non_finite(row_of(x, i).data(), Index(row_of(x, i).size()));
    });
    if (row == x.n_rows) return std::nullopt;
    Index k = 0;
    while (!any_non_finite(row_of(x, row).data() + k, 1)) ++k;
    if constexpr (requires { x.columns; }) return Place{row, Index(x.columns[x.offsets[row] + k])};
    else return Place{row, k};
}

template <class Storage>
bool columns_increase_in(const Storage &x, int n_threads) {
    if constexpr (requires { x.columns; }) {
        const auto disorder = [&](Index i) {
            bool found = false;
            for (Index k = x.offsets[i] + 1; k < x.offsets[i + 1]; ++k)
                found |= x.columns[k - 1] >= x.columns[k];
            return found;
        };
        return first_row(x.n_rows, task_rows(x.n_rows, n_entries(x)), n_threads, disorder) == x.n_rows;
    }
    return true;
}

}  // namespace

void check_csr(std::size_t n_values, Levels columns, Integers offsets,
               Index n_columns, Index n_checked) {
    if (columns.size() != n_values) throw std::invalid_argument("values and columns differ in length");
    if (offsets.empty() || offsets.front() != 0 || offsets.back() > Index(n_values))
        throw std::invalid_argument("row offsets do not match the values");
    // Beyond 2^48 sizes in bytes would overflow, and no vector of weights could be held.
    if (n_columns < 0 || n_columns > Index{1} << 48)
        throw std::invalid_argument("n_columns must lie in [0, 2^48], got " + std::to_string(n_columns));
    if (n_checked < 0 || n_checked >= Index(offsets.size()))
        throw std::invalid_argument("n_checked must lie in [0, n_rows], got " + std::to_string(n_checked));
    const auto unchecked = offsets.subspan(n_checked);
    if (unchecked.front() < 0 || !std::is_sorted(unchecked.begin(), unchecked.end()))
        throw std::invalid_argument("row offsets decrease");
    const auto first = std::size_t(unchecked.front());
    for (const std::int32_t column : columns.subspan(first, offsets.back() - first))
        if (column < 0 || column >= n_columns)
            throw std::invalid_argument("a column index is out of range");
}

std::optional<std::pair<Index, Index>> first_non_finite(const Rows &rows, int n_threads) {
    return std::visit([&](const auto &x) { return first_non_finite_in(x, n_threads); }, rows);
}

bool columns_increase(const Rows &rows, int n_threads) {
    return std::visit([&](const auto &x) { return columns_increase_in(x, n_threads); }, rows);
}

}  // namespace linrank
