// Memory that runs out: one source of a test program includes this.
#pragma once
#include <cstdlib>
#include <new>

namespace linrank_test {
/// Allocations that still succeed; below 0 all do.
inline long allocations_left = -1;
}  // namespace linrank_test

// noinline: GCC would see malloc behind one operator and delete behind the other, and warn.
[[gnu::noinline]] void *operator new(std::size_t n) {
    if (linrank_test::allocations_left == 0) throw std::bad_alloc();
    if (linrank_test::allocations_left > 0) --linrank_test::allocations_left;
    if (void *p = std::malloc(n ? n : 1)) return p;
    throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void *p) noexcept { std::free(p); }
[[gnu::noinline]] void operator delete(void *p, std::size_t) noexcept { std::free(p); }
