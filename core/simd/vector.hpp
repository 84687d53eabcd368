// Vectors of eight lanes in the compiler's own notation: lowered to whatever the target has.
#pragma once
#include <cstdint>
#ifdef __AVX2__
#include <immintrin.h>
#endif

namespace linrank::LINRANK_ISA {

typedef float F32x8 __attribute__((vector_size(32)));
typedef double F64x4 __attribute__((vector_size(32)));
typedef std::int64_t I64x4 __attribute__((vector_size(32)));

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

#ifdef __AVX512F__
typedef double F64x8 __attribute__((vector_size(64)));
typedef std::int64_t I64x8 __attribute__((vector_size(64)));
typedef float F32x16 __attribute__((vector_size(64)));
typedef double F64x16 __attribute__((vector_size(128)));
inline F64x8 either(I64x8 mask, F64x8 x, F64x8 y) { return mask ? x : y; }
#else
/// Two vectors as one. Vectors wider than the registers are kept in memory by GCC and taken apart number
/// by number, which is up to eight times slower.
template <class Half, class Number>
struct Twin {
    Half low, high;
    static constexpr int half_width = int(sizeof(Half) / sizeof(Number));

    Number operator[](int lane) const {
        return lane < half_width ? Number(low[lane]) : Number(high[lane - half_width]);
    }
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
};
typedef Twin<F64x4, double> F64x8;
typedef Twin<F32x8, float> F32x16;
typedef Twin<F64x8, double> F64x16;

/// What a comparison of two F64x8 gives: -1 where it holds, else 0.
struct I64x8 {
    I64x4 low, high;
    std::int64_t operator[](int lane) const { return lane < 4 ? low[lane] : high[lane - 4]; }
    std::int64_t &operator[](int lane) { return reinterpret_cast<std::int64_t *>(this)[lane]; }
    friend I64x8 operator&(I64x8 a, I64x8 b) { return {a.low & b.low, a.high & b.high}; }
    friend I64x8 operator|(I64x8 a, I64x8 b) { return {a.low | b.low, a.high | b.high}; }
    friend I64x8 operator~(I64x8 a) { return {~a.low, ~a.high}; }
};
inline I64x8 operator<(F64x8 a, F64x8 b) { return {a.low < b.low, a.high < b.high}; }
inline I64x8 operator>(F64x8 a, F64x8 b) { return b < a; }
inline I64x8 operator<(F64x8 a, double b) { return {a.low < b, a.high < b}; }
inline I64x8 operator>(F64x8 a, double b) { return {a.low > b, a.high > b}; }
inline I64x8 operator==(F64x8 a, double b) { return {a.low == b, a.high == b}; }
inline I64x8 operator!=(F64x8 a, double b) { return {a.low != b, a.high != b}; }
inline F64x8 either(I64x8 mask, F64x8 x, F64x8 y) {
    return {mask.low ? x.low : y.low, mask.high ? x.high : y.high};
}
#endif

/// For formulas that one number and eight at once go through.
inline double either(bool mask, double x, double y) { return mask ? x : y; }

/// Asks for the cache line of an address. GCC takes a function that does nothing but this for one without
/// effect and drops the calls of it; the empty statement keeps them.
[[gnu::always_inline]] inline void prefetch_line(const void *address) {
    __builtin_prefetch(address);
    asm volatile("");
}

template <class T> struct Lanes8;
template <> struct Lanes8<float> { using type = F32x8; };
template <> struct Lanes8<double> { using type = F64x8; };
template <class T> using Vec8 = typename Lanes8<T>::type;

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
#ifndef __AVX512F__
// By halves: a copy of the whole would go through the stack.
template <class Half, class Number>
struct Memory<Twin<Half, Number>> {
    static Twin<Half, Number> load(const void *p) {
        return {Memory<Half>::load(p), Memory<Half>::load(static_cast<const char *>(p) + sizeof(Half))};
    }
    static void store(void *p, Twin<Half, Number> v) {
        Memory<Half>::store(p, v.low);
        Memory<Half>::store(static_cast<char *>(p) + sizeof(Half), v.high);
    }
};
#endif

inline double widen(double v) { return v; }
inline F64x8 widen(F64x8 v) { return v; }
inline F64x8 widen(F32x8 v) {
#ifdef __AVX512F__
    // GCC 12 makes five instructions of __builtin_convertvector, and warns of the form without a mask.
    return F64x8(_mm512_maskz_cvtps_pd(0xff, __m256(v)));
#else
    typedef float F32x4 __attribute__((vector_size(16)));
    F32x4 half[2];
    __builtin_memcpy(half, &v, sizeof half);
    return {__builtin_convertvector(half[0], F64x4), __builtin_convertvector(half[1], F64x4)};
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
    typedef std::int32_t I32x8 __attribute__((vector_size(32)));
    [[maybe_unused]] std::int64_t n_;  // AVX2 asks the masks alone
    I32x8 mask32_{};
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

/// out[0..3] = the sums of the lanes of four vectors, in the order of sum_lanes.
inline void store_sums(F64x8 a, F64x8 b, F64x8 c, F64x8 d, double *out) {
    const auto fold = [](F64x8 v) {  // v0 + v4, v1 + v5, v2 + v6, v3 + v7
#ifdef __AVX512F__
        F64x4 half[2];
        __builtin_memcpy(half, &v, sizeof half);
        return half[0] + half[1];
#else
        return v.low + v.high;
#endif
    };
    const F64x4 a4 = fold(a), b4 = fold(b), c4 = fold(c), d4 = fold(d);
    const F64x4 ab = __builtin_shufflevector(a4, b4, 0, 4, 2, 6) + __builtin_shufflevector(a4, b4, 1, 5, 3, 7);
    const F64x4 cd = __builtin_shufflevector(c4, d4, 0, 4, 2, 6) + __builtin_shufflevector(c4, d4, 1, 5, 3, 7);
    const F64x4 sums = __builtin_shufflevector(ab, cd, 0, 1, 4, 5) + __builtin_shufflevector(ab, cd, 2, 3, 6, 7);
    __builtin_memcpy(out, &sums, sizeof sums);
}

}  // namespace linrank::LINRANK_ISA
