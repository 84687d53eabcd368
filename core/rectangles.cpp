#include "rectangles.hpp"

#include <cassert>

#include "parallel.hpp"

namespace linrank {

namespace {

constexpr Index most_entries = Index(1) << 60;  // their bytes are a number as well

/// The rows of one rectangle, its scores by column, and the part of a buffer that belongs to it.
struct Block {
    const Rectangles &all;
    Index rectangle;

    Index first_row() const { return all.first_row[rectangle]; }
    Index n_rows() const { return all.first_row[rectangle + 1] - first_row(); }
    Index first_column() const { return all.first_column[rectangle]; }
    Index n_columns() const { return all.first_column[rectangle + 1] - first_column(); }
    Index begin() const { return all.offsets[rectangle]; }
    Index n_entries() const { return all.offsets[rectangle + 1] - begin(); }
    Index n_pairs(Index r) const { return all.n_pairs[first_row() + r]; }
    Index upper(Index r) const { return all.upper[first_row() + r]; }
    Index lower(Index c) const { return all.lower[first_column() + c]; }
    double row_bound(Index r) const { return all.row_bound[first_row() + r]; }
    const double *column_bound() const { return all.column_bound.data() + first_column(); }
    const double *row(Doubles values, Index r) const {
        return values.data() + begin() + r * n_columns();
    }
    double *row(std::span<double> values, Index r) const {
        return values.data() + begin() + r * n_columns();
    }

    std::vector<double> of_columns(Doubles by_position) const {
        std::vector<double> gathered(n_columns());
        for (Index c = 0; c < n_columns(); ++c)
            gathered[c] = by_position[lower(c)];
        return gathered;
    }
};

template <class Body>
void for_rectangles(const Rectangles &at, int n_threads, const Body &body) {
    parallel_for(at.size(), n_threads, [&](Index k) { body(Block{at, k}); });
}

double clip(double value, double bound) { return std::min(std::max(value, 0.0), bound); }

/// The pairs of a row of a rectangle, with 1 - z_i + z_j = slack + below[c].
struct PairRow {
    const double *center, *below, *bounds;
    double slack, bound, inverse;

    double xi(Index c) const { return slack + below[c]; }
    double largest(Index c) const { return bound * bounds[c]; }
    /// The maximizer but for its bounds, 0 and `largest`.
    double free(Index c) const { return center[c] + xi(c) * inverse; }
};

template <class Body>
void for_each_row(const Block &block, Doubles z, Doubles y, double rho, const Body &body) {
    const std::vector<double> below = block.of_columns(z);
    for (Index r = 0; r < block.n_rows(); ++r)
        body(r, PairRow{block.row(y, r), below.data(), block.column_bound(), 1.0 - z[block.upper(r)],
                        block.row_bound(r), 1.0 / rho});
}

/// Sums by row and by column of one rectangle. A row may be both, so the columns come second.
struct Margins {
    std::vector<double> rows, columns;

