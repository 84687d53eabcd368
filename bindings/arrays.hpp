// Functions of the core for Python: arguments, results, and the lock. Only this folder knows
// Python.
#pragma once
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <functional>
#include <tuple>

#include "checks.hpp"
#include "pages.hpp"
#include "rows.hpp"

namespace nb = nanobind;
using namespace linrank;

template <class T>
using Vector = nb::ndarray<T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T>
using Matrix = nb::ndarray<T, nb::ndim<2>, nb::device::cpu>;
using OptionalDoubles = std::optional<Doubles>;
using OptionalOrder = std::optional<Order>;

// ---- arguments --------------------------------------------------------------------------------

/// What Python gives for a parameter of type T, and what a function gets of it.
template <class T>
struct Parameter {
    using Given = T;
    static T &&of(std::remove_reference_t<T> &given) { return static_cast<T &&>(given); }
};

/// A view of an array, which is taken as it is: a copy is a decision made in Python.
template <class T>
struct Parameter<std::span<T>> {
    using Given = Vector<T>;
    static std::span<T> of(const Given &a) { return {a.data(), a.shape(0)}; }
};

/// A copy of an array. What has been checked may be written to by another thread of Python once the
/// GIL is let go, and then lead out of bounds. So arrays of indices come from linrank itself, which
/// copies those of its users and shows its own as read-only; numbers of users that are sorted are
/// copied before they are checked, here.
template <class T>
    requires std::is_arithmetic_v<T>
struct Parameter<std::vector<T>> {
    using Given = Vector<const T>;
    static std::vector<T> of(const Given &a) { return {a.data(), a.data() + a.shape(0)}; }
};

template <class T>
struct Parameter<std::optional<T>> {
    using Given = std::optional<typename Parameter<T>::Given>;
    static std::optional<T> of(const Given &a) {
        return a ? std::optional<T>(Parameter<T>::of(*a)) : std::nullopt;
    }
};

/// What an enumeration is called in messages, and its choices by the names that Python gives.
template <class T>
struct Choices {
    const char *what;
    std::pair<const char *, T> all[12];
};
template <class T>
inline constexpr Choices<T> choices{};

template <class T>
    requires std::is_enum_v<T>
struct Parameter<T> {
    using Given = std::string;
    static T of(const std::string &name) {
        for (const auto &[known, choice] : choices<T>.all)
            if (known && name == known) return choice;
        throw std::invalid_argument("there is no " + std::string(choices<T>.what) + " '" + name
                                    + "'");
    }
};

/// The numbers of an optional array, none where it is None.
template <class T>
std::span<const T> or_empty(const std::optional<std::span<const T>> &a) {
    return a.value_or(std::span<const T>());
}

template <class T>
std::vector<std::remove_const_t<T>> copy_of(std::span<T> a) { return {a.begin(), a.end()}; }

// ---- results ----------------------------------------------------------------------------------

/// What a function returns, as Python gets it: vectors and tuples of them become NumPy arrays.
template <class T>
struct Result {
    static T of(T &&result) { return std::move(result); }
};

/// A NumPy array that owns `data`, a std::vector or a PageArray.
template <template <class...> class Array, class T>
nb::ndarray<nb::numpy, T, nb::ndim<1>> to_numpy(Array<T> &&data) {
    auto owned = std::make_unique<Array<T>>(std::move(data));
    nb::capsule owner(owned.get(), [](void *p) noexcept { delete static_cast<Array<T> *>(p); });
    Array<T> &kept = *owned.release();  // the capsule deletes it
    return {kept.data(), {kept.size()}, owner};
}
template <class T>
    requires std::is_arithmetic_v<T>
