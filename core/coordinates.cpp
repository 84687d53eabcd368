#include "coordinates.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "parallel.hpp"
#include "simd.hpp"

namespace linrank {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double drift = 2e-3;    // of log Z before R is summed afresh: its polynomial is exact to 1.4e-9
constexpr double overflow = 30;   // growth of a score beyond the top of its layer that calls for a rebuild
constexpr double fallen = 1e-6;   // share of its peak below which a layer's sum is mostly rounding
constexpr double largest_exponent = 690;
constexpr double vanishing = -800;  // e to this is zero
constexpr std::int64_t block = 64;  // rows whose exponentials are computed together
constexpr std::int64_t stale = 64;  // changes a row before scores are computed anew

/// The entries of a sparse column in one query.
template <class Value>
struct SparseEntries {
    const std::int32_t *positions;
    const Value *values;
    std::int64_t n;
    std::int64_t position(std::int64_t k) const { return positions[k]; }
    double value(std::int64_t k) const { return double(values[k]); }
};

template <class Value>
struct DenseEntries {
    std::int64_t first;
    const Value *values;
    std::int64_t n;
    std::int64_t position(std::int64_t k) const { return first + k; }
    double value(std::int64_t k) const { return double(values[k]); }
};

/// log(1 + y) for |y| <= drift, to 1e-14.
double small_log(double y) { return y * (1.0 - y * (0.5 - y * (1.0 / 3.0 - y * (0.25 - 0.2 * y)))); }

}  // namespace

Coordinates::Coordinates(std::shared_ptr<const Columns> columns, std::shared_ptr<const Layering> layering,
                         std::vector<double> factors)
    : columns_(std::move(columns)), layering_(std::move(layering)), factors_(std::move(factors)),
      known_(std::size_t(n_columns(*columns_))) {
    place_rows();
    const Layering &l = *layering_;
    if (!l.table.empty()) {
        first_table_.assign(std::size_t(l.n_queries()) + 1, 0);
        for (std::int64_t q = 0; q < l.n_queries(); ++q)
            first_table_[std::size_t(q) + 1] = first_table_[std::size_t(q)] + n_layers(q) * n_layers(q);
        table_.resize(std::size_t(first_table_.back()));
    }
    for (std::int64_t q = 0; q < l.n_queries(); ++q) {
        largest_ = std::max(largest_, n_layers(q));
        for (std::int64_t k = 1; k < n_layers(q); ++k) total_weight_ += cells(q)[k].weight;
    }
    scratch_.sums.resize(std::size_t(largest_));
    scratch_.extents.resize(std::size_t(largest_));
    restart(std::vector<double>(std::size_t(n_features()), 0.0));
}

/// Sorts the rows of every query by layer, and counts and weighs the layers.
void Coordinates::place_rows() {
    const Layering &l = *layering_;
    const auto n = std::size_t(l.n_rows());
    cells_.assign(std::size_t(l.n_cells()), Cell{});
    for (Cell &cell : cells_) cell.base = -infinity;  // the lowest layers keep it
    spots_.resize(n);
    position_of_.resize(n);
    rows_.resize(n);
    q_.assign(n, 0.0);
    if (!l.row_weight.empty()) u_.resize(n);
    n_weighted_.assign(cells_.size(), 0);
    first_place_.assign(cells_.size() + 1, 0);
    for (std::int64_t q = 0; q < l.n_queries(); ++q) {
        queries_.push_back({l.offsets[std::size_t(q)], l.offsets[std::size_t(q) + 1],
                            l.first_cell[std::size_t(q)], l.n_levels[std::size_t(q)]});
        for (std::int64_t t = l.offsets[std::size_t(q)]; t < l.offsets[std::size_t(q) + 1]; ++t) {
            const auto cell = std::size_t(first_cell(q) + l.levels[std::size_t(t)]);
            ++first_place_[cell + 1];
            cells_[cell].weight += l.c(q) * l.u(t);
            if (l.u(t) > 0.0) ++n_weighted_[cell];
            spots_[std::size_t(t)].query = std::int32_t(q);
        }
    }
    for (std::size_t c = 0; c < cells_.size(); ++c) first_place_[c + 1] += first_place_[c];
    std::vector<std::int64_t> next(first_place_.begin(), first_place_.end() - 1);
    for (std::size_t t = 0; t < n; ++t) {
        const std::int64_t level = l.levels[t], cell = first_cell(spots_[t].query) + level;
        const auto place = std::size_t(next[std::size_t(cell)]++);
        spots_[t].place = std::int32_t(place);
        position_of_[place] = std::int32_t(t);
        rows_[place] = {0.0, 0.0, level};
        if (!u_.empty()) u_[place] = l.u(std::int64_t(t));
    }
}

