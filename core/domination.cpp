#include "domination.hpp"

#include <functional>

#include "simd.hpp"

namespace linrank {

namespace {

constexpr Index rows_of_part = 1 << 15;
constexpr Index most_parts = 64;
// Quotients of numbers between these are as good as one exponential.
constexpr double least = 1e-280, most = 1e280;

/// Parts of a query, whose sums by layer shall not take more memory than its rows.
Index parts_of(Index n_rows, Index n_layers) {
    const Index n = std::min(most_parts, n_rows / rows_of_part);
    return std::max<Index>(1, std::min(n, n_rows / std::max<Index>(1, n_layers)));
}

/// Σ log(1 + x) over x in [0, 1], with a logarithm for hundreds of them: 1 + y is the product of many
/// 1 + x, kept as y so that small ones lose nothing.
double sum_of_logs(Index n, const double *x) {
    double total = 0, y[4] = {0.0, 0.0, 0.0, 0.0};
    for (Index i = 0; i < n;) {
        const Index last = std::min(n, i + 1024);
        for (; i + 4 <= last; i += 4)
            for (int lane = 0; lane < 4; ++lane) y[lane] += x[i + lane] + x[i + lane] * y[lane];
        for (; i < last; ++i) y[0] += x[i] + x[i] * y[0];
        // Another 256 of a lane at most double it 256 times: below 1e147, and two lanes below 1e294.
        if (i < n && std::max(std::max(y[0], y[1]), std::max(y[2], y[3])) < 1e70) continue;
        for (int lane : {0, 2}) {
            total += std::log1p(y[lane] + y[lane + 1] + y[lane] * y[lane + 1]);
            y[lane] = y[lane + 1] = 0.0;
        }
    }
    return total;
}

struct DominationSums {
    double value = 0;  // L
    double slope = 0;  // ∇L·z
    double odds = 0;   // Σ ω ρ (log Z - m)
    double trace = 0;  // of ∇²L
    double weight = 0, slope_size = 0;  // Σ ω, Σ (|parts of ∇L|·|z|)
    // Bounds of rounding: of L, of ∇L·z, and of ∇L (2-norm, squared).
    double value_error = 0, slope_error = 0, squared_error = 0;
};

/// Sums by layer, of one thread: their memory serves many queries.
struct LayerScratch {
    std::vector<double> peak, mass;        // max m, Σ u e^{m - peak}
    std::vector<double> log_below, below;  // log Z, Z e^{-peak}; of a product the mean below
    std::vector<double> sums, other;
    std::vector<DominationSums> of_part;
    std::vector<double> largest;  // max |m|, by part
};

/// What loops over the rows of a query look at: as a local copy, which no store to an array can touch.
struct RowView {
    const std::int32_t *levels;
    const double *u;  // by position, null for ones
    const double *s;  // by position, null for zeros
    double c;
    Index n_layers, last_lane;
    double origin = 0;  // of the scores: the loss sees differences only, and an offset would cost digits

