#include "curves.hpp"

namespace linrank {

namespace {

constexpr Index block_rows = 128;  // their values of a feature stay in the first cache
constexpr Index few_knots = 8;     // up to here all are counted, beyond they are searched

using Block = std::array<double, block_rows>;
using Places = std::array<Index, block_rows>;

/// piece[i] = #{t_b < x_i}, n <= block_rows of them. All rows take the same steps, so that nothing branches on their values.
void search(Doubles t, Doubles x, Places &piece) {
    const auto n = Index(x.size());
    piece.fill(0);
    Index left = Index(t.size());
    if (left <= few_knots) {
        for (const double knot : t)
            for (Index i = 0; i < n; ++i) piece[i] += knot < x[i];
        return;
    }
    for (; left > 1; left -= left / 2) {
        const Index half = left / 2;
        for (Index i = 0; i < n; ++i)
            piece[i] += t[piece[i] + half - 1] < x[i] ? half : 0;
    }
    for (Index i = 0; i < n; ++i) piece[i] += t[piece[i]] < x[i];
}

/// A feature of the n <= block_rows rows from `begin` on.
template <class Value>
void take(const DenseRows<Value> &rows, Index feature, Index begin, Index n, Block &out) {
    const Value *cell = rows.values + begin * rows.stride + feature;
    for (Index i = 0; i < n; ++i) out[i] = cell[i * rows.stride];
}

struct Piece {
    double value, slope, origin;
};

/// The pieces of all functions, those of function c from offsets[c] + c on.
std::vector<Piece> pieces_of(const Curves &curves) {
    std::vector<Piece> found;
    for (Index c = 0; c < curves.size(); ++c) {
        const Index first = curves.offsets[c], last = curves.offsets[c + 1];
        for (Index p = first; p <= last; ++p) {
            const double origin = first == last ? 0.0 : curves.knots[p > first ? p - 1 : first];
            found.push_back({curves.values[p + c], curves.slopes[p + c], origin});
        }
    }
    return found;
}

/// The feature of function c, and the pieces that it is in, of the n <= block_rows rows from `begin` on.
template <class Value>
void find_block(const DenseRows<Value> &rows, const Curves &curves, Index c, Index begin, Index n,
                Block &x, Places &piece) {
    take(rows, curves.feature[c], begin, n, x);
    const Index first = curves.offsets[c];
    search(curves.knots.subspan(first, curves.offsets[c + 1] - first), {x.data(), std::size_t(n)}, piece);
}

/// f_c of these rows.
template <class Value>
void evaluate(const DenseRows<Value> &rows, const Curves &curves, const std::vector<Piece> &table, Index c,
              Index begin, Index n, Block &out) {
    Block x;
    Places piece;
    find_block(rows, curves, c, begin, n, x, piece);
    const Piece *own = table.data() + curves.offsets[c] + c;
    for (Index i = 0; i < n; ++i) {
        const Piece &on = own[piece[i]];
        out[i] = on.value + on.slope * (x[i] - on.origin);
    }
}

/// body(x, begin, n) for every block of the rows x, which are dense.
template <class Body>
void for_each_block(const Rows &rows, int n_threads, const Body &body) {
    std::visit([&](const auto &x) {
        if constexpr (requires { x.stride; })
            for_blocks(x.n_rows, block_rows, n_threads, [&](Index first, Index last) {
                body(x, first, last - first);
            });
        else throw std::invalid_argument("curves take dense rows");
    }, rows);
}

/// body(c, at, n, value, piece) for blocks of positions [first, last) and all functions: value(k) and piece(k) are
/// those of position at + k, k < n.
template <class Body>
void for_each_function(const Rows &rows, Order order, const Curves &curves, const std::uint8_t *pieces,
                       Index first, Index last, const Body &body) {
    std::visit([&]<class Storage>(const Storage &x) {
        if constexpr (requires { x.stride; }) {
            std::array<const typename Storage::value_type *, block_rows> cells;
            std::array<const std::uint8_t *, block_rows> codes;
            for (Index at = first; at < last; at += block_rows) {
                const Index n = std::min(block_rows, last - at);
                for (Index k = 0; k < n; ++k) {
                    const Index i = row_at(order, at + k);
                    cells[k] = x.values + i * x.stride;
                    codes[k] = pieces + i * curves.size();
                }
                for (Index c = 0; c < curves.size(); ++c)
                    body(c, at, n, [&, feature = curves.feature[c]](Index k) -> double { return cells[k][feature]; },
                         [&](Index k) -> Index { return codes[k][c]; });
            }
        }
    }, rows);
}

}  // namespace

Values map_rows(const Rows &rows, const Curves &curves, int n_threads) {
    return std::visit([&]<class Storage>(const Storage &) -> Values {
        std::vector<typename Storage::value_type> out(n_rows(rows) * curves.size());
        const std::vector<Piece> table = pieces_of(curves);
        for_each_block(rows, n_threads, [&](const auto &x, Index begin, Index n) {
            Block f;
            for (Index c = 0; c < curves.size(); ++c) {
                evaluate(x, curves, table, c, begin, n, f);
                auto *cell = out.data() + begin * curves.size() + c;
                for (Index i = 0; i < n; ++i) cell[i * curves.size()] = typename Storage::value_type(f[i]);
            }
        });
        return out;
    }, rows);
}

void sum_curves(const Rows &rows, const Curves &curves, double *out, int n_threads) {
    const std::vector<Piece> table = pieces_of(curves);
    for_each_block(rows, n_threads, [&](const auto &x, Index begin, Index n) {
        Block f;
        std::fill_n(out + begin, n, 0.0);
        for (Index c = 0; c < curves.size(); ++c) {
            evaluate(x, curves, table, c, begin, n, f);
            for (Index i = 0; i < n; ++i) out[begin + i] += f[i];
        }
    });
}

void find_pieces(const Rows &rows, const Curves &curves, std::uint8_t *pieces, int n_threads) {
    for_each_block(rows, n_threads, [&](const auto &x, Index begin, Index n) {
        Block values;
        Places piece;
        for (Index c = 0; c < curves.size(); ++c) {
            find_block(x, curves, c, begin, n, values, piece);
            std::uint8_t *cell = pieces + begin * curves.size() + c;
            for (Index i = 0; i < n; ++i) cell[i * curves.size()] = std::uint8_t(piece[i]);
        }
    });
}

void sum_pieces(const Rows &rows, Order order, const Curves &curves, const std::uint8_t *pieces,
                Doubles lines, std::span<double> out, int n_threads) {
    const Index n = n_positions(rows, order), n_tasks = std::clamp<Index>(n / 512, 1, 64);
    const std::vector<Piece> table = pieces_of(curves);
    for_parts(n, n_tasks, n_threads, [&](Index, Index first, Index last) {
        std::fill(out.begin() + first, out.begin() + last, 0.0);
        for_each_function(rows, order, curves, pieces, first, last,
                          [&](Index c, Index at, Index n_now, const auto &value, const auto &piece) {
            const Piece *own = table.data() + curves.offsets[c] + c;
            const double line = lines[c];
            double *z = out.data() + at;
            for (Index k = 0; k < n_now; ++k) {
                const double x = value(k);
                const Piece &on = own[piece(k)];
                z[k] += line * x + (on.value + on.slope * (x - on.origin));
            }
        });
    });
}

void add_pieces(const Rows &rows, Order order, const Curves &curves, const std::uint8_t *pieces,
                Doubles r, std::span<double> out, int n_threads) {
    const Index n = n_positions(rows, order), n_tasks = std::clamp<Index>(n / 512, 1, 16);
    const std::vector<Piece> table = pieces_of(curves);
    std::vector<std::vector<double>> parts(n_tasks);
    for_parts(n, n_tasks, n_threads, [&](Index task, Index first, Index last) {
        auto &part = parts[task];
        part.assign(out.size(), 0.0);
        double *sums = part.data(), *moments = sums + table.size(), *lines = moments + table.size();
        for_each_function(rows, order, curves, pieces, first, last,
                          [&](Index c, Index at, Index n_now, const auto &value, const auto &piece) {
            const Index own = curves.offsets[c] + c;
            double line = 0.0;
            for (Index k = 0; k < n_now; ++k) {
                const double x = value(k), slope = r[at + k];
                const Index p = own + piece(k);
                line += slope * x;
                sums[p] += slope;
                moments[p] += slope * (x - table[p].origin);
            }
            lines[c] += line;
        });
    });
    reduce(parts, out, n_threads);
}

}  // namespace linrank