double Coordinates::omega(std::int64_t q, std::int64_t place) const {
    return layering_->c(q) * (u_.empty() ? 1.0 : u_[std::size_t(place)]);
}

std::vector<double> Coordinates::scores() const {
    std::vector<double> z(rows_.size());
    for (std::size_t t = 0; t < z.size(); ++t)
        z[t] = rows_[place_of(std::int64_t(t))].m + layering_->s(std::int64_t(t));
    return z;
}

// ---- the state of a query ---------------------------------------------------------------------

void Coordinates::restart(std::span<const double> w) {
    for (std::size_t p = 0; p < rows_.size(); ++p) rows_[p].m = -layering_->s(position_of_[p]);
    std::visit([&](const auto &storage) {
        for (std::int64_t c = 0; c < n_features(); ++c) {
            const double change = w[std::size_t(c)] * factor(c);
            if (change == 0.0) continue;
            for_each_query(storage, c, [&](std::int64_t, const auto &entries) {
                for (std::int64_t k = 0; k < entries.n; ++k)
                    rows_[place_of(entries.position(k))].m +=
                        change * entries.value(k);
            });
        }
    }, *columns_);
    for (std::int64_t q = 0; q < layering_->n_queries(); ++q)
        if (n_layers(q) > 1) rebuild(q);
    n_touched_ = 0;
}

void Coordinates::rebuild(std::int64_t q) {
    settle_tops(q);
    const std::int64_t end = first_place_[std::size_t(first_cell(q) + n_layers(q))];
    for (std::int64_t begin = first_place_[std::size_t(first_cell(q))]; begin < end; begin += block) {
        const std::int64_t n = std::min(block, end - begin);
        std::int64_t places[block];
        double e[block];
        for (std::int64_t i = 0; i < n; ++i) places[i] = begin + i;
        exponentials(q, places, n, e, q_.data() + begin);
        for (std::int64_t i = 0; i < n; ++i) rows_[std::size_t(begin + i)].e = e[i];
    }
    for (std::int64_t k = 0; k + 1 < n_layers(q); ++k) {
        sum_layer(q, k);
        cells(q)[k].peak = cells(q)[k].sum;
    }
    update_Z(q);
    for (std::int64_t k = 1; k < n_layers(q); ++k) expand(q, k);
}

/// What the exponentials of the query are to be relative to, and the factors between its layers.
void Coordinates::settle_tops(std::int64_t q) {
    const std::int64_t first = first_cell(q), K = n_layers(q);
    Cell *cell = cells(q);
    for (std::int64_t k = 0; k < K; ++k) {
        double top = -infinity;  // of rows that weigh something; the others are in no sum
        for (std::int64_t p = first_place_[std::size_t(first + k)]; p < first_place_[std::size_t(first + k) + 1];
             ++p)
            if (u_.empty() || u_[std::size_t(p)] > 0.0) top = std::max(top, rows_[std::size_t(p)].m);
        cell[k].top = top;
    }
    const auto relative = [](double a, double b) { return a == -infinity ? 0.0 : std::exp(a - b); };
    if (table_.empty()) {
        for (std::int64_t k = 1; k < K; ++k) {
            cell[k].base = std::max(cell[k - 1].base, cell[k - 1].top);
            cell[k].carry = relative(cell[k - 1].base, cell[k].base);
            cell[k].fresh = relative(cell[k - 1].top, cell[k].base);
        }
        return;
    }
    double *table = table_.data() + first_table_[std::size_t(q)];
    for (std::int64_t k = 1; k < K; ++k) {
        cell[k].base = -infinity;
        for (std::int64_t j = 0; j < k; ++j)
            cell[k].base = std::max(cell[k].base, cell[j].top + layering_->margin(first + k, first + j));
        for (std::int64_t j = 0; j < k; ++j)
            table[k * K + j] = relative(cell[j].top + layering_->margin(first + k, first + j), cell[k].base);
    }
}