    std::size_t level(Index t) const { return std::size_t(levels[t]); }
    double m(const double *z, Index t) const {
        return s ? (z[t] - origin) - s[t] : z[t] - origin;
    }
    /// ω.
    double weight(Index t) const { return u ? c * u[t] : c; }
    bool is_void(Index t) const { return u && !(u[t] > 0.0); }
    /// The cell of position t; see QueryParts::gather.
    Index cell(Index t, int n_sums) const {
        return (t & last_lane) * n_sums * n_layers + levels[t];
    }
};

/// The rows of a query in parts, each of which adds to sums by layer of its own: one part for all but
/// long queries, whose parts the threads share.
class QueryParts {
public:
    QueryParts(const Layering &l, Index q, int n_threads, LayerScratch &scratch)
        : q_(q), begin_(l.offsets[q]), end_(l.offsets[q + 1]),
        n_layers_(l.n_levels[q]), n_parts_(parts_of(end_ - begin_, n_layers_)), n_threads_(n_threads),
        rows_{l.levels.data(), l.row_weight.empty() ? nullptr : l.row_weight.data(),
        l.shift.empty() ? nullptr : l.shift.data(), l.c(q), n_layers_, n_layers_ <= 16 ? 3 : 0},
        cell_(std::size_t(l.first_cell[q])), scratch_(scratch) {}

protected:
    /// Calls body(part, first, last) with ranges of positions.
    template <class Body>
    void for_each_part(const Body &body) const {
        for_parts(end_ - begin_, n_parts_, n_threads_, [&](Index k, Index first, Index last) {
            body(k, begin_ + first, begin_ + last);
        });
    }
    /// Calls body(part, first, last, cells), where cells hold n_sums numbers by layer one after the other, all
    /// `start`, several times over: position t adds to RowView::cell, for sums into the same cell row by row
    /// would wait for each other; leaves those of all parts in out, joined by join(total, part) in the order of
    /// the parts, and returns the sum of what `body` returned.
    template <class Body, class Join>
    DominationSums gather(std::vector<double> &out, int n_sums, double start, const Body &body,
                          const Join &join) const {
        const std::size_t size = std::size_t(n_sums * n_layers_);
        const std::size_t lanes = std::size_t(rows_.last_lane + 1);
        out.assign(size * lanes * n_parts_, start);
        scratch_.of_part.assign(n_parts_, {});
        for_each_part([&](Index k, Index first, Index last) {
            scratch_.of_part[k] = body(k, first, last, out.data() + std::size_t(k) * size * lanes);
        });
        for (std::size_t k = 1; k < lanes * std::size_t(n_parts_); ++k)
            for (std::size_t c = 0; c < size; ++c) out[c] = join(out[c], out[k * size + c]);
        out.resize(size);
        return sum_of(scratch_.of_part);
    }
    template <class Body>
    DominationSums sum(std::vector<double> &out, int n_sums, const Body &body) const {
        return gather(out, n_sums, 0.0, body, std::plus());
    }

