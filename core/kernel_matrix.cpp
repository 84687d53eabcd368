#include "kernel_matrix.hpp"

#include "checks.hpp"
#include "products.hpp"

namespace linrank {

namespace {

// Tiles of K(A, B): eight rows of A against a chunk of rows of B, however either is stored.

constexpr Index tile_rows = 8;  // of a tile: one panel of vector kernels
constexpr Index group = 8;      // columns of a tile that are computed together

Index round_up(Index n, Index step) { return (n + step - 1) / step * step; }

/// What the two kinds of tiles have in common.
struct Tiles {
    const KernelFunction f;
    const Rows &rows_a, &rows_b;

    Tiles(const KernelFunction &function, const Rows &a, const Rows &b) : f(function), rows_a(a),
        rows_b(b) {}
    double factor() const { return f.kind == KernelKind::linear ? 1.0 : f.gamma; }
    double term() const { return f.kind == KernelKind::linear ? 0.0 : f.coef0; }

    /// The kernel of x[r·stride + j], which holds -γ times the squared distance (rbf), the product
    /// (linear) or γ times it plus coef0, for r < 8 and j < n, a multiple of 8.
    void apply(Index n, double *x, Index stride) const {
        if (f.kind == KernelKind::linear) return;
        for (Index r = 0; r < tile_rows; ++r, x += stride) {
            if (f.kind == KernelKind::rbf) simd().exp_vector(n, x);
            else if (f.kind == KernelKind::poly) simd().power_vector(n, f.degree, x);
            else for (Index j = 0; j < n; ++j) x[j] = std::tanh(x[j]);
        }
    }
};

/// Tiles from rows with all of their columns. Distances are sums of squared differences: nothing
/// cancels.
class DenseTiles : Tiles {
public:
    using Tiles::Tiles;
    /// The rows of A, a multiple of tile_rows but for the last ones, that the next tiles are of.
    void take_a(Index first, Index n) { pack(rows_a, first, n, a); }
    void take_b(Index first, Index n) {
        pack(rows_b, first, n, b);
        n_panels_b = (n + 7) / 8;
    }
    /// out[r·stride + j] = k(a_{8·panel + r}, b_j) for r < 8 and from <= j < n rounded up to whole
    /// groups, n being the number of rows of take_b; `from` is a multiple of 8 and is rounded down.
    void fill(Index panel, Index from, double *out, Index stride) const {
        const Index width = n_columns(rows_a), n_panels = n_panels_b - from / 8;
        const double *pa = a.data() + panel * 8 * width, *pb = b.data() + from * width;
        if (f.kind == KernelKind::rbf)
            simd().panel_distances(width, n_panels, pa, pb, -f.gamma, out + from, stride);
        else simd().panel_products(width, n_panels, pa, pb, factor(), term(), out + from, stride);
        apply(8 * n_panels, out + from, stride);
    }

private:
    /// Rows [first, first + n) in panels: value c of row 8p + r at [8·(p·n_columns + c) + r]. Rows
    /// behind the last are zero.
    static void pack(const Rows &rows, Index first, Index n, LargeVector<double> &out) {
        const Index width = n_columns(rows), n_panels = (n + 7) / 8;
        out.assign(n_panels * 8 * width, 0.0);
        std::visit([&]<class Storage>(const Storage &storage) {
            for (Index t = 0; t < n; ++t) {
                double *to = out.data() + t / 8 * 8 * width + t % 8;
                for_each_entry(storage, first + t, [&](Index c, double x) { to[8 * c] += x; });
            }
        }, rows);
    }

    Index n_panels_b = 0;
    LargeVector<double> a, b;
};

/// total[row[k]] += x·values[k]. One function for products and norms: where the processor has
/// multiply-adds, the compiler uses them in both or in neither.
[[gnu::noinline]] void add_entries(Index n, double x, const Index *row, const double *values,
                                   double *total) {
    for (Index k = 0; k < n; ++k) total[row[k]] += x * values[k];
}

/// Tiles from sparse rows: sums over the columns that both have, and distances from these products
/// and the norms.
class SparseTiles : Tiles {
public:
    using Tiles::Tiles;
    void take_a(Index first, Index n) { a.take(rows_a, first, n); }
    void take_b(Index first, Index n) {
        b.take(rows_b, first, n);
        lists.take(b);
        n_b = round_up(n, group);
        b.norms.resize(n_b, 0.0);
    }
    void fill(Index panel, Index from, double *out, Index stride) const {
        for (Index r = 0; r < tile_rows; ++r) {
            const Index i = tile_rows * panel + r;
            double *x = out + r * stride;
            std::fill(x, x + n_b, 0.0);
            if (i >= std::ssize(a.norms)) continue;
            for (Index k = a.offsets[i]; k < a.offsets[i + 1]; ++k) {
                const std::size_t place = lists.find(a.columns[k]);
                if (lists.column[place] < 0) continue;
                const Index first = lists.start[place];
                add_entries(lists.start[place + 1] - first, a.values[k], lists.row.data() + first,
                            lists.values.data() + first, x);
            }
            const double norm = a.norms[i];
            if (f.kind == KernelKind::rbf)
                // The norm of a row is the product with itself to the bit, so that k(a, a) is 1.
                // Norms that overflow give NaN, which max keeps.
                for (Index j = from; j < n_b; ++j)
                    x[j] = -f.gamma * std::max((norm + b.norms[j]) - 2.0 * x[j], 0.0);
            else
                for (Index j = from; j < n_b; ++j) x[j] = factor() * x[j] + term();
        }
        apply(n_b - from, out + from, stride);
    }

private:
    /// Sparse rows with their values widened.
    struct Entries {
        std::vector<Index> offsets, columns;
        std::vector<double> values, norms;

