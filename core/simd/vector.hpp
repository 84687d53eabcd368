// Vectors of eight lanes in the compiler's own notation: lowered to whatever the target has.
#pragma once
#include "simd.hpp"
#ifdef __AVX2__
#include <immintrin.h>
#endif

namespace linrank::LINRANK_ISA {

/// One register.
#if defined(__AVX512F__)
constexpr int register_bytes = 64;
#elif defined(__AVX2__)
constexpr int register_bytes = 32;
#else
constexpr int register_bytes = 16;
#endif
template <class T>
struct Register {
    typedef T type __attribute__((vector_size(register_bytes)));
};

/// n numbers: in a register that they fill in part or wholly, else in two halves. Vectors wider than the
/// registers are kept in memory by GCC and taken apart number by number, which is up to eight times slower.
template <class Number, int n>
struct Lanes;
template <class Number, int n>
using Vector = typename Lanes<Number, n>::type;

template <class Number, int n>
struct Twin {
    using Half = Vector<Number, n / 2>;
    /// -1 where a comparison holds, else 0.
    using Integer = std::conditional_t<sizeof(Number) == 8, std::int64_t, std::int32_t>;
    using Mask = Twin<Integer, n>;
    Half low, high;

    Number operator[](int lane) const { return lane < n / 2 ? Number(low[lane]) : Number(high[lane - n / 2]); }
    /// For lanes that are set one by one, where time does not matter.
    Number &operator[](int lane) { return reinterpret_cast<Number *>(this)[lane]; }

    friend Twin operator+(Twin a, Twin b) { return {a.low + b.low, a.high + b.high}; }
    friend Twin operator-(Twin a, Twin b) { return {a.low - b.low, a.high - b.high}; }
    friend Twin operator*(Twin a, Twin b) { return {a.low * b.low, a.high * b.high}; }
    friend Twin operator/(Twin a, Twin b) { return {a.low / b.low, a.high / b.high}; }
    friend Twin operator+(Twin a, Number b) { return {a.low + b, a.high + b}; }
    friend Twin operator-(Number a, Twin b) { return {a - b.low, a - b.high}; }
    friend Twin operator*(Twin a, Number b) { return {a.low * b, a.high * b}; }
    friend Twin operator*(Number a, Twin b) { return {a * b.low, a * b.high}; }
    friend Twin operator/(Number a, Twin b) { return {a / b.low, a / b.high}; }
    friend Twin operator-(Twin a) { return {-a.low, -a.high}; }
    Twin &operator+=(Twin b) { return *this = *this + b; }
    Twin &operator+=(Number b) { return *this = *this + b; }

    friend Mask operator<(Twin a, Twin b) { return mask_of(a.low < b.low, a.high < b.high); }
    friend Mask operator>(Twin a, Twin b) { return b < a; }
    friend Mask operator<(Twin a, Number b) { return mask_of(a.low < b, a.high < b); }
    friend Mask operator>(Twin a, Number b) { return mask_of(a.low > b, a.high > b); }
    friend Mask operator==(Twin a, Number b) { return mask_of(a.low == b, a.high == b); }
    friend Mask operator!=(Twin a, Number b) { return mask_of(a.low != b, a.high != b); }
    friend Twin operator&(Twin a, Twin b) { return {a.low & b.low, a.high & b.high}; }
    friend Twin operator|(Twin a, Twin b) { return {a.low | b.low, a.high | b.high}; }
    friend Twin operator~(Twin a) { return {~a.low, ~a.high}; }

