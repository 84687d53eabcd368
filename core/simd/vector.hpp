// Vectors of eight lanes in the compiler's own notation: lowered to whatever the target has.
#pragma once
#include <cstdint>
#ifdef __AVX512F__
#include <immintrin.h>
#endif

namespace linrank::LINRANK_ISA {

typedef float F32x8 __attribute__((vector_size(32)));
typedef double F64x8 __attribute__((vector_size(64)));
typedef float F32x16 __attribute__((vector_size(64)));
typedef double F64x16 __attribute__((vector_size(128)));

/// Asks for the cache line of an address. GCC takes a function that does nothing but this for one without
/// effect and drops the calls of it; the empty statement keeps them.
[[gnu::always_inline]] inline void ask_for(const void *address) {
    __builtin_prefetch(address);
    asm volatile("");
}

template <class T> struct Lanes8;
template <> struct Lanes8<float> { using type = F32x8; };
template <> struct Lanes8<double> { using type = F64x8; };
template <class T> using Vec8 = typename Lanes8<T>::type;

/// Eight values from memory, widened to T.
template <class T, class Value>
inline Vec8<T> load8(const Value *p) {
    Vec8<Value> v;
    __builtin_memcpy(&v, p, sizeof v);  // an unaligned load; no assumption about the user's arrays
    if constexpr (sizeof(T) == sizeof(Value)) {
        return v;
    } else {
#ifdef __AVX512F__
        // GCC 12 makes five instructions of the other form, and warns of the one without a mask.
        return Vec8<T>(_mm512_maskz_cvtps_pd(0xff, __m256(v)));
#else
        return __builtin_convertvector(v, Vec8<T>);
#endif
    }
}

template <class T>
inline void store8(T *p, Vec8<T> v) {
    __builtin_memcpy(p, &v, sizeof v);
}

/// The sum of the lanes, always in the same order.
template <class V>
inline double sum_lanes(V v) {
    return ((double(v[0]) + double(v[4])) + (double(v[1]) + double(v[5]))) +
           ((double(v[2]) + double(v[6])) + (double(v[3]) + double(v[7])));
}

typedef double F64x4 __attribute__((vector_size(32)));
typedef std::int64_t I64x4 __attribute__((vector_size(32)));

/// out[0..3] = the sums of the lanes of four vectors, in the order of sum_lanes.
inline void store_sums(F64x8 a, F64x8 b, F64x8 c, F64x8 d, double *out) {
    const auto fold = [](F64x8 v) {  // v0 + v4, v1 + v5, v2 + v6, v3 + v7
        F64x4 half[2];
        __builtin_memcpy(half, &v, sizeof half);
        return half[0] + half[1];
    };
    const F64x4 a4 = fold(a), b4 = fold(b), c4 = fold(c), d4 = fold(d);
    const I64x4 even = {0, 4, 2, 6}, odd = {1, 5, 3, 7}, low = {0, 1, 4, 5}, high = {2, 3, 6, 7};
    const F64x4 ab = __builtin_shuffle(a4, b4, even) + __builtin_shuffle(a4, b4, odd);
    const F64x4 cd = __builtin_shuffle(c4, d4, even) + __builtin_shuffle(c4, d4, odd);
    const F64x4 sums = __builtin_shuffle(ab, cd, low) + __builtin_shuffle(ab, cd, high);
    __builtin_memcpy(out, &sums, sizeof sums);
}

}  // namespace linrank::LINRANK_ISA