        void take(const Rows &rows, Index first, Index n) {
            offsets.assign(1, 0);
            columns.clear();
            values.clear();
            norms.assign(n, 0.0);
            std::visit([&](const auto &storage) {
                for (Index t = 0; t < n; ++t) {
                    for_each_entry(storage, first + t, [&](Index c, double x) {
                        columns.push_back(c);
                        values.push_back(x);
                        add_entries(1, x, &t, &x, norms.data());
                    });
                    offsets.push_back(std::ssize(values));
                }
            }, rows);
        }
    };
    /// The rows of B by column: of the column at place p, entries [start[p], start[p+1]).
    struct Lists {
        std::vector<Index> column;  // open addressing; -1 is free
        std::vector<Index> start, row;
        std::vector<double> values;

        void take(const Entries &rows) {
            const std::size_t n = rows.columns.size();
            column.assign(std::bit_ceil(2 * n + 2), -1);
            row.resize(n);
            values.resize(n);
            std::vector<Index> place;
            for (const Index c : rows.columns) {
                place.push_back(Index(find(c)));
                column[place.back()] = c;
            }
            Index i = 0;  // the row of an entry
            start = counting_sort(Index(n), std::ssize(column), [&](Index k) { return place[k]; },
                                  [&](Index k, Index to) {
                while (k >= rows.offsets[i + 1]) ++i;
                row[to] = i;
                values[to] = rows.values[k];
            });
        }
        std::size_t find(Index c) const {
            // The high bits of a product with an odd number are well mixed.
            const int shift = 64 - std::countr_zero(column.size());
            std::size_t place = std::size_t(std::uint64_t(c) * 0x9E3779B97F4A7C15u >> shift);
            while (column[place] != c && column[place] >= 0)
                place = (place + 1) & (column.size() - 1);
            return place;
        }
    };

