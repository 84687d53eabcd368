// Arrays of Python as the core sees them: types, checks, ownership. Only this folder knows Python.
#pragma once
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <tuple>

#include "pages.hpp"
#include "products.hpp"
#include "queries.hpp"
#include "ranking.hpp"

namespace nb = nanobind;
using namespace linrank;

template <class T>
using Vector = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T>
using Writable = nb::ndarray<T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T>
using Matrix = nb::ndarray<const T, nb::ndim<2>, nb::device::cpu>;
using DoubleArray = Vector<double>;
using IntegerArray = Vector<Index>;
using LevelArray = Vector<std::int32_t>;
using OptionalDoubles = std::optional<DoubleArray>;
using OptionalOrder = std::optional<IntegerArray>;

// ---- functions --------------------------------------------------------------------------------

template <class F>
struct Signature : Signature<decltype(&F::operator())> {};
template <class R, class... Args>
struct Signature<R (*)(Args...)> {
    template <std::size_t k>
    using Argument = std::tuple_element_t<k, std::tuple<Args...>>;
};
template <class C, class R, class... Args>
struct Signature<R (C::*)(Args...) const> : Signature<R (*)(Args...)> {};

/// An argument of type T. Arrays are taken as they are: a copy is a decision made in Python. What is
/// optional, or a pointer, may be None.
template <class T>
auto argument(const char *name) {
    using Plain = std::decay_t<T>;
    if constexpr (requires { typename Plain::Scalar; }) return nb::arg(name).noconvert();
    else if constexpr (requires(Plain value) { value.has_value(); }) return nb::arg(name).noconvert().none();
    else if constexpr (std::is_pointer_v<Plain>) return nb::arg(name).none();
    else return nb::arg(name);
}

/// scope.def of a function whose first arguments, behind `self` of a method, have these names. What follows is
/// handed on: the text, and names of arguments with a default.
template <class Scope, class F, std::size_t n, class... Extra>
void def(Scope &scope, const char *name, const F &function, const char *const (&names)[n], const Extra &...extra) {
    constexpr std::size_t n_self = std::is_same_v<Scope, nb::module_> ? 0 : 1;
    [&]<std::size_t... k>(std::index_sequence<k...>) {
        scope.def(name, function,
                  argument<typename Signature<F>::template Argument<k + n_self>>(names[k])..., extra...);
    }(std::make_index_sequence<n>{});
}

/// Members that can be read, each under its name.
template <class T, class... Member>
void def_members(nb::class_<T> &c, const char *const (&names)[sizeof...(Member)], const Member &...members) {
    const char *const *name = names;
    (c.def_ro(*name++, members), ...);
}

// ---- arrays -----------------------------------------------------------------------------------

/// A NumPy array that owns `data`, a std::vector or a PageArray.
template <template <class...> class Array, class T>
nb::ndarray<nb::numpy, T, nb::ndim<1>> to_numpy(Array<T> &&data) {
    auto owned = std::make_unique<Array<T>>(std::move(data));
    nb::capsule owner(owned.get(), [](void *p) noexcept { delete static_cast<Array<T> *>(p); });
    Array<T> &kept = *owned.release();  // the capsule deletes it
    return {kept.data(), {kept.size()}, owner};
}

template <class... Array>
auto to_tuple(Array &&...arrays) {
    return std::make_tuple(to_numpy(std::move(arrays))...);
}

/// An array of the type of a matrix.
inline nb::object cast_values(Values &&values) {
    return std::visit([](auto &of_type) { return nb::cast(to_numpy(std::move(of_type))); }, values);
}

/// One array per member, of that member of all elements.
template <class T, class... Member>
auto member_arrays(const std::vector<T> &all, Member T::*...members) {
    const auto array_of = [&]<class M>(M T::*member) {
        std::vector<M> out;
        for (const T &element : all) out.push_back(element.*member);
        return to_numpy(std::move(out));
    };
    return std::make_tuple(array_of(members)...);
}

/// A read-only NumPy view of an array of `owner`, which it keeps alive.
template <class Array>
auto view_of(nb::handle owner, const Array &array) {
    using T = std::remove_cvref_t<decltype(array.data()[0])>;
    return nb::ndarray<nb::numpy, const T, nb::ndim<1>>(array.data(), {array.size()}, owner);
}

template <class T>
std::span<const T> span_of(const Vector<T> &a) { return {a.data(), a.shape(0)}; }
template <class T>
std::span<const T> span_of(const std::optional<Vector<T>> &a) {
    return a ? span_of(*a) : std::span<const T>();
}
template <class T>
std::span<T> writable(const Writable<T> &a) { return {a.data(), a.shape(0)}; }

/// What `work` returns, without the GIL while it runs.
template <class Work>
auto unlocked(const Work &work) {
    const nb::gil_scoped_release release;
    return work();
}

/// `out` as a NumPy array, whose numbers fill(span) writes without the GIL.
template <template <class...> class Array, class T, class Fill>
auto filled(Array<T> out, const Fill &fill) {
    unlocked([&] { fill(std::span<T>(out.data(), out.size())); });
    return to_numpy(std::move(out));
}

// ---- checks: the core trusts what passes them -------------------------------------------------

inline void require(bool holds, const char *message) {
    if (!holds) throw std::invalid_argument(message);
}

/// All of them lie in [0, n).
template <class Indices>
void check_indices(const Indices &indices, Index n, const char *message) {
    for (const Index i : indices) require(i >= 0 && i < n, message);
}

inline void require_length(std::size_t got, Index expected, const char *name) {
    if (Index(got) != expected)
        throw std::invalid_argument(std::string(name) + " has length " + std::to_string(got) +
                                    ", expected " + std::to_string(expected));
}

