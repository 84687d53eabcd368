#include "preferences.hpp"

#include "queries.hpp"

namespace linrank {
namespace {

constexpr Index pairs_per_task = 1 << 16;
constexpr Index row_tasks = 64;

/// Calls body(k, first, last) for consecutive ranges of rows that share the work.
template <class Body>
void for_row_parts(const PreferenceList &list, Index n_parts, int n_threads, const Body &body) {
    const std::vector<Index> bounds = list.row_parts(n_parts);
    parallel_for(Index(bounds.size()) - 1, n_threads, [&](Index k) {
        body(k, bounds[k], bounds[k + 1]);
    });
}

/// The rows of Λ X, where Λ = ∇²L(z) is the Laplacian of the graph of curved preferences.
template <class Storage>
class LaplacianRows {
public:
    LaplacianRows(const Storage &storage, Order order, const PreferencePoint &point)
        : storage_(storage), order_(order), point_(point) {}

    /// The rows whose combination is row i of Λ X, i itself first; none if it is zero.
    bool find(Index i) {
        rows_.assign(1, row_at(order_, i));
        factors_.assign(1, 0.0);
        for (const Index entry : point_.list().of_row(i)) {
            const double h = point_.curvature(entry >> 1);
            if (h == 0.0) continue;
            factors_[0] += h;
            factors_.push_back(-h);
            rows_.push_back(row_at(order_, point_.list().other(entry)));
        }
        return rows_.size() > 1;
    }
    /// total += row i of Λ X = Σ h (x_i - x_other), for the last row found.
    void add(double *total) const { range().add(factors_.data(), total); }
    /// out = x_i.
    void unpack(double *out) const { range().unpack(0, 0, storage_.n_columns, out); }
    /// All the rows of the combination.
    Integers rows() const { return rows_; }

private:
    RowRange<Storage> range() const {
        return RowRange<Storage>(storage_, rows_, 0, Index(rows_.size()));
    }
    const Storage &storage_;
    Order order_;
    const PreferencePoint &point_;
    std::vector<Index> rows_;
    std::vector<double> factors_;
};

}  // namespace

PreferenceList::PreferenceList(Integers winners, Integers losers, Doubles weight, Index n_rows)
    : winners_(winners.size()), losers_(winners.size()), weight_(weight.size()),
        incident_(2 * winners.size()) {
    std::vector<Index> by_loser(winners.size());
    counting_sort(n_pairs(), n_rows, [&](Index t) { return losers[t]; },
                  [&](Index t, Index place) { by_loser[place] = t; });
    counting_sort(n_pairs(), n_rows, [&](Index k) { return winners[by_loser[k]]; },
                  [&](Index k, Index place) {
        const Index t = by_loser[k];
        winners_[place] = winners[t];
        losers_[place] = losers[t];
        if (!weight.empty()) weight_[place] = weight[t];
    });
    offsets_ = counting_sort(2 * n_pairs(), n_rows, [&](Index entry) {
        return entry & 1 ? loser(entry >> 1) : winner(entry >> 1);
    }, [&](Index entry, Index place) { incident_[place] = entry; });
}

std::vector<Index> PreferenceList::row_parts(Index n_parts) const {
    // A row without preferences still costs a visit.
    const auto cost = [&](Index i) { return offsets_[i] + i; };
    return equal_parts(n_rows(), n_parts, cost);
}

PreferencePoint::PreferencePoint(const PreferenceList &list, PairLoss loss, Doubles z,
                                 int n_threads)
    : LossPoint(list.n_rows()), list_(list),
      curvature_(std::size_t(list.n_pairs()), huge_pages) {
    struct Sums : PairSums {
        double slope = 0, value_error = 0, slacks_error = 0;  // Σ ω l'; of rounding
    };
    const Index n = list.n_pairs(), n_tasks = (n + pairs_per_task - 1) / pairs_per_task;
    std::vector<Sums> sums(n_tasks);
    PageArray<double> slope(n, huge_pages);
    for_blocks(n, pairs_per_task, n_threads, [&](Index first, Index last) {
        Sums s;
        for (Index t = first; t < last; ++t) {
            // The difference first: a shift of all scores then costs no digits.
            const double slack = 1.0 - (z[list.winner(t)] - z[list.loser(t)]);
            const double weight = list.weight(t);
            const LossOfPair l = loss_of_pair(loss, slack);
            slope.data()[t] = weight * l.slope;
            curvature_.data()[t] = weight * l.curvature;
            // A slack is off by two roundings of what it is the difference of, and its sign may be
            // as well.
            const double off = 4.0 * unit_roundoff * (1.0 + std::abs(slack));
            if (!(slack > -off)) continue;
            s.slacks_error += weight * off;
            s.value_error += weight * (l.slope + off) * off;
            if (!(slack > 0.0)) continue;
            s.slope += weight * l.slope;
            s.value += weight * l.value;
            s.sum_of_slacks += weight * slack;
            s.n_violations += weight;
            s.total_curvature += weight * l.curvature;
            if (loss.kind == PairLoss::huber && slack > loss.epsilon)
                s.inner_slacks += weight * (slack - loss.epsilon);
        }
        sums[first / pairs_per_task] = s;
    });
    const Sums total = sum_of(sums);
    set_sums(total);
    set_errors(total.value_error, total.slacks_error,
               double(std::min(n, pairs_per_task) + n_tasks + 4));
    gradient_error = 2.0 * unit_roundoff * double(list.largest_degree() + 4) * total.slope;
    for_row_parts(list, row_tasks, n_threads, [&](Index, Index first, Index last) {
        for (Index i = first; i < last; ++i) {
            double sum = 0;  // ∂ξ/∂z is -1 for the winner, +1 for the loser
            for (const Index entry : list.of_row(i)) {
                const double a = slope.data()[entry >> 1];
                sum += entry & 1 ? a : -a;
            }
            gradient.data()[i] = sum;
        }
    });
}

void PreferencePoint::multiply(Doubles v, std::span<double> out, int n_threads) const {
    for_row_parts(list_, row_tasks, n_threads, [&](Index, Index first, Index last) {
        for (Index i = first; i < last; ++i) {
            double sum = 0;  // row i of the Laplacian: Σ ω l'' (v_i - v_other)
            for (const Index entry : list_.of_row(i)) {
                const double h = curvature(entry >> 1);
                if (h != 0.0) sum += h * (v[i] - v[list_.other(entry)]);
            }
            out[i] = sum;
        }
    });
}

// Σ_i x_i (ΛX)_iᵀ over the rows, on and above the diagonal: p vector additions and an outer product
// per row, where the sum over preferences would take p outer products.
std::vector<double> hessian_matrix(const Positions &x, const PreferencePoint &point,
                                   int n_threads) {
    const PaddedSquare square(n_columns(x.rows));
    const std::vector<Index> bounds = point.list().row_parts(square.n_parts());
    return square.sum(parts_of(x.rows, std::ssize(bounds) - 1, n_threads,
                               [&](const auto &storage, Index k) {
        std::vector<double> sum;
        CrossProduct<double> product(sum, square.padded, 64);
        LaplacianRows laplacian(storage, x.order, point);
        for (Index i = bounds[k]; i < bounds[k + 1]; ++i) {
            if (!laplacian.find(i)) continue;
            laplacian.unpack(product.a());
            laplacian.add(product.b());
            product.add();
            if (product.is_at_start()) product.clear();
        }
        product.flush();
        return sum;
    }), 1.0, n_threads);
}

// Σ_i x_i ∘ (ΛX)_i over the rows.
std::vector<double> hessian_diagonal(const Positions &x, const PreferencePoint &point,
                                     int n_threads) {
    const std::vector<Index> bounds = point.list().row_parts(n_accumulators(x.rows));
    return sum_diagonal(x.rows, std::ssize(bounds) - 1, n_threads,
                        [&](const auto &storage, Index k) {
        std::vector<double> out(storage.n_columns), b(out.size());
        LaplacianRows laplacian(storage, x.order, point);
        for (Index i = bounds[k]; i < bounds[k + 1]; ++i) {
            if (!laplacian.find(i)) continue;
            laplacian.add(b.data());
            for_each_entry(storage, laplacian.rows()[0], [&](Index c, double v) {
                out[c] += v * b[c];
            });
            for (const Index row : laplacian.rows())  // not all of b: columns may be millions
                for_each_entry(storage, row, [&](Index c, double) { b[c] = 0.0; });
        }
        return out;
    });
}

}  // namespace linrank