/// What rows of a query weigh as dominated ones, u e^{m - top}, and what Z is compared with for them as
/// dominating ones, e^{m - base}; at most `block` of them.
void Coordinates::exponentials(std::int64_t q, const std::int64_t *places, std::int64_t n, double *e,
                               double *above) const {
    const Cell *cell = cells(q);
    const std::int64_t K = n_layers(q);
    for (std::int64_t i = 0; i < n; ++i) {
        const auto p = std::size_t(places[i]);
        const Row &row = rows_[p];
        const Cell &own = cell[row.level];
        const bool is_in_sums = row.level + 1 < K && (u_.empty() || u_[p] > 0.0);
        e[i] = is_in_sums ? row.m - own.top : vanishing;
        // Capped, a row far above all below it has ρ = 1e-300 in place of less.
        above[i] = own.base == -infinity ? 0.0 : std::min(row.m - own.base, largest_exponent);
    }
    kernels().exp_vector(n, e);
    kernels().exp_vector(n, above);
    if (u_.empty()) return;
    for (std::int64_t i = 0; i < n; ++i) e[i] *= u_[std::size_t(places[i])];
}

void Coordinates::sum_layer(std::int64_t q, std::int64_t k) {
    const auto c = std::size_t(first_cell(q) + k);
    double sum = 0;
    for (std::int64_t p = first_place_[c]; p < first_place_[c + 1]; ++p) sum += rows_[std::size_t(p)].e;
    cells_[c].sum = sum;
}

/// set(k, Σ_{κ<k} own(κ)·e^{...}), relative to the base of layer k, for every layer but the lowest.
template <class Own, class Set>
void Coordinates::accumulate(std::int64_t q, const Own &own, const Set &set) const {
    const std::int64_t K = n_layers(q);
    const Cell *cell = cells(q);
    if (table_.empty()) {
        auto sum = own(0) * 0.0;
        for (std::int64_t k = 1; k < K; ++k) {
            sum = sum * cell[k].carry + own(k - 1) * cell[k].fresh;
            set(k, sum);
        }
        return;
    }
    const double *table = table_.data() + first_table_[std::size_t(q)];
    for (std::int64_t k = 1; k < K; ++k) {
        auto sum = own(0) * table[k * K];
        for (std::int64_t j = 1; j < k; ++j) sum = sum + own(j) * table[k * K + j];
        set(k, sum);
    }
}

void Coordinates::update_Z(std::int64_t q) {
    Cell *cell = cells(q);
    accumulate(q, [&](std::int64_t k) { return cell[k].sum; },
               [&](std::int64_t k, double Z) { cell[k].Z = Z; });
}

/// R and its derivatives at the present Z: with v = ρ(1-ρ), dρ/dlogZ = v and dv/dlogZ = v(1-2ρ).
void Coordinates::expand(std::int64_t q, std::int64_t k) {
    const std::int64_t c = first_cell(q) + k;
    Cell &cell = cells_[std::size_t(c)];
    const double Z = cell.Z, *qs = q_.data();
    double r0 = 0, r1 = 0, r2 = 0;
    for (std::int64_t p = first_place_[std::size_t(c)]; p < first_place_[std::size_t(c) + 1]; ++p) {
        const double rho = Z / (Z + qs[p]), u = u_.empty() ? 1.0 : u_[std::size_t(p)];
        const double v = u * rho * (1.0 - rho);
        r0 += u * rho;
        r1 += v;
        r2 += v * (1.0 - 2.0 * rho);
    }
    const double weight = layering_->c(q);
    cell.r0 = weight * r0;
    cell.r1 = weight * r1;
    cell.r2 = weight * r2;
    cell.Z_ref = Z;
}

void Coordinates::refresh_drifted(std::int64_t q) {
    Cell *cell = cells(q);
    for (std::int64_t k = 1; k < n_layers(q); ++k)
        if (!(std::abs(cell[k].Z - cell[k].Z_ref) <= drift * cell[k].Z_ref)) expand(q, k);
}

// ---- along one column -------------------------------------------------------------------------

/// The state of a column's later entries, which lies all over memory: with short queries, an entry would
/// otherwise wait for one line of cache after the other.
void Coordinates::ask_ahead(const std::int32_t *positions, std::int64_t n) const {
    if (n > 24) __builtin_prefetch(spots_.data() + positions[24]);
    if (n > 16) {
        const Spot spot = spots_[std::size_t(positions[16])];
        __builtin_prefetch(rows_.data() + spot.place);
        __builtin_prefetch(q_.data() + spot.place);
        __builtin_prefetch(queries_.data() + spot.query);
    }
    if (n <= 8) return;
    const Query &query = queries_[std::size_t(spots_[std::size_t(positions[8])].query)];
    for (std::int64_t k = 0; k < std::min<std::int64_t>(query.n_layers, 4); ++k)
        __builtin_prefetch(cells_.data() + query.first_cell + k);
}