struct Result<std::vector<T>> {
    static auto of(std::vector<T> &&result) { return to_numpy(std::move(result)); }
};
template <class T>
struct Result<PageArray<T>> {
    static auto of(PageArray<T> &&result) { return to_numpy(std::move(result)); }
};
template <class... T>
struct Result<std::tuple<T...>> {
    static auto of(std::tuple<T...> &&result) {
        return std::apply([](T &...each) {
            return std::make_tuple(Result<T>::of(std::move(each))...);
        }, result);
    }
};
template <class T>
struct Result<std::optional<T>> {
    static auto of(std::optional<T> &&result) {
        return result ? std::optional(Result<T>::of(std::move(*result))) : std::nullopt;
    }
};
template <class... T>
struct Result<std::variant<std::vector<T>...>> {  // of the type of a matrix
    static nb::object of(std::variant<std::vector<T>...> &&result) {
        return std::visit([](auto &array) { return nb::cast(to_numpy(std::move(array))); }, result);
    }
};

/// `out`, whose numbers fill(span) writes.
template <class Array, class Fill>
Array filled(Array out, const Fill &fill) {
    fill(std::span(out.data(), out.size()));
    return out;
}

/// One array per member, of that member of all elements.
template <class T, class... Member>
std::tuple<std::vector<Member>...> member_arrays(const std::vector<T> &all, Member T::*...members) {
    std::tuple<std::vector<Member>...> arrays;
    std::apply([&](auto &...array) {
        for (const T &element : all) (array.push_back(element.*members), ...);
    }, arrays);
    return arrays;
}

/// A read-only NumPy view of an array of `owner`, which it keeps alive.
template <class Array>
auto view_of(nb::handle owner, const Array &array) {
    using T = std::remove_cvref_t<decltype(array.data()[0])>;
    return nb::ndarray<nb::numpy, const T, nb::ndim<1>>(array.data(), {array.size()}, owner);
}

// ---- functions --------------------------------------------------------------------------------

/// The parameters of functions, of methods, which have their object first, and of lambdas.
template <class R, class C, class... Args>
auto without_self(R (C::*)(Args...) const) -> R (*)(Args...);

template <class F>
struct Signature : Signature<decltype(without_self(&F::operator()))> {};
template <class R, class... Args>
struct Signature<R (*)(Args...)> {
    using Type = R (*)(Args...);
    static constexpr std::size_t n = sizeof...(Args);
    template <std::size_t k>
    using Given = typename Parameter<std::tuple_element_t<k, std::tuple<Args...>>>::Given;
};
template <class C, class R, class... Args>
struct Signature<R (C::*)(Args...)> : Signature<R (*)(C &, Args...)> {};
template <class C, class R, class... Args>
struct Signature<R (C::*)(Args...) const> : Signature<R (*)(const C &, Args...)> {};

/// A function that runs without the GIL: it touches no object of Python.
template <class F>
struct Unlocked {
    F function;
};
template <class F>
Unlocked<F> unlocked(const F &function) { return {function}; }

/// What `work` returns, found without the GIL.
template <class Work>
auto run_unlocked(const Work &work) {
    const nb::gil_scoped_release release;
    return work();
}

/// What a function does, for what Python gives.
template <bool is_unlocked, class F, class R, class... Args>
auto with_arrays(const F &function, R (*)(Args...)) {
    return [function](typename Parameter<Args>::Given... given) {
        const auto call = [&]() -> R {
            std::optional<nb::gil_scoped_release> release;
            if (is_unlocked) release.emplace();
            return std::invoke(function, Parameter<Args>::of(given)...);
        };
        if constexpr (std::is_void_v<R>) call();
        else return Result<std::decay_t<R>>::of(std::decay_t<R>(call()));
    };
}

/// What is optional, or a pointer, may be None.
template <class Given>
auto argument(const char *name) {
    using Plain = std::decay_t<Given>;
    if constexpr (requires { typename Plain::Scalar; }) return nb::arg(name).noconvert();
    else if constexpr (requires(Plain value) { value.has_value(); })
        return nb::arg(name).noconvert().none();
    else if constexpr (std::is_pointer_v<Plain>) return nb::arg(name).none();
    else return nb::arg(name);
}

/// An argument with a default.
template <class T>
constexpr bool is_default = requires(const T &extra) { extra.name_, extra.value; };