    Entries a, b;
    Lists lists;
    Index n_b = 0;  // rounded up to whole groups
};

/// Whether sums over the columns that two rows share beat those over all: an entry in a list takes
/// some ten times as long as one of a panel, and a share of ρ² is left of a density of ρ. Where
/// either matrix is dense it is not so.
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

/// How many rows of A and of B are taken at once, by the matrices alone. Packed, each is to stay in
/// the second-level cache; the more rows of A, the less often B is packed.
struct Shape {
    Index block, chunk;
    Shape(const Rows &a, const Rows &b) {
        const Index n_a = n_rows(a);
        if (is_sparse(a, b)) {  // lists by column take longer to make than panels
            chunk = 256;
            block = std::clamp<Index>(round_up(n_a / 4, 8), 64, 2048);
            return;
        }
        const Index fit = (Index(1) << 15) / std::max<Index>(1, n_columns(a));
        chunk = std::clamp<Index>(fit / 32 * 32, 32, 256);
        block = std::min(std::clamp<Index>(2 * fit / 8 * 8, 64, 256),
                         std::max<Index>(8, round_up(n_a / 16, 8)));
    }
};

/// k(a_{i+r}, b_{j+c}) at values[r·stride + c] for r < n_i and from <= c < n_j.
struct Tile {
    Index i, n_i, j, n_j, from;
    const double *values;
    Index stride;
    const double *row(Index r) const { return values + r * stride; }
};

/// Calls use(tile) for the tiles of some rows of A, [first, last), and of all rows of B from
/// `begin` on. Where the matrix is symmetric, tiles start at the square on the diagonal.
template <class Tiles, class Use>
void walk(Tiles &tiles, const Shape &shape, Index first, Index last, Index begin,
          Index n_b, bool symmetric, const Use &use) {
    LargeVector<double> tile(tile_rows * shape.chunk);
    tiles.take_a(first, last - first);
    for (Index j = begin; j < n_b; j += shape.chunk) {
        const Index n_j = std::min(shape.chunk, n_b - j);
        tiles.take_b(j, n_j);
        for (Index i = first; i < last; i += tile_rows) {
            const Index from = symmetric ? std::max<Index>(0, i - j) : 0;
            if (from >= n_j) break;
            tiles.fill((i - first) / tile_rows, from, tile.data(), shape.chunk);
            use(Tile{i, std::min(tile_rows, last - i), j, n_j, from, tile.data(), shape.chunk});
        }
    }
}

/// The same for all rows of A, by all threads.
template <class Use>
void for_each_tile(const KernelFunction &f, const Rows &a, const Rows &b, bool symmetric,
                   int n_threads, const Use &use) {
    const Shape shape(a, b);
    with_tiles(a, b, [&]<class Of>() {
        for_blocks(n_rows(a), shape.block, n_threads, [&](Index first, Index last) {
            Of tiles(f, a, b);
            walk(tiles, shape, first, last, symmetric ? first : 0, n_rows(b), symmetric, use);
        });
    });
}

/// K(A, A) v, each pair computed once.
std::vector<double> symmetric_product(const KernelFunction &f, const Rows &rows, Doubles v,
                                      int n_threads) {
    std::vector<double> out;
    const Index n = n_rows(rows);
    const Shape shape(rows, rows);
    with_tiles(rows, rows, [&]<class Of>() {
        out = sum_triangle(n, tile_rows, n_threads, [&](Index part, Index end, double *total) {
            Of tiles(f, rows, rows);
            const auto add_tile = [&](const Tile &t) {
                double sums[tile_rows] = {};
                Index c = t.from;
                if (t.j + t.from == t.i) {  // the square on the diagonal is there in full
                    c += t.n_i;
                    for (Index r = 0; r < t.n_i; ++r)
                        sums[r] = simd().dot_vectors(t.n_i, t.row(r) + t.from, v.data() + t.i);
                }
                if (c < t.n_j)
                    simd().add_symmetric(t.n_i, t.n_j - c, t.values + c, t.stride, v.data() + t.i,
                                         v.data() + t.j + c, sums, total + (t.j + c - part));
                for (Index r = 0; r < t.n_i; ++r) total[t.i - part + r] += sums[r];
            };
            for (Index first = part; first < end; first += shape.block)
                walk(tiles, shape, first, std::min(end, first + shape.block), first, n, true,
                     add_tile);
        });
    });
    return out;
}

void check_columns(const Rows &a, const Rows &b) {
    require(n_columns(a) == n_columns(b), "rows of ", n_columns(a), " and of ", n_columns(b),
            " columns have no kernel");
}

}  // namespace

PageArray<double> kernel_matrix(const KernelFunction &f, const Rows &a, const Rows &b,
                                int n_threads) {
    check_columns(a, b);
    const Index n_a = n_rows(a), n = n_rows(b);
    if (n > 0 && n_a > (Index(1) << 56) / n) throw std::bad_alloc();  // their product may overflow
    PageArray<double> out(n_a * n, huge_pages);
    const bool symmetric = &a == &b;
    for_each_tile(f, a, b, symmetric, n_threads, [&](const Tile &t) {
        for (Index r = 0; r < t.n_i; ++r)
            std::copy(t.row(r) + t.from, t.row(r) + t.n_j,
                      out.data() + (t.i + r) * n + t.j + t.from);
        if (symmetric)
            for (Index c = t.from; c < t.n_j; ++c)
                for (Index r = 0; r < t.n_i; ++r) out[(t.j + c) * n + t.i + r] = t.row(r)[c];
    });
    return out;
}

std::vector<double> kernel_product(const KernelFunction &f, const Rows &a, const Rows &b, Doubles v,
                                   int n_threads) {
    check_columns(a, b);
    require_length(v, n_rows(b), "v");
    if (&a == &b) return symmetric_product(f, a, v, n_threads);
    std::vector<double> out(n_rows(a));
    for_each_tile(f, a, b, false, n_threads, [&](const Tile &t) {
        for (Index r = 0; r < t.n_i; ++r)
            out[t.i + r] += simd().dot_vectors(t.n_j, t.row(r), v.data() + t.j);
    });
    return out;
}

std::vector<double> kernel_diagonal(const KernelFunction &f, const Rows &rows, int n_threads) {
    std::vector<double> out(n_rows(rows));
    with_tiles(rows, rows, [&]<class Of>() {
        for_blocks(n_rows(rows), 256, n_threads, [&](Index first, Index last) {
            Of tiles(f, rows, rows);
            double tile[tile_rows * group];
            for (Index i = first; i < last; i += tile_rows) {
                const Index n_i = std::min(tile_rows, last - i);
                tiles.take_a(i, n_i);
                tiles.take_b(i, n_i);
                tiles.fill(0, 0, tile, group);
                for (Index r = 0; r < n_i; ++r)
                    out[i + r] = tile[r * group + r];
            }
        });
    });
    return out;
}

}  // namespace linrank
