#include "selection_tree.hpp"

#include <algorithm>
#include <numeric>

namespace linrank {
namespace {

/// Leaves base..base+k-1 for the levels, node m the sum of nodes 2m and 2m+1.
class SelectionTree {
public:
    explicit SelectionTree(std::int64_t n_levels) {
        while (base_ < n_levels) base_ *= 2;
        nodes_.assign(std::size_t(2 * base_), 0.0);
    }
    void insert(std::int64_t level, double v) {
        for (std::int64_t m = base_ + level; m >= 1; m /= 2) nodes_[std::size_t(m)] += v;
    }
    double larger(std::int64_t level) const {
        double sum = 0;
        for (std::int64_t m = base_ + level; m > 1; m /= 2)
            if (m % 2 == 0) sum += nodes_[std::size_t(m + 1)];
        return sum;
    }
    double smaller(std::int64_t level) const {
        double sum = 0;
        for (std::int64_t m = base_ + level; m > 1; m /= 2)
            if (m % 2 == 1) sum += nodes_[std::size_t(m - 1)];
        return sum;
    }

private:
    std::int64_t base_ = 1;
    std::vector<double> nodes_;
};

}  // namespace

SelectionTreePoint::SelectionTreePoint(const PairProblem &problem, std::span<const double> z)
    : gradient(z.size()), problem_(problem), z_(z.begin(), z.end()), degree_(z.size()),
      order_(z.size()) {
    std::vector<double> u(z.size()), us(z.size());
    std::vector<double> l_above(z.size()), l_below(z.size()), g_above(z.size()), g_below(z.size());
    for (std::int64_t q = 0; q < problem_.n_queries(); ++q) {
        if (!problem_.has_pairs(q)) continue;
        const std::int64_t begin = problem_.begin(q), end = problem_.begin(q + 1);
        const double mean =
            std::accumulate(z_.begin() + begin, z_.begin() + end, 0.0) / double(end - begin);
        for (std::int64_t i = begin; i < end; ++i) {
            z_[std::size_t(i)] -= mean;
            u[std::size_t(i)] = problem_.u(i);
            us[std::size_t(i)] = problem_.u(i) * z_[std::size_t(i)];
        }
        std::iota(order_.begin() + begin, order_.begin() + end, begin);
        std::sort(order_.begin() + begin, order_.begin() + end, [&](std::int64_t i, std::int64_t j) {
            return z_[std::size_t(i)] < z_[std::size_t(j)];
        });
        sweep(q, u, l_above, l_below);
        sweep(q, us, g_above, g_below);
        for (std::size_t i = std::size_t(begin); i < std::size_t(end); ++i) {
            const double weight = problem_.c(q) * u[i];
            degree_[i] = weight * (l_above[i] + l_below[i]);
            const double laplacian = degree_[i] * z_[i] - weight * (g_above[i] + g_below[i]);
            const double balance = weight * (l_below[i] - l_above[i]);
            gradient[i] = 2.0 * (laplacian - balance);
            n_violations += weight * l_above[i];
            sum_of_slacks += weight * l_above[i] - balance * z_[i];
            value += weight * l_above[i] + (laplacian - 2.0 * balance) * z_[i];
        }
    }
}

void SelectionTreePoint::sweep(std::int64_t q, std::span<const double> inserted,
                               std::span<double> above, std::span<double> below) const {
    const std::int64_t begin = problem_.begin(q), end = problem_.begin(q + 1);
    const auto row = [&](std::int64_t t) { return std::size_t(order_[std::size_t(t)]); };
    const auto level = [&](std::size_t i) { return std::int64_t(problem_.levels[i]); };
    SelectionTree ascending(problem_.n_levels[std::size_t(q)]), descending = ascending;
    for (std::int64_t t = begin, next = begin; t < end; ++t) {
        const std::size_t i = row(t);
        for (; next < end && (1.0 - z_[row(next)]) + z_[i] > 0.0; ++next)
            ascending.insert(level(row(next)), inserted[row(next)]);
        above[i] = ascending.larger(level(i));
    }
    for (std::int64_t t = end - 1, next = end - 1; t >= begin; --t) {
        const std::size_t i = row(t);
        for (; next >= begin && (1.0 - z_[i]) + z_[row(next)] > 0.0; --next)
            descending.insert(level(row(next)), inserted[row(next)]);
        below[i] = descending.smaller(level(i));
    }
}

void SelectionTreePoint::multiply(std::span<const double> v, std::span<double> out) const {
    std::vector<double> uv(v.size()), above(v.size()), below(v.size());
    for (std::size_t i = 0; i < v.size(); ++i) uv[i] = problem_.u(std::int64_t(i)) * v[i];
    for (std::int64_t q = 0; q < problem_.n_queries(); ++q) {
        const std::size_t begin = std::size_t(problem_.begin(q));
        const std::size_t end = std::size_t(problem_.begin(q + 1));
        if (!problem_.has_pairs(q)) {
            std::fill(out.begin() + std::ptrdiff_t(begin), out.begin() + std::ptrdiff_t(end), 0.0);
            continue;
        }
        sweep(q, uv, above, below);
        for (std::size_t i = begin; i < end; ++i)
            out[i] = 2.0 * (degree_[i] * v[i] -
                            problem_.c(q) * problem_.u(std::int64_t(i)) * (above[i] + below[i]));
    }
}

}  // namespace linrank
