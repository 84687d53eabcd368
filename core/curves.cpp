#include "curves.hpp"

namespace linrank {

namespace {

constexpr Index block_rows = 128;  // their values of a feature stay in the first cache
constexpr Index few_knots = 8;     // up to here all are counted, beyond they are searched

using Block = std::array<double, block_rows>;
using Places = std::array<Index, block_rows>;

/// piece[i] = #{t_b < x_i}, at most block_rows of them. All rows take the same steps, so that
/// nothing branches on their values.
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

struct Piece {
    double value, slope, origin;
    double operator()(double x) const { return value + slope * (x - origin); }
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

/// body(c, at, n, value, piece) for blocks of the positions [first, last) and all functions:
/// value(k) is the feature of function c, and piece(k) the piece that it is in, of position at + k,
/// k < n. Pieces that are not known are searched for.
template <bool are_known, class Body>
void for_each_function(const Positions &x, const Curves &curves, const std::uint8_t *pieces,
                       Index first, Index last, const Body &body) {
    std::visit([&]<class Storage>(const Storage &rows) {
        if constexpr (requires { rows.stride; }) {
            std::array<const typename Storage::value_type *, block_rows> cells;
            std::array<const std::uint8_t *, block_rows> codes;
            Block values;
            Places found;
            for (Index at = first; at < last; at += block_rows) {
                const Index n = std::min(block_rows, last - at);
                for (Index k = 0; k < n; ++k) {
                    const Index i = row_at(x.order, at + k);
                    cells[k] = rows.values + i * rows.stride;
                    if (are_known) codes[k] = pieces + i * curves.size();
                }
                for (Index c = 0; c < curves.size(); ++c) {
                    const auto value = [&, feature = curves.feature[c]](Index k) -> double {
                        return cells[k][feature];
                    };
                    if constexpr (are_known) {
                        body(c, at, n, value, [&](Index k) -> Index { return codes[k][c]; });
                    } else {
                        const Index knot = curves.offsets[c];
                        for (Index k = 0; k < n; ++k) values[k] = value(k);
                        search(curves.knots.subspan(knot, curves.offsets[c + 1] - knot),
                               {values.data(), std::size_t(n)}, found);
                        body(c, at, n, [&](Index k) { return values[k]; },
                             [&](Index k) { return found[k]; });
                    }
                }
            }
        } else refuse("curves take dense rows");
    }, x.rows);
}

/// The same for all positions, by all threads.
template <bool are_known = false, class Body>
void for_all_positions(const Positions &x, const Curves &curves, const std::uint8_t *pieces,
                       int n_threads, const Body &body) {
    for_parts(x.n, std::clamp<Index>(x.n / 512, 1, 64), n_threads,
              [&](Index, Index first, Index last) {
        for_each_function<are_known>(x, curves, pieces, first, last, body);
    });
}

}  // namespace

Values map_rows(const Rows &rows, const Curves &curves, int n_threads) {
    return std::visit([&]<class Storage>(const Storage &) -> Values {
        using Value = typename Storage::value_type;
        std::vector<Value> out(n_rows(rows) * curves.size());
        const std::vector<Piece> table = pieces_of(curves);
        for_all_positions({rows}, curves, nullptr, n_threads,
                          [&](Index c, Index at, Index n, const auto &value, const auto &piece) {
            const Piece *own = table.data() + curves.offsets[c] + c;
            Value *cell = out.data() + at * curves.size() + c;
            for (Index k = 0; k < n; ++k) cell[k * curves.size()] = Value(own[piece(k)](value(k)));
        });
        return out;
    }, rows);
}

std::vector<double> sum_curves(const Rows &rows, const Curves &curves, int n_threads) {
    std::vector<double> out(n_rows(rows));
    const std::vector<Piece> table = pieces_of(curves);
    for_all_positions({rows}, curves, nullptr, n_threads,
                      [&](Index c, Index at, Index n, const auto &value, const auto &piece) {
        const Piece *own = table.data() + curves.offsets[c] + c;
        for (Index k = 0; k < n; ++k) out[at + k] += own[piece(k)](value(k));
    });
    return out;
}

void find_pieces(const Rows &rows, const Curves &curves, std::uint8_t *pieces, int n_threads) {
    for_all_positions({rows}, curves, nullptr, n_threads,
                      [&](Index c, Index at, Index n, const auto &, const auto &piece) {
        std::uint8_t *cell = pieces + at * curves.size() + c;
        for (Index k = 0; k < n; ++k) cell[k * curves.size()] = std::uint8_t(piece(k));
    });
}

std::vector<double> sum_pieces(const Positions &x, const Curves &curves, const std::uint8_t *pieces,
                               Doubles lines, int n_threads) {
    std::vector<double> out(x.n);
    const std::vector<Piece> table = pieces_of(curves);
    for_all_positions<true>(x, curves, pieces, n_threads,
                            [&](Index c, Index at, Index n, const auto &value, const auto &piece) {
        const Piece *own = table.data() + curves.offsets[c] + c;
        const double line = lines[c];
        double *z = out.data() + at;
        for (Index k = 0; k < n; ++k) {
            const double x = value(k);
            z[k] += line * x + own[piece(k)](x);
        }
    });
    return out;
}

std::vector<double> add_pieces(const Positions &x, const Curves &curves, const std::uint8_t *pieces,
                               Doubles r, int n_threads) {
    const Index n_tasks = std::clamp<Index>(x.n / 512, 1, 16);
    const std::vector<Piece> table = pieces_of(curves);
    const std::size_t size = 2 * table.size() + std::size_t(curves.size());
    std::vector<std::vector<double>> parts(n_tasks);
    for_parts(x.n, n_tasks, n_threads, [&](Index task, Index first, Index last) {
        std::vector<double> &part = parts[task];
        part.assign(size, 0.0);
        double *sums = part.data(), *moments = sums + table.size(), *lines = moments + table.size();
        for_each_function<true>(x, curves, pieces, first, last,
                                [&](Index c, Index at, Index n, const auto &value,
                                    const auto &piece) {
            const Index own = curves.offsets[c] + c;
            double line = 0.0;
            for (Index k = 0; k < n; ++k) {
                const double x = value(k), slope = r[at + k];
                const Index p = own + piece(k);
                line += slope * x;
                sums[p] += slope;
                moments[p] += slope * (x - table[p].origin);
            }
            lines[c] += line;
        });
    });
    return reduce(parts, size, n_threads);
}

}  // namespace linrank
