// Checks of what callers give: std::invalid_argument where something is wrong. What passes them is
// trusted.
#pragma once
#include "queries.hpp"

namespace linrank {

/// All of them lie in [0, n).
template <class Range>
void check_indices(const Range &indices, Index n, const char *message) {
    for (const Index i : indices) require(i >= 0 && i < n, message);
}

inline void require_length(std::size_t got, Index expected, const char *name) {
    require(Index(got) == expected, name, " has length ", got, ", expected ", expected);
}

template <class Array>
    requires requires(const Array &a) { a.size(); }
void require_length(const Array &a, Index expected, const char *name) {
    require_length(std::size_t(a.size()), expected, name);
}

/// None will do as well.
template <class Array>
void require_length(const std::optional<Array> &a, Index expected, const char *name) {
    if (a) require_length(*a, expected, name);
}

template <class... Arrays>
void require_lengths(Index expected, const char *const (&names)[sizeof...(Arrays)],
                     const Arrays &...arrays) {
    const char *const *name = names;
    (require_length(arrays, expected, *name++), ...);
}

/// value >= 0, and not NaN.
template <class Number>
void require_non_negative(Number value, const char *name) {
    require(value >= 0, name, " must be >= 0, got ", value);
}

inline void check_finite(Doubles values, const char *name) {
    for (const double value : values)
        require(std::isfinite(value), name, " must be finite, got ", value);
}

/// Weights are finite and >= 0; none at all stand for ones.
inline void check_weights(Doubles weights, const char *name) {
    for (const double w : weights)
        require(w >= 0.0 && std::isfinite(w), name, " must be finite and >= 0, got ", w);
}

/// Numbers that are sorted, among which a NaN has no place.
inline void check_not_nan(Doubles values, const char *what) {
    for (const double value : values) require(value == value, what, " is NaN");
}

/// Offsets start at 0, never decrease and end at n_rows.
inline void check_offsets(Integers offsets, std::size_t n_rows) {
    require(!offsets.empty() && offsets.front() == 0 && offsets.back() == Index(n_rows),
            "query offsets do not match the rows");
    require(std::ranges::is_sorted(offsets), "query offsets decrease");
}

/// Levels lie within [0, n_levels) of their query, and are no more than its rows; the offsets have
/// been checked.
inline void check_levels(const Queries &queries) {
    require_length(queries.levels, queries.n_rows(), "levels");
    require_length(queries.n_levels, queries.n_queries(), "n_levels");
    for (Index q = 0; q < queries.n_queries(); ++q) {
        const std::int32_t n_levels = queries.n_levels[q];
        require(n_levels >= 0, "a number of levels is negative");
        require(n_levels <= queries.length(q), "a query has more levels than rows");
        check_indices(queries.levels.subspan(queries.begin(q), queries.length(q)), n_levels,
                      "a level is out of range");
    }
}

/// A square matrix of side n; n * n does not overflow.
inline void check_square(Doubles matrix, Index n, const char *name) {
    require(n >= 0 && n <= INT32_MAX, "n must lie in [0, 2^31), got ", n);
    require_length(matrix, n * n, name);
}

}  // namespace linrank
