#include "parallel.hpp"

#include <atomic>
#include <exception>
#include <functional>
#include <mutex>
#include <system_error>
#include <thread>

namespace linrank {

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
    {
        // Threads that are waited for when the scope ends; std::jthread is missing from Apple's
        // library.
        struct Helpers : std::vector<std::thread> {
            ~Helpers() { std::ranges::for_each(*this, &std::thread::join); }
        } helpers;
        const auto n_helpers = std::size_t(std::min<Index>(n_threads, n_tasks) - 1);
        helpers.reserve(n_helpers);
        try {
            while (helpers.size() < n_helpers) helpers.emplace_back(std::cref(work));
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
