// The one way linrank uses threads.
#pragma once
#include <functional>
#include <memory>

#include "basics.hpp"

namespace linrank {

/// parallel_for with its body as an address and a function that calls it: threads are compiled
/// once.
void run_tasks(Index n_tasks, int n_threads, const void *body,
               void (*call)(const void *body, Index task));

/// Threads that stay between the calls of the thread that made this: a fit has hundreds of calls,
/// and starting a thread costs 40 µs, waking it a few.
///
/// The last one that a thread has made serves it, but for calls within a task, which start threads
/// of their own. The threads start when they are first asked for. The child of a fork has none of
/// them, and does without.
class ThreadPool {
public:
    ThreadPool();
    ~ThreadPool();
    ThreadPool(const ThreadPool &) = delete;
    ThreadPool &operator=(const ThreadPool &) = delete;

    /// That of this thread, or null.
    static ThreadPool *current();
    /// Calls work(), which must not throw, here and on up to n_helpers threads, until all are done.
    void run(Index n_helpers, const std::function<void()> &work);
    Index n_threads() const;

private:
    struct State;
    std::unique_ptr<State> state_;
    ThreadPool *outer_;
};

/// Calls body(task) for every task in [0, n_tasks), on at most n_threads threads.
///
/// They are those of a ThreadPool, or live for the call only: nothing that a fork, another runtime
/// or an interpreter shutdown can break. Starting one costs about 40 µs, so callers pass
/// n_threads = 1 for work below about half a millisecond. Which thread runs a task is not determined; results
/// are, because a task writes only to memory of its own and callers reduce in task order.
template <class Body>
void parallel_for(Index n_tasks, int n_threads, const Body &body) {
    run_tasks(n_tasks, n_threads, &body, [](const void *address, Index task) {
        (*static_cast<const Body *>(address))(task);
    });
}

/// Calls body(part, first, last) for n_parts ranges of [0, n) of about the same length.
template <class Body>
void for_parts(Index n, Index n_parts, int n_threads, const Body &body) {
    parallel_for(n_parts, n_threads, [&](Index part) {
        body(part, n * part / n_parts, n * (part + 1) / n_parts);
    });
}

/// Calls body(first, last) for the ranges of [0, n) that begin at multiples of `block`.
template <class Body>
void for_blocks(Index n, Index block, int n_threads, const Body &body) {
    parallel_for((n + block - 1) / block, n_threads, [&](Index b) {
        body(b * block, std::min(n, (b + 1) * block));
    });
}

/// to += from, number by number, of structs that hold doubles only.
template <class Sums>
void add_sums(Sums &to, const Sums &from) {
    using Numbers = std::array<double, sizeof(Sums) / sizeof(double)>;
    auto total = std::bit_cast<Numbers>(to);
    const auto part = std::bit_cast<Numbers>(from);
    for (std::size_t k = 0; k < total.size(); ++k) total[k] += part[k];
    to = std::bit_cast<Sums>(total);
}

/// The sums of all tasks, added in order.
template <class Sums>
Sums sum_of(const std::vector<Sums> &parts) {
    Sums total{};
    for (const Sums &part : parts) add_sums(total, part);
    return total;
}

// Work cut into tasks. Every cut depends on the data alone, never on the number of threads, so that
// sums over tasks have the same bits with any number of them.

/// From this length on a query is cut into pieces that threads share.
inline constexpr Index long_query = 1 << 17;

/// Consecutive queries [first, last), all without pairs or shorter than long_query, or one long
/// query.
struct QueryChunk {
    Index first, last;
    bool is_long;
};

/// The queries in chunks of at least 1/n_target of all rows each, long ones alone; a query has
/// pairs where it has more than one level.
std::vector<QueryChunk> chunk_queries(Integers offsets, Levels n_levels, Index n_target);

/// Calls work(chunk, query, scratch) for every query of the chunks; each thread has a scratch. One
/// thread takes a chunk; long queries come last and one by one, so that `work` may share them out
/// among all threads.
template <class Scratch, class Work>
void for_each_query(const std::vector<QueryChunk> &chunks, int n_threads, const Work &work) {
    const auto n = Index(chunks.size());
    parallel_for(n, n_threads, [&](Index k) {
        Scratch scratch;
        for (Index q = chunks[k].first; q < chunks[k].last && !chunks[k].is_long; ++q)
            work(k, q, scratch);
    });
    Scratch scratch;
    for (Index k = 0; k < n; ++k)
        if (chunks[k].is_long) work(k, chunks[k].first, scratch);
}

/// Whole queries in runs of about `target` rows: run c is queries [cuts[c], cuts[c+1]).
std::vector<Index> cut_queries(Integers offsets, Index target = 1 << 14);

/// Calls work(query, scratch) for every query, in runs that threads take; each run has a scratch.
template <class Scratch, class Work>
void for_each_query(Integers offsets, int n_threads, const Work &work) {
    const std::vector<Index> cuts = cut_queries(offsets);
    parallel_for(std::ssize(cuts) - 1, n_threads, [&](Index k) {
        Scratch scratch;
        for (Index q = cuts[k]; q < cuts[k + 1]; ++q) work(q, scratch);
    });
}

/// Bounds of at most n_parts ranges of 0..n with about the same cost, `cost(k)` being that of the
/// first k.
template <class Cost>
std::vector<Index> equal_parts(Index n, Index n_parts, const Cost &cost) {
    std::vector<Index> bounds{0};
    for (Index k = 1; k < n_parts; ++k) {
        const double goal = double(cost(n)) * double(k) / double(n_parts);
        Index low = bounds.back(), high = n;
        while (low < high) {
            const Index middle = (low + high) / 2;
            if (double(cost(middle)) < goal) low = middle + 1;
            else high = middle;
        }
        if (low > bounds.back()) bounds.push_back(low);
    }
    if (bounds.back() < n) bounds.push_back(n);
    return bounds;
}

}  // namespace linrank