template <class Storage, class Body>
void Coordinates::for_each_query(const Storage &storage, std::int64_t column, const Body &body) const {
    const Layering &l = *layering_;
    if constexpr (requires { storage.positions; }) {
        using Value = typename std::decay_t<decltype(storage.values)>::value_type;
        std::int64_t k = storage.offsets[std::size_t(column)];
        const std::int64_t end = storage.offsets[std::size_t(column) + 1];
        while (k < end) {
            ask_ahead(storage.positions.data() + k, end - k);
            const std::int64_t q = spots_[std::size_t(storage.positions[std::size_t(k)])].query;
            const std::int64_t last = queries_[std::size_t(q)].end, begin = k;
            while (k < end && storage.positions[std::size_t(k)] < last) ++k;
            if (n_layers(q) > 1)
                body(q, SparseEntries<Value>{storage.positions.data() + begin, storage.values.data() + begin,
                                             k - begin});
        }
    } else {
        using Value = typename std::decay_t<decltype(storage.values)>::value_type;
        const Value *values = storage.values.data() + column * storage.n_rows;
        for (std::int64_t q = 0; q < l.n_queries(); ++q) {
            const std::int64_t begin = l.offsets[std::size_t(q)];
            if (n_layers(q) > 1)
                body(q, DenseEntries<Value>{begin, values + begin, l.offsets[std::size_t(q) + 1] - begin});
        }
    }
}

/// Adds a query to Σ_i ω_i ¼(range of x over i and all below it)², and to the largest range. A layer with
/// fewer entries than rows holds zeros. Rows of weight 0 are absent.
template <class Entries>
void Coordinates::add_known(std::int64_t q, const Entries &entries, Scratch &scratch, Known &known) const {
    const std::int64_t K = n_layers(q);
    const Cell *cell = cells(q);
    Extent *extent = scratch.extents.data();
    std::fill_n(extent, K, Extent{infinity, -infinity, 0, 0.0});
    for (std::int64_t k = 0; k < entries.n; ++k) {
        const std::size_t p = place_of(entries.position(k));
        if (!u_.empty() && !(u_[p] > 0.0)) continue;
        const double x = entries.value(k);
        Extent &own = extent[rows_[p].level];
        own.low = std::min(own.low, x);
        own.high = std::max(own.high, x);
        own.weight += omega(q, std::int64_t(p));
        ++own.n;
        known.largest = std::max(known.largest, std::abs(x));
    }
    double low = infinity, high = -infinity;  // of the layers below
    for (std::int64_t k = 0; k < K; ++k) {
        Extent &own = extent[k];
        const bool has_zeros = own.n < n_weighted_[std::size_t(cell + k - cells_.data())];
        const double all_low = std::min(low, has_zeros ? std::min(own.low, 0.0) : own.low);
        const double all_high = std::max(high, has_zeros ? std::max(own.high, 0.0) : own.high);
        if (k > 0 && has_zeros) {
            const double range = std::max(high, 0.0) - std::min(low, 0.0);
            known.bound += 0.25 * std::max(cell[k].weight - own.weight, 0.0) * range * range;
        }
        if (k > 0) known.range = std::max(known.range, all_high - all_low);
        own.low = low;  // from here on: of what lies below
        own.high = high;
        low = all_low;
        high = all_high;
    }
    for (std::int64_t k = 0; k < entries.n; ++k) {
        const std::size_t p = place_of(entries.position(k));
        if (rows_[p].level == 0) continue;
        const double x = entries.value(k);
        const Extent &below = extent[rows_[p].level];
        const double range = std::max(below.high, x) - std::min(below.low, x);
        known.bound += 0.25 * omega(q, std::int64_t(p)) * range * range;
    }
}

template <class Storage>
void Coordinates::know(const Storage &storage, std::int64_t column, Scratch &scratch) {
    Known known{0.0, 0.0, 0.0};
    for_each_query(storage, column, [&](std::int64_t q, const auto &entries) {
        add_known(q, entries, scratch, known);
    });
    known_[std::size_t(column)] = known;
}

