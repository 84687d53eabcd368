#include "parallel.hpp"

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>

namespace linrank {

namespace {

thread_local ThreadPool *pool_of_thread = nullptr;

/// Whether is_done() comes to hold within 20 µs: what follows a call is mostly there by then, and
/// sleeping until it is would cost as much.
template <class IsDone>
bool spin(const IsDone &is_done) {
    using Clock = std::chrono::steady_clock;
    const auto end = Clock::now() + std::chrono::microseconds(20);
    do {
        for (int k = 0; k < 16; ++k) {
            if (is_done()) return true;
#if defined(__x86_64__)
            __builtin_ia32_pause();
#endif
        }
    } while (Clock::now() < end);
    return false;
}

}  // namespace

/// A call hands out tickets: a thread that takes one works, and is waited for. What is left when
/// the caller runs out of work is withdrawn, so that nobody waits for a thread that still sleeps.
struct ThreadPool::State {
    std::mutex lock;
    std::condition_variable wake, finish;
    std::atomic<std::uint64_t> n_calls{0};
    std::atomic<Index> tickets{0}, n_busy{0};
    std::atomic<bool> is_closing{false};
    const std::function<void()> *work = nullptr;  // for those who have a ticket
    std::vector<std::thread> threads;
    const pid_t process = getpid();

    bool take_ticket() {
        Index left = tickets.load();
        while (left > 0)
            if (tickets.compare_exchange_weak(left, left - 1)) return true;
        return false;
    }

    /// Each thread that wakes up wakes two more: the caller begins at once, however many there are.
    void wake_two() {
        wake.notify_one();
        wake.notify_one();
    }

    void serve() {
        std::uint64_t seen = 0;
        const auto is_called = [&] { return n_calls.load() != seen || is_closing.load(); };
        for (;;) {
            if (!spin(is_called)) {
                std::unique_lock held(lock);
                wake.wait(held, is_called);
            }
            if (is_closing.load()) return;
            seen = n_calls.load();
            n_busy.fetch_add(1);  // before the ticket, so that whoever has one is waited for
            if (take_ticket()) {
                if (tickets.load() > 0) wake_two();
                (*work)();
            }
            if (n_busy.fetch_sub(1) == 1) {
                const std::lock_guard held(lock);
                finish.notify_one();
            }
        }
    }
};

ThreadPool::ThreadPool() : state_(std::make_unique<State>()), outer_(pool_of_thread) {
    pool_of_thread = this;
}

ThreadPool::~ThreadPool() {
    pool_of_thread = outer_;
    if (state_->process != getpid()) {
        state_.release();  // its threads are those of the parent
        return;
    }
    {
        const std::lock_guard held(state_->lock);
        state_->is_closing = true;
    }
    state_->wake.notify_all();
    for (std::thread &thread : state_->threads) thread.join();
}

ThreadPool *ThreadPool::current() {
    ThreadPool *pool = pool_of_thread;
    return pool && pool->state_->process == getpid() ? pool : nullptr;
}

Index ThreadPool::n_threads() const { return Index(state_->threads.size()); }

void ThreadPool::run(Index n_helpers, const std::function<void()> &work) {
    State &state = *state_;
    try {
        while (n_threads() < n_helpers) state.threads.emplace_back(&State::serve, &state);
    } catch (const std::system_error &) {
        // The system gives no more threads: those that there are do all of the work.
    }
    state.work = &work;
    {
        const std::lock_guard held(state.lock);
        state.tickets = n_helpers;
        ++state.n_calls;
    }
    state.wake_two();
    pool_of_thread = nullptr;
    work();
    pool_of_thread = this;
    state.tickets = 0;
    const auto is_done = [&] { return state.n_busy.load() == 0; };
    if (spin(is_done)) return;
    std::unique_lock held(state.lock);
    state.finish.wait(held, is_done);
}

void run_tasks(Index n_tasks, int n_threads, const void *body,
               void (*call)(const void *body, Index task)) {
    if (n_threads <= 1 || n_tasks <= 1) {
        for (Index task = 0; task < n_tasks; ++task) call(body, task);
        return;
    }
    std::atomic<Index> next{0};
    std::exception_ptr failure;
    std::mutex failure_lock;
    const auto work = [&] {
        for (;;) {
            const Index task = next.fetch_add(1, std::memory_order_relaxed);
            if (task >= n_tasks) return;
            try {
                call(body, task);
            } catch (...) {
                const std::lock_guard lock(failure_lock);
                if (!failure) failure = std::current_exception();
                next.store(n_tasks, std::memory_order_relaxed);
            }
        }
    };
    const Index n_helpers = std::min<Index>(n_threads, n_tasks) - 1;
    if (ThreadPool *pool = ThreadPool::current()) {
        pool->run(n_helpers, std::cref(work));
    } else {
        // Threads that are waited for when the scope ends; std::jthread is missing from Apple's
        // library.
        struct Helpers : std::vector<std::thread> {
            ~Helpers() { std::ranges::for_each(*this, &std::thread::join); }
        } helpers;
        helpers.reserve(std::size_t(n_helpers));
        try {
            while (std::ssize(helpers) < n_helpers) helpers.emplace_back(std::cref(work));
        } catch (const std::system_error &) {
            // The system gives no more threads: those that there are do all of the work.
        }
        work();
    }
    if (failure) std::rethrow_exception(failure);
}

std::vector<QueryChunk> chunk_queries(Integers offsets, Levels n_levels, Index n_target) {
    const Index share = std::max<Index>(1, offsets.back() / n_target);
    std::vector<QueryChunk> chunks;
    std::size_t first = 0;
    const auto close = [&](std::size_t last, bool is_long) {
        if (first < last) chunks.push_back({Index(first), Index(last), is_long});
        first = last;
    };
    for (std::size_t q = 0; q < n_levels.size(); ++q) {
        if (offsets[q + 1] - offsets[q] >= long_query && n_levels[q] > 1) {
            close(q, false);
            close(q + 1, true);
        } else if (offsets[q + 1] - offsets[first] >= share) {
            close(q + 1, false);
        }
    }
    close(n_levels.size(), false);
    return chunks;
}

std::vector<Index> cut_queries(Integers offsets, Index target) {
    std::vector<Index> cuts{0};
    Index begin = 0;
    for (std::size_t q = 1; q < offsets.size(); ++q) {
        if (offsets[q] - begin < target && q + 1 < offsets.size()) continue;
        cuts.push_back(Index(q));
        begin = offsets[q];
    }
    return cuts;
}

}  // namespace linrank
