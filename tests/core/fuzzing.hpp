// What the fuzzers of the core share.
//
// Each is one file that defines LLVMFuzzerTestOneInput: a test of any bytes, the same for the same bytes.
// Linked with libFuzzer (clang) it is guided by coverage; linked with fuzzing.cpp it runs through its corpus,
// then through random damage to it.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <span>
#include <string_view>

#if __has_include(<sanitizer/asan_interface.h>)
#include <sanitizer/asan_interface.h>  // without ASan its macros do nothing
#else  // a clang without its runtime
#define ASAN_POISON_MEMORY_REGION(address, size) (void(address), void(size))
#define ASAN_UNPOISON_MEMORY_REGION(address, size) (void(address), void(size))
#endif

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size);

namespace fuzzing {

/// Ends the process unless ok; whoever runs the test keeps the input.
inline void require(bool ok, const char *what) {
    if (ok) return;
    std::fprintf(stderr, "broken: %s\n", what);
    std::abort();
}

/// One of n by the bytes of the input: where a test has many ways, each input takes some of them.
inline std::size_t choose(std::string_view input, std::size_t n) {
    std::size_t sum = input.size();
    for (const char c : input) sum += static_cast<unsigned char>(c);
    return sum % n;
}

/// Takes an input apart from its front. What is asked for behind its end is zero.
class Bytes {
public:
    explicit Bytes(std::string_view input) : rest(input) {}

    template <class T>
    T take() {
        T value{};
        const std::size_t n = std::min(sizeof value, rest.size());
        std::memcpy(&value, rest.data(), n);
        rest.remove_prefix(n);
        return value;
    }
    /// A number from 0 to n - 1.
    std::size_t below(std::size_t n) { return take<std::uint8_t>() % n; }

private:
    std::string_view rest;
};

/// Arrays of exactly their size, until the next input: as from malloc, at a tenth of what that takes under ASan.
class Arena {
public:
    Arena() { ASAN_POISON_MEMORY_REGION(memory, sizeof memory); }
    void clear() {
        ASAN_POISON_MEMORY_REGION(memory, used);
        used = 0;
    }
    /// Bytes of no number that an input is likely to have.
    template <class T>
    std::span<T> take(std::size_t n) {
        require(n <= (sizeof memory - used) / sizeof(T), "the arena is large enough");
        T *const start = reinterpret_cast<T *>(memory + used);
        ASAN_UNPOISON_MEMORY_REGION(start, n * sizeof(T));
        std::memset(static_cast<void *>(start), 0xa5, n * sizeof(T));
        used = std::min(sizeof memory, (used + n * sizeof(T)) / gap * gap + 2 * gap);
        return {start, n};
    }

private:
    static constexpr std::size_t gap = 16;  // at least, and at most twice, between two arrays
    alignas(gap) char memory[1 << 22];
    std::size_t used = 0;
};

/// Equal to the bit: zeros have signs.
template <class T>
bool same(std::span<T> a, std::span<T> b) {
    return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size_bytes()) == 0);
}

}  // namespace fuzzing
