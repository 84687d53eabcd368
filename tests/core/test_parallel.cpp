// parallel_for: every task once, on any number of threads, and an exception reaches the caller;
// the same with the threads of a pool.
#include "parallel.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <mutex>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>

#include "check.hpp"

namespace {

void every_task_runs_once() {
    for (const int n_threads : {1, 2, 3, 8})
        for (const std::int64_t n_tasks : {0, 1, 2, 7, 1000}) {
            std::vector<std::atomic<int>> runs(static_cast<std::size_t>(n_tasks));
            linrank::parallel_for(n_tasks, n_threads,
                                  [&](std::int64_t task) { ++runs[std::size_t(task)]; });
            for (const auto &count : runs) CHECK(count == 1);
        }
}

void an_exception_reaches_the_caller() {
    for (const int n_threads : {1, 4}) {
        std::string message;
        try {
            linrank::parallel_for(100, n_threads, [](std::int64_t task) {
                if (task == 42) throw std::runtime_error("task 42");
            });
        } catch (const std::runtime_error &error) {
            message = error.what();
        }
        CHECK(message == "task 42");
    }
}

using linrank::ThreadPool;

/// The threads that run these tasks, each of which takes a while.
std::set<std::thread::id> threads_of(std::int64_t n_tasks, int n_threads) {
    std::set<std::thread::id> found;
    std::mutex lock;
    linrank::parallel_for(n_tasks, n_threads, [&](std::int64_t) {
        {
            const std::lock_guard held(lock);
            found.insert(std::this_thread::get_id());
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
    });
    return found;
}

std::int64_t sum_on(int n_threads, std::int64_t n_tasks) {
    std::atomic<std::int64_t> sum{0};
    linrank::parallel_for(n_tasks, n_threads, [&](std::int64_t task) { sum += task; });
    return sum;
}

void a_pool_keeps_its_threads() {
    const ThreadPool pool;
    CHECK(pool.n_threads() == 0);  // they start when they are asked for
    std::set<std::thread::id> all;
    for (int call = 0; call < 10; ++call) all.merge(threads_of(12, 3));
    CHECK(all.size() <= 3 && pool.n_threads() == 2);
    CHECK(threads_of(40, 5).size() > 1 && pool.n_threads() == 4);  // more, when more are asked for
    for (int call = 0; call < 10; ++call) CHECK(threads_of(6, 2).size() <= 2);  // and no more
    CHECK(pool.n_threads() == 4);
}

void fewer_tasks_than_threads_start_fewer() {
    const ThreadPool pool;
    CHECK(threads_of(1, 8) == std::set{std::this_thread::get_id()} && pool.n_threads() == 0);
    CHECK(threads_of(3, 8).size() <= 3 && pool.n_threads() == 2);
}

void many_short_calls_lose_no_task() {
    const ThreadPool pool;
    for (std::int64_t n = 0; n < 20'000; ++n)
        CHECK(sum_on(2 + int(n % 5), n % 40) == (n % 40) * (n % 40 - 1) / 2);
    for (int n = 0; n < 50; ++n) {  // with pauses in which the threads go to sleep
        std::this_thread::sleep_for(std::chrono::microseconds(20 * (n % 5)));
        CHECK(sum_on(4, 100) == 4950);
    }
}

void a_call_within_a_task_has_threads_of_its_own() {
    const ThreadPool pool;
    std::vector<std::int64_t> sums(20);
    linrank::parallel_for(20, 3, [&](std::int64_t task) {
        CHECK(ThreadPool::current() == nullptr);
        sums[std::size_t(task)] = sum_on(3, 50);
    });
    CHECK(std::ranges::count(sums, 1225) == 20);
    CHECK(ThreadPool::current() == &pool && pool.n_threads() == 2);
}

void a_pool_serves_the_thread_that_made_it() {
    const ThreadPool pool;
    std::thread other([&] {
        CHECK(ThreadPool::current() == nullptr);
        CHECK(sum_on(4, 100) == 4950);
        const ThreadPool own;
        CHECK(ThreadPool::current() == &own);
        CHECK(sum_on(2, 100) == 4950 && own.n_threads() == 1);
    });
    CHECK(sum_on(3, 100) == 4950);
    other.join();
    CHECK(ThreadPool::current() == &pool && pool.n_threads() == 2);
}

void the_last_pool_serves() {
    CHECK(ThreadPool::current() == nullptr);
    {
        const ThreadPool outer;
        {
            const ThreadPool inner;
            CHECK(sum_on(3, 100) == 4950 && inner.n_threads() == 2 && outer.n_threads() == 0);
        }
        CHECK(ThreadPool::current() == &outer);
        CHECK(sum_on(4, 100) == 4950 && outer.n_threads() == 3);
    }
    CHECK(ThreadPool::current() == nullptr);
}

void a_pool_lives_on_after_an_exception() {
    const ThreadPool pool;
    for (int call = 0; call < 20; ++call) {
        an_exception_reaches_the_caller();
        CHECK(ThreadPool::current() == &pool && sum_on(4, 100) == 4950);
    }
}

void a_forked_child_does_without() {
    const ThreadPool pool;
    CHECK(sum_on(4, 100) == 4950);
    const pid_t child = fork();
    if (child == 0) {
        bool is_right = ThreadPool::current() == nullptr && sum_on(1, 100) == 4950;
#if !defined(__SANITIZE_THREAD__)  // which refuses threads there
        is_right = is_right && sum_on(3, 100) == 4950;
        {
            const ThreadPool own;
            is_right = is_right && sum_on(3, 100) == 4950 && own.n_threads() == 2;
        }
        is_right = is_right && ThreadPool::current() == nullptr;
#endif
        _exit(is_right ? 0 : 1);
    }
    int status = -1;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    CHECK(sum_on(4, 100) == 4950);
}

void pools_work_side_by_side() {
    std::vector<std::thread> owners;
    std::atomic<int> n_right{0};
    for (int k = 0; k < 8; ++k)
        owners.emplace_back([&] {
            for (int fit = 0; fit < 20; ++fit) {
                const ThreadPool pool;
                for (int call = 0; call < 20; ++call) n_right += sum_on(3, 100) == 4950;
            }
        });
    for (std::thread &owner : owners) owner.join();
    CHECK(n_right == 8 * 20 * 20);
}

}  // namespace

int main() {
    every_task_runs_once();
    an_exception_reaches_the_caller();
    a_pool_keeps_its_threads();
    fewer_tasks_than_threads_start_fewer();
    many_short_calls_lose_no_task();
    a_call_within_a_task_has_threads_of_its_own();
    a_pool_serves_the_thread_that_made_it();
    the_last_pool_serves();
    a_pool_lives_on_after_an_exception();
    a_forked_child_does_without();
    pools_work_side_by_side();
}
