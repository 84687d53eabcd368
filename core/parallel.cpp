#include "parallel.hpp"

#include <atomic>
#include <exception>
#include <functional>
#include <mutex>
#include <system_error>
#include <thread>

namespace linrank {

namespace {

/// Threads that are waited for when the scope ends; std::jthread is missing from Apple's library.
class Helpers {
  public:
    explicit Helpers(std::int64_t n) { threads_.reserve(n); }
    Helpers(const Helpers &) = delete;
    Helpers &operator=(const Helpers &) = delete;
    ~Helpers() {
        for (std::thread &thread : threads_) thread.join();
    }
    template <class Work>
    void start(const Work &work) {
        threads_.emplace_back(std::cref(work));
    }

  private:
    std::vector<std::thread> threads_;
};

}  // namespace

void run_tasks(std::int64_t n_tasks, int n_threads, const void *body,
               void (*call)(const void *body, std::int64_t task)) {
    if (n_threads <= 1 || n_tasks <= 1) {
        for (std::int64_t task = 0; task < n_tasks; ++task) call(body, task);
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
                call(body, task);
            } catch (...) {
                const std::lock_guard lock(failure_lock);
                if (!failure) failure = std::current_exception();
                next.store(n_tasks, std::memory_order_relaxed);
            }
        }
    };
    const std::int64_t n_helpers = (n_threads < n_tasks ? n_threads : n_tasks) - 1;
    {
        Helpers helpers(n_helpers);
        try {
            for (std::int64_t h = 0; h < n_helpers; ++h) helpers.start(work);
        } catch (const std::system_error &) {
            // The system gives no more threads: those that there are do all of the work.
        }
        work();
    }
    if (failure) std::rethrow_exception(failure);
}

std::vector<QueryChunk> chunk_queries(std::span<const std::int64_t> offsets,
                                      std::span<const std::int32_t> n_levels, std::int64_t n_target) {
    const std::int64_t share = std::max<std::int64_t>(1, offsets.back() / n_target);
    std::vector<QueryChunk> chunks;
    std::size_t first = 0;
    const auto close = [&](std::size_t last, bool is_long) {
        if (first < last) chunks.push_back({std::int64_t(first), std::int64_t(last), is_long});
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

std::vector<std::int64_t> cut_queries(std::span<const std::int64_t> offsets, std::int64_t target) {
    std::vector<std::int64_t> cuts{0};
    std::int64_t begin = 0;
    for (std::size_t q = 1; q < offsets.size(); ++q) {
        if (offsets[q] - begin < target && q + 1 < offsets.size()) continue;
        cuts.push_back(std::int64_t(q));
        begin = offsets[q];
    }
    return cuts;
}

}  // namespace linrank
