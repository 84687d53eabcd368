// parallel_for: every task once, on any number of threads, and an exception reaches the caller.
#include "parallel.hpp"

#include <atomic>
#include <stdexcept>
#include <string>

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

}  // namespace

int main() {
    every_task_runs_once();
    an_exception_reaches_the_caller();
}
