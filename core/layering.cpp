#include "layering.hpp"

#include "simd.hpp"

namespace linrank {

namespace {

/// e^{part - whole} where part <= whole; 0 of nothing, even where the whole is nothing.
double ratio(double part, double whole) { return part == nothing ? 0.0 : std::exp(part - whole); }

double log_of_sum(double a, double b) {
    const double high = std::max(a, b), low = std::min(a, b);
    return low == nothing ? high : high + std::log1p(std::exp(low - high));
}

constexpr double largest_exponent = 690;
constexpr double vanishing = -800;  // e to this is zero

}  // namespace

LayerShares::LayerShares(const Layering &layering)
    : layering_(layering), log_mass_(layering.n_cells(), nothing),
      log_below_(log_mass_) {
    if (!layering.table.empty()) return;
    kept_.assign(log_mass_.size(), 0.0);
    added_.assign(log_mass_.size(), 0.0);
}

double LayerShares::share(Index q, Index k, Index below) const {
    const Index first = cell(q);
    const double mass = log_mass_[first + below];
    return ratio(mass + layering_.margin(first + k, first + below), log_below_[first + k]);
}

void LayerShares::update(Index q) {
    const Index first = cell(q), n = n_layers(q);
    const double *mass = log_mass(q);
    double *below = log_below_.data() + first;
    if (layering_.table.empty()) {
        for (Index k = 0; k + 1 < n; ++k) {
            below[k + 1] = log_of_sum(below[k], mass[k]);
            kept_[first + k] = ratio(below[k], below[k + 1]);
            added_[first + k] = ratio(mass[k], below[k + 1]);
        }
        return;
    }
    for (Index k = 1; k < n; ++k) {
        double largest = nothing, sum = 0;
        for (Index j = 0; j < k; ++j)
            largest = std::max(largest, mass[j] + layering_.margin(first + k, first + j));
        if (largest == nothing) continue;
        for (Index j = 0; j < k; ++j)
            sum += std::exp(mass[j] + layering_.margin(first + k, first + j) - largest);
        below[k] = largest + std::log(sum);
    }
}

template <bool squared>
void LayerShares::average_below(Index q, const double *x, double *out, Index n) const {
    const auto power = [](double s) { return squared ? s * s : s; };
    const Index n_all = n_layers(q);
    const auto add = [&](double *to, double a, const double *from) {
        for (Index c = 0; c < n; ++c) to[c] += a * from[c];
    };
    std::fill(out, out + n_all * n, 0.0);
    if (layering_.table.empty()) {
        const double *kept = kept_.data() + cell(q), *added = added_.data() + cell(q);
        for (Index k = 0; k + 1 < n_all; ++k) {
            double *to = out + (k + 1) * n;
            add(to, power(kept[k]), to - n);
            add(to, power(added[k]), x + k * n);
        }
        return;
    }
    for (Index k = 1; k < n_all; ++k)
        for (Index j = 0; j < k; ++j) add(out + k * n, power(share(q, k, j)), x + j * n);
}

template void LayerShares::average_below<false>(Index, const double *, double *, Index) const;
template void LayerShares::average_below<true>(Index, const double *, double *, Index) const;

void LayerShares::sum_above(Index q, const double *x, double *out) const {
    const Index n = n_layers(q);
    if (layering_.table.empty()) {
        const double *kept = kept_.data() + cell(q), *added = added_.data() + cell(q);
        double sum = 0;  // Σ_{k>κ} x[k] Z_{κ+1}/Z_k
        for (Index k = n - 1; k >= 0; --k) {
            out[k] = k + 1 < n ? added[k] * sum : 0.0;
            sum = x[k] + kept[k] * sum;
        }
        return;
    }
    std::fill(out, out + n, 0.0);
    for (Index k = 1; k < n; ++k) {
        if (x[k] == 0.0) continue;
        for (Index j = 0; j < k; ++j) out[j] += share(q, k, j) * x[k];
    }
}

// ---- while the scores move ---------------------------------------------------------------------

LayerState::LayerState(const Layering &layers) : layering(layers) {
    place_rows();
    const Layering &l = layering;
    if (!l.table.empty()) {
        first_table_.assign(l.n_queries() + 1, 0);
        for (Index q = 0; q < l.n_queries(); ++q)
            first_table_[q + 1] = first_table_[q] + n_layers(q) * n_layers(q);
        table_.resize(first_table_.back());
    }
}

/// Sorts the rows of every query by layer, and counts and weighs the layers.
void LayerState::place_rows() {
    const Layering &l = layering;
    const auto n = std::size_t(l.n_rows());
    cells.assign(l.n_cells(), Cell{});
    for (Cell &cell : cells) cell.base = nothing;  // the lowest layers keep it
    spots.resize(n);
    position_of.resize(n);
    rows.resize(n);
    above.assign(n, 0.0);
    if (!l.row_weight.empty()) u.resize(n);
    n_weighted.assign(cells.size(), 0);
    for (Index q = 0; q < l.n_queries(); ++q) {
        queries.push_back({l.offsets[q], l.offsets[q + 1], l.first_cell[q], l.n_levels[q]});
        for (Index t = l.offsets[q]; t < l.offsets[q + 1]; ++t) {
            const Index cell = first_cell(q) + l.levels[t];
            cells[cell].weight += l.c(q) * l.u(t);
            if (l.u(t) > 0.0) ++n_weighted[cell];
            spots[t].query = std::int32_t(q);
        }
    }
    first_place = counting_sort(l.n_rows(), l.n_cells(),
                                [&](Index t) { return first_cell(spots[t].query) + l.levels[t]; },
                                [&](Index t, Index place) {
        spots[t].place = std::int32_t(place);
        position_of[place] = std::int32_t(t);
        rows[place] = {0.0, 0.0, l.levels[t]};
        if (!u.empty()) u[place] = l.u(t);
    });
}

void LayerState::rebuild(Index q) {
    find_tops(q);
    const Index end = first_place[first_cell(q) + n_layers(q)];
    for (Index begin = first_place[first_cell(q)]; begin < end; begin += block) {
        const Index n = std::min(block, end - begin);
        Index places[block];
        double e[block];
        for (Index i = 0; i < n; ++i) places[i] = begin + i;
        exponentials(q, places, n, e, above.data() + begin);
        for (Index i = 0; i < n; ++i) rows[begin + i].e = e[i];
    }
    for (Index k = 0; k + 1 < n_layers(q); ++k) {
        sum_layer(q, k);
        cells_of(q)[k].peak = cells_of(q)[k].sum;
    }
    update_Z(q);
    for (Index k = 1; k < n_layers(q); ++k) expand(q, k);
}

/// What the exponentials of the query are to be relative to, and the factors between its layers.
void LayerState::find_tops(Index q) {
    const Index first = first_cell(q), K = n_layers(q);
    Cell *cell = cells_of(q);
    for (Index k = 0; k < K; ++k) {
        double top = nothing;  // of rows that weigh something; the others are in no sum
        for (Index p = first_place[first + k]; p < first_place[first + k + 1]; ++p)
            if (u.empty() || u[p] > 0.0) top = std::max(top, rows[p].m);
        cell[k].top = top;
    }
    const auto relative = [](double a, double b) { return a == nothing ? 0.0 : std::exp(a - b); };
    if (table_.empty()) {
        for (Index k = 1; k < K; ++k) {
            cell[k].base = std::max(cell[k - 1].base, cell[k - 1].top);
            cell[k].carry = relative(cell[k - 1].base, cell[k].base);
            cell[k].fresh = relative(cell[k - 1].top, cell[k].base);
        }
        return;
    }
    double *table = table_.data() + first_table_[q];
    for (Index k = 1; k < K; ++k) {
        cell[k].base = nothing;
        for (Index j = 0; j < k; ++j)
            cell[k].base = std::max(cell[k].base, cell[j].top + layering.margin(first + k, first + j));
        for (Index j = 0; j < k; ++j)
            table[k * K + j] = relative(cell[j].top + layering.margin(first + k, first + j), cell[k].base);
    }
}

/// What rows of a query weigh as dominated ones, u e^{m - top}, and what Z is compared with for them as
/// dominating ones, e^{m - base}; at most `block` of them.
void LayerState::exponentials(Index q, const Index *places, Index n, double *e,
                               double *above) const {
    const Cell *cell = cells_of(q);
    const Index K = n_layers(q);
    for (Index i = 0; i < n; ++i) {
        const auto p = std::size_t(places[i]);
        const Row &row = rows[p];
        const Cell &own = cell[row.level];
        const bool is_in_sums = row.level + 1 < K && (u.empty() || u[p] > 0.0);
        e[i] = is_in_sums ? row.m - own.top : vanishing;
        // Capped, a row far above all below it has ρ = 1e-300 in place of less.
        above[i] = own.base == nothing ? 0.0 : std::min(row.m - own.base, largest_exponent);
    }
    simd().exp_vector(n, e);
    simd().exp_vector(n, above);
    if (u.empty()) return;
    for (Index i = 0; i < n; ++i) e[i] *= u[places[i]];
}

void LayerState::sum_layer(Index q, Index k) {
    const auto c = std::size_t(first_cell(q) + k);
    double sum = 0;
    for (Index p = first_place[c]; p < first_place[c + 1]; ++p) sum += rows[p].e;
    cells[c].sum = sum;
}

void LayerState::update_Z(Index q) {
    Cell *cell = cells_of(q);
    accumulate(q, [&](Index k) { return cell[k].sum; }, [&](Index k, double Z) { cell[k].Z = Z; });
}

/// R and its derivatives at the present Z: with v = ρ(1-ρ), dρ/dlogZ = v and dv/dlogZ = v(1-2ρ).
void LayerState::expand(Index q, Index k) {
    const Index c = first_cell(q) + k;
    Cell &cell = cells[c];
    const double Z = cell.Z, *qs = above.data();
    double r0 = 0, r1 = 0, r2 = 0;
    for (Index p = first_place[c]; p < first_place[c + 1]; ++p) {
        const double rho = Z / (Z + qs[p]), weight = u.empty() ? 1.0 : u[p];
        const double v = weight * rho * (1.0 - rho);
        r0 += weight * rho;
        r1 += v;
        r2 += v * (1.0 - 2.0 * rho);
    }
    cell.r0 = layering.c(q) * r0;
    cell.r1 = layering.c(q) * r1;
    cell.r2 = layering.c(q) * r2;
    cell.Z_ref = Z;
}

void LayerState::refresh_drifted(Index q) {
    Cell *cell = cells_of(q);
    for (Index k = 1; k < n_layers(q); ++k)
        if (!(std::abs(cell[k].Z - cell[k].Z_ref) <= drift * cell[k].Z_ref)) expand(q, k);
}

}  // namespace linrank
