// Arrays of Python as the core sees them: types, checks, ownership. Only this folder knows Python.
#pragma once
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "products.hpp"
#include "queries.hpp"
#include "ranking.hpp"
#include "rows.hpp"

namespace nb = nanobind;
using namespace linrank;

// Arrays are taken as they are (.noconvert()): a copy is a decision made in Python.
template <class T>
using Vector = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T>
using Matrix = nb::ndarray<const T, nb::ndim<2>, nb::device::cpu>;

/// A NumPy array that owns `data`, a std::vector or a PageArray.
template <template <class...> class Array, class T>
nb::ndarray<nb::numpy, T, nb::ndim<1>> to_numpy(Array<T> &&data) {
    auto owned = std::make_unique<Array<T>>(std::move(data));
    nb::capsule owner(owned.get(), [](void *p) noexcept { delete static_cast<Array<T> *>(p); });
    Array<T> &kept = *owned.release();  // the capsule deletes it
    return {kept.data(), {kept.size()}, owner};
}

template <class T>
std::span<const T> span_of(const Vector<T> &a) { return {a.data(), a.shape(0)}; }
template <class T>
std::span<const T> span_of(const std::optional<Vector<T>> &a) {
    return a ? span_of(*a) : std::span<const T>();
}

/// What `work` returns, without the GIL while it runs.
template <class Work>
auto unlocked(const Work &work) {
    const nb::gil_scoped_release release;
    return work();
}

// ---- checks: the core trusts what passes them -------------------------------------------------

inline void require_length(std::size_t got, std::int64_t expected, const char *name) {
    if (std::int64_t(got) != expected)
        throw std::invalid_argument(std::string(name) + " has length " + std::to_string(got) +
                                    ", expected " + std::to_string(expected));
}

/// Offsets start at 0, never decrease and end at n_rows.
inline void check_offsets(std::span<const std::int64_t> offsets, std::size_t n_rows) {
    if (offsets.empty() || offsets.front() != 0 || offsets.back() != std::int64_t(n_rows))
        throw std::invalid_argument("query offsets do not match the rows");
    if (!std::is_sorted(offsets.begin(), offsets.end()))
        throw std::invalid_argument("query offsets decrease");
}

// What has been checked may be written to by another thread of Python once the GIL is let go, and then lead out
// of bounds. So arrays of indices come from linrank itself, which copies those of its users and shows its own as
// read-only; numbers of users that are sorted are copied before they are checked, here.

/// A copy that nobody else can write to.
template <class T>
std::vector<T> own_copy(const Vector<T> &a) { return {a.data(), a.data() + a.shape(0)}; }

using OptionalOrder = std::optional<Vector<std::int64_t>>;

/// Positions name rows that exist. Checked at every call, about a nanosecond a row.
inline Order checked_order(const OptionalOrder &order, std::int64_t n_rows) {
    const Order rows = span_of(order);
    for (const std::int64_t row : rows)
        if (row < 0 || row >= n_rows)
            throw std::invalid_argument("order names a row that does not exist");
    return rows;
}

/// An order of all rows, and queries that partition it.
inline QueryView checked_queries(const Vector<std::int64_t> &offsets, const OptionalOrder &order,
                          std::size_t n_rows) {
    check_offsets(span_of(offsets), n_rows);
    if (order && order->shape(0) != n_rows)
        throw std::invalid_argument("order and rows differ in length");
    return {span_of(offsets), checked_order(order, std::int64_t(n_rows))};
}

/// Levels lie within [0, n_levels) of their query, and are no more than its rows; the offsets have been
/// checked.
inline void check_levels(std::span<const std::int32_t> levels, std::span<const std::int64_t> offsets,
                  std::span<const std::int32_t> n_levels) {
    require_length(levels.size(), offsets.back(), "levels");
    require_length(n_levels.size(), std::int64_t(offsets.size()) - 1, "n_levels");
    for (std::size_t q = 0; q < n_levels.size(); ++q) {
        if (n_levels[q] < 0) throw std::invalid_argument("a number of levels is negative");
        if (n_levels[q] > offsets[q + 1] - offsets[q])
            throw std::invalid_argument("a query has more levels than rows");
        for (std::int64_t t = offsets[q]; t < offsets[q + 1]; ++t)
            if (levels[t] < 0 || levels[t] >= n_levels[q])
                throw std::invalid_argument("a level is out of range");
    }
}

/// A copy of numbers that are sorted, among which a NaN has no place.
inline std::vector<double> without_nan(const Vector<double> &values, const char *what) {
    std::vector<double> own = own_copy(values);
    for (const double value : own)
        if (value != value) throw std::invalid_argument(std::string(what) + " is NaN");
    return own;
}

inline std::vector<double> checked_scores(const Vector<double> &scores, std::size_t n_rows) {
    require_length(scores.shape(0), std::int64_t(n_rows), "scores");
    return without_nan(scores, "a score");
}

/// A square matrix of side n; n * n does not overflow.
inline void check_square(const Vector<double> &matrix, std::int64_t n, const char *name) {
    if (n < 0 || n > INT32_MAX)
        throw std::invalid_argument("n must lie in [0, 2^31), got " + std::to_string(n));
    require_length(matrix.shape(0), n * n, name);
}

/// Rows and the arrays that they look at.
struct BoundRows {
    Rows rows;
    nb::object keep_alive;
};

/// Rows by position. To the core an empty order is the identity; an order that names no row is that of a matrix
/// without rows.
struct Positions {
    Rows rows;
    Order order;

    Positions(const BoundRows &bound, const OptionalOrder &given)
        : rows(bound.rows), order(checked_order(given, n_rows(bound.rows))) {
        if (given && order.empty()) std::visit([](auto &r) { r.n_rows = 0; }, rows);
    }
    std::int64_t size() const { return order.empty() ? n_rows(rows) : std::int64_t(order.size()); }
};
