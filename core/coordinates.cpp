#include "coordinates.hpp"

namespace linrank {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr Index stale = 64;  // changes a row before scores are computed anew

/// The entries of a column in one query, at `positions`, or from `first` on where all are there.
template <class Value, bool sparse>
struct ColumnEntries {
    static constexpr bool is_sparse = sparse;
    const Value *values;
    Index n, first;
    const std::int32_t *positions;
    Index position(Index k) const { return is_sparse ? positions[k] : first + k; }
    double value(Index k) const { return double(values[k]); }
};

/// log(1 + y) for |y| <= drift, to 1e-14.
double small_log(double y) { return y * (1.0 - y * (0.5 - y * (1.0 / 3.0 - y * (0.25 - 0.2 * y)))); }

}  // namespace

Coordinates::Coordinates(const Columns &columns, const Layering &layering, std::vector<double> factors)
    : state_(layering), columns_(columns), factors_(std::move(factors)),
      column_bounds_(std::size_t(n_columns(columns_))) {
    const Layering &l = state_.layering;
    for (Index q = 0; q < l.n_queries(); ++q) {
        largest_ = std::max(largest_, state_.n_layers(q));
        for (Index k = 1; k < state_.n_layers(q); ++k) total_weight_ += state_.cells_of(q)[k].weight;
    }
    scratch_.sums.resize(largest_);
    scratch_.extents.resize(largest_);
    restart(std::vector<double>(n_features(), 0.0));
}

std::vector<double> Coordinates::scores() const {
    std::vector<double> z(state_.rows.size());
    for (std::size_t t = 0; t < z.size(); ++t)
        z[t] = state_.rows[state_.place_of(Index(t))].m + state_.layering.s(Index(t));
    return z;
}

void Coordinates::restart(Doubles w) {
    for (std::size_t p = 0; p < state_.rows.size(); ++p)
        state_.rows[p].m = -state_.layering.s(state_.position_of[p]);
    for (Index c = 0; c < n_features(); ++c) {
        const double change = w[c] * factor(c);
        if (change == 0.0) continue;
        for_each_query(c, [&](Index, const auto &entries) {
            for (Index k = 0; k < entries.n; ++k)
                state_.rows[state_.place_of(entries.position(k))].m += change * entries.value(k);
        });
    }
    for (Index q = 0; q < state_.layering.n_queries(); ++q)
        if (state_.n_layers(q) > 1) state_.rebuild(q);
    n_touched_ = 0;
}

// ---- along one column -------------------------------------------------------------------------

/// The state of a column's later entries, which lies all over memory: with short queries, an entry would
/// otherwise wait for one line of cache after the other.
void Coordinates::prefetch_ahead(const std::int32_t *positions, Index n) const {
    // GCC takes a function that does nothing but prefetch for one without effect; the statement keeps it.
    asm volatile("");
    if (n > 24) __builtin_prefetch(state_.spots.data() + positions[24]);
    if (n > 16) {
        const LayerState::Spot spot = state_.spots[positions[16]];
        __builtin_prefetch(state_.rows.data() + spot.place);
        __builtin_prefetch(state_.above.data() + spot.place);
        __builtin_prefetch(state_.queries.data() + spot.query);
    }
    if (n <= 8) return;
    const LayerState::Query &query = state_.queries[state_.spots[positions[8]].query];
    const auto *cell = reinterpret_cast<const char *>(state_.cells.data() + query.first_cell);
    constexpr Index lines = sizeof(LayerState::Cell) / 64;  // of cache, a layer
    const Index n_lines = lines * std::min<Index>(query.n_layers, 4);
    for (Index line = 0; line < n_lines; ++line) __builtin_prefetch(cell + 64 * line);
}

/// The same inside a query, which may be long.
template <class Entries>
void Coordinates::prefetch_ahead(const Entries &entries, Index k) const {
    if constexpr (Entries::is_sparse) {
        asm volatile("");
        if (k + 16 >= entries.n) return;
        const std::size_t p = state_.place_of(entries.position(k + 16));
        __builtin_prefetch(state_.rows.data() + p);
        __builtin_prefetch(state_.above.data() + p);
    }
}

template <class Body>
void Coordinates::for_each_query(Index column, const Body &body) const {
    const Layering &l = state_.layering;
    std::visit([&](const auto &storage) {
        using Value = typename std::decay_t<decltype(storage.values)>::value_type;
        if constexpr (requires { storage.indices; }) {
            Index k = storage.offsets[column];
            const Index end = storage.offsets[column + 1];
            while (k < end) {
                const std::int32_t *positions = storage.indices.data() + k;
                prefetch_ahead(positions, end - k);
                const Index q = state_.spots[*positions].query;
                const Index last = state_.queries[q].end, begin = k;
                while (k < end && storage.indices[k] < last) ++k;
                if (state_.n_layers(q) > 1)
                    body(q, ColumnEntries<Value, true>{storage.values.data() + begin, k - begin, 0, positions});
            }
        } else {
            const Value *values = storage.values.data() + column * storage.n_rows;
            for (Index q = 0; q < l.n_queries(); ++q) {
                const Index begin = l.offsets[q];
                if (state_.n_layers(q) > 1)
                    body(q, ColumnEntries<Value, false>{values + begin, l.offsets[q + 1] - begin, begin, nullptr});
            }
        }
    }, columns_);
}

