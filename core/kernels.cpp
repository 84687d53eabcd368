#include "kernels.hpp"

#include <algorithm>
#include <variant>

#include "kernel_tiles.hpp"
#include "parallel.hpp"
#include "simd.hpp"
#include "symmetric.hpp"

namespace linrank {
namespace {

/// Numbers that a matrix holds; of a dense one all.
std::int64_t n_entries(const Rows &rows) {
    return std::visit([](const auto &r) -> std::int64_t {
        if constexpr (requires { r.offsets; }) return r.offsets[r.n_rows];
        else return r.n_rows * r.n_columns;
    }, rows);
}

/// Whether sums over the columns that two rows share beat those over all: an entry in a list takes some ten
/// times as long as one of a panel, and a share of ρ² is left of a density of ρ. Where either matrix is dense it
/// is not so.
bool is_sparse(const Rows &a, const Rows &b) {
    const auto thin = [](const Rows &rows) {
        return std::visit([](const auto &r) { return requires { r.offsets; }; }, rows);
    };
    const double size = (double(n_rows(a)) + double(n_rows(b))) * double(n_columns(a));
    return thin(a) && thin(b) && 4.0 * (double(n_entries(a)) + double(n_entries(b))) <= size;
}

template <class Body>
void with_tiles(const Rows &a, const Rows &b, const Body &body) {
    if (is_sparse(a, b)) body.template operator()<SparseTiles>();
    else body.template operator()<DenseTiles>();
}

std::int64_t round_up(std::int64_t n, std::int64_t step) { return (n + step - 1) / step * step; }

/// How many rows of A and of B are taken at once, by the matrices alone. Packed, each is to stay in the
/// second-level cache; the more rows of A, the less often B is packed.
struct Shape {
    std::int64_t block, chunk;
    Shape(const Rows &a, const Rows &b) {
        const std::int64_t n_a = n_rows(a);
        if (is_sparse(a, b)) {  // lists by column take longer to make than panels
            chunk = 256;
            block = std::clamp<std::int64_t>(round_up(n_a / 4, 8), 64, 2048);
            return;
        }
        const std::int64_t fit = (std::int64_t(1) << 15) / std::max<std::int64_t>(1, n_columns(a));
        chunk = std::clamp<std::int64_t>(fit / 32 * 32, 32, 256);
        block = std::min(std::clamp<std::int64_t>(2 * fit / 8 * 8, 64, 256),
                         std::max<std::int64_t>(8, round_up(n_a / 16, 8)));
    }
};

/// Walks over the tiles of some rows of A, [first, last), and of all rows of B from `begin` on:
/// use(i, n_i, j, n_j, from, tile) has k(a_{i+r}, b_{j+c}) at tile[r·chunk + c] for r < n_i and from <= c < n_j.
/// Where the matrix is symmetric, tiles start at the square on the diagonal.
template <class Tiles, class Use>
void walk(Tiles &tiles, const Shape &shape, std::int64_t first, std::int64_t last, std::int64_t begin,
          std::int64_t n_b, bool symmetric, const Use &use) {
    LargeVector<double> tile(tile_rows * shape.chunk);
    tiles.take_a(first, last - first);
    for (std::int64_t j = begin; j < n_b; j += shape.chunk) {
        const std::int64_t n_j = std::min(shape.chunk, n_b - j);
        tiles.take_b(j, n_j);
        for (std::int64_t i = first; i < last; i += tile_rows) {
            const std::int64_t from = symmetric ? std::max<std::int64_t>(0, i - j) : 0;
            if (from >= n_j) break;
            tiles.fill((i - first) / tile_rows, from, tile.data(), shape.chunk);
            use(i, std::min(tile_rows, last - i), j, n_j, from, tile.data());
        }
    }
}

/// Copies a tile, and its transpose where the matrix is symmetric.
void write_tile(const double *tile, const Shape &shape, std::int64_t i, std::int64_t n_i,
                std::int64_t j, std::int64_t n_j, std::int64_t from, bool symmetric, double *out,
                std::int64_t n) {
    for (std::int64_t r = 0; r < n_i; ++r)
        std::copy(tile + r * shape.chunk + from, tile + r * shape.chunk + n_j,
                  out + (i + r) * n + j + from);
    if (symmetric)
        for (std::int64_t c = from; c < n_j; ++c)
            for (std::int64_t r = 0; r < n_i; ++r) out[(j + c) * n + i + r] = tile[r * shape.chunk + c];
}

void fill_matrix(const KernelFunction &f, const Rows &a, const Rows &b, bool symmetric,
                 std::span<double> out, int n_threads) {
    const std::int64_t n_a = n_rows(a), n_b = n_rows(b);
    const Shape shape(a, b);
    with_tiles(a, b, [&]<class Tiles>() {
        parallel_for((n_a + shape.block - 1) / shape.block, n_threads, [&](std::int64_t task) {
            const std::int64_t first = task * shape.block, last = std::min(n_a, first + shape.block);
            Tiles tiles(f, a, b);
            walk(tiles, shape, first, last, symmetric ? first : 0, n_b, symmetric,
                 [&](std::int64_t i, std::int64_t n_i, std::int64_t j, std::int64_t n_j,
                     std::int64_t from, const double *tile) {
                     write_tile(tile, shape, i, n_i, j, n_j, from, symmetric, out.data(), n_b);
                 });
        });
    });
}

}  // namespace

void kernel_matrix(const KernelFunction &f, const Rows &a, const Rows &b, std::span<double> out,
                   int n_threads) {
    fill_matrix(f, a, b, false, out, n_threads);
}

void kernel_matrix(const KernelFunction &f, const Rows &rows, std::span<double> out, int n_threads) {
    fill_matrix(f, rows, rows, true, out, n_threads);
}

void kernel_product(const KernelFunction &f, const Rows &a, const Rows &b, std::span<const double> v,
                    std::span<double> out, int n_threads) {
    const std::int64_t n_a = n_rows(a), n_b = n_rows(b);
    const Shape shape(a, b);
    std::fill(out.begin(), out.end(), 0.0);
    with_tiles(a, b, [&]<class Tiles>() {
        parallel_for((n_a + shape.block - 1) / shape.block, n_threads, [&](std::int64_t task) {
            const std::int64_t first = task * shape.block, last = std::min(n_a, first + shape.block);
            Tiles tiles(f, a, b);
            walk(tiles, shape, first, last, 0, n_b, false,
                 [&](std::int64_t i, std::int64_t n_i, std::int64_t j, std::int64_t n_j,
                     std::int64_t, const double *tile) {
                     for (std::int64_t r = 0; r < n_i; ++r)
                         out[i + r] += simd().dot_vectors(n_j, tile + r * shape.chunk, v.data() + j);
                 });
        });
    });
}

void kernel_product(const KernelFunction &f, const Rows &rows, std::span<const double> v,
                    std::span<double> out, int n_threads) {
    const std::int64_t n = n_rows(rows);
    const Shape shape(rows, rows);
    const auto add_tile = [&](std::int64_t i, std::int64_t n_i, std::int64_t j, std::int64_t n_j,
                              std::int64_t from, const double *tile, std::int64_t part,
                              double *total) {
        double sums[tile_rows] = {};
        std::int64_t c = from;
        if (j + from == i) {  // the square on the diagonal is there in full
            c += n_i;
            for (std::int64_t r = 0; r < n_i; ++r)
                sums[r] = simd().dot_vectors(n_i, tile + r * shape.chunk + from, v.data() + i);
        }
        if (c < n_j)
            simd().add_symmetric(n_i, n_j - c, tile + c, shape.chunk, v.data() + i,
                                    v.data() + j + c, sums, total + (j + c - part));
        for (std::int64_t r = 0; r < n_i; ++r) total[i - part + r] += sums[r];
    };
    with_tiles(rows, rows, [&]<class Tiles>() {
        sum_triangle(n, tile_rows, out, n_threads,
                     [&](std::int64_t part, std::int64_t end, double *total) {
            Tiles tiles(f, rows, rows);
            for (std::int64_t first = part; first < end; first += shape.block)
                walk(tiles, shape, first, std::min(end, first + shape.block), first, n, true,
                     [&](std::int64_t i, std::int64_t n_i, std::int64_t j, std::int64_t n_j,
                         std::int64_t from, const double *tile) {
                         add_tile(i, n_i, j, n_j, from, tile, part, total);
                     });
        });
    });
}

void kernel_diagonal(const KernelFunction &f, const Rows &rows, std::span<double> out, int n_threads) {
    const std::int64_t n = n_rows(rows), block = 256;
    with_tiles(rows, rows, [&]<class Tiles>() {
        parallel_for((n + block - 1) / block, n_threads, [&](std::int64_t task) {
            Tiles tiles(f, rows, rows);
            double tile[tile_rows * Tiles::group];
            const std::int64_t last = std::min(n, (task + 1) * block);
            for (std::int64_t i = task * block; i < last; i += tile_rows) {
                const std::int64_t n_i = std::min(tile_rows, last - i);
                tiles.take_a(i, n_i);
                tiles.take_b(i, n_i);
                tiles.fill(0, 0, tile, Tiles::group);
                for (std::int64_t r = 0; r < n_i; ++r)
                    out[i + r] = tile[r * Tiles::group + r];
            }
        });
    });
}

}  // namespace linrank