  private:
    static Mask mask_of(auto low, auto high) {
        using HalfMask = typename Mask::Half;
        return {HalfMask(low), HalfMask(high)};
    }
};

template <class Number, int n>
    requires(n * sizeof(Number) <= register_bytes)
struct Lanes<Number, n> {
    typedef Number type __attribute__((vector_size(n * sizeof(Number))));
};
template <class Number, int n>
    requires(n * sizeof(Number) > register_bytes)
struct Lanes<Number, n> {
    using type = Twin<Number, n>;
};

using F32x8 = Vector<float, 8>;
using F64x4 = Vector<double, 4>;
using F64x8 = Vector<double, 8>;
using I64x8 = Vector<std::int64_t, 8>;

/// x where the mask holds, else y.
template <class Mask, class V>
inline V either(Mask mask, V x, V y) {
    if constexpr (requires { x.low; }) return {either(mask.low, x.low, y.low), either(mask.high, x.high, y.high)};
    else return mask ? x : y;
}

/// For formulas that one number and eight at once go through.
inline double either(bool mask, double x, double y) { return mask ? x : y; }

/// Asks for the cache line of an address. GCC takes a function that does nothing but this for one without
/// effect and drops the calls of it; the empty statement keeps them.
[[gnu::always_inline]] inline void prefetch_line(const void *address) {
    __builtin_prefetch(address);
    asm volatile("");
}

template <class T> using Vec8 = Vector<T, 8>;

/// Vectors from and to memory, without any assumption about the user's arrays.
template <class V>
struct Memory {
    static V load(const void *p) {
        V v;
        __builtin_memcpy(&v, p, sizeof v);
        return v;
    }
    static void store(void *p, V v) { __builtin_memcpy(p, &v, sizeof v); }
};
// By halves: a copy of the whole would go through the stack.
template <class Number, int n>
struct Memory<Twin<Number, n>> {
    using Half = typename Twin<Number, n>::Half;
    static Twin<Number, n> load(const void *p) {
        return {Memory<Half>::load(p), Memory<Half>::load(static_cast<const char *>(p) + sizeof(Half))};
    }
    static void store(void *p, Twin<Number, n> v) {
        Memory<Half>::store(p, v.low);
        Memory<Half>::store(static_cast<char *>(p) + sizeof(Half), v.high);
    }
};

/// The two halves of a vector.
template <class Number, int n>
struct Halves {
    Vector<Number, n / 2> low, high;
    explicit Halves(Vector<Number, n> v) {
        if constexpr (requires { v.low; }) low = v.low, high = v.high;
        else __builtin_memcpy(this, &v, sizeof v);
    }
};

inline double widen(double v) { return v; }
inline F64x8 widen(F64x8 v) { return v; }
template <int n = 8>
inline Vector<double, n> widen(Vector<float, n> v) {
#ifdef __AVX512F__
    // GCC 12 makes five instructions of __builtin_convertvector, and warns of the form without a mask.
    return F64x8(_mm512_maskz_cvtps_pd(0xff, __m256(v)));
#else
    if constexpr (n * sizeof(double) <= register_bytes) return __builtin_convertvector(v, Vector<double, n>);
    else {
        const Halves<float, n> halves(v);
        return {widen<n / 2>(halves.low), widen<n / 2>(halves.high)};
    }
#endif
}

/// Eight values from memory, widened to T.
template <class T, class Value>
inline Vec8<T> load8(const Value *p) {
    if constexpr (sizeof(T) == sizeof(Value)) return Memory<Vec8<T>>::load(p);
    else return widen(Memory<Vec8<Value>>::load(p));
}

/// The first n < 8 values from memory, zeros behind them; what lies beyond is not touched.
class LoadFirst {
  public:
    explicit LoadFirst(std::int64_t n) : n_(n) {
        for (int k = 0; k < 8; ++k) {
            mask32_[k] = k < n ? -1 : 0;
            mask64_[k] = k < n ? -1 : 0;
        }
    }
#ifdef __AVX2__
    F32x8 operator()(const float *p) const { return F32x8(_mm256_maskload_ps(p, __m256i(mask32_))); }
    F64x8 operator()(const double *p) const {
#ifdef __AVX512F__
        return F64x8(_mm512_maskz_loadu_pd(__mmask8((1u << n_) - 1), p));
#else
        return {F64x4(_mm256_maskload_pd(p, __m256i(mask64_.low))),
                F64x4(_mm256_maskload_pd(p + 4, __m256i(mask64_.high)))};
#endif
    }
#else
    template <class Value>
    Vec8<Value> operator()(const Value *p) const {
        Vec8<Value> v{};
        for (int k = 0; k < int(n_); ++k) v[k] = p[k];
        return v;
    }
#endif

  private:
    [[maybe_unused]] std::int64_t n_;  // AVX2 asks the masks alone
    Vector<std::int32_t, 8> mask32_{};
    I64x8 mask64_{};
};

template <class T>
inline void store8(T *p, Vec8<T> v) {
    Memory<Vec8<T>>::store(p, v);
}

/// The sum of the lanes, always in the same order.
template <class V>
inline double sum_lanes(V v) {
    return ((double(v[0]) + double(v[4])) + (double(v[1]) + double(v[5]))) +
           ((double(v[2]) + double(v[6])) + (double(v[3]) + double(v[7])));
}

/// v0 + v1, w0 + w1, v2 + v3, w2 + w3 for every four lanes.
template <class V>
inline V sum_neighbors(V v, V w) {
    if constexpr (requires { v.low; }) return {sum_neighbors(v.low, w.low), sum_neighbors(v.high, w.high)};
    else if constexpr (sizeof v == 16)
        return __builtin_shufflevector(v, w, 0, 2) + __builtin_shufflevector(v, w, 1, 3);
    else return __builtin_shufflevector(v, w, 0, 4, 2, 6) + __builtin_shufflevector(v, w, 1, 5, 3, 7);
}

/// out[0..3] = the sums of the lanes of four vectors, in the order of sum_lanes.
inline void store_sums(F64x8 a, F64x8 b, F64x8 c, F64x8 d, double *out) {
    const auto fold = [](F64x8 v) {  // v0 + v4, v1 + v5, v2 + v6, v3 + v7
        const Halves<double, 8> halves(v);
        return halves.low + halves.high;
    };
    const Halves<double, 4> ab(sum_neighbors(fold(a), fold(b))), cd(sum_neighbors(fold(c), fold(d)));
    Memory<Vector<double, 2>>::store(out, ab.low + ab.high);
    Memory<Vector<double, 2>>::store(out + 2, cd.low + cd.high);
}

}  // namespace linrank::LINRANK_ISA