/// A value amid those of a column in a query, if none of them is missing; else 0, which then is one of them.
template <class Entries>
double origin_of(const Entries &entries, std::int64_t n_rows) {
    if (entries.n < n_rows) return 0.0;
    const double a = entries.value(0), b = entries.value(n_rows / 2), c = entries.value(n_rows - 1);
    return std::max(std::min(a, b), std::min(std::max(a, b), c));
}

/// Adds the first and second derivative of a query's loss: Σ_k (R x̄ - Σ ωρx) and
/// Σ_k (R Var(x) + Σ_i ωρ(1-ρ)(x_i - x̄)²), mean and variance under the weights in Z_k.
///
/// Neither changes with an offset of x in the query; from an origin amid its values, an offset costs no
/// digits. The second is to be no less than it is: what rounding may have taken, and what the polynomials
/// leave out (R''' and V'' are at most V), comes on top.
template <class Entries>
void Coordinates::add_slope(std::int64_t q, const Entries &entries, Scratch &scratch,
                            CoordinateBound &out) const {
    const Cell *cell = cells(q);
    Sums *sums = scratch.sums.data();
    std::fill_n(sums, n_layers(q), Sums{});
    const double c = layering_->c(q), origin = origin_of(entries, queries_[std::size_t(q)].n_rows());
    for (std::int64_t k = 0; k < entries.n; ++k) {
        const std::size_t p = place_of(entries.position(k));
        const double x = entries.value(k) - origin;
        const Row &row = rows_[p];
        Sums &own = sums[row.level];
        const double ex = row.e * x;
        own.ex += ex;
        own.exx += ex * x;
        if (row.level == 0) continue;
        const double Z = cell[row.level].Z, rho = Z / (Z + q_[p]);
        const double r = (u_.empty() ? rho : u_[p] * rho) * x, v = r * (1.0 - rho);
        own.rx += r;
        own.vx += v;
        own.vxx += v * x;
    }
    struct Moments {
        double first, second;
        Moments operator*(double a) const { return {a * first, a * second}; }
        Moments operator+(Moments b) const { return {first + b.first, second + b.second}; }
    };
    double gradient = 0, hessian = 0;
    accumulate(q, [&](std::int64_t k) { return Moments{sums[k].ex, sums[k].exx}; },
               [&](std::int64_t k, Moments m) {
        const Cell &own = cell[k];
        const double mean = own.Z > 0 ? m.first / own.Z : 0.0;
        const double square = own.Z > 0 ? m.second / own.Z : 0.0;
        const double eps = own.Z_ref > 0 ? small_log(own.Z / own.Z_ref - 1.0) : 0.0;
        const double R = own.r0 + eps * (own.r1 + 0.5 * eps * own.r2), V = own.r1 + eps * own.r2;
        gradient += R * mean - c * sums[k].rx;
        const double left_out = 0.501 * eps * eps * own.r1;
        const double variance = std::max(square - mean * mean, 0.0) + 1e-15 * square;
        const double spread = V * mean * mean + c * (sums[k].vxx - 2.0 * mean * sums[k].vx);
        hessian += (R + left_out) * variance + std::max(spread, 0.0) + (left_out + 1e-15 * V) * mean * mean;
    });
    out.gradient += gradient;
    out.hessian += hessian;
}

template <class Storage>
CoordinateBound Coordinates::bound_of(const Storage &storage, std::int64_t column, Curvature curvature,
                                      Scratch &scratch) {
    Known &known = known_[std::size_t(column)];
    if (known.bound < 0) know(storage, column, scratch);
    CoordinateBound out{0, 0, known.bound, known.range};
    if (!(known.bound > 0)) return out;
    for_each_query(storage, column, [&](std::int64_t q, const auto &entries) {
        add_slope(q, entries, scratch, out);
    });
    if (curvature == Curvature::paper) out.bound = total_weight_ * known.largest * known.largest;
    // A second derivative that rounding made too small would promise too much.
    out.hessian = curvature == Curvature::local ? std::max(1.000001 * out.hessian, 1e-10 * known.bound)
                                                : out.bound;
    const double d = factor(column);
    out.gradient *= d;
    out.hessian *= d * d;
    out.bound *= d * d;
    out.range *= std::abs(d);
    return out;
}

