#include "products.hpp"

#include <array>
#include <new>
#include <numeric>

#include "checks.hpp"

namespace linrank {

namespace {

Index n_bytes(const Rows &rows) {
    return std::visit([](const auto &r) {
        std::size_t bytes = sizeof(*r.values);
        if constexpr (requires { r.columns; }) bytes += sizeof(*r.columns);
        return n_entries(r) * Index(bytes);
    }, rows);
}

}  // namespace

Index n_accumulators(const Rows &rows) {
    const Index one = 8 * std::max<Index>(1, n_columns(rows));
    return std::clamp<Index>(((Index(8) << 20) + n_bytes(rows) / 4) / one, 4, 64);
}

LongestSums longest_sums(const Rows &rows) {
    const Index n = n_rows(rows), n_tasks = std::clamp<Index>(n / 512, 1, n_accumulators(rows));
    const Index row = std::visit([]<class Storage>(const Storage &r) -> Index {
        if constexpr (requires { r.offsets; })
            return longest_range({r.offsets, std::size_t(r.n_rows + 1)});
        else return r.n_columns;
    }, rows);
    return {row, n / n_tasks + n_tasks};
}

std::vector<double> reduce(const std::vector<std::vector<double>> &parts, std::size_t n,
                           int n_threads) {
    std::vector<double> out(n);
    for_parts(Index(n), n > 65536 ? 16 : 1, n_threads, [&](Index, Index first, Index last) {
        for (const auto &part : parts)
            if (!part.empty())
                for (Index c = first; c < last; ++c) out[c] += part[c];
    });
    return out;
}

PaddedSquare::PaddedSquare(Index n_columns) : n(n_columns), padded((n_columns + 15) / 16 * 16) {
    if (n > Index(1) << 28) throw std::bad_alloc();
}

Index PaddedSquare::n_parts() const {
    const Index bytes = 8 * std::max<Index>(1, padded * padded);
    return std::clamp<Index>((Index(64) << 20) / bytes, 2, 16);
}

std::vector<double> PaddedSquare::sum(const std::vector<std::vector<double>> &parts, double factor,
                                      int n_threads) const {
    const std::vector<double> total = reduce(parts, std::size_t(padded * padded), n_threads);
    std::vector<double> out(std::size_t(n * n));
    for (Index r = 0; r < n; ++r)
        for (Index c = r; c < n; ++c)
            out[r * n + c] = out[c * n + r] = factor * total[r * padded + c];
    return out;
}

void multiply(const Positions &x, Doubles w, std::span<double> out, int n_threads) {
    std::visit([&]<class Storage>(const Storage &storage) {
        for_parts(x.n, std::clamp<Index>(x.n / 512, 1, 64), n_threads,
                  [&](Index, Index first, Index last) {
            RowRange<Storage>(storage, x.order, x.first + first,
                              last - first).dot(w.data(), out.data() + first);
        });
    }, x.rows);
}

/// Parts of a vector that threads share.
static Index n_vector_parts(std::size_t size) { return size > 65536 ? 64 : 1; }

PageArray<double> add_scaled(Doubles x, double a, Doubles y, int n_threads) {
    require_length(y, std::ssize(x), "y");
    PageArray<double> out(x.size(), huge_pages);
    for_parts(std::ssize(x), n_vector_parts(x.size()), n_threads,
              [&](Index, Index first, Index last) {
        for (Index i = first; i < last; ++i) out[i] = x[i] + a * y[i];
    });
    return out;
}

void add_to(std::span<double> y, double a, Doubles x, int n_threads) {
    require_length(x, std::ssize(y), "x");
    for_parts(std::ssize(y), n_vector_parts(y.size()), n_threads, [&](Index, Index first, Index last) {
        for (Index i = first; i < last; ++i) y[i] += a * x[i];
    });
}

double dot(Doubles x, Doubles y, int n_threads) {
    require_length(y, std::ssize(x), "y");
    std::array<double, 64> sums{};
    for_parts(std::ssize(x), n_vector_parts(x.size()), n_threads, [&](Index part, Index first, Index last) {
        sums[part] = simd().dot_vectors(last - first, x.data() + first, y.data() + first);
    });
    return std::accumulate(sums.begin(), sums.end(), 0.0);
}

std::vector<double> multiply_transposed(const Positions &x, Doubles r, int n_threads) {
    require_length(r, x.n, "r");
    const auto size = std::size_t(n_columns(x.rows));
    const Index n_tasks = std::clamp<Index>(x.n / 512, 1, n_accumulators(x.rows));
    return reduce(parts_of(x.rows, n_tasks, n_threads,
                           [&]<class Storage>(const Storage &storage, Index task) {
        const Index first = x.n * task / n_tasks, last = x.n * (task + 1) / n_tasks;
        std::vector<double> part(size);
        RowRange<Storage>(storage, x.order, x.first + first, last - first).add(r.data() + first,
                                                                               part.data());
        return part;
    }), size, n_threads);
}

}  // namespace linrank
