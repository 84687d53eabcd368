// Products with dense rows. Four rows share each load of w; a row whose length is not a multiple of
// eight ends with an overlapping vector whose repeated lanes count for nothing, so rows need no padding.
#include "dense.hpp"

#include "vector.hpp"

namespace linrank::LINRANK_ISA {
namespace {

/// Asks for the four rows after next: rows taken by index are where no hardware looks ahead.
template <class Value>
inline void prefetch(const DenseBlock<Value> &x, std::int64_t t) {
    if (!x.index || t + 12 > x.n_rows) return;
    for (std::int64_t r = t + 8; r < t + 12; ++r) {
        const char *row = reinterpret_cast<const char *>(x.row(r));
        for (std::int64_t byte = 0; byte < x.n_columns * std::int64_t(sizeof(Value)); byte += 64)
            __builtin_prefetch(row + byte);
    }
}

template <class T, class Value>
double dot_short(const Value *x, const T *w, std::int64_t n) {
    T sum = 0;
    for (std::int64_t c = 0; c < n; ++c) sum += T(x[c]) * w[c];
    return double(sum);
}

/// The last eight of w, with zeros where the whole vectors before have counted already.
template <class T>
Vec8<T> tail_of(const T *w, std::int64_t n) {
    Vec8<T> tail = load8<T>(w + n - 8);
    for (int lane = 0; lane < 8 - int(n % 8); ++lane) tail[lane] = 0;
    return tail;
}

template <class T, class Value>
void dot(const DenseBlock<Value> &x, const T *w, double *out) {
    const std::int64_t n = x.n_columns, whole = n / 8 * 8;
    if (n < 8) {
        for (std::int64_t t = 0; t < x.n_rows; ++t) out[t] = dot_short(x.row(t), w, n);
        return;
    }
    const bool has_tail = whole < n;
    const Vec8<T> tail = has_tail ? tail_of(w, n) : Vec8<T>{};
    std::int64_t t = 0;
    for (; t + 4 <= x.n_rows; t += 4) {
        prefetch(x, t);
        const Value *r0 = x.row(t), *r1 = x.row(t + 1), *r2 = x.row(t + 2), *r3 = x.row(t + 3);
        Vec8<T> s0{}, s1{}, s2{}, s3{};
        for (std::int64_t c = 0; c < whole; c += 8) {
            const Vec8<T> v = load8<T>(w + c);
            s0 += load8<T>(r0 + c) * v;
            s1 += load8<T>(r1 + c) * v;
            s2 += load8<T>(r2 + c) * v;
            s3 += load8<T>(r3 + c) * v;
        }
        if (has_tail) {
            s0 += load8<T>(r0 + n - 8) * tail;
            s1 += load8<T>(r1 + n - 8) * tail;
            s2 += load8<T>(r2 + n - 8) * tail;
            s3 += load8<T>(r3 + n - 8) * tail;
        }
        out[t] = sum_lanes(s0);
        out[t + 1] = sum_lanes(s1);
        out[t + 2] = sum_lanes(s2);
        out[t + 3] = sum_lanes(s3);
    }
    for (; t < x.n_rows; ++t) {
        const Value *r = x.row(t);
        Vec8<T> s{};
        for (std::int64_t c = 0; c < whole; c += 8) s += load8<T>(r + c) * load8<T>(w + c);
        if (has_tail) s += load8<T>(r + n - 8) * tail;
        out[t] = sum_lanes(s);
    }
}

template <class T, class Value>
void add(const DenseBlock<Value> &x, const double *a, T *total) {
    const std::int64_t n = x.n_columns, whole = n / 8 * 8;
    if (n < 8) {
        for (std::int64_t t = 0; t < x.n_rows; ++t)
            for (std::int64_t c = 0; c < n; ++c) total[c] += T(a[t]) * T(x.row(t)[c]);
        return;
    }
    const bool has_tail = whole < n;
    Vec8<T> tail{};
    std::int64_t t = 0;
    for (; t + 4 <= x.n_rows; t += 4) {
        const Value *r0 = x.row(t), *r1 = x.row(t + 1), *r2 = x.row(t + 2), *r3 = x.row(t + 3);
        const T a0 = T(a[t]), a1 = T(a[t + 1]), a2 = T(a[t + 2]), a3 = T(a[t + 3]);
        const auto sum = [&](std::int64_t c) {
            return (load8<T>(r0 + c) * a0 + load8<T>(r1 + c) * a1) +
                   (load8<T>(r2 + c) * a2 + load8<T>(r3 + c) * a3);
        };
        for (std::int64_t c = 0; c < whole; c += 8) store8(total + c, load8<T>(total + c) + sum(c));
        if (has_tail) tail += sum(n - 8);
    }
    for (; t < x.n_rows; ++t) {
        const Value *r = x.row(t);
        const T at = T(a[t]);
        for (std::int64_t c = 0; c < whole; c += 8)
            store8(total + c, load8<T>(total + c) + load8<T>(r + c) * at);
        if (has_tail) tail += load8<T>(r + n - 8) * at;
    }
    for (std::int64_t c = whole; c < n; ++c) total[c] += tail[c - (n - 8)];
}

}  // namespace

void dot_f32(const DenseBlock<float> &x, const double *w, double *out) { dot<double>(x, w, out); }
void dot_f64(const DenseBlock<double> &x, const double *w, double *out) { dot<double>(x, w, out); }
void add_f32(const DenseBlock<float> &x, const double *a, double *total) {
    add<double>(x, a, total);
}
void add_f32_fast(const DenseBlock<float> &x, const double *a, float *total) {
    add<float>(x, a, total);
}
void add_f64(const DenseBlock<double> &x, const double *a, double *total) {
    add<double>(x, a, total);
}

}  // namespace linrank::LINRANK_ISA
