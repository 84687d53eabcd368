#include "products.hpp"

#include <new>

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
    return std::clamp<Index>(((Index(8) << 20) + n_bytes(rows) / 16) / one, 4, 64);
}

LongestSums longest_sums(const Rows &rows) {
    const Index n = n_rows(rows), n_tasks = std::clamp<Index>(n / 512, 1, n_accumulators(rows));
    const Index row = std::visit([]<class Storage>(const Storage &r) -> Index {
        if constexpr (requires { r.offsets; }) {
            Index longest = 0;
            for (Index i = 0; i < r.n_rows; ++i)
                longest = std::max(longest, r.offsets[i + 1] - r.offsets[i]);
            return longest;
        } else {
            return r.n_columns;
        }
    }, rows);
    return {row, n / n_tasks + n_tasks};
}

void reduce(const std::vector<std::vector<double>> &parts, std::span<double> out, int n_threads) {
    const Index n = Index(out.size());
    const Index n_tasks = n > 65536 ? 16 : 1;
    for_parts(n, n_tasks, n_threads, [&](Index, Index first, Index last) {
        std::fill(out.begin() + first, out.begin() + last, 0.0);
        for (const auto &part : parts)
            if (!part.empty())
                for (Index c = first; c < last; ++c) out[c] += part[c];
    });
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
    std::vector<double> total(padded * padded), out(std::size_t(n * n));
    reduce(parts, total, n_threads);
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

void add_scaled(Doubles x, double a, Doubles y, std::span<double> out, int n_threads) {
    const Index n = Index(out.size()), n_tasks = n > 65536 ? 64 : 1;
    for_parts(n, n_tasks, n_threads, [&](Index, Index first, Index last) {
        for (Index i = first; i < last; ++i)
            out[i] = x[i] + a * y[i];
    });
}

void multiply_transposed(const Positions &x, Doubles r, std::span<double> out, int n_threads) {
    const Index n_tasks = std::clamp<Index>(x.n / 512, 1, n_accumulators(x.rows));
    reduce(parts_of(x.rows, n_tasks, n_threads,
                    [&]<class Storage>(const Storage &storage, Index task) {
        const Index first = x.n * task / n_tasks, last = x.n * (task + 1) / n_tasks;
        std::vector<double> part(out.size());
        RowRange<Storage>(storage, x.order, x.first + first, last - first).add(r.data() + first,
                                                                               part.data());
        return part;
    }), out, n_threads);
}

}  // namespace linrank
