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
    out.assign(std::size_t(n_panels * 8 * width), 0.0);
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
        if (f.kind == KernelKind::rbf) kernels().exp_vector(n, x);
        else if (f.kind == KernelKind::poly) kernels().power_vector(n, f.degree, x);
        else for (std::int64_t j = 0; j < n; ++j) x[j] = std::tanh(x[j]);
    }
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
        kernels().panel_distances(width, n_panels, pa, pb, -f.gamma, out + from, stride);
    else
        kernels().panel_products(width, n_panels, pa, pb, factor_of(f), term_of(f), out + from, stride);
    apply(f, 8 * n_panels, out + from, stride);
}

void SparseTiles::Entries::take(const Rows &rows, std::int64_t first, std::int64_t n) {
    offsets.assign(1, 0);
    columns.clear();
    values.clear();
    norms.clear();
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
    values.resize(values.size() + 7);  // sum_of_squares reads so far
    for (std::size_t t = 0; t < std::size_t(n); ++t)
        norms.push_back(kernels().sum_of_squares(offsets[t + 1] - offsets[t], values.data() + offsets[t]));
}

std::int64_t SparseTiles::Slots::find(std::int64_t c) const {
    // The high bits of a product with an odd number are well mixed.
    const int shift = 64 - std::countr_zero(column.size());
    std::size_t place = std::size_t(std::uint64_t(c) * 0x9E3779B97F4A7C15u >> shift);
    while (column[place] != c && column[place] >= 0) place = (place + 1) & (column.size() - 1);
    return std::int64_t(place);
}

void SparseTiles::Slots::fill(const Entries &rows, std::int64_t first, std::int64_t last) {
    const std::int64_t begin = rows.offsets[std::size_t(first)], end = rows.offsets[std::size_t(last)];
    column.assign(std::bit_ceil(std::size_t(2 * (end - begin) + 2)), -1);
    slot.assign(column.size(), 0);
    values.clear();
    std::int64_t n_slots = 0;
    for (std::int64_t i = first; i < last; ++i)
        for (std::int64_t k = rows.offsets[std::size_t(i)]; k < rows.offsets[std::size_t(i) + 1]; ++k) {
            const std::size_t place = std::size_t(find(rows.columns[std::size_t(k)]));
            if (column[place] < 0) {
                column[place] = rows.columns[std::size_t(k)];
                slot[place] = n_slots++;
                values.resize(std::size_t(n_slots * slot_lanes), 0.0);
            }
            values[std::size_t(slot[place] * slot_lanes + (i - first))] += rows.values[std::size_t(k)];
        }
}

void SparseTiles::take_a(std::int64_t first, std::int64_t n) { a.take(rows_a, first, n); }

void SparseTiles::take_b(std::int64_t first, std::int64_t n) {
    b.take(rows_b, first, n);
    slots.resize(std::size_t((n + group - 1) / group));
    b.norms.resize(slots.size() * std::size_t(group), 0.0);
    for (std::int64_t g = 0; g * group < n; ++g)
        slots[std::size_t(g)].fill(b, g * group, std::min(n, (g + 1) * group));
}

void SparseTiles::fill(std::int64_t panel, std::int64_t from, double *out, std::int64_t stride) {
    const std::int64_t n_a = std::int64_t(a.norms.size()), first = from / group * group;
    const std::int64_t n = std::int64_t(slots.size()) * group;
    for (std::int64_t g = first / group; g * group < n; ++g)
        for (std::int64_t r = 0; r < tile_rows; ++r) {
            const std::int64_t i = tile_rows * panel + r;
            found_values.clear();
            found_slots.clear();
            if (i < n_a)
                for (std::int64_t k = a.offsets[std::size_t(i)]; k < a.offsets[std::size_t(i) + 1]; ++k) {
                    const Slots &table = slots[std::size_t(g)];
                    const std::size_t place = std::size_t(table.find(a.columns[std::size_t(k)]));
                    if (table.column[place] < 0) continue;
                    found_values.push_back(a.values[std::size_t(k)]);
                    found_slots.push_back(table.slot[place]);
                }
            kernels().slot_products(std::int64_t(found_values.size()), found_values.data(),
                                    found_slots.data(), slots[std::size_t(g)].values.data(),
                                    out + r * stride + g * group);
        }
    for (std::int64_t r = 0; r < tile_rows; ++r) {
        const std::int64_t i = tile_rows * panel + r;
        const double norm = i < n_a ? a.norms[std::size_t(i)] : 0.0;
        double *x = out + r * stride;
        if (f.kind == KernelKind::rbf)
            // The norm of a row is the product with itself to the bit, so that k(a, a) is 1. Norms that
            // overflow give NaN, which max keeps.
            for (std::int64_t j = first; j < n; ++j)
                x[j] = -f.gamma * std::max((norm + b.norms[std::size_t(j)]) - 2.0 * x[j], 0.0);
        else
            for (std::int64_t j = first; j < n; ++j) x[j] = factor_of(f) * x[j] + term_of(f);
    }
    apply(f, n - first, out + first, stride);
}

}  // namespace linrank