    bool is_void() const { return n_layers_ < 2; }
    const Index q_, begin_, end_, n_layers_, n_parts_;
    const int n_threads_;
    RowView rows_;
    const std::size_t cell_;  // of layer 0
    LayerScratch &scratch_;
};

/// Fills what a point keeps of a query.
class DominationSweep : QueryParts {
public:
    DominationSweep(DominationPoint &point, Index q, int n_threads, LayerScratch &scratch)
        : QueryParts(point.layering, q, n_threads, scratch), point_(point) {}
    DominationSums evaluate(const double *z) {
        z_ = z;
        if (is_void()) {
            for (PageArray<double> *a : {&point_.gradient, &point_.share, &point_.rho})
                std::fill(a->data() + begin_, a->data() + end_, 0.0);
            return {};
        }
        rows_.origin = z[begin_];
        find_peaks();
        find_masses();
        DominationSums sums = find_risks();
        add_sums(sums, find_gradient());
        bound_rounding(sums);
        return sums;
    }

private:
    void find_peaks() {
        const auto body = [&](Index, Index first, Index last, double *peak) -> DominationSums {
            const RowView r = rows_;
            const double *z = z_;
            for (Index t = first; t < last; ++t)
                if (!r.is_void(t)) peak[r.cell(t, 1)] = std::max(peak[r.cell(t, 1)], r.m(z, t));
            return {};
        };
        gather(scratch_.peak, 1, nothing, body, [](double a, double b) { return std::max(a, b); });
    }
    void find_masses() {
        double *share = point_.share.data();
        const std::vector<double> &peak = scratch_.peak, &mass_of = scratch_.mass;
        sum(scratch_.mass, 1, [&](Index, Index first, Index last, double *mass) -> DominationSums {
            const RowView r = rows_;
            const double *z = z_, *top = peak.data();
            for (Index t = first; t < last; ++t)  // a row without weight may lie above the peak
                share[t] = r.is_void(t) ? nothing : r.m(z, t) - top[r.level(t)];
            simd().exp_vector(last - first, share + first);
            for (Index t = first; t < last; ++t)
                mass[r.cell(t, 1)] += r.u ? r.u[t] * share[t] : share[t];
            return {};
        });
        double *log_mass = point_.shares.log_mass(q_);
        for (std::size_t k = 0; k < mass_of.size(); ++k)
            log_mass[k] = mass_of[k] > 0.0 ? peak[k] + std::log(mass_of[k]) : nothing;
        point_.shares.update(q_);
    }
    DominationSums find_risks() {
        const std::size_t n = std::size_t(n_layers_);
        // log Z is to be finite, so that odds are; Z e^{-peak} is compared with the e^{m - peak} of a row.
        std::vector<double> &log_below = scratch_.log_below, &below = scratch_.below;
        log_below.resize(n);
        below.resize(n);
        for (std::size_t k = 0; k < n; ++k) {
            const double peak = scratch_.peak[k];
            log_below[k] = std::max(point_.shares.log_below(q_)[k], -1e300);
            below[k] = peak == nothing ? 0.0 : std::exp(log_below[k] - peak);
        }
        std::vector<double> &risks = scratch_.sums;
        scratch_.largest.assign(n_parts_, 0.0);
        DominationSums total = sum(risks, 2, [&](Index part, Index first, Index last,
                                                 double *risk) {
            return add_risks(first, last, risk, scratch_.largest[part]);
        });
        std::copy_n(risks.data(), n, point_.risk.data() + cell_);
        std::copy_n(risks.data() + n, n, point_.square_risk.data() + cell_);
        for (std::size_t k = 0; k < n; ++k) total.trace += 2.0 * risks[k] - risks[n + k];
        return total;
    }
    DominationSums add_risks(Index first, Index last, double *risk, double &largest) const {
        const double *log_below = scratch_.log_below.data(), *below = scratch_.below.data();
        const double *own = point_.share.data();
        double *rho = point_.rho.data();
        double *e_odds = point_.gradient.data();  // e^{-|odds|}, in the memory of the gradient until that is found
        const RowView r = rows_;
        const double *scores = z_;
        double value = 0, odds_sum = 0, far = 0, all = 0;
        for (Index t = first; t < last; ++t) {
            const std::size_t k = r.level(t);
            const double m = r.m(scores, t);
            const double z = below[k], mine = own[t], odds = log_below[k] - m;
            double x, left;
            if (mine > least && z < most) [[likely]] {
                left = z / (z + mine);
                x = std::min(z, mine) / std::max(z, mine);
            } else {
                x = std::exp(-std::abs(odds));
                left = (odds > 0.0 ? 1.0 : x) / (1.0 + x);
            }
            rho[t] = left;
            e_odds[t] = x;
            const double w = r.weight(t), mass = w * left;
            double *sums = risk + r.cell(t, 2);
            sums[0] += mass;
            sums[r.n_layers] += mass * left;
            value += w * std::max(odds, 0.0);
            odds_sum += mass * odds;
            far = std::max(far, std::abs(m));
            all += w;
        }
        largest = far;
        if (!r.u) value += r.c * sum_of_logs(last - first, e_odds + first);
        else
            for (Index t = first; t < last; ++t) value += r.weight(t) * std::log1p(e_odds[t]);
        return {.value = value, .odds = odds_sum, .weight = all};
    }
    DominationSums find_gradient() {
        double *share = point_.share.data(), *gradient = point_.gradient.data();
        const double *rho = point_.rho.data();
        double *pull = point_.pull.data() + cell_;
        point_.shares.sum_above(q_, point_.risk.data() + cell_, pull);
        std::vector<double> &scale = scratch_.mass, &squares = scratch_.sums, &below = scratch_.below;
        for (double &mass : scale) mass = mass > 0.0 ? 1.0 / mass : 0.0;
        // The gradient sums to 0, so that the slope does not depend on the origin of z.
        DominationSums total = sum(squares, 1, [&](Index, Index first, Index last,
                                                   double *square) -> DominationSums {
            const RowView r = rows_;
            const double *z = z_, *factor = scale.data();
            double slope = 0, size = 0;
            for (Index t = first; t < last; ++t) {
                const std::size_t k = r.level(t);
                const double part = share[t] * (r.u ? r.u[t] * factor[k] : factor[k]);
                const double c = part * pull[k] - r.weight(t) * rho[t];
                share[t] = part;
                gradient[t] = c;
                slope += c * (z[t] - r.origin);
                size += (part * pull[k] + r.weight(t) * rho[t]) * std::abs(z[t] - r.origin);
                square[r.cell(t, 1)] += part * part;
            }
            return {.slope = slope, .slope_size = size};
        });
        point_.shares.average_below<true>(q_, squares.data(), below.data());
        for (std::size_t k = 0; k < below.size(); ++k)
            total.trace -= point_.square_risk[cell_ + k] * below[k];
        return total;
    }
    // With μ the unit roundoff, e^m is off by some μ(1 + |m|) of itself, sums of n of them by nμ more, and so
    // are the odds log Z - m by K = μ(n + 32 + 8 max(|m|, |log Z|)), in all; ρ and the shares are off by a few K
    // of themselves, each loss log(1 + e^odds) by a few K, and the sums over the rows by nμ.
    void bound_rounding(DominationSums &sums) const {
        double largest = std::ranges::max(scratch_.largest), risk = 0;
        for (std::size_t k = 1; k < std::size_t(n_layers_); ++k) {
            const double log_below = std::abs(scratch_.log_below[k]);
            if (log_below < 1e300) largest = std::max(largest, log_below);
            risk += point_.risk[cell_ + k];
        }
        const double K = 0x1p-53 * (double(end_ - begin_) + 32.0 + 8.0 * largest);
        const double of_gradient = 16.0 * K * risk;  // ∇L = π T - ω ρ, where Σ π T = Σ ω ρ
        sums.value_error = 4.0 * K * (sums.weight + sums.value);
        sums.slope_error = 20.0 * K * sums.slope_size;
        sums.squared_error = of_gradient * of_gradient;
    }

