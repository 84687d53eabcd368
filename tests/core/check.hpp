// The little that the C++ tests need: checks that stay on in every build, and random cases.
#pragma once
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <vector>

#define CHECK(condition)                                                           \
    do {                                                                           \
        if (!(condition)) {                                                        \
            std::fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);   \
            std::exit(1);                                                          \
        }                                                                          \
    } while (false)

namespace linrank_test {

using Rng = std::mt19937_64;

/// The same in words, for conditions that say little in a message.
inline void check(bool holds, const char *what) {
    if (holds) return;
    std::fprintf(stderr, "FAILED: %s\n", what);
    std::exit(1);
}

inline bool close(double a, double b, double tolerance) {
    return std::abs(a - b) <= tolerance * (1.0 + std::abs(a) + std::abs(b));
}

inline std::int64_t draw(Rng &rng, std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution<std::int64_t>(low, high)(rng);
}

inline std::vector<double> draw_normal(Rng &rng, std::int64_t n, double deviation = 1.0) {
    std::normal_distribution<double> normal(0.0, deviation);
    std::vector<double> values(static_cast<std::size_t>(n));
    for (double &value : values) value = normal(rng);
    return values;
}

}  // namespace linrank_test