    explicit Margins(const Block &block) : rows(block.n_rows()), columns(block.n_columns()) {}
    void add_to(const Block &block, std::span<double> by_position) const {
        for (Index r = 0; r < block.n_rows(); ++r) by_position[block.upper(r)] += rows[r];
        for (Index c = 0; c < block.n_columns(); ++c) by_position[block.lower(c)] += columns[c];
    }
};

/// Σ of term(i) over the entries i of each rectangle.
template <class Term>
std::vector<double> sums_of_entries(const Rectangles &at, int n_threads, const Term &term) {
    std::vector<double> sums(at.size());
    for_rectangles(at, n_threads, [&](const Block &block) {
        double total = 0.0;
        for (Index i = block.begin(); i < block.begin() + block.n_entries(); ++i) total += term(i);
        sums[block.rectangle] = total;
    });
    return sums;
}

}  // namespace

Rectangles make_rectangles(const Queries &queries, Integers chosen, double C) {
    Rectangles made;
    made.n_positions = queries.n_rows();
    made.first_row = made.first_column = made.offsets = {0};
    std::vector<Index> sorted;
    const auto level = [&](Index t) { return queries.levels[t]; };
    for (const Index q : chosen) {
        sorted.resize(queries.length(q));
        std::iota(sorted.begin(), sorted.end(), queries.begin(q));
        std::ranges::stable_sort(sorted, {}, level);
        Index below = 0;  // rows of a lower level than the current one
        for (std::size_t s = 0; s < sorted.size(); ++s) {
            const Index t = sorted[s];
            if (s > 0 && level(t) != level(sorted[s - 1])) below = Index(s);
            if (below > 0) {
                made.upper.push_back(t);
                made.n_pairs.push_back(below);
                made.row_bound.push_back(C * queries.c(q) * queries.u(t));
            }
            if (level(t) < level(sorted.back())) {
                made.lower.push_back(t);
                made.column_bound.push_back(queries.u(t));
            }
        }
        const Index n_rows = std::ssize(made.upper) - made.first_row.back();
        const Index n_columns = std::ssize(made.lower) - made.first_column.back();
        made.first_row.push_back(std::ssize(made.upper));
        made.first_column.push_back(std::ssize(made.lower));
        if (n_columns > 0 && n_rows > (most_entries - made.offsets.back()) / n_columns)
            throw std::invalid_argument("the rectangles have more than 2^60 entries: choose fewer queries");
        made.offsets.push_back(made.offsets.back() + n_rows * n_columns);
    }
    return made;
}

ProximalLoss proximal_loss(const Rectangles &at, Doubles z, Doubles y, Doubles rho, int n_threads) {
    assert(Index(y.size()) == at.n_entries() && Index(z.size()) == at.n_positions);
    ProximalLoss loss;
    loss.gradient.assign(at.n_positions, 0.0);
    struct Sums {
        double value = 0.0, curvature = 0.0;
    };
    std::vector<Sums> sums(at.size());
    for_rectangles(at, n_threads, [&](const Block &block) {
        const double weight = rho[block.rectangle];
        Margins margins(block);
        double value = 0.0;
        Index n_inside = 0;
        for_each_row(block, z, y, weight, [&](Index r, PairRow row) {
            double *columns = margins.columns.data();
            double sum = 0.0, part = 0.0;
            for (Index c = 0; c < block.n_pairs(r); ++c) {
                const double largest = row.largest(c), free = row.free(c), a = clip(free, largest);
                sum += a;
                columns[c] += a;
                part += a * (row.xi(c) + weight * (row.center[c] - 0.5 * a));  // >= 0, as 0 may be chosen
                n_inside += free > 0.0 && free < largest;
            }
            margins.rows[r] = -sum;
            value += part;
        });
        sums[block.rectangle] = {value, double(n_inside) * (1.0 / weight)};
        margins.add_to(block, loss.gradient);  // of positions of this query only
    });
    const Sums total = sum_of(sums);
    loss.value = total.value;
    loss.curvature = total.curvature;
    return loss;
}

std::vector<double> proximal_curvature(const Rectangles &at, Doubles z, Doubles y, Doubles rho,
                                       Doubles v, int n_threads) {
    assert(z.size() == v.size() && Index(z.size()) == at.n_positions);
    std::vector<double> product(at.n_positions, 0.0);
    for_rectangles(at, n_threads, [&](const Block &block) {
        const std::vector<double> v_below = block.of_columns(v);
        const double weight = rho[block.rectangle], inverse = 1.0 / weight;
        Margins margins(block);
        for_each_row(block, z, y, weight, [&](Index r, PairRow row) {
            double *columns = margins.columns.data();
            const double own = v[block.upper(r)];
            double sum = 0.0;
            for (Index c = 0; c < block.n_pairs(r); ++c) {
                const double free = row.free(c);
                const double moved = free > 0.0 && free < row.largest(c) ? own - v_below[c] : 0.0;
                sum += moved;
                columns[c] -= moved;
            }
            margins.rows[r] = sum * inverse;
        });
        for (double &column : margins.columns) column *= inverse;
        margins.add_to(block, product);
    });
    return product;
}

void proximal_point(const Rectangles &at, Doubles z, Doubles y,
                    Doubles rho, std::span<double> alpha, int n_threads) {
    assert(alpha.size() == y.size());
    for_rectangles(at, n_threads, [&](const Block &block) {
        for_each_row(block, z, y, rho[block.rectangle], [&](Index r, PairRow row) {
            double *out = block.row(alpha, r);
            for (Index c = 0; c < block.n_pairs(r); ++c) out[c] = clip(row.free(c), row.largest(c));
            std::fill(out + block.n_pairs(r), out + block.n_columns(), 0.0);
        });
    });
}

std::vector<double> dual_coefficients(const Rectangles &at, Doubles alpha, int n_threads) {
    assert(Index(alpha.size()) == at.n_entries());
    std::vector<double> coefficients(at.n_positions, 0.0);
    for_rectangles(at, n_threads, [&](const Block &block) {
        Margins margins(block);
        for (Index r = 0; r < block.n_rows(); ++r) {
            const double *a = block.row(alpha, r);
            for (Index c = 0; c < block.n_pairs(r); ++c) {
                margins.rows[r] += a[c];
                margins.columns[c] -= a[c];
            }
        }
        margins.add_to(block, coefficients);
    });
    return coefficients;
}

std::vector<double> relax(const Rectangles &at, Doubles alpha, Doubles a,
                          std::span<double> y, double over, int n_threads) {
    assert(alpha.size() == y.size() && a.size() == y.size());
    return sums_of_entries(at, n_threads, [&](Index i) {
        y[i] = over * alpha[i] + (2.0 - over) * a[i] - y[i];
        return y[i] * y[i];
    });
}

std::vector<double> squared_norms(const Rectangles &at, Doubles values, int n_threads) {
    assert(Index(values.size()) == at.n_entries());
    return sums_of_entries(at, n_threads, [&](Index i) { return values[i] * values[i]; });
}

double settle(const Rectangles &at, Index rectangle, Doubles s, const Mixture &mixture,
              std::span<double> a, std::span<double> y) {
    const Block block{at, rectangle};
    assert(s.empty() || Index(s.size()) == block.n_entries());
    double change = 0.0;
    for (Index e = 0; e < block.n_entries(); ++e) {
        const std::size_t i = std::size_t(block.begin() + e);
        const double m = y[i], correction = s.empty() ? 0.0 : s[e];
        const double next = mixture.a_of_m * m + mixture.a_of_s * correction, moved = next - a[i];
        change += moved * moved;
        a[i] = next;
        y[i] = mixture.y_of_m * m + mixture.y_of_s * correction;
    }
    return change;
}

std::vector<CoupledSums> coupled_sums(const Rectangles &at, Doubles z, Doubles alpha, Doubles a,
                                      Doubles y, Doubles rho, int n_threads) {
    assert(alpha.size() == y.size() && a.size() == y.size());
    std::vector<CoupledSums> all(at.size());
    for_rectangles(at, n_threads, [&](const Block &block) {
        const double weight = rho[block.rectangle];
        const std::vector<double> below = block.of_columns(z);
        const double *bounds = block.column_bound();
        CoupledSums sums;
        for (Index r = 0; r < block.n_rows(); ++r) {
            const double *alphas = block.row(alpha, r), *low_rank = block.row(a, r), *shifted = block.row(y, r);
            const double bound = block.row_bound(r), lead = z[block.upper(r)] - 1.0;
            CoupledSums part;
            for (Index c = 0; c < block.n_columns(); ++c) {
                const double away = alphas[c] - low_rank[c], price = weight * (low_rank[c] - shifted[c]);
                part.distance += away * away;
                part.slope += price * away;
                part.square += price * price;
            }
            for (Index c = 0; c < block.n_pairs(r); ++c) {
                const double price = weight * (low_rank[c] - shifted[c]), largest = bound * bounds[c];
                const double g = lead - below[c] + price;
                const double step = alphas[c] - clip(alphas[c] - g, largest);
                part.sum += alphas[c];
                part.lowest += largest * std::max(0.0, -g);
                part.residual += step * step;
            }
            add_sums(sums, part);
        }
        all[block.rectangle] = sums;
    });
    return all;
}

}  // namespace linrank
