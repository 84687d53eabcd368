// Tiles of K(A, B): eight rows of A against a chunk of rows of B, however either is stored.
#pragma once
#include <cstdint>
#include <vector>

#include "kernels.hpp"
#include "pages.hpp"
#include "rows.hpp"

namespace linrank {

/// Rows of a tile: one panel of vector kernels.
inline constexpr std::int64_t tile_rows = 8;

/// Tiles from rows with all of their columns. Distances are sums of squared differences: nothing cancels.
class DenseTiles {
public:
    static constexpr std::int64_t group = 8;  // columns of a tile that are computed together

    DenseTiles(const KernelFunction &function, const Rows &a, const Rows &b)
        : f(function), rows_a(a), rows_b(b) {}
    /// The rows of A, a multiple of tile_rows but for the last ones, that the next tiles are of.
    void take_a(std::int64_t first, std::int64_t n);
    void take_b(std::int64_t first, std::int64_t n);
    /// out[r·stride + j] = k(a_{8·panel + r}, b_j) for r < 8 and from <= j < n rounded up to whole
    /// groups, n being the number of rows of take_b; `from` is a multiple of 8 and is rounded down.
    void fill(std::int64_t panel, std::int64_t from, double *out, std::int64_t stride) const;

private:
    const KernelFunction f;
    const Rows &rows_a, &rows_b;
    std::int64_t n_panels_b = 0;
    LargeVector<double> a, b;
};

/// Tiles from sparse rows: products of non-zeros alone, and distances from them and the norms.
class SparseTiles {
public:
    static constexpr std::int64_t group = 32;

    SparseTiles(const KernelFunction &function, const Rows &a, const Rows &b)
        : f(function), rows_a(a), rows_b(b) {}
    void take_a(std::int64_t first, std::int64_t n);
    void take_b(std::int64_t first, std::int64_t n);
    void fill(std::int64_t panel, std::int64_t from, double *out, std::int64_t stride);

private:
    /// Sparse rows with their values widened.
    struct Entries {
        std::vector<std::int64_t> offsets, columns;
        std::vector<double> values, norms;
        void take(const Rows &rows, std::int64_t first, std::int64_t n);
    };
    /// A group of rows of B, value of row k in column c at [group·slot(c) + k].
    struct Slots {
        std::vector<std::int64_t> column, slot;  // open addressing; column -1 is free
        LargeVector<double> values;
        void fill(const Entries &rows, std::int64_t first, std::int64_t last);
        std::int64_t find(std::int64_t c) const;
    };
    const KernelFunction f;
    const Rows &rows_a, &rows_b;
    Entries a, b;
    std::vector<Slots> slots;
    std::vector<double> found_values;
    std::vector<std::int64_t> found_slots;
};

}  // namespace linrank
