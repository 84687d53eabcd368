// Vectors of eight lanes in the compiler's own notation: lowered to whatever the target has.
#pragma once
#include <cstdint>

namespace linrank::LINRANK_ISA {

typedef float F32x8 __attribute__((vector_size(32)));
typedef double F64x8 __attribute__((vector_size(64)));
typedef float F32x16 __attribute__((vector_size(64)));
typedef double F64x16 __attribute__((vector_size(128)));

template <class T> struct Lanes8;
template <> struct Lanes8<float> { using type = F32x8; };
template <> struct Lanes8<double> { using type = F64x8; };
template <class T> using Vec8 = typename Lanes8<T>::type;

/// Eight values from memory, widened to T.
template <class T, class Value>
inline Vec8<T> load8(const Value *p) {
    Vec8<Value> v;
    __builtin_memcpy(&v, p, sizeof v);  // an unaligned load; no assumption about the user's arrays
    if constexpr (sizeof(T) == sizeof(Value)) return v;
    else return __builtin_convertvector(v, Vec8<T>);
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

}  // namespace linrank::LINRANK_ISA
