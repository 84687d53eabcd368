// Kernel matrices K(A, B) and their products with vectors, the matrix in memory or not.
#pragma once

#include "pages.hpp"
#include "rows.hpp"

namespace linrank {

enum class KernelKind { rbf, poly, sigmoid, linear };

/// exp(-γ‖a - b‖²), (γ a·b + c)^degree, tanh(γ a·b + c), a·b. Of the bits of k(a, b) is known: they are
/// those of k(b, a), and k(a, a) is 1 for the first.
struct KernelFunction {
    KernelKind kind;
    double gamma;
    int degree;
    double coef0;
};

// The rows of a and b have the same columns; where they are one object, each pair is computed once. Any number of
// threads gives the same bits.

/// out[i·n_b + j] = k(a_i, b_j).
void kernel_matrix(const KernelFunction &f, const Rows &a, const Rows &b, std::span<double> out,
                   int n_threads);

/// out[i] = Σ_j k(a_i, b_j) v[j], tile by tile.
void kernel_product(const KernelFunction &f, const Rows &a, const Rows &b, Doubles v,
                    std::span<double> out, int n_threads);

/// out[i] = k(a_i, a_i).
void kernel_diagonal(const KernelFunction &f, const Rows &rows, std::span<double> out, int n_threads);

// Tiles of K(A, B): eight rows of A against a chunk of rows of B, however either is stored.

/// Rows of a tile: one panel of vector kernels.
inline constexpr Index tile_rows = 8;

/// Tiles from rows with all of their columns. Distances are sums of squared differences: nothing cancels.
class DenseTiles {
public:
    static constexpr Index group = 8;  // columns of a tile that are computed together

    DenseTiles(const KernelFunction &function, const Rows &a, const Rows &b)
        : f(function), rows_a(a), rows_b(b) {}
    /// The rows of A, a multiple of tile_rows but for the last ones, that the next tiles are of.
    void take_a(Index first, Index n);
    void take_b(Index first, Index n);
    /// out[r·stride + j] = k(a_{8·panel + r}, b_j) for r < 8 and from <= j < n rounded up to whole
    /// groups, n being the number of rows of take_b; `from` is a multiple of 8 and is rounded down.
    void fill(Index panel, Index from, double *out, Index stride) const;

private:
    const KernelFunction f;
    const Rows &rows_a, &rows_b;
    Index n_panels_b = 0;
    LargeVector<double> a, b;
};

/// Tiles from sparse rows: sums over the columns that both have, and distances from these products and the
/// norms.
class SparseTiles {
public:
    static constexpr Index group = 8;

    SparseTiles(const KernelFunction &function, const Rows &a, const Rows &b)
        : f(function), rows_a(a), rows_b(b) {}
    void take_a(Index first, Index n);
    void take_b(Index first, Index n);
    void fill(Index panel, Index from, double *out, Index stride) const;

private:
    /// Sparse rows with their values widened.
    struct Entries {
        std::vector<Index> offsets, columns;
        std::vector<double> values, norms;
        void take(const Rows &rows, Index first, Index n);
    };
    /// The rows of B by column: of the column at place p, entries [start[p], start[p+1]).
    struct Lists {
        std::vector<Index> column;  // open addressing; -1 is free
        std::vector<Index> start, row;
        std::vector<double> values;
        void take(const Entries &rows);
        std::size_t find(Index c) const;
    };
    const KernelFunction f;
    const Rows &rows_a, &rows_b;
    Entries a, b;
    Lists lists;
    Index n_b = 0;  // rounded up to whole groups
};

}  // namespace linrank
