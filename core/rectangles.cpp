#include "rectangles.hpp"

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <stdexcept>

#include "parallel.hpp"

namespace linrank {

namespace {

constexpr std::int64_t most_entries = std::int64_t(1) << 60;  // their bytes are a number as well

/// The rows of one rectangle, its scores by column, and the part of a buffer that belongs to it.
struct Block {
    const Rectangles &all;
    std::int64_t rectangle;

    std::int64_t first_row() const { return all.first_row[rectangle]; }
    std::int64_t n_rows() const { return all.first_row[rectangle + 1] - first_row(); }
    std::int64_t first_column() const { return all.first_column[rectangle]; }
    std::int64_t n_columns() const { return all.first_column[rectangle + 1] - first_column(); }
    std::int64_t begin() const { return all.offsets[rectangle]; }
    std::int64_t n_entries() const { return all.offsets[rectangle + 1] - begin(); }
    std::int64_t n_pairs(std::int64_t r) const { return all.n_pairs[first_row() + r]; }
    std::int64_t upper(std::int64_t r) const { return all.upper[first_row() + r]; }
    std::int64_t lower(std::int64_t c) const { return all.lower[first_column() + c]; }
    double row_bound(std::int64_t r) const { return all.row_bound[first_row() + r]; }
    const double *column_bound() const { return all.column_bound.data() + first_column(); }
    const double *row(std::span<const double> values, std::int64_t r) const {
        return values.data() + begin() + r * n_columns();
    }
    double *row(std::span<double> values, std::int64_t r) const {
        return values.data() + begin() + r * n_columns();
    }

    std::vector<double> of_columns(std::span<const double> by_position) const {
        std::vector<double> gathered(n_columns());
        for (std::int64_t c = 0; c < n_columns(); ++c)
            gathered[c] = by_position[lower(c)];
        return gathered;
    }
};

template <class Body>
void for_rectangles(const Rectangles &at, int n_threads, const Body &body) {
    parallel_for(at.size(), n_threads, [&](std::int64_t k) { body(Block{at, k}); });
}

double clip(double value, double bound) { return std::min(std::max(value, 0.0), bound); }

/// The pairs of a row of a rectangle, with 1 - z_i + z_j = slack + below[c].
struct PairRow {
    const double *center, *below, *bounds;
    double slack, bound, inverse;

    double xi(std::int64_t c) const { return slack + below[c]; }
    double largest(std::int64_t c) const { return bound * bounds[c]; }
    /// The maximizer but for its bounds, 0 and `largest`.
    double free(std::int64_t c) const { return center[c] + xi(c) * inverse; }
};

template <class Body>
void for_each_row(const Block &block, std::span<const double> z, std::span<const double> y, double rho,
                  const Body &body) {
    const std::vector<double> below = block.of_columns(z);
    for (std::int64_t r = 0; r < block.n_rows(); ++r)
        body(r, PairRow{block.row(y, r), below.data(), block.column_bound(), 1.0 - z[block.upper(r)],
                        block.row_bound(r), 1.0 / rho});
}

/// Sums by row and by column of one rectangle. A row may be both, so the columns come second.
struct Margins {
    std::vector<double> rows, columns;

