// The one way linrank uses threads.
#pragma once
#include <cstdint>

namespace linrank {

/// parallel_for with its body as an address and a function that calls it: threads are compiled once.
void run_tasks(std::int64_t n_tasks, int n_threads, const void *body,
               void (*call)(const void *body, std::int64_t task));

/// Calls body(task) for every task in [0, n_tasks), on at most n_threads threads.
///
/// Threads live for the call only: there is no pool, hence nothing that a fork, another runtime or
/// an interpreter shutdown can break. Starting one costs about 40 µs, so callers pass n_threads = 1
/// for work below about half a millisecond. Which thread runs a task is not determined; results are,
/// because a task writes only to memory of its own and callers reduce in task order.
template <class Body>
void parallel_for(std::int64_t n_tasks, int n_threads, const Body &body) {
    run_tasks(n_tasks, n_threads, &body, [](const void *address, std::int64_t task) {
        (*static_cast<const Body *>(address))(task);
    });
}

}  // namespace linrank
