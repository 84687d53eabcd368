// Runs the kernels of core/cuda on the processor: block after block, each thread of a block as a fiber that goes on
// to its next barrier, in an order that LINRANK_EMULATOR_SEED shuffles. What depends on that order is a race.
// Shared memory begins as numbers that are none.
#pragma once
#include <setjmp.h>
#include <ucontext.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <tuple>
#include <utility>
#include <vector>

#define __global__
#define __device__
#define __shared__ thread_local
#define __forceinline__ inline
#define __noinline__
#define __launch_bounds__(...)

using std::fabs, std::fmax, std::fmin, std::fma, std::fmod, std::frexp, std::ldexp, std::max, std::min, std::nan;

struct dim3 { unsigned x = 1, y = 1, z = 1; };
struct alignas(16) int4 { int x, y, z, w; };

static dim3 threadIdx, blockIdx, blockDim, gridDim;
alignas(16) thread_local double shared_numbers[30000];

namespace emulator {

enum class Wait { none, warp, block };

struct Fiber {
    ucontext_t start;
    jmp_buf here;
    bool has_started = false, has_ended = false;
    Wait wait = Wait::none;
    std::vector<char> stack;
};

static std::vector<Fiber> fibers;
static unsigned current;
static jmp_buf scheduler;
static ucontext_t main_context;
static void (*body)(void *);
static void *body_arguments;
static std::uint64_t exchanged[1024];

static void enter() {
    body(body_arguments);
    fibers[current].has_ended = true;
    _longjmp(scheduler, 1);
}

static void wait_for(Wait wait) {
    fibers[current].wait = wait;
    if (!_setjmp(fibers[current].here)) _longjmp(scheduler, 1);
}

static void run(unsigned thread) {
    Fiber &fiber = fibers[thread];
    current = thread;
    threadIdx = {thread, 0, 0};
    if (_setjmp(scheduler)) return;
    if (fiber.has_started) _longjmp(fiber.here, 1);
    fiber.has_started = true;
    getcontext(&fiber.start);
    fiber.start.uc_stack.ss_sp = fiber.stack.data();
    fiber.start.uc_stack.ss_size = fiber.stack.size();
    fiber.start.uc_link = nullptr;
    makecontext(&fiber.start, enter, 0);
    setcontext(&fiber.start);
}

/// Threads [first, end) go on if all that have not ended wait for this.
static bool release(unsigned first, unsigned end, Wait wait) {
    bool has_any = false;
    for (unsigned t = first; t < end; ++t) {
        if (fibers[t].has_ended) continue;
        if (fibers[t].wait != wait) return false;
        has_any = true;
    }
    for (unsigned t = first; t < end; ++t) fibers[t].wait = Wait::none;
    return has_any;
}

static void run_block(std::uint64_t &random) {
    const unsigned n = blockDim.x;
    fibers.resize(std::max<std::size_t>(fibers.size(), n));
    std::vector<unsigned> order(n);
    for (unsigned t = 0; t < n; ++t) {
        order[t] = t;
        Fiber &fiber = fibers[t];
        fiber.stack.resize(32 << 10);
        fiber.has_started = fiber.has_ended = false;
        fiber.wait = Wait::none;
    }
    std::fill(std::begin(shared_numbers), std::end(shared_numbers), NAN);
    for (;;) {
        if (random)
            for (unsigned t = n; t > 1; --t) {
                random = random * 6364136223846793005ull + 1442695040888963407ull;
                std::swap(order[t - 1], order[(random >> 33) % t]);
            }
        bool has_run = false, is_over = true;
        for (const unsigned t : order)
            if (!fibers[t].has_ended && fibers[t].wait == Wait::none) {
                run(t);
                has_run = true;
            }
        for (unsigned t = 0; t < n; ++t) is_over &= fibers[t].has_ended;
        if (is_over) return;
        for (unsigned first = 0; first < n; first += 32) has_run |= release(first, std::min(first + 32, n), Wait::warp);
        has_run |= release(0, n, Wait::block);
        if (!has_run) {
            std::fprintf(stderr, "emulator: threads of a block wait for each other at different barriers\n");
            std::abort();
        }
    }
}

template <class... A, std::size_t... I>
void launch(void (*kernel)(A...), void **arguments, std::index_sequence<I...>) {
    std::tuple<void (*)(A...), A...> call{kernel, *static_cast<A *>(arguments[I])...};
    body = [](void *given) {
        auto copy = *static_cast<decltype(call) *>(given);
        std::apply([](auto function, auto... values) { function(values...); }, copy);
    };
    body_arguments = &call;
    const char *seed = std::getenv("LINRANK_EMULATOR_SEED");
    std::uint64_t random = seed ? std::strtoull(seed, nullptr, 10) : 0;
    for (blockIdx.y = 0; blockIdx.y < gridDim.y; ++blockIdx.y)
        for (blockIdx.x = 0; blockIdx.x < gridDim.x; ++blockIdx.x) run_block(random);
}

template <class... A>
void launch(void (*kernel)(A...), void **arguments) {
    launch(kernel, arguments, std::index_sequence_for<A...>{});
}

}  // namespace emulator

inline void __syncthreads() { emulator::wait_for(emulator::Wait::block); }
inline void __syncwarp(unsigned = 0) { emulator::wait_for(emulator::Wait::warp); }

template <class T>
T exchange(T v, unsigned from) {
    static_assert(sizeof(T) <= 8);
    const unsigned thread = emulator::current;
    std::memcpy(&emulator::exchanged[thread], &v, sizeof(T));
    __syncwarp();
    std::memcpy(&v, &emulator::exchanged[thread / 32 * 32 + from], sizeof(T));
    __syncwarp();
    return v;
}

template <class T>
T __shfl_xor_sync(unsigned, T v, int d) { return exchange(v, threadIdx.x % 32 ^ d); }
template <class T>
T __shfl_up_sync(unsigned, T v, int d) {
    const int from = int(threadIdx.x % 32) - d;
    return exchange(v, from < 0 ? threadIdx.x % 32 : from);
}
template <class T>
T __shfl_sync(unsigned, T v, int lane) { return exchange(v, lane % 32); }

inline unsigned __ballot_sync(unsigned, bool v) {
    unsigned found = 0;
    for (int lane = 0; lane < 32; ++lane) found |= unsigned(exchange(int(v), lane)) << lane;
    return found;
}
inline int __clz(unsigned x) { return x ? __builtin_clz(x) : 32; }

inline double __dmul_rn(double a, double b) { return a * b; }
inline double __longlong_as_double(long long x) {
    double value;
    std::memcpy(&value, &x, sizeof(value));
    return value;
}