/// Adds a query to Σ_i ω_i ¼(range of x over i and all below it)², and to the largest range. A layer with
/// fewer entries than rows holds zeros. Rows of weight 0 are absent.
template <class Entries>
void Coordinates::add_to_column_bound(Index q, const Entries &entries, Scratch &scratch, ColumnBound &known) const {
    const Index K = state_.n_layers(q);
    const LayerState::Cell *cell = state_.cells_of(q);
    Extent *extent = scratch.extents.data();
    std::fill_n(extent, K, Extent{infinity, -infinity, 0, 0.0});
    for (Index k = 0; k < entries.n; ++k) {
        const std::size_t p = state_.place_of(entries.position(k));
        if (!state_.u.empty() && !(state_.u[p] > 0.0)) continue;
        const double x = entries.value(k);
        Extent &own = extent[state_.rows[p].level];
        own.low = std::min(own.low, x);
        own.high = std::max(own.high, x);
        own.weight += state_.omega(q, Index(p));
        ++own.n;
        known.largest = std::max(known.largest, std::abs(x));
    }
    double low = infinity, high = -infinity;  // of the layers below
    for (Index k = 0; k < K; ++k) {
        Extent &own = extent[k];
        const bool has_zeros = own.n < state_.n_weighted[cell + k - state_.cells.data()];
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
    for (Index k = 0; k < entries.n; ++k) {
        const std::size_t p = state_.place_of(entries.position(k));
        if (state_.rows[p].level == 0) continue;
        const double x = entries.value(k);
        const Extent &below = extent[state_.rows[p].level];
        const double range = std::max(below.high, x) - std::min(below.low, x);
        known.bound += 0.25 * state_.omega(q, Index(p)) * range * range;
    }
}

/// A value amid those of a column in a query, if none of them is missing; else 0, which then is one of them.
template <class Entries>
double origin_of(const Entries &entries, Index n_rows) {
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
void Coordinates::add_slope(Index q, const Entries &entries, Scratch &scratch,
                            CoordinateBound &out) const {
    const LayerState::Cell *cell = state_.cells_of(q);
    Sums *sums = scratch.sums.data();
    std::fill_n(sums, state_.n_layers(q), Sums{});
    const double c = state_.layering.c(q), origin = origin_of(entries, state_.queries[q].n_rows());
    for (Index k = 0; k < entries.n; ++k) {
        prefetch_ahead(entries, k);
        const std::size_t p = state_.place_of(entries.position(k));
        const double x = entries.value(k) - origin;
        const LayerState::Row &row = state_.rows[p];
        Sums &own = sums[row.level];
        const double ex = row.e * x;
        own.ex += ex;
        own.exx += ex * x;
        if (row.level == 0) continue;
        const double Z = cell[row.level].Z, rho = Z / (Z + state_.above[p]);
        const double r = (state_.u.empty() ? rho : state_.u[p] * rho) * x, v = r * (1.0 - rho);
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
    state_.accumulate(q, [&](Index k) { return Moments{sums[k].ex, sums[k].exx}; },
               [&](Index k, Moments m) {
        const LayerState::Cell &own = cell[k];
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

CoordinateBound Coordinates::bound_of(Index column, Curvature curvature, Scratch &scratch) {
    ColumnBound &known = column_bounds_[column];
    if (known.bound < 0) {
        known = {0.0, 0.0, 0.0};
        for_each_query(column, [&](Index q, const auto &entries) {
            add_to_column_bound(q, entries, scratch, known);
        });
    }
    CoordinateBound out{0, 0, known.bound, known.range};
    if (!(known.bound > 0)) return out;
    for_each_query(column, [&](Index q, const auto &entries) { add_slope(q, entries, scratch, out); });
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
void Coordinates::move_query(Index q, const Entries &entries, double change) {
    LayerState::Cell *cell = state_.cells_of(q);
    const Index K = state_.n_layers(q);
    // Where a column has most of the rows, summing afresh costs no more than keeping up.
    const bool is_dense = 2 * entries.n >= state_.queries[q].n_rows();
    const double c = state_.layering.c(q);
    bool must_rebuild = false;
    for (Index first = 0; first < entries.n; first += LayerState::block) {
        const Index n = std::min(LayerState::block, entries.n - first);
        Index places[LayerState::block];
        double e[LayerState::block], above[LayerState::block];
        for (Index i = 0; i < n; ++i) {
            prefetch_ahead(entries, first + i);
            const std::size_t p = state_.place_of(entries.position(first + i));
            LayerState::Row &row = state_.rows[p];
            row.m += change * entries.value(first + i);
            places[i] = Index(p);
            must_rebuild |= row.m > cell[row.level].top + LayerState::overflow && row.level + 1 < K &&
                            (state_.u.empty() || state_.u[p] > 0.0);
        }
        state_.exponentials(q, places, n, e, above);
        for (Index i = 0; i < n; ++i) {
            const auto p = std::size_t(places[i]);
            LayerState::Row &row = state_.rows[p];
            LayerState::Cell &own = cell[row.level];
            own.sum += e[i] - row.e;
            row.e = e[i];
            own.peak = std::max(own.peak, own.sum);
            const double q_before = state_.above[p];
            state_.above[p] = above[i];
            if (row.level == 0 || is_dense) continue;
            const double Z = own.Z_ref, before = Z / (Z + q_before), after = Z / (Z + above[i]);
            const double w = c * (state_.u.empty() ? 1.0 : state_.u[p]);
            const double v0 = before * (1.0 - before), v1 = after * (1.0 - after);
            own.r0 += w * (after - before);
            own.r1 += w * (v1 - v0);
            own.r2 += w * (v1 * (1.0 - 2.0 * after) - v0 * (1.0 - 2.0 * before));
        }
    }
    for (Index k = 0; k + 1 < K; ++k) {
        if (is_dense) state_.sum_layer(q, k);
        must_rebuild |= cell[k].sum < LayerState::fallen * cell[k].peak;
    }
    if (must_rebuild) return state_.rebuild(q);
    state_.update_Z(q);
    if (is_dense) {
        for (Index k = 1; k < K; ++k) state_.expand(q, k);
    } else {
        state_.refresh_drifted(q);
    }
}

Sweep Coordinates::sweep(std::span<double> w, Integers features, Penalty penalty,
                         double alpha, Curvature curvature) {
    Sweep done;
    for (const Index r : features) {
        const CoordinateStep step(bound_of(r, curvature, scratch_), w[r], penalty, alpha);
        if (step.step == 0.0) continue;
        for_each_query(r, [&](Index q, const auto &entries) {
            move_query(q, entries, factor(r) * step.step);
            n_touched_ += entries.n;
        });
        w[r] += step.step;
        done.decrease += step.decrease;
        ++done.n_moved;
    }
    if (n_touched_ > stale * state_.layering.n_rows()) restart(w);
    return done;
}

std::vector<CoordinateBound> Coordinates::measure(Integers features, Curvature curvature,
                                                  int n_threads) {
    std::vector<CoordinateBound> out(features.size());
    for_blocks(Index(features.size()), 256, n_threads, [&](Index first, Index last) {
        Scratch scratch{std::vector<Sums>(largest_), std::vector<Extent>(largest_)};
        for (Index i = first; i < last; ++i) out[i] = bound_of(features[i], curvature, scratch);
    });
    return out;
}

// ---- a quadratic with an l1 penalty ------------------------------------------------------------

std::vector<double> sparse_quadratic(Doubles H, Doubles g, Doubles w, double alpha, double enough,
                                     Index n_sweeps) {
    const std::size_t n = w.size();
    std::vector<double> v(w.begin(), w.end()), slope(g.begin(), g.end());  // slope = g + H(v - w)
    std::vector<std::size_t> moving;
    const auto step = [&](std::size_t r) {
        const double curvature = H[r * n + r];
        if (!(curvature > 0.0)) return 0.0;
        const CoordinateStep best({slope[r], curvature, curvature, 0.0}, v[r], Penalty::l1, alpha);
        if (best.step == 0.0) return 0.0;
        v[r] += best.step;
        const double *row = H.data() + r * n;
        for (std::size_t c = 0; c < n; ++c) slope[c] += best.step * row[c];
        return best.decrease;
    };
    // Sweeps over the weights that are not zero, and one over all whenever those have come to rest.
    for (Index sweep = 0; sweep < n_sweeps;) {
        double decrease = 0;
        for (std::size_t r = 0; r < n; ++r) decrease += step(r);
        ++sweep;
        if (decrease <= enough) break;
        moving.clear();
        for (std::size_t r = 0; r < n; ++r)
            if (v[r] != 0.0) moving.push_back(r);
        for (double more = 2 * enough; more > enough && sweep < n_sweeps; ++sweep) {
            more = 0;
            for (const std::size_t r : moving) more += step(r);
        }
    }
    return v;
}

}  // namespace linrank