    DominationPoint &point_;
    const double *z_ = nullptr;
};

/// ∇²L·v of one query.
///
/// With v̄_k the mean of v over the lower layers, weighted as in Z_k, row i expects
/// e_i = (1 - ρ_i) v_i + ρ_i v̄_k, and
///
///   (∇²L·v)_j = π_j (T_κ v_j - Σ_{k>κ} share(k, κ) Σ_{i in k} ω_i ρ_i e_i) + ω_j ρ_j (1 - ρ_j)(v_j - v̄_κ).
class DominationProduct : QueryParts {
public:
    DominationProduct(const DominationPoint &point, Index q, int n_threads, LayerScratch &scratch)
        : QueryParts(point.layering, q, n_threads, scratch), point_(point) {}
    void multiply(const double *v, double *out) const {
        if (is_void()) return std::fill(out + begin_, out + end_, 0.0);
        const double *share = point_.share.data(), *rho = point_.rho.data();
        const std::size_t n = std::size_t(n_layers_);
        const double origin = v[begin_];  // ∇²L·1 = 0
        std::vector<double> &sums = scratch_.sums, &below = scratch_.below, &drawn = scratch_.other;
        sum(sums, 2, [&](Index, Index first, Index last, double *mean) -> DominationSums {
            const RowView r = rows_;
            for (Index t = first; t < last; ++t) {
                const double x = v[t] - origin;
                double *cells = mean + r.cell(t, 2);
                cells[0] += share[t] * x;
                cells[r.n_layers] += r.weight(t) * rho[t] * (1.0 - rho[t]) * x;
            }
            return {};
        });
        below.resize(n);
        drawn.resize(n);
        point_.shares.average_below(q_, sums.data(), below.data());
        double *expected = sums.data() + n;  // Σ ω ρ e
        for (std::size_t k = 0; k < n; ++k) expected[k] += point_.square_risk[cell_ + k] * below[k];
        point_.shares.sum_above(q_, expected, drawn.data());
        const double *pull = point_.pull.data() + cell_;
        for_each_part([&](Index, Index first, Index last) {
            const RowView r = rows_;
            const double *mean = below.data(), *away = drawn.data();
            for (Index t = first; t < last; ++t) {
                const std::size_t k = r.level(t);
                const double x = v[t] - origin;
                out[t] = share[t] * (pull[k] * x - away[k]) +
                         r.weight(t) * rho[t] * (1.0 - rho[t]) * (x - mean[k]);
            }
        });
    }

private:
    const DominationPoint &point_;
};

constexpr Index n_chunks = 64;

/// h(x) = -x log x - (1 - x) log(1 - x).
double entropy(double x) {
    if (!(x > 0.0)) return 0.0;
    return -x * std::log(x) - (x < 1.0 ? (1.0 - x) * std::log1p(-x) : 0.0);
}

}  // namespace

DominationPoint::DominationPoint(const Layering &layering, Doubles z, int n_threads)
    : gradient(z.size(), huge_pages), layering(layering), shares(layering),
      share(z.size(), huge_pages), rho(z.size(), huge_pages),
      pull(std::size_t(layering.n_cells())), risk(pull.size()), square_risk(pull.size()) {
    const std::vector<QueryChunk> chunks = layering.chunks(n_chunks);
    std::vector<DominationSums> sums(chunks.size());
    for_each_query<LayerScratch>(chunks, n_threads, [&](Index c, Index q, LayerScratch &scratch) {
        add_sums(sums[c], DominationSweep(*this, q, chunks[c].is_long ? n_threads : 1, scratch).evaluate(z.data()));
    });
    const DominationSums total = sum_of(sums);
    value = total.value;
    slope = total.slope;
    linear = total.odds - total.slope;
    total_curvature = total.trace;
    // Beside the rounding of each query, that of their sum: at most so many additions one after the other.
    const double depth = 0x1p-53 * (double(layering.n_queries()) + double(n_chunks));
    value_error = total.value_error + depth * value;
    slope_error = total.slope_error + depth * std::abs(slope);
    gradient_error = std::sqrt(total.squared_error);
}

void DominationPoint::multiply(Doubles v, std::span<double> out, int n_threads) const {
    const std::vector<QueryChunk> chunks = layering.chunks(n_chunks);
    for_each_query<LayerScratch>(chunks, n_threads, [&](Index c, Index q, LayerScratch &scratch) {
        DominationProduct(*this, q, chunks[c].is_long ? n_threads : 1, scratch).multiply(v.data(), out.data());
    });
}

double DominationPoint::dual(double t, int n_threads) const {
    if (t >= 1.0) return value - slope;
    const std::vector<QueryChunk> chunks = layering.chunks(n_chunks);
    std::vector<double> sums(chunks.size());
    parallel_for(Index(chunks.size()), n_threads, [&](Index c) {
        double sum = 0;
        for (Index q = chunks[c].first; q < chunks[c].last; ++q)
            for (Index i = layering.offsets[q]; i < layering.offsets[q + 1]; ++i)
                if (rho[i] != 0.0)
                    sum += layering.c(q) * layering.u(i) * entropy(t * rho[i]);
        sums[c] = sum;
    });
    double total = t * linear;
    for (const double sum : sums) total += sum;
    return total;
}

}  // namespace linrank