template <class T>
void require_length(const Vector<T> &a, Index expected, const char *name) {
    require_length(a.shape(0), expected, name);
}

/// None will do as well.
template <class T>
void require_length(const std::optional<Vector<T>> &a, Index expected, const char *name) {
    if (a) require_length(*a, expected, name);
}

template <class... Arrays>
void require_lengths(Index expected, const char *const (&names)[sizeof...(Arrays)], const Arrays &...arrays) {
    const char *const *name = names;
    (require_length(arrays, expected, *name++), ...);
}

inline void check_finite(std::span<const double> values, const char *name) {
    for (const double value : values)
        if (!std::isfinite(value))
            throw std::invalid_argument(std::string(name) + " must be finite, got " + std::to_string(value));
}

/// Weights are finite and >= 0; none at all stand for ones.
inline void check_weights(std::span<const double> weights, const char *name) {
    for (const double weight : weights)
        if (!(weight >= 0.0 && std::isfinite(weight)))
            throw std::invalid_argument(std::string(name) + " must be finite and >= 0, got " +
                                        std::to_string(weight));
}

template <class Array>
void require_weights(const Array &weights, Index expected, const char *name) {
    require_length(weights, expected, name);
    check_weights(span_of(weights), name);
}

/// The choice of that name; `what` is what it is a choice of.
template <class T>
T choose(const char *what, const std::string &name, std::initializer_list<std::pair<const char *, T>> choices) {
    for (const auto &[known, choice] : choices)
        if (name == known) return choice;
    throw std::invalid_argument("there is no " + std::string(what) + " '" + name + "'");
}

/// Offsets start at 0, never decrease and end at n_rows.
inline void check_offsets(std::span<const Index> offsets, std::size_t n_rows) {
    if (offsets.empty() || offsets.front() != 0 || offsets.back() != Index(n_rows))
        throw std::invalid_argument("query offsets do not match the rows");
    require(std::is_sorted(offsets.begin(), offsets.end()), "query offsets decrease");
}

// What has been checked may be written to by another thread of Python once the GIL is let go, and then lead out
// of bounds. So arrays of indices come from linrank itself, which copies those of its users and shows its own as
// read-only; numbers of users that are sorted are copied before they are checked, here.

/// A copy that nobody else can write to; empty of None.
template <class T>
std::vector<T> own_copy(const Vector<T> &a) { return {a.data(), a.data() + a.shape(0)}; }
template <class T>
std::vector<T> own_copy(const std::optional<Vector<T>> &a) { return a ? own_copy(*a) : std::vector<T>(); }

/// Positions name rows that exist. Checked at every call, about a nanosecond a row.
inline Order checked_order(const OptionalOrder &order, Index n_rows) {
    const Order rows = span_of(order);
    check_indices(rows, n_rows, "order names a row that does not exist");
    return rows;
}

/// An order of all rows, and queries that partition it.
inline Queries checked_queries(const IntegerArray &offsets, const OptionalOrder &order,
                          std::size_t n_rows) {
    check_offsets(span_of(offsets), n_rows);
    require(!order || order->shape(0) == n_rows, "order and rows differ in length");
    return {.offsets = span_of(offsets), .order = checked_order(order, Index(n_rows))};
}

/// Levels lie within [0, n_levels) of their query, and are no more than its rows; the offsets have been
/// checked.
inline void check_levels(std::span<const std::int32_t> levels, std::span<const Index> offsets,
                         std::span<const std::int32_t> n_levels) {
    require_length(levels.size(), offsets.back(), "levels");
    require_length(n_levels.size(), Index(offsets.size()) - 1, "n_levels");
    for (std::size_t q = 0; q < n_levels.size(); ++q) {
        require(n_levels[q] >= 0, "a number of levels is negative");
        require(n_levels[q] <= offsets[q + 1] - offsets[q], "a query has more levels than rows");
        check_indices(levels.subspan(offsets[q], offsets[q + 1] - offsets[q]), n_levels[q], "a level is out of range");
    }
}

/// Offsets, and the levels of what they divide.
inline void check_queries(const IntegerArray &offsets, const LevelArray &levels, const LevelArray &n_levels) {
    check_offsets(span_of(offsets), levels.shape(0));
    check_levels(span_of(levels), span_of(offsets), span_of(n_levels));
}

/// A copy of numbers that are sorted, among which a NaN has no place.
inline std::vector<double> without_nan(const DoubleArray &values, const char *what) {
    std::vector<double> own = own_copy(values);
    for (const double value : own)
        if (value != value) throw std::invalid_argument(std::string(what) + " is NaN");
    return own;
}

inline std::vector<double> checked_scores(const DoubleArray &scores, std::size_t n_rows) {
    require_length(scores.shape(0), Index(n_rows), "scores");
    return without_nan(scores, "a score");
}

/// A square matrix of side n; n * n does not overflow.
inline void check_square(const DoubleArray &matrix, Index n, const char *name) {
    if (n < 0 || n > INT32_MAX)
        throw std::invalid_argument("n must lie in [0, 2^31), got " + std::to_string(n));
    require_length(matrix.shape(0), n * n, name);
}

/// Rows and the arrays that they look at.
struct BoundRows {
    Rows rows;
    nb::object keep_alive;
};

/// Rows by position. To the core an empty order is the identity; one that names no row leaves no position.
inline Positions positions(const BoundRows &bound, const OptionalOrder &given) {
    const Order order = checked_order(given, n_rows(bound.rows));
    if (given && order.empty()) return {bound.rows, {}, 0, 0};
    return {bound.rows, order};
}
