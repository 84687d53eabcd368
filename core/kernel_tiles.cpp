#include "kernel_tiles.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

#include "row_range.hpp"
#include "simd.hpp"

namespace linrank {
namespace {

/// Rows [first, first + n) in panels: value c of row 8p + r at [8·(p·n_columns + c) + r]. Rows behind the
/// last are zero.
void pack(const Rows &rows, std::int64_t first, std::int64_t n, LargeVector<double> &out) {
    const std::int64_t width = n_columns(rows), n_panels = (n + 7) / 8;
    out.assign(n_panels * 8 * width, 0.0);
    std::visit([&]<class Storage>(const Storage &storage) {
        for (std::int64_t t = 0; t < n; ++t) {
            double *to = out.data() + t / 8 * 8 * width + t % 8;
            const std::int64_t i = first + t;
            if constexpr (requires { storage.offsets; }) {
                for (std::int64_t k = storage.offsets[i]; k < storage.offsets[i + 1]; ++k)
                    to[8 * std::int64_t(storage.columns[k])] += double(storage.values[k]);
            } else {
                const auto *x = storage.values + i * storage.stride;
                for (std::int64_t c = 0; c < width; ++c) to[8 * c] = double(x[c]);
            }
        }
    }, rows);
}

/// The kernel of x[r·stride + j], which holds -γ times the squared distance (rbf), the product (linear)
/// or γ times it plus coef0, for r < 8 and j < n, a multiple of 8.
void apply(const KernelFunction &f, std::int64_t n, double *x, std::int64_t stride) {
    if (f.kind == KernelKind::linear) return;
    for (std::int64_t r = 0; r < tile_rows; ++r, x += stride) {
        if (f.kind == KernelKind::rbf) simd().exp_vector(n, x);
        else if (f.kind == KernelKind::poly) simd().power_vector(n, f.degree, x);
        else for (std::int64_t j = 0; j < n; ++j) x[j] = std::tanh(x[j]);
    }
}

/// total[row[k]] += x·values[k]. One function for products and norms: where the processor has
/// multiply-adds, the compiler uses them in both or in neither.
[[gnu::noinline]] void add_entries(std::int64_t n, double x, const std::int64_t *row,
                                   const double *values, double *total) {
    for (std::int64_t k = 0; k < n; ++k) total[row[k]] += x * values[k];
}

double factor_of(const KernelFunction &f) { return f.kind == KernelKind::linear ? 1.0 : f.gamma; }
double term_of(const KernelFunction &f) { return f.kind == KernelKind::linear ? 0.0 : f.coef0; }

}  // namespace

void DenseTiles::take_a(std::int64_t first, std::int64_t n) { pack(rows_a, first, n, a); }

void DenseTiles::take_b(std::int64_t first, std::int64_t n) {
    pack(rows_b, first, n, b);
    n_panels_b = (n + 7) / 8;
}

void DenseTiles::fill(std::int64_t panel, std::int64_t from, double *out, std::int64_t stride) const {
    const std::int64_t width = n_columns(rows_a), n_panels = n_panels_b - from / 8;
    const double *pa = a.data() + panel * 8 * width, *pb = b.data() + from * width;
    if (f.kind == KernelKind::rbf)
        simd().panel_distances(width, n_panels, pa, pb, -f.gamma, out + from, stride);
    else
        simd().panel_products(width, n_panels, pa, pb, factor_of(f), term_of(f), out + from, stride);
    apply(f, 8 * n_panels, out + from, stride);
}

void SparseTiles::Entries::take(const Rows &rows, std::int64_t first, std::int64_t n) {
    offsets.assign(1, 0);
    columns.clear();
    values.clear();
    std::visit([&]<class Storage>(const Storage &storage) {
        if constexpr (requires { storage.offsets; })
            for (std::int64_t i = first; i < first + n; ++i) {
                for (std::int64_t k = storage.offsets[i]; k < storage.offsets[i + 1]; ++k) {
                    columns.push_back(std::int64_t(storage.columns[k]));
                    values.push_back(double(storage.values[k]));
                }
                offsets.push_back(std::int64_t(values.size()));
            }
    }, rows);
    norms.assign(n, 0.0);
    for (std::size_t t = 0; t < std::size_t(n); ++t)
        for (std::int64_t k = offsets[t]; k < offsets[t + 1]; ++k) {
            const double x = values[k];
            const std::int64_t row = std::int64_t(t);
            add_entries(1, x, &row, &x, norms.data());
        }
}

std::size_t SparseTiles::Lists::find(std::int64_t c) const {
    // The high bits of a product with an odd number are well mixed.
    const int shift = 64 - std::countr_zero(column.size());
    std::size_t place = std::size_t(std::uint64_t(c) * 0x9E3779B97F4A7C15u >> shift);
    while (column[place] != c && column[place] >= 0) place = (place + 1) & (column.size() - 1);
    return place;
}

void SparseTiles::Lists::take(const Entries &rows) {
    const std::size_t n = rows.columns.size();
    column.assign(std::bit_ceil(2 * n + 2), -1);
    start.assign(column.size() + 2, 0);
    row.resize(n);
    values.resize(n);
    std::vector<std::size_t> place(n);
    for (std::size_t k = 0; k < n; ++k) {
        place[k] = find(rows.columns[k]);
        column[place[k]] = rows.columns[k];
        ++start[place[k] + 2];
    }
    // Sums of the sizes before the last list, so that filling each moves its start to where the next begins.
    for (std::size_t p = 0; p < column.size(); ++p) start[p + 2] += start[p + 1];
    for (std::size_t i = 0; i + 1 < rows.offsets.size(); ++i)
        for (std::int64_t k = rows.offsets[i]; k < rows.offsets[i + 1]; ++k) {
            const std::size_t to = std::size_t(start[place[k] + 1]++);
            row[to] = std::int64_t(i);
            values[to] = rows.values[k];
        }
}

void SparseTiles::take_a(std::int64_t first, std::int64_t n) { a.take(rows_a, first, n); }

void SparseTiles::take_b(std::int64_t first, std::int64_t n) {
    b.take(rows_b, first, n);
    lists.take(b);
    n_b = (n + group - 1) / group * group;
    b.norms.resize(n_b, 0.0);
}

void SparseTiles::fill(std::int64_t panel, std::int64_t from, double *out, std::int64_t stride) const {
    const std::int64_t n_a = std::int64_t(a.norms.size());
    for (std::int64_t r = 0; r < tile_rows; ++r) {
        const std::int64_t i = tile_rows * panel + r;
        double *x = out + r * stride;
        std::fill(x, x + n_b, 0.0);
        if (i >= n_a) continue;
        for (std::int64_t k = a.offsets[i]; k < a.offsets[i + 1]; ++k) {
            const std::size_t place = lists.find(a.columns[k]);
            if (lists.column[place] < 0) continue;
            const std::int64_t first = lists.start[place];
            add_entries(lists.start[place + 1] - first, a.values[k],
                        lists.row.data() + first, lists.values.data() + first, x);
        }
        const double norm = a.norms[i];
        if (f.kind == KernelKind::rbf)
            // The norm of a row is the product with itself to the bit, so that k(a, a) is 1. Norms that
            // overflow give NaN, which max keeps.
            for (std::int64_t j = from; j < n_b; ++j)
                x[j] = -f.gamma * std::max((norm + b.norms[j]) - 2.0 * x[j], 0.0);
        else
            for (std::int64_t j = from; j < n_b; ++j) x[j] = factor_of(f) * x[j] + term_of(f);
    }
    apply(f, n_b - from, out + from, stride);
}

}  // namespace linrank
