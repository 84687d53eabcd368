#include "rectangles.hpp"

#include "checks.hpp"

namespace linrank {

namespace {

constexpr Index most_entries = Index(1) << 60;  // their bytes are a number as well

/// One rectangle: its rows, its columns, and the part of a buffer that belongs to it.
struct Block {
    Index rectangle, n_rows, n_columns, begin;
    const Index *upper, *lower, *n_pairs;
    const double *row_bound, *column_bound;

    Block(const Rectangles &all, Index k)
        : rectangle(k), n_rows(all.first_row[k + 1] - all.first_row[k]),
          n_columns(all.first_column[k + 1] - all.first_column[k]), begin(all.offsets[k]),
          upper(&all.upper[all.first_row[k]]), lower(&all.lower[all.first_column[k]]),
          n_pairs(&all.n_pairs[all.first_row[k]]), row_bound(&all.row_bound[all.first_row[k]]),
          column_bound(&all.column_bound[all.first_column[k]]) {}

    Index end() const { return begin + n_rows * n_columns; }
    template <class T>
    T *row(std::span<T> values, Index r) const { return values.data() + begin + r * n_columns; }
    std::vector<double> of_columns(Doubles by_position) const {
        std::vector<double> gathered(n_columns);
        for (Index c = 0; c < n_columns; ++c) gathered[c] = by_position[lower[c]];
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
    for (Index r = 0; r < block.n_rows; ++r)
        body(r, PairRow{block.row(y, r), below.data(), block.column_bound, 1.0 - z[block.upper[r]],
                        block.row_bound[r], 1.0 / rho});
}

/// Sums by row and by column of one rectangle. A row may be both, so the columns come second.
struct Margins {
    std::vector<double> rows, columns;

    explicit Margins(const Block &block) : rows(block.n_rows), columns(block.n_columns) {}
    void add_to(const Block &block, std::span<double> by_position) const {
        for (Index r = 0; r < block.n_rows; ++r) by_position[block.upper[r]] += rows[r];
        for (Index c = 0; c < block.n_columns; ++c) by_position[block.lower[c]] += columns[c];
    }
};

/// Σ of term(i) over the entries i of each rectangle.
template <class Term>
std::vector<double> sums_of_entries(const Rectangles &at, int n_threads, const Term &term) {
    std::vector<double> sums(at.size());
    for_rectangles(at, n_threads, [&](const Block &block) {
        double total = 0.0;
        for (Index i = block.begin; i < block.end(); ++i) total += term(i);
        sums[block.rectangle] = total;
    });
    return sums;
}

}  // namespace

Rectangles::Rectangles(const Queries &queries, Integers chosen, double C)
    : first_row{0}, first_column{0}, offsets{0}, n_positions(queries.n_rows()) {
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
                upper.push_back(t);
                n_pairs.push_back(below);
                row_bound.push_back(C * queries.c(q) * queries.u(t));
            }
            if (level(t) < level(sorted.back())) {
                lower.push_back(t);
                column_bound.push_back(queries.u(t));
            }
        }
        const Index n_rows = std::ssize(upper) - first_row.back();
        const Index n_columns = std::ssize(lower) - first_column.back();
        first_row.push_back(std::ssize(upper));
        first_column.push_back(std::ssize(lower));
        require(n_columns == 0 || n_rows <= (most_entries - offsets.back()) / n_columns,
                "the rectangles have more than 2^60 entries: choose fewer queries");
        offsets.push_back(offsets.back() + n_rows * n_columns);
    }
}

void Rectangles::check(Doubles z, Doubles y, Doubles rho) const {
    require_length(z, n_positions, "z");
    require_length(y, n_entries(), "y");
    require_length(rho, size(), "rho");
    for (const double value : rho)
        require(value > 0.0 && std::isfinite(value), "rho must be finite and > 0");
}