/// scope.def of a function by its signature, "name(a, b)". What follows is handed on: the text, and
/// arguments with a default.
template <bool is_unlocked = false, class Scope, class F, class... Extra>
void def(Scope &scope, const std::string &signature, const F &function, const Extra &...extra) {
    using Of = Signature<F>;
    constexpr std::size_t n_self = std::is_same_v<Scope, nb::module_> ? 0 : 1;
    constexpr std::size_t n = Of::n - n_self - (is_default<Extra> + ... + 0);
    std::array<std::string, n + 1> names;  // that of the function first
    std::size_t k = 0;
    for (const char c : signature)
        if (c == '(' || c == ',') ++k;
        else if (c != ' ' && c != ')') names.at(k) += c;
    require(n == 0 || !names.back().empty(), "a signature names too few arguments");
    [&]<std::size_t... k>(std::index_sequence<k...>) {
        scope.def(names[0].c_str(), with_arrays<is_unlocked>(function, typename Of::Type()),
                  argument<typename Of::template Given<k + n_self>>(names[k + 1].c_str())...,
                  extra...);
    }(std::make_index_sequence<n>{});
}
template <class Scope, class F, class... Extra>
void def(Scope &scope, const std::string &signature, const Unlocked<F> &function,
         const Extra &...extra) {
    def<true>(scope, signature, function.function, extra...);
}

// ---- properties -------------------------------------------------------------------------------

/// A name, and what it stands for.
struct Named {
    const char *name, *text = "";
};

/// What members, or methods without arguments, tell of an object.
template <class T, class... Member>
void def_properties(nb::class_<T> &c, const Named (&names)[sizeof...(Member)],
                    const Member &...members) {
    const Named *named = names;
    ((c.def_prop_ro(named->name, [members](T &self) {
        using R = std::decay_t<decltype(std::invoke(members, self))>;
        return Result<R>::of(R(std::invoke(members, self)));
    }, named->text), ++named), ...);
}

/// Views of arrays of an object, which are members or what methods return.
template <class T, class... Member>
void def_views(nb::class_<T> &c, const Named (&names)[sizeof...(Member)],
               const Member &...members) {
    const Named *named = names;
    ((c.def_prop_ro(named->name, [members](nb::handle_t<T> self) {
        return view_of(self, std::invoke(members, nb::cast<const T &>(self)));
    }, nb::rv_policy::automatic, named->text), ++named), ...);
}

// ---- what many functions take -----------------------------------------------------------------

/// Queries that partition n_rows rows, or the positions of an order of them. Checked at every call,
/// about a nanosecond a row.
inline Queries ordered_queries(Integers offsets, const OptionalOrder &order, std::size_t n_rows) {
    check_offsets(offsets, n_rows);
    require(!order || order->size() == n_rows, "order and rows differ in length");
    check_indices(or_empty(order), Index(n_rows), "order names a row that does not exist");
    return {.offsets = offsets, .order = or_empty(order)};
}

/// Queries of levels, and of rows and queries of weight 1 where these have none.
inline Queries leveled_queries(Integers offsets, Levels levels, Levels n_levels,
                               const OptionalDoubles &row_weight = {},
                               const OptionalDoubles &query_weight = {}) {
    check_offsets(offsets, levels.size());
    const Queries queries{offsets, levels, n_levels, or_empty(row_weight), or_empty(query_weight)};
    check_levels(queries);
    require_length(row_weight, queries.n_rows(), "row_weight");
    require_length(query_weight, queries.n_queries(), "query_weight");
    check_weights(queries.row_weight, "row_weight");
    check_weights(queries.query_weight, "query_weight");
    return queries;
}

/// Rows by position. To the core an empty order is the identity; one that names no row leaves no
/// position.
inline Positions positions(const Rows &rows, const OptionalOrder &order) {
    check_indices(or_empty(order), n_rows(rows), "order names a row that does not exist");
    if (order && order->empty()) return {rows, {}, 0, 0};
    return {rows, or_empty(order)};
}
