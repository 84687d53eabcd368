#include "products.hpp"

#include <cmath>
#include <new>

namespace linrank {

namespace {

std::int64_t n_bytes(const Rows &rows) {
    return std::visit([](const auto &r) {
        std::size_t bytes = sizeof(*r.values);
        if constexpr (requires { r.columns; }) bytes += sizeof(*r.columns);
        return n_entries(r) * std::int64_t(bytes);
    }, rows);
}

}  // namespace

std::int64_t n_accumulators(const Rows &rows) {
    const std::int64_t one = 8 * std::max<std::int64_t>(1, n_columns(rows));
    return std::clamp<std::int64_t>(((std::int64_t(8) << 20) + n_bytes(rows) / 16) / one, 4, 64);
}

LongestSums longest_sums(const Rows &rows) {
    const std::int64_t n = n_rows(rows), n_tasks = std::clamp<std::int64_t>(n / 512, 1, n_accumulators(rows));
    const std::int64_t row = std::visit([]<class Storage>(const Storage &r) -> std::int64_t {
        if constexpr (requires { r.offsets; }) {
            std::int64_t longest = 0;
            for (std::int64_t i = 0; i < r.n_rows; ++i)
                longest = std::max(longest, r.offsets[i + 1] - r.offsets[i]);
            return longest;
        } else {
            return r.n_columns;
        }
    }, rows);
    return {row, n / n_tasks + n_tasks};
}

void reduce(const std::vector<std::vector<double>> &parts, std::span<double> out, int n_threads) {
    const std::int64_t n = std::int64_t(out.size());
    const std::int64_t n_tasks = n > 65536 ? 16 : 1;
    for_parts(n, n_tasks, n_threads, [&](std::int64_t, std::int64_t first, std::int64_t last) {
        std::fill(out.begin() + first, out.begin() + last, 0.0);
        for (const auto &part : parts)
            if (!part.empty())
                for (std::int64_t c = first; c < last; ++c) out[c] += part[c];
    });
}

PaddedSquare::PaddedSquare(std::int64_t n_columns) : n(n_columns), padded((n_columns + 15) / 16 * 16) {
    if (n > std::int64_t(1) << 28) throw std::bad_alloc();
}

std::int64_t PaddedSquare::n_parts() const {
    const std::int64_t bytes = 8 * std::max<std::int64_t>(1, padded * padded);
    return std::clamp<std::int64_t>((std::int64_t(64) << 20) / bytes, 2, 16);
}

std::vector<double> PaddedSquare::sum(const std::vector<std::vector<double>> &parts, double factor,
                                      int n_threads) const {
    std::vector<double> total(padded * padded), out(std::size_t(n * n));
    reduce(parts, total, n_threads);
    for (std::int64_t r = 0; r < n; ++r)
        for (std::int64_t c = r; c < n; ++c)
            out[r * n + c] = out[c * n + r] = factor * total[r * padded + c];
    return out;
}

void multiply(const Rows &rows, Order order, std::span<const double> w, std::span<double> out,
              int n_threads) {
    const std::int64_t n = n_positions(rows, order), n_tasks = std::clamp<std::int64_t>(n / 512, 1, 64);
    std::visit([&]<class Storage>(const Storage &storage) {
        for_parts(n, n_tasks, n_threads, [&](std::int64_t, std::int64_t first, std::int64_t last) {
            RowRange<Storage>(storage, order, first, last - first).dot(w.data(), out.data() + first);
        });
    }, rows);
}

void add_scaled(std::span<const double> x, double a, std::span<const double> y,
                std::span<double> out, int n_threads) {
    const std::int64_t n = std::int64_t(out.size()), n_tasks = n > 65536 ? 64 : 1;
    for_parts(n, n_tasks, n_threads, [&](std::int64_t, std::int64_t first, std::int64_t last) {
        for (std::int64_t i = first; i < last; ++i)
            out[i] = x[i] + a * y[i];
    });
}

void multiply_transposed(const Rows &rows, Order order, std::span<const double> r,
                         std::span<double> out, int n_threads) {
    const std::int64_t n = n_positions(rows, order);
    const std::int64_t n_tasks = std::clamp<std::int64_t>(n / 512, 1, n_accumulators(rows));
    reduce(parts_of(rows, n_tasks, n_threads, [&]<class Storage>(const Storage &storage, std::int64_t task) {
        const std::int64_t first = n * task / n_tasks, last = n * (task + 1) / n_tasks;
        std::vector<double> part(out.size());
        RowRange<Storage>(storage, order, first, last - first).add(r.data() + first, part.data());
        return part;
    }), out, n_threads);
}

}  // namespace linrank
