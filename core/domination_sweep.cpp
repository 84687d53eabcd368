#include "domination_sweep.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "parallel.hpp"

namespace linrank {
namespace {

constexpr std::int64_t rows_of_part = 1 << 15;
constexpr std::int64_t most_parts = 64;
constexpr double nothing = -std::numeric_limits<double>::infinity();
// Quotients of numbers between these are as good as one exponential.
constexpr double least = 1e-280, most = 1e280;

/// Parts of a query, whose sums by layer shall not take more memory than its rows.
std::int64_t parts_of(std::int64_t n_rows, std::int64_t n_layers) {
    const std::int64_t n = std::min(most_parts, n_rows / rows_of_part);
    return std::max<std::int64_t>(1, std::min(n, n_rows / std::max<std::int64_t>(1, n_layers)));
}

/// Σ ω log(1 + x), x in [0, 1]. Where ω is the same for all, most logarithms are saved: 1 + y is the
/// product of many 1 + x, kept as y so that small ones lose nothing.
class SumOfLogs {
public:
    void add(double x) {
        y_ += x + x * y_;
        if (y_ > 1e150) flush();
    }
    void add(double x, double weight) { sum_ += weight * std::log1p(x); }
    double total(double weight) {
        flush();
        return sum_ + weight * common_;
    }

private:
    void flush() {
        common_ += std::log1p(y_);
        y_ = 0.0;
    }
    double sum_ = 0, common_ = 0, y_ = 0;
};

}  // namespace

QueryParts::QueryParts(const Layering &l, std::int64_t q, int n_threads)
    : q_(q), begin_(l.offsets[std::size_t(q)]), end_(l.offsets[std::size_t(q) + 1]),
      n_layers_(l.n_levels[std::size_t(q)]), n_parts_(parts_of(end_ - begin_, n_layers_)),
      n_threads_(n_threads), c_(l.c(q)), u_(l.row_weight.empty() ? nullptr : l.row_weight.data()),
      s_(l.shift.empty() ? nullptr : l.shift.data()), levels_(l.levels.data()) {}

template <class Body>
void QueryParts::for_each_part(const Body &body) const {
    const std::int64_t n = end_ - begin_;
    parallel_for(n_parts_, n_threads_, [&](std::int64_t k) {
        body(k, begin_ + n * k / n_parts_, begin_ + n * (k + 1) / n_parts_);
    });
}

template <class Body, class Join>
std::vector<double> QueryParts::gather(int n_sums, double start, const Body &body,
                                       const Join &join) const {
    const std::size_t size = std::size_t(n_sums * n_layers_);
    std::vector<double> all(size * std::size_t(n_parts_), start);
    for_each_part([&](std::int64_t k, std::int64_t first, std::int64_t last) {
        body(first, last, all.data() + std::size_t(k) * size);
    });
    for (std::size_t k = 1; k < std::size_t(n_parts_); ++k)
        for (std::size_t c = 0; c < size; ++c) all[c] = join(all[c], all[k * size + c]);
    all.resize(size);
    return all;
}

template <class Body>
std::vector<double> QueryParts::sum(int n_sums, const Body &body) const {
    return gather(n_sums, 0.0, body, [](double a, double b) { return a + b; });
}

DominationSweep::DominationSweep(DominationPoint &point, std::int64_t q, int n_threads)
    : QueryParts(point.layering_, q, n_threads), point_(point),
      cell_(std::size_t(point.layering_.first_cell[std::size_t(q)])) {}

DominationSums DominationSweep::evaluate(const double *z) {
    z_ = z;
    if (is_void()) {
        for (PageArray<double> *a : {&point_.gradient, &point_.share_, &point_.rho_})
            std::fill(a->data() + begin_, a->data() + end_, 0.0);
        return {};
    }
    find_peaks();
    find_masses();
    DominationSums sums = find_risks();
    sums += find_gradient();
    return sums;
}

void DominationSweep::find_peaks() {
    const auto body = [&](std::int64_t first, std::int64_t last, double *peak) {
        for (std::int64_t t = first; t < last; ++t)
            if (!u_ || u_[t] > 0.0) peak[level(t)] = std::max(peak[level(t)], m(t));
    };
    peak_ = gather(1, nothing, body, [](double a, double b) { return std::max(a, b); });
}

void DominationSweep::find_masses() {
    double *share = point_.share_.data();
    mass_ = sum(1, [&](std::int64_t first, std::int64_t last, double *mass) {
        for (std::int64_t t = first; t < last; ++t) {
            const double u = u_ ? u_[t] : 1.0;
            share[t] = u > 0.0 ? std::exp(m(t) - peak_[level(t)]) : 0.0;
            mass[level(t)] += u * share[t];
        }
    });
    double *log_mass = point_.shares_.log_mass(q_);
    for (std::size_t k = 0; k < mass_.size(); ++k)
        log_mass[k] = mass_[k] > 0.0 ? peak_[k] + std::log(mass_[k]) : nothing;
    point_.shares_.update(q_);
}

DominationSums DominationSweep::find_risks() {
    const double *log_below = point_.shares_.log_below(q_), *share = point_.share_.data();
    double *rho = point_.rho_.data();
    std::vector<double> below(mass_.size());  // Z e^{-peak}: as a row's e^{m - peak} is known
    for (std::size_t k = 0; k < below.size(); ++k)
        below[k] = log_below[k] == nothing || peak_[k] == nothing ? 0.0
                                                                  : std::exp(log_below[k] - peak_[k]);
    std::vector<DominationSums> sums(static_cast<std::size_t>(n_parts_));
    std::vector<double> all(2 * mass_.size() * sums.size());
    for_each_part([&](std::int64_t part, std::int64_t first, std::int64_t last) {
        DominationSums total;
        SumOfLogs logs;
        double *risk = all.data() + 2 * mass_.size() * std::size_t(part);
        double *square = risk + mass_.size();
        for (std::int64_t t = first; t < last; ++t) {
            const std::size_t k = level(t);
            rho[t] = 0.0;
            const double own = share[t], z = below[k];
            if (log_below[k] == nothing || (u_ && !(u_[t] > 0.0))) continue;
            const double odds = log_below[k] - m(t);
            double small;  // e^{-|odds|}
            if (own > least && z > least && z < most) {
                rho[t] = z / (z + own);
                small = odds > 0.0 ? own / z : z / own;
            } else {
                small = std::exp(-std::abs(odds));
                rho[t] = (odds > 0.0 ? 1.0 : small) / (1.0 + small);
            }
            const double w = weight(t), mass = w * rho[t];
            if (odds > 0.0) total.value += w * odds;
            if (u_) logs.add(small, w);
            else logs.add(small);
            risk[k] += mass;
            square[k] += mass * rho[t];
            total.odds += mass * odds;
            total.trace += mass * (2.0 - rho[t]);
        }
        total.value += logs.total(c_);
        sums[std::size_t(part)] = total;
    });
    double *risk = point_.risk_.data() + cell_, *square = point_.square_risk_.data() + cell_;
    DominationSums total;
    for (std::size_t part = 0; part < sums.size(); ++part) {
        total += sums[part];
        const double *of_part = all.data() + 2 * mass_.size() * part;
        for (std::size_t k = 0; k < mass_.size(); ++k) {
            risk[k] += of_part[k];
            square[k] += of_part[mass_.size() + k];
        }
    }
    return total;
}

DominationSums DominationSweep::find_gradient() {
    double *share = point_.share_.data(), *gradient = point_.gradient.data();
    const double *rho = point_.rho_.data();
    double *pull = point_.pull_.data() + cell_;
    point_.shares_.sum_above(q_, point_.risk_.data() + cell_, pull);
    std::vector<double> scale(mass_.size());
    for (std::size_t k = 0; k < scale.size(); ++k) scale[k] = mass_[k] > 0.0 ? 1.0 / mass_[k] : 0.0;
    const double origin = z_[begin_];  // the gradient sums to 0: an offset of z costs no digits
    std::vector<double> slopes(static_cast<std::size_t>(n_parts_));
    std::vector<double> squares = sum(1, [&](std::int64_t first, std::int64_t last, double *square) {
        double slope = 0;
        for (std::int64_t t = first; t < last; ++t) {
            const std::size_t k = level(t);
            share[t] *= u_ ? u_[t] * scale[k] : scale[k];
            gradient[t] = share[t] * pull[k] - weight(t) * rho[t];
            slope += gradient[t] * (z_[t] - origin);
            square[k] += share[t] * share[t];
        }
        slopes[std::size_t((first - begin_) * n_parts_ / (end_ - begin_))] = slope;
    });
    std::vector<double> below(mass_.size());
    point_.shares_.average_below_squared(q_, squares.data(), below.data());
    DominationSums total;
    for (const double slope : slopes) total.slope += slope;
    for (std::size_t k = 0; k < below.size(); ++k)
        total.trace -= point_.square_risk_[cell_ + k] * below[k];
    return total;
}

DominationProduct::DominationProduct(const DominationPoint &point, std::int64_t q, int n_threads)
    : QueryParts(point.layering(), q, n_threads), point_(point) {}

void DominationProduct::multiply(const double *v, double *out) const {
    if (is_void()) return std::fill(out + begin_, out + end_, 0.0);
    const double *share = point_.share().data(), *rho = point_.rho().data();
    const std::size_t cell = std::size_t(point_.layering().first_cell[std::size_t(q_)]);
    const std::size_t n = std::size_t(n_layers_);
    const double origin = v[begin_];  // ∇²L·1 = 0
    const std::vector<double> sums = sum(2, [&](std::int64_t first, std::int64_t last, double *mean) {
        double *own = mean + n;  // Σ ω ρ (1 - ρ) v
        for (std::int64_t t = first; t < last; ++t) {
            const double x = v[t] - origin;
            mean[level(t)] += share[t] * x;
            own[level(t)] += weight(t) * rho[t] * (1.0 - rho[t]) * x;
        }
    });
    std::vector<double> below(n), expected(n), drawn(n);
    point_.shares().average_below(q_, sums.data(), below.data());
    for (std::size_t k = 0; k < n; ++k)
        expected[k] = sums[n + k] + point_.square_risk()[cell + k] * below[k];
    point_.shares().sum_above(q_, expected.data(), drawn.data());
    const double *pull = point_.pull().data() + cell;
    for_each_part([&](std::int64_t, std::int64_t first, std::int64_t last) {
        for (std::int64_t t = first; t < last; ++t) {
            const std::size_t k = level(t);
            const double x = v[t] - origin;
            out[t] = share[t] * (pull[k] * x - drawn[k]) +
                     weight(t) * rho[t] * (1.0 - rho[t]) * (x - below[k]);
        }
    });
}

}  // namespace linrank
