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

#include <atomic>
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
        refuse("there is no ", choices<T>.what, " '", name, "'");
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

/// The same member of all of them.
template <class T, class Member>
std::vector<Member> member_of(const std::vector<T> &all, Member T::*member) {
    std::vector<Member> out;
    for (const T &each : all) out.push_back(each.*member);
    return out;
}

/// A class of Python, though a struct of the core.
template <class T>
inline constexpr bool is_opaque = false;

/// Stands for a value of any type.
struct Anything {
    template <class T>
    operator T() const;
};
template <class T, class... Known>
consteval std::size_t count_members() {
    if constexpr (requires { T{Known()..., Anything()}; })
        return count_members<T, Known..., Anything>();
    else return sizeof...(Known);
}
/// A struct of results, which Python gets as a tuple of its members, and many of them as a tuple of
/// one array for each member.
template <class T>
concept Record = std::is_aggregate_v<T> && !is_opaque<T>;

template <Record T>
auto members_of(T &r) {
    constexpr std::size_t n = count_members<T>();
    static_assert(n >= 2 && n <= 7);
    if constexpr (n == 2) { auto &[a, b] = r; return std::tie(a, b); }
    else if constexpr (n == 3) { auto &[a, b, c] = r; return std::tie(a, b, c); }
    else if constexpr (n == 4) { auto &[a, b, c, d] = r; return std::tie(a, b, c, d); }
    else if constexpr (n == 5) { auto &[a, b, c, d, e] = r; return std::tie(a, b, c, d, e); }
    else if constexpr (n == 6) { auto &[a, b, c, d, e, f] = r; return std::tie(a, b, c, d, e, f); }
    else { auto &[a, b, c, d, e, f, g] = r; return std::tie(a, b, c, d, e, f, g); }
}

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
template <Record T>
struct Result<T> {
    static auto of(T &&result) {
        return std::apply([](auto &...each) {
            return std::make_tuple(Result<std::decay_t<decltype(each)>>::of(std::move(each))...);
        }, members_of(result));
    }
};
template <Record T>
struct Result<std::vector<T>> {
    static auto of(std::vector<T> &&all) {
        return [&]<class... Member>(std::tuple<Member &...> *) {
            std::tuple<std::vector<Member>...> arrays;
            for (T &one : all)
                std::apply([&](auto &...array) {
                    std::apply([&](auto &...each) { (array.push_back(each), ...); },
                               members_of(one));
                }, arrays);
            return Result<decltype(arrays)>::of(std::move(arrays));
        }(static_cast<decltype(members_of(all[0])) *>(nullptr));
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
    if constexpr (requires { typename Plain::Scalar; } || requires { typename Plain::first_type; })
        return nb::arg(name).noconvert();
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

// ---- objects that one call at a time may use --------------------------------------------------

/// A T, and whether a call is at work on it.
///
/// Calls that let go of the GIL could meet others in the same object: where one of them moves its
/// arrays, the other would write to memory that is free. The second one is refused instead; to wait
/// for the first would hide that the result depends on which of them came first.
template <class T>
class Exclusive {
  public:
    /// `name` is what messages call it.
    Exclusive(T &&object, const char *name) : object_(std::move(object)), name_(name) {}
    Exclusive(Exclusive &&other) : object_(std::move(other.object_)), name_(other.name_) {}

    /// Ends the use of an object.
    struct Release {
        std::atomic<bool> *in_use;
        void operator()(T *) const { in_use->store(false, std::memory_order_release); }
    };
    /// The object, for as long as what is returned lives.
    std::unique_ptr<T, Release> use() {
        if (in_use_.exchange(true, std::memory_order_acquire))
            throw std::runtime_error(std::string("this ") + name_ + " is in use by another thread; "
                                     "give each thread one of its own, or a lock to all of them");
        return {&object_, {&in_use_}};
    }

  private:
    T object_;
    const char *name_;
    std::atomic<bool> in_use_{false};
};

/// A method as one of an object that one call at a time may use.
template <class Method>
auto exclusive(Method method) {
    return [method]<class T, class R, class... Args>(R (*)(T &, Args...)) {
        return [method](Exclusive<std::remove_const_t<T>> &self, Args... args) -> std::decay_t<R> {
            return std::invoke(method, *self.use(), std::forward<Args>(args)...);
        };
    }(typename Signature<Method>::Type());
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
