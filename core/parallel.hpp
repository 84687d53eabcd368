// The one way linrank uses threads.
#pragma once
#include <atomic>
#include <cstdint>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

namespace linrank {

/// Calls body(task) for every task in [0, n_tasks), on at most n_threads threads.
///
/// Threads live for the call only: there is no pool, hence nothing that a fork, another runtime or
/// an interpreter shutdown can break. Starting one costs about 40 µs, so callers pass n_threads = 1
/// for work below about half a millisecond. Which thread runs a task is not determined; results are,
/// because a task writes only to memory of its own and callers reduce in task order.
template <class Body>
void parallel_for(std::int64_t n_tasks, int n_threads, const Body &body) {
    if (n_threads <= 1 || n_tasks <= 1) {
        for (std::int64_t task = 0; task < n_tasks; ++task) body(task);
        return;
    }
    std::atomic<std::int64_t> next{0};
    std::exception_ptr failure;
    std::mutex failure_lock;
    const auto work = [&] {
        for (;;) {
            const std::int64_t task = next.fetch_add(1, std::memory_order_relaxed);
            if (task >= n_tasks) return;
            try {
                body(task);
            } catch (...) {
                const std::lock_guard lock(failure_lock);
                if (!failure) failure = std::current_exception();
                next.store(n_tasks, std::memory_order_relaxed);
            }
        }
    };
    const std::int64_t n_helpers = (n_threads < n_tasks ? n_threads : n_tasks) - 1;
    {
        std::vector<std::jthread> helpers;  // joined on leaving this scope
        helpers.reserve(static_cast<std::size_t>(n_helpers));
        try {
            for (std::int64_t h = 0; h < n_helpers; ++h) helpers.emplace_back(work);
        } catch (const std::system_error &) {
            // The system gives no more threads: those that there are do all of the work.
        }
        work();
    }
    if (failure) std::rethrow_exception(failure);
}

}  // namespace linrank