ProximalLoss Rectangles::loss(Doubles z, Doubles y, Doubles rho, int n_threads) const {
    check(z, y, rho);
    ProximalLoss loss;
    loss.gradient.assign(n_positions, 0.0);
    struct Sums {
        double value = 0.0, curvature = 0.0;
    };
    std::vector<Sums> sums(size());
    for_rectangles(*this, n_threads, [&](const Block &block) {
        const double weight = rho[block.rectangle];
        Margins margins(block);
        double value = 0.0;
        Index n_inside = 0;
        for_each_row(block, z, y, weight, [&](Index r, PairRow row) {
            double *columns = margins.columns.data();
            double sum = 0.0, part = 0.0;
            for (Index c = 0; c < block.n_pairs[r]; ++c) {
                const double largest = row.largest(c), free = row.free(c), a = clip(free, largest);
                sum += a;
                columns[c] += a;
                // >= 0, as 0 may be chosen
                part += a * (row.xi(c) + weight * (row.center[c] - 0.5 * a));
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

std::vector<double> Rectangles::curvature(Doubles z, Doubles y, Doubles rho, Doubles v,
                                          int n_threads) const {
    check(z, y, rho);
    require_length(v, n_positions, "v");
    std::vector<double> product(n_positions, 0.0);
    for_rectangles(*this, n_threads, [&](const Block &block) {
        const std::vector<double> v_below = block.of_columns(v);
        const double weight = rho[block.rectangle], inverse = 1.0 / weight;
        Margins margins(block);
        for_each_row(block, z, y, weight, [&](Index r, PairRow row) {
            double *columns = margins.columns.data();
            const double own = v[block.upper[r]];
            double sum = 0.0;
            for (Index c = 0; c < block.n_pairs[r]; ++c) {
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

void Rectangles::point(Doubles z, Doubles y, Doubles rho, std::span<double> alpha,
                       int n_threads) const {
    check(z, y, rho);
    require_length(alpha, n_entries(), "alpha");
    for_rectangles(*this, n_threads, [&](const Block &block) {
        for_each_row(block, z, y, rho[block.rectangle], [&](Index r, PairRow row) {
            double *out = block.row(alpha, r);
            for (Index c = 0; c < block.n_pairs[r]; ++c) out[c] = clip(row.free(c), row.largest(c));
            std::fill(out + block.n_pairs[r], out + block.n_columns, 0.0);
        });
    });
}

std::vector<double> Rectangles::coefficients(Doubles alpha, int n_threads) const {
    require_length(alpha, n_entries(), "alpha");
    std::vector<double> coefficients(n_positions, 0.0);
    for_rectangles(*this, n_threads, [&](const Block &block) {
        Margins margins(block);
        for (Index r = 0; r < block.n_rows; ++r) {
            const double *a = block.row(alpha, r);
            for (Index c = 0; c < block.n_pairs[r]; ++c) {
                margins.rows[r] += a[c];
                margins.columns[c] -= a[c];
            }
        }
        margins.add_to(block, coefficients);
    });
    return coefficients;
}

std::vector<double> Rectangles::relax(Doubles alpha, Doubles a, std::span<double> y, double over,
                                      int n_threads) const {
    require_lengths(n_entries(), {"alpha", "a", "y"}, alpha, a, y);
    return sums_of_entries(*this, n_threads, [&](Index i) {
        y[i] = over * alpha[i] + (2.0 - over) * a[i] - y[i];
        return y[i] * y[i];
    });
}

std::vector<double> Rectangles::squared_norms(Doubles values, int n_threads) const {
    require_length(values, n_entries(), "values");
    return sums_of_entries(*this, n_threads, [&](Index i) { return values[i] * values[i]; });
}

double Rectangles::settle(Index rectangle, std::optional<Doubles> s, const Mixture &mixture,
                          std::span<double> a, std::span<double> y) const {
    require(rectangle >= 0 && rectangle < size(), "there is no such rectangle");
    require_lengths(n_entries(), {"a", "y"}, a, y);
    const Index begin = offsets[rectangle], end = offsets[rectangle + 1];
    require_length(s, end - begin, "s");
    double change = 0.0;
    for (Index i = begin; i < end; ++i) {
        const double m = y[i], correction = s ? (*s)[i - begin] : 0.0;
        const double next = mixture.a_of_m * m + mixture.a_of_s * correction, moved = next - a[i];
        change += moved * moved;
        a[i] = next;
        y[i] = mixture.y_of_m * m + mixture.y_of_s * correction;
    }
    return change;
}

std::vector<CoupledSums> Rectangles::sums(Doubles z, Doubles alpha, Doubles a, Doubles y,
                                          Doubles rho, int n_threads) const {
    check(z, y, rho);
    require_lengths(n_entries(), {"alpha", "a"}, alpha, a);
    std::vector<CoupledSums> all(size());
    for_rectangles(*this, n_threads, [&](const Block &block) {
        const double weight = rho[block.rectangle];
        const std::vector<double> below = block.of_columns(z);
        CoupledSums sums;
        for (Index r = 0; r < block.n_rows; ++r) {
            const double *alphas = block.row(alpha, r), *low_rank = block.row(a, r),
                *shifted = block.row(y, r);
            const double bound = block.row_bound[r], lead = z[block.upper[r]] - 1.0;
            CoupledSums part;
            for (Index c = 0; c < block.n_columns; ++c) {
                const double away = alphas[c] - low_rank[c],
                    price = weight * (low_rank[c] - shifted[c]);
                part.distance += away * away;
                part.slope += price * away;
                part.square += price * price;
            }
            for (Index c = 0; c < block.n_pairs[r]; ++c) {
                const double price = weight * (low_rank[c] - shifted[c]),
                    largest = bound * block.column_bound[c];
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