    explicit Margins(const Block &block) : rows(block.n_rows()), columns(block.n_columns()) {}
    void add_to(const Block &block, std::span<double> by_position) const {
        for (std::int64_t r = 0; r < block.n_rows(); ++r) by_position[block.upper(r)] += rows[r];
        for (std::int64_t c = 0; c < block.n_columns(); ++c) by_position[block.lower(c)] += columns[c];
    }
};

/// Σ of term(i) over the entries i of each rectangle.
template <class Term>
std::vector<double> sums_of_entries(const Rectangles &at, int n_threads, const Term &term) {
    std::vector<double> sums(at.size());
    for_rectangles(at, n_threads, [&](const Block &block) {
        double total = 0.0;
        for (std::int64_t i = block.begin(); i < block.begin() + block.n_entries(); ++i) total += term(i);
        sums[block.rectangle] = total;
    });
    return sums;
}

}  // namespace

Rectangles make_rectangles(std::span<const std::int64_t> offsets, std::span<const std::int32_t> levels,
                           std::span<const std::int64_t> chosen, std::span<const double> row_weight,
                           std::span<const double> query_weight, double C) {
    Rectangles made;
    made.n_positions = std::int64_t(levels.size());
    made.first_row = made.first_column = made.offsets = {0};
    std::vector<std::int64_t> sorted;
    for (const std::int64_t q : chosen) {
        const std::int64_t begin = offsets[q], end = offsets[q + 1];
        sorted.resize(end - begin);
        for (std::int64_t t = begin; t < end; ++t) sorted[t - begin] = t;
        const auto level = [&](std::int64_t t) { return levels[t]; };
        std::ranges::stable_sort(sorted, {}, level);
        const std::int32_t highest = level(sorted.back());
        const double factor = C * (query_weight.empty() ? 1.0 : query_weight[q]);
        std::int64_t below = 0;  // rows of a lower level than the current one
        for (std::size_t s = 0; s < sorted.size(); ++s) {
            const std::int64_t t = sorted[s];
            const double u = row_weight.empty() ? 1.0 : row_weight[t];
            if (s > 0 && level(t) != level(sorted[s - 1])) below = std::int64_t(s);
            if (below > 0) {
                made.upper.push_back(t);
                made.n_pairs.push_back(below);
                made.row_bound.push_back(factor * u);
            }
            if (level(t) < highest) {
                made.lower.push_back(t);
                made.column_bound.push_back(u);
            }
        }
        const std::int64_t n_rows = std::int64_t(made.upper.size()) - made.first_row.back();
        const std::int64_t n_columns = std::int64_t(made.lower.size()) - made.first_column.back();
        made.first_row.push_back(std::int64_t(made.upper.size()));
        made.first_column.push_back(std::int64_t(made.lower.size()));
        if (n_columns > 0 && n_rows > (most_entries - made.offsets.back()) / n_columns)
            throw std::invalid_argument("the rectangles have more than 2^60 entries: choose fewer queries");
        made.offsets.push_back(made.offsets.back() + n_rows * n_columns);
    }
    return made;
}

ProximalLoss proximal_loss(const Rectangles &at, std::span<const double> z, std::span<const double> y,
                           std::span<const double> rho, int n_threads) {
    assert(std::int64_t(y.size()) == at.n_entries() && std::int64_t(z.size()) == at.n_positions);
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
        std::int64_t n_inside = 0;
        for_each_row(block, z, y, weight, [&](std::int64_t r, PairRow row) {
            double *columns = margins.columns.data();
            double sum = 0.0, part = 0.0;
            for (std::int64_t c = 0; c < block.n_pairs(r); ++c) {
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

std::vector<double> proximal_curvature(const Rectangles &at, std::span<const double> z,
                                       std::span<const double> y, std::span<const double> rho,
                                       std::span<const double> v, int n_threads) {
    assert(z.size() == v.size() && std::int64_t(z.size()) == at.n_positions);
    std::vector<double> product(at.n_positions, 0.0);
    for_rectangles(at, n_threads, [&](const Block &block) {
        const std::vector<double> v_below = block.of_columns(v);
        const double weight = rho[block.rectangle], inverse = 1.0 / weight;
        Margins margins(block);
        for_each_row(block, z, y, weight, [&](std::int64_t r, PairRow row) {
            double *columns = margins.columns.data();
            const double own = v[block.upper(r)];
            double sum = 0.0;
            for (std::int64_t c = 0; c < block.n_pairs(r); ++c) {
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

void proximal_point(const Rectangles &at, std::span<const double> z, std::span<const double> y,
                    std::span<const double> rho, std::span<double> alpha, int n_threads) {
    assert(alpha.size() == y.size());
    for_rectangles(at, n_threads, [&](const Block &block) {
        for_each_row(block, z, y, rho[block.rectangle], [&](std::int64_t r, PairRow row) {
            double *out = block.row(alpha, r);
            for (std::int64_t c = 0; c < block.n_pairs(r); ++c) out[c] = clip(row.free(c), row.largest(c));
            std::fill(out + block.n_pairs(r), out + block.n_columns(), 0.0);
        });
    });
}

std::vector<double> dual_coefficients(const Rectangles &at, std::span<const double> alpha, int n_threads) {
    assert(std::int64_t(alpha.size()) == at.n_entries());
    std::vector<double> coefficients(at.n_positions, 0.0);
    for_rectangles(at, n_threads, [&](const Block &block) {
        Margins margins(block);
        for (std::int64_t r = 0; r < block.n_rows(); ++r) {
            const double *a = block.row(alpha, r);
            for (std::int64_t c = 0; c < block.n_pairs(r); ++c) {
                margins.rows[r] += a[c];
                margins.columns[c] -= a[c];
            }
        }
        margins.add_to(block, coefficients);
    });
    return coefficients;
}

std::vector<double> relax(const Rectangles &at, std::span<const double> alpha, std::span<const double> a,
                          std::span<double> y, double over, int n_threads) {
    assert(alpha.size() == y.size() && a.size() == y.size());
    return sums_of_entries(at, n_threads, [&](std::int64_t i) {
        y[i] = over * alpha[i] + (2.0 - over) * a[i] - y[i];
        return y[i] * y[i];
    });
}

std::vector<double> squared_norms(const Rectangles &at, std::span<const double> values, int n_threads) {
    assert(std::int64_t(values.size()) == at.n_entries());
    return sums_of_entries(at, n_threads, [&](std::int64_t i) { return values[i] * values[i]; });
}

double settle(const Rectangles &at, std::int64_t rectangle, std::span<const double> s, const Mixture &mixture,
              std::span<double> a, std::span<double> y) {
    const Block block{at, rectangle};
    assert(s.empty() || std::int64_t(s.size()) == block.n_entries());
    double change = 0.0;
    for (std::int64_t e = 0; e < block.n_entries(); ++e) {
        const std::size_t i = std::size_t(block.begin() + e);
        const double m = y[i], correction = s.empty() ? 0.0 : s[e];
        const double next = mixture.a_of_m * m + mixture.a_of_s * correction, moved = next - a[i];
        change += moved * moved;
        a[i] = next;
        y[i] = mixture.y_of_m * m + mixture.y_of_s * correction;
    }
    return change;
}

std::vector<CoupledSums> coupled_sums(const Rectangles &at, std::span<const double> z,
                                      std::span<const double> alpha, std::span<const double> a,
                                      std::span<const double> y, std::span<const double> rho, int n_threads) {
    assert(alpha.size() == y.size() && a.size() == y.size());
    std::vector<CoupledSums> all(at.size());
    for_rectangles(at, n_threads, [&](const Block &block) {
        const double weight = rho[block.rectangle];
        const std::vector<double> below = block.of_columns(z);
        const double *bounds = block.column_bound();
        CoupledSums sums;
        for (std::int64_t r = 0; r < block.n_rows(); ++r) {
            const double *alphas = block.row(alpha, r), *low_rank = block.row(a, r), *shifted = block.row(y, r);
            const double bound = block.row_bound(r), lead = z[block.upper(r)] - 1.0;
            CoupledSums part;
            for (std::int64_t c = 0; c < block.n_columns(); ++c) {
                const double away = alphas[c] - low_rank[c], price = weight * (low_rank[c] - shifted[c]);
                part.distance += away * away;
                part.slope += price * away;
                part.square += price * price;
            }
            for (std::int64_t c = 0; c < block.n_pairs(r); ++c) {
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
