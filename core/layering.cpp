#include "layering.hpp"

namespace linrank {

namespace {

/// e^{part - whole} where part <= whole; 0 of nothing, even where the whole is nothing.
double ratio(double part, double whole) { return part == nothing ? 0.0 : std::exp(part - whole); }

double log_of_sum(double a, double b) {
    const double high = std::max(a, b), low = std::min(a, b);
    return low == nothing ? high : high + std::log1p(std::exp(low - high));
}

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

}  // namespace linrank