template <class Entries>
void Coordinates::move_query(std::int64_t q, const Entries &entries, double change) {
    Cell *cell = cells(q);
    const std::int64_t K = n_layers(q);
    const bool is_dense = 2 * entries.n >= queries_[std::size_t(q)].n_rows();  // summing afresh costs no more than keeping up
    const double c = layering_->c(q);
    bool must_rebuild = false;
    for (std::int64_t first = 0; first < entries.n; first += block) {
        const std::int64_t n = std::min(block, entries.n - first);
        std::int64_t places[block];
        double e[block], above[block];
        for (std::int64_t i = 0; i < n; ++i) {
            const std::size_t p = place_of(entries.position(first + i));
            Row &row = rows_[p];
            row.m += change * entries.value(first + i);
            places[i] = std::int64_t(p);
            must_rebuild |= row.m > cell[row.level].top + overflow && row.level + 1 < K &&
                            (u_.empty() || u_[p] > 0.0);
        }
        exponentials(q, places, n, e, above);
        for (std::int64_t i = 0; i < n; ++i) {
            const auto p = std::size_t(places[i]);
            Row &row = rows_[p];
            Cell &own = cell[row.level];
            own.sum += e[i] - row.e;
            row.e = e[i];
            own.peak = std::max(own.peak, own.sum);
            const double q_before = q_[p];
            q_[p] = above[i];
            if (row.level == 0 || is_dense) continue;
            const double Z = own.Z_ref, before = Z / (Z + q_before), after = Z / (Z + above[i]);
            const double w = c * (u_.empty() ? 1.0 : u_[p]);
            const double v0 = before * (1.0 - before), v1 = after * (1.0 - after);
            own.r0 += w * (after - before);
            own.r1 += w * (v1 - v0);
            own.r2 += w * (v1 * (1.0 - 2.0 * after) - v0 * (1.0 - 2.0 * before));
        }
    }
    for (std::int64_t k = 0; k + 1 < K; ++k) {
        if (is_dense) sum_layer(q, k);
        must_rebuild |= cell[k].sum < fallen * cell[k].peak;
    }
    if (must_rebuild) return rebuild(q);
    update_Z(q);
    if (is_dense) {
        for (std::int64_t k = 1; k < K; ++k) expand(q, k);
    } else {
        refresh_drifted(q);
    }
}

template <class Storage>
void Coordinates::move(const Storage &storage, std::int64_t column, double change) {
    for_each_query(storage, column, [&](std::int64_t q, const auto &entries) {
        move_query(q, entries, change);
        n_touched_ += entries.n;
    });
}

template <class Storage>
Sweep Coordinates::sweep_columns(const Storage &storage, std::span<double> w,
                                 std::span<const std::int64_t> features, Penalty penalty, double alpha,
                                 Curvature curvature) {
    Sweep done;
    for (const std::int64_t r : features) {
        const CoordinateBound bound = bound_of(storage, r, curvature, scratch_);
        double &weight = w[std::size_t(r)];
        const CoordinateStep step(bound, weight, penalty, alpha);
        if (step.step == 0.0) continue;
        move(storage, r, factor(r) * step.step);
        weight += step.step;
        done.decrease += step.decrease;
        ++done.n_moved;
    }
    return done;
}

Sweep Coordinates::sweep(std::span<double> w, std::span<const std::int64_t> features, Penalty penalty,
                         double alpha, Curvature curvature) {
    const Sweep done = std::visit([&](const auto &storage) {
        return sweep_columns(storage, w, features, penalty, alpha, curvature);
    }, *columns_);
    if (n_touched_ > stale * layering_->n_rows()) restart(w);
    return done;
}

void Coordinates::measure(std::span<const std::int64_t> features, Curvature curvature,
                          std::span<CoordinateBound> out, int n_threads) {
    constexpr std::int64_t share = 256;  // features a task
    const auto n = std::int64_t(features.size());
    std::visit([&](const auto &storage) {
        parallel_for((n + share - 1) / share, n_threads, [&](std::int64_t b) {
            Scratch scratch{std::vector<Sums>(std::size_t(largest_)),
                            std::vector<Extent>(std::size_t(largest_))};
            for (std::int64_t i = b * share; i < std::min(n, (b + 1) * share); ++i)
                out[std::size_t(i)] = bound_of(storage, features[std::size_t(i)], curvature, scratch);
        });
    }, *columns_);
}

}  // namespace linrank
