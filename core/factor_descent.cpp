#include "factor_descent.hpp"

namespace linrank {

namespace {

// Queries that find their directions at the same β: enough to keep threads busy, few enough that they read
// their rows from the cache when they finish, and that an epoch remains a sequence of many steps. The numbers
// depend on the data only, and so does the result.
constexpr Index batch_bytes = 1 << 21;
constexpr Index batch_numbers = 1 << 20;  // of all directions
constexpr Index batches_per_epoch = 64;
constexpr Index bytes_worth_threads = 1 << 19;
constexpr int most_sweeps = 4;            // over the steps of a batch, at most
constexpr double settled_change = 1e-3;     // no step changed by more

double half_square(const std::vector<double> &w) {
    return 0.5 * std::inner_product(w.begin(), w.end(), w.begin(), 0.0);
}

}  // namespace

FactorDescent::FactorDescent(QueryRows rows, FactorProblem problem, std::vector<double> factors,
                             std::uint64_t seed)
    : rows_(std::move(rows)), problem_(std::move(problem)), random_(seed), accepted_(std::move(factors)),
      start_(accepted_.size()), reached_(accepted_.size()),
      accepted_weights_(std::size_t(rows_.n_columns()), 0.0) {
    Scratch scratch;
    std::vector<double> local;
    for (Index q = 0; q < rows_.n_queries(); ++q) {
        double *v = at(accepted_, q);
        if (problem_.n_levels[q] < 2) {  // no pair: its factors mean nothing
            std::fill_n(v, rows_.n_rows(q) * problem_.n_factors, 0.0);
            continue;
        }
        order_.push_back(q);
        project(query(q), problem_.constraint, v);
        accepted_sum_ += weights_of(q, v, local, scratch);
        rows_.scatter(q, local, accepted_weights_);
    }
    reject();
}

FactorQuery FactorDescent::query(Index q) const {
    const auto first = std::size_t(rows_.first(q)), n = std::size_t(rows_.n_rows(q));
    return {std::span(problem_.levels).subspan(first, n), std::span(problem_.bound).subspan(first, n),
            problem_.n_levels[q], problem_.n_factors};
}

double FactorDescent::weights_of(Index q, const double *factors, std::vector<double> &local,
                                 Scratch &s) const {
    const FactorQuery here = query(q);
    s.v.compute(here, factors);
    s.coefficients.assign(here.n_rows(), 0.0);
    add_coefficients(here, factors, s.v, s.coefficients.data());
    rows_.combine(q, s.coefficients, local);
    return pair_sum(here, s.v, s.v);
}

void FactorDescent::accept() {
    require(has_reached_, "there is no epoch to accept: call epoch() first");
    has_reached_ = false;
    std::swap(accepted_, reached_);
    std::swap(accepted_weights_, weights_);
    accepted_sum_ = sum_;
}

void FactorDescent::reject() {
    std::copy(accepted_.begin(), accepted_.end(), start_.begin());
    next_weights_ = accepted_weights_;
    next_sum_ = accepted_sum_;
    has_reached_ = false;
}

void FactorDescent::shrink() {
    const double square = 2.0 * half_square(accepted_weights_);
    const double factor = accepted_sum_ / square;  // s²
    if (!(factor > 0.0 && factor < 1.0)) return;  // 0: β is out of range
    const double s = std::sqrt(factor);
    for (double &v : accepted_) v *= s;
    for (double &w : accepted_weights_) w *= factor;
    accepted_sum_ *= factor;
    reject();
}

double FactorDescent::value() const { return half_square(accepted_weights_) - accepted_sum_; }

double FactorDescent::epoch(double momentum, int n_threads) {
    if (is_at_work_) reject();  // memory ran out half-way: V and β differ
    has_reached_ = false;
    is_at_work_ = true;
    for (std::size_t i = order_.size(); i > 1; --i)
        std::swap(order_[i - 1], order_[scaled(random_.next(), i)]);
    weights_ = next_weights_;
    sum_ = next_sum_;
    std::fill(next_weights_.begin(), next_weights_.end(), 0.0);
    next_sum_ = 0;
    const auto n_queries = Index(order_.size());
    for (Index first = 0, end; first < n_queries; first = end) {
        end = end_of_batch(first);
        batch(first, end, momentum, n_threads);
    }
    // A wide query meets another place in its batch in every epoch: kept, all would grow to its width.
    directions_.clear();
    is_at_work_ = false;
    has_reached_ = true;
    return half_square(weights_) - sum_;
}

void FactorDescent::batch(Index first, Index end, double momentum, int n_threads) {
    const Index n = end - first;
    if (Index(directions_.size()) < n) directions_.resize(n);
    Index bytes = 0;
    for (Index i = 0; i < n; ++i) {
        directions_[i].query = order_[first + i];
        bytes += rows_.bytes(order_[first + i]);
    }
    // A task a thread, each with a scratch of its own; which task takes a query has no part in the result.
    const Index n_tasks = bytes < bytes_worth_threads ? 1 : std::clamp<Index>(n_threads, 1, n);
    if (Index(scratch_.size()) < n_tasks) scratch_.resize(n_tasks);
    const auto each = [&](const auto &work) {
        parallel_for(n_tasks, int(n_tasks), [&](Index task) {
            for (Index i = task; i < n; i += n_tasks)
                work(directions_[i], scratch_[task]);
        });
    };
    each([&](Direction &d, Scratch &s) { find_direction(d, s); });
    find_steps({directions_.data(), std::size_t(n)});
    each([&](Direction &d, Scratch &s) { finish(d, momentum, s); });
    for (Index i = 0; i < n; ++i) {
        const Direction &d = directions_[i];
        rows_.scatter(d.query, d.next, next_weights_);
        next_sum_ += d.sum_next;
    }
}

Index FactorDescent::end_of_batch(Index first) const {
    const auto n_queries = Index(order_.size());
    const Index most = std::max<Index>(1, n_queries / batches_per_epoch);
    Index bytes = 0, numbers = 0, end = first;
    for (; end < n_queries && end - first < most; ++end) {
        const Index q = order_[end];
        bytes += rows_.bytes(q);
        numbers += 3 * rows_.width(q);
        if (end > first && (bytes > batch_bytes || numbers > batch_numbers)) break;
    }
    return end;
}

void FactorDescent::find_gradient(Index q, const double *v, Doubles weights, Scratch &s) const {
    const FactorQuery here = query(q);
    rows_.scores(q, weights, s.local, s.t);
    s.v.compute(here, v);
    s.gradient.resize(here.n_rows() * here.n_factors);
    factor_gradient(here, v, s.t.data(), s.v, s.tv, s.gradient.data());
}

void FactorDescent::find_direction(Direction &d, Scratch &s) {
    const FactorQuery here = query(d.query);
    const Index n = here.n_rows(), K = here.n_factors;
    const double *v = at(start_, d.query);
    double *w = at(reached_, d.query);  // the direction, until the step is known
    find_gradient(d.query, v, weights_, s);
    double steepest = 0;
    for (Index i = 0; i < n; ++i)
        for (Index k = 0; k < K && here.bound[i] > 0; ++k)
            steepest = std::max(steepest, std::abs(s.gradient[i * K + k]));
    for (Index i = 0; i < n; ++i) {
        // Where the gradient is 0 or all but 0 the quotient has no value, and infinity times 0 none either.
        const double quotient = here.bound[i] / steepest;
        const double step = std::isfinite(quotient) ? quotient : 0.0;
        for (Index k = 0; k < K; ++k)
            w[i * K + k] = v[i * K + k] - step * s.gradient[i * K + k];
    }
    project(here, problem_.constraint, w);
    for (Index e = 0; e < n * K; ++e) w[e] -= v[e];

    s.w.compute(here, w);
    s.coefficients.assign(n, 0.0);
    add_coefficients(here, w, s.v, s.coefficients.data());
    add_coefficients(here, v, s.w, s.coefficients.data());
    rows_.combine(d.query, s.coefficients, d.first);
    std::fill(s.coefficients.begin(), s.coefficients.end(), 0.0);
    add_coefficients(here, w, s.w, s.coefficients.data());
    rows_.combine(d.query, s.coefficients, d.second);
    d.sum_first = pair_sum(here, s.w, s.v) + pair_sum(here, s.v, s.w);
    d.sum_second = pair_sum(here, s.w, s.w);
    d.first_first = d.first_second = d.second_second = d.step = 0;
    for (std::size_t c = 0; c < d.first.size(); ++c) {  // in one loop: a sum waits for itself only
        d.first_first += d.first[c] * d.first[c];
        d.first_second += d.first[c] * d.second[c];
        d.second_second += d.second[c] * d.second[c];
    }
}

double FactorDescent::best_step(const Direction &d) const {
    const double t = d.step;
    auto [to_first, to_second] = rows_.inner(d.query, d.first, d.second, weights_);
    to_first -= t * (d.first_first + t * d.first_second);  // of β without this query's step
    to_second -= t * (d.first_second + t * d.second_second);
    return lowest_in_unit({to_first - d.sum_first, 0.5 * d.first_first + to_second - d.sum_second,
                           d.first_second, 0.5 * d.second_second});
}

void FactorDescent::find_steps(std::span<Direction> batch) {
    double moved = 1.0;
    for (int sweep = 0; sweep < most_sweeps && moved > settled_change; ++sweep) {
        moved = 0;
        for (Direction &d : batch) {
            const double t = d.step;
            d.step = best_step(d);
            const double change = d.step - t, change_of_square = change * (d.step + t);
            if (change == 0.0) continue;
            rows_.scatter(d.query, change, d.first, change_of_square, d.second, weights_);
            sum_ += change * d.sum_first + change_of_square * d.sum_second;
            if (batch.size() > 1) moved = std::max(moved, std::abs(change));
        }
    }
}

void FactorDescent::finish(Direction &d, double momentum, Scratch &s) {
    const Index n = rows_.n_rows(d.query) * problem_.n_factors;
    double *next = at(start_, d.query), *reached = at(reached_, d.query);
    const double *last = at(accepted_, d.query);
    for (Index e = 0; e < n; ++e) {
        reached[e] = next[e] + d.step * reached[e];
        next[e] = reached[e] + momentum * (reached[e] - last[e]);
    }
    project(query(d.query), problem_.constraint, next);
    d.sum_next = weights_of(d.query, next, d.next, s);
}

double FactorDescent::linear_decrease(int n_threads) const {
    const auto n_queries = Index(order_.size());
    const Index n_tasks = std::min<Index>(std::max(n_threads, 1), n_queries);
    std::vector<double> by_query(order_.size());
    parallel_for(n_tasks, int(n_tasks), [&](Index task) {
        Scratch s;
        for (Index i = task; i < n_queries; i += n_tasks) {
            const Index q = order_[i];
            const double *v = accepted_.data() + rows_.first(q) * problem_.n_factors;
            find_gradient(q, v, accepted_weights_, s);
            by_query[i] = linrank::linear_decrease(query(q), problem_.constraint, v, s.gradient.data());
        }
    });
    return std::accumulate(by_query.begin(), by_query.end(), 0.0);
}

void LevelTotals::compute(const FactorQuery &query, const double *values, const double *weight) {
    const Index K = n_factors_ = query.n_factors, n_levels = query.n_levels;
    for (auto *sums : {&of_, &below_, &difference_}) sums->assign(std::size_t(n_levels * K), 0.0);
    all_.assign(K, 0.0);
    for (Index i = 0; i < query.n_rows(); ++i) {
        double *total = of_.data() + query.levels[i] * K;
        const double factor = weight ? weight[i] : 1.0;
        for (Index k = 0; k < K; ++k) total[k] += factor * values[i * K + k];
    }
    for (Index r = 0; r < n_levels; ++r)
        for (Index k = 0; k < K; ++k) {
            below_[r * K + k] = all_[k];
            all_[k] += of_[r * K + k];
        }
    std::vector<double> &above = scratch_;  // summed from the top: nothing cancels
    above.assign(K, 0.0);
    for (Index r = n_levels - 1; r >= 0; --r)
        for (Index k = 0; k < K; ++k) {
            const auto at = std::size_t(r * K + k);
            difference_[at] = below_[at] - above[k];
            above[k] += of_[at];
        }
}

double pair_sum(const FactorQuery &query, const LevelTotals &a, const LevelTotals &b) {
    double sum = 0;
    for (Index r = 1; r < query.n_levels; ++r) {
        const double *upper = a.of(r), *lower = b.below(r);
        for (Index k = 0; k < query.n_factors; ++k) sum += upper[k] * lower[k];
    }
    return sum;
}

void add_coefficients(const FactorQuery &query, const double *a, const LevelTotals &b, double *out) {
    const Index K = query.n_factors;
    for (Index i = 0; i < query.n_rows(); ++i) {
        const double *s = b.difference(query.levels[i]);
        double sum = 0;
        for (Index k = 0; k < K; ++k) sum += a[i * K + k] * s[k];
        out[i] += sum;
    }
}

void project(const FactorQuery &query, Constraint constraint, double *factors) {
    const Index K = query.n_factors;
    const double per_component = 1.0 / std::sqrt(double(K));
    for (Index i = 0; i < query.n_rows(); ++i) {
        double *v = factors + i * K;
        const double b = query.bound[i];
        if (constraint == Constraint::box) {
            const double largest = b * per_component;
            for (Index k = 0; k < K; ++k) v[k] = std::min(std::max(v[k], 0.0), largest);
            continue;
        }
        double square = 0;
        for (Index k = 0; k < K; ++k) {
            v[k] = std::max(v[k], 0.0);
            square += v[k] * v[k];
        }
        if (square <= b * b) continue;
        const double factor = b / std::sqrt(square);
        for (Index k = 0; k < K; ++k) v[k] *= factor;
    }
}

void factor_gradient(const FactorQuery &query, const double *factors, const double *t, const LevelTotals &v,
                     LevelTotals &tv, double *out) {
    const Index K = query.n_factors;
    tv.compute(query, factors, t);
    for (Index i = 0; i < query.n_rows(); ++i) {
        const Index r = query.levels[i];
        const double *S = v.difference(r), *T = tv.difference(r), *own = v.of(r), *all = v.all();
        for (Index k = 0; k < K; ++k) out[i * K + k] = t[i] * S[k] - T[k] - (all[k] - own[k]);
    }
}

double linear_decrease(const FactorQuery &query, Constraint constraint, const double *factors,
                       const double *gradient) {
    const Index K = query.n_factors;
    const double per_component = 1.0 / std::sqrt(double(K));
    double sum = 0;
    for (Index i = 0; i < query.n_rows(); ++i) {
        const double *v = factors + i * K, *g = gradient + i * K;
        const double b = query.bound[i];
        double here = 0, fall = 0;  // <g, v>, and the largest <-g, v'> over feasible v'
        for (Index k = 0; k < K; ++k) {
            here += g[k] * v[k];
            const double down = std::max(-g[k], 0.0);
            fall += constraint == Constraint::box ? b * per_component * down : down * down;
        }
        sum += here + (constraint == Constraint::box ? fall : b * std::sqrt(fall));
    }
    return sum;
}

// ---- rows by query ----------------------------------------------------------------------------

QueryRows::QueryRows(const Rows &rows, std::vector<Index> order, std::vector<Index> offsets,
                     std::vector<double> scale)
    : n_columns_(linrank::n_columns(rows)), order_(std::move(order)), offsets_(std::move(offsets)),
      scale_(std::move(scale)) {
    std::visit([&](const auto &storage) {
        if constexpr (requires { storage.columns; }) renumber(storage);
        else rows_ = storage;
    }, rows);
}

template <class Value>
void QueryRows::renumber(const CsrRows<Value> &rows) {
    local_.resize(n_entries(rows));
    first_column_.assign(1, 0);
    std::vector<std::int32_t> number(rows.n_columns, -1);
    for (Index q = 0; q < n_queries(); ++q) {
        const auto begin = columns_.size();
        for (Index t = first(q); t < first(q + 1); ++t) {
            Index e = rows.offsets[row_at(order_, t)];
            for_each_entry(rows, row_at(order_, t), [&](Index column, Value) {
                std::int32_t &known = number[column];
                if (known < 0) {
                    require(columns_.size() - begin <= INT32_MAX,
                            "a query has entries in more than 2^31 columns");
                    known = std::int32_t(columns_.size() - begin);
                    columns_.push_back(column);
                }
                local_[e++] = known;
            });
        }
        for (auto c = begin; c < columns_.size(); ++c) number[columns_[c]] = -1;
        first_column_.push_back(Index(columns_.size()));
    }
    rows_ = CsrRows<Value>{rows.values, local_.data(), rows.offsets, rows.n_rows, rows.n_columns};
}

template <class Visit>
void QueryRows::each_column(Index q, const Visit &visit) const {
    const Index n = width(q), *column = is_dense() ? nullptr : columns_.data() + first_column_[q];
    if (column)
        for (Index c = 0; c < n; ++c) visit(c, column[c]);
    else
        for (Index c = 0; c < n; ++c) visit(c, c);
}

void QueryRows::scores(Index q, Doubles w, std::vector<double> &scratch,
                       std::vector<double> &out) const {
    const double *local = w.data();
    if (!is_dense() || !scale_.empty()) {
        scratch.resize(width(q));
        each_column(q, [&](Index c, Index column) {
            scratch[c] = scale_.empty() ? w[column] : w[column] * scale_[column];
        });
        local = scratch.data();
    }
    out.resize(n_rows(q));
    std::visit([&]<class Storage>(const Storage &rows) {
        RowRange<Storage>(rows, order_, first(q), n_rows(q)).dot(local, out.data());
    }, rows_);
}

void QueryRows::combine(Index q, Doubles a, std::vector<double> &out) const {
    out.assign(width(q), 0.0);
    std::visit([&]<class Storage>(const Storage &rows) {
        RowRange<Storage>(rows, order_, first(q), n_rows(q)).add(a.data(), out.data());
    }, rows_);
    if (scale_.empty()) return;
    each_column(q, [&](Index c, Index column) { out[c] *= scale_[column]; });
}

std::pair<double, double> QueryRows::inner(Index q, Doubles a, Doubles b, Doubles global) const {
    double with_a = 0, with_b = 0;
    each_column(q, [&](Index c, Index column) {
        with_a += a[c] * global[column];
        with_b += b[c] * global[column];
    });
    return {with_a, with_b};
}

void QueryRows::scatter(Index q, double s, Doubles a, double t, Doubles b,
                        std::span<double> global) const {
    each_column(q, [&](Index c, Index column) { global[column] += s * a[c] + t * b[c]; });
}

void QueryRows::scatter(Index q, Doubles a, std::span<double> global) const {
    each_column(q, [&](Index c, Index column) { global[column] += a[c]; });
}

}  // namespace linrank
