#include "factor_pairs.hpp"

#include "../queries.hpp"

namespace linrank::published {
namespace {

/// The rows of a query in ascending order of level: the losers of the pairs of by_level[s] are all before
/// lower[s], so a loop over pairs neither looks at levels nor reads a list.
struct LevelOrder {
    std::vector<std::int32_t> by_level;
    std::vector<std::int64_t> first, lower;

    void arrange(const PairProblem &pairs, std::int64_t q) {
        const std::int32_t *level = pairs.levels.data() + pairs.begin(q);
        const std::int64_t n = pairs.length(q);
        by_level.resize(n), lower.resize(n);
        first = counting_sort(n, pairs.n_levels[q], [&](std::int64_t i) { return level[i]; },
                              [&](std::int64_t i, std::int64_t s) { by_level[s] = std::int32_t(i); });
        for (std::int64_t s = 0; s < n; ++s) lower[s] = first[level[by_level[s]]];
    }

    /// visit(i, j) for every pair, rows counted from the beginning of the query.
    template <class Visit>
    void each_pair(const Visit &visit) const {
        for (std::size_t s = std::size_t(first[1]); s < by_level.size(); ++s)
            for (std::int64_t r = 0; r < lower[s]; ++r)
                visit(std::int64_t(by_level[s]), std::int64_t(by_level[r]));
    }
};

/// Differences of two rows of a query. Dense rows are copied once in double, of a length that the vector
/// kernels take.
template <class Storage>
class Differences;

template <class Value>
class Differences<DenseRows<Value>> {
public:
    explicit Differences(std::int64_t n) : padded_((n + 15) / 16 * 16), x_(padded_) {}

    void load(const RowRange<DenseRows<Value>> &range, std::int64_t n_rows) {
        rows_.resize(n_rows * padded_);
        for (std::int64_t t = 0; t < n_rows; ++t) range.unpack(t, rows_.data() + t * padded_);
    }
    std::int64_t n_columns() const { return padded_; }
    void take(std::int64_t i, std::int64_t j) {
        const double *winner = rows_.data() + i * padded_, *loser = rows_.data() + j * padded_;
        for (std::int64_t c = 0; c < padded_; ++c) x_[c] = winner[c] - loser[c];
    }
    double dot(const double *w) const { return simd().dot_vectors(padded_, x_.data(), w); }
    void add(double a, double *w) const { simd().of_double.axpy(padded_, a, x_.data(), w); }

private:
    std::int64_t padded_;
    std::vector<double> x_, rows_;
};

/// Sparse rows are read where they are, one after the other.
template <class Value>
class Differences<CsrRows<Value>> {
public:
    explicit Differences(std::int64_t n) : n_columns_(n) {}

    void load(const RowRange<CsrRows<Value>> &range, std::int64_t) { range_ = &range; }
    std::int64_t n_columns() const { return n_columns_; }
    void take(std::int64_t i, std::int64_t j) { winner_ = range_->row(i), loser_ = range_->row(j); }
    double dot(const double *w) const {
        double sum = 0;
        for_each_entry(range_->rows, winner_, [&](std::int64_t c, double x) { sum += x * w[c]; });
        for_each_entry(range_->rows, loser_, [&](std::int64_t c, double x) { sum -= x * w[c]; });
        return sum;
    }
    void add(double a, double *w) const {
        for_each_entry(range_->rows, winner_, [&](std::int64_t c, double x) { w[c] += a * x; });
        for_each_entry(range_->rows, loser_, [&](std::int64_t c, double x) { w[c] -= a * x; });
    }

private:
    std::int64_t n_columns_, winner_ = 0, loser_ = 0;
    const RowRange<CsrRows<Value>> *range_ = nullptr;
};

/// The vectors v of the rows of a query.
struct Factors {
    const double *values;
    std::int64_t K;

    const double *operator[](std::int64_t i) const { return values + i * K; }
    double dot(std::int64_t i, std::int64_t j) const {
        const double *a = (*this)[i], *b = (*this)[j];
        double sum = 0;
        for (std::int64_t k = 0; k < K; ++k) sum += a[k] * b[k];
        return sum;
    }
    /// g_i += a v_j, g_j += a v_i
    void add_slopes(std::int64_t i, std::int64_t j, double a, double *slopes) const {
        const double *vi = (*this)[i], *vj = (*this)[j];
        double *__restrict gi = slopes + i * K, *__restrict gj = slopes + j * K;
        for (std::int64_t k = 0; k < K; ++k) {
            gi[k] += a * vj[k];
            gj[k] += a * vi[k];
        }
    }
};

template <class Storage>
class Epoch {
public:
    Epoch(const FactorPairs &problem, const Storage &rows, std::span<double> beta)
        : p_(problem), rows_(rows), differences_(rows.n_columns),
          beta_(std::size_t(differences_.n_columns())), change_(beta_.size()) {
        std::copy(beta.begin(), beta.end(), beta_.begin());
    }
    void store(std::span<double> beta) const { std::copy_n(beta_.begin(), beta.size(), beta.begin()); }

    /// beta += β_q; returns the sum of the α of the query.
    double start(std::int64_t q, const double *V) {
        arrange(q);
        const Factors v{V, p_.n_factors};
        const double sum = add_coefficients(v);
        range(q).add(c_.data(), beta_.data());
        return sum;
    }

    /// As printed.
    double step_by_pair(std::int64_t q, double rate, double *V) {
        arrange(q);
        const RowRange<Storage> rows = range(q);
        differences_.load(rows, p_.pairs.length(q));
        const Factors v{V, p_.n_factors};
        std::fill(change_.begin(), change_.end(), 0.0);
        levels_.each_pair([&](std::int64_t i, std::int64_t j) {  // line 6, (11)
            differences_.take(i, j);
            differences_.add(-v.dot(i, j), change_.data());
            v.add_slopes(i, j, differences_.dot(beta_.data()) - 1.0, slopes_.data());
        });
        move(q, rate, V);
        double sum = 0;
        levels_.each_pair([&](std::int64_t i, std::int64_t j) {  // line 10
            const double alpha = v.dot(i, j);
            differences_.take(i, j);
            differences_.add(alpha, change_.data());
            sum += alpha;
        });
        for (std::size_t c = 0; c < beta_.size(); ++c) beta_[c] += change_[c];  // line 11
        return sum;
    }

    /// ⟨β, x_i - x_j⟩ = t_i - t_j, and the change of β from that of c.
    double step_by_row(std::int64_t q, double rate, double *V) {
        arrange(q);
        const RowRange<Storage> rows = range(q);
        t_.resize(c_.size());
        rows.dot(beta_.data(), t_.data());
        const Factors v{V, p_.n_factors};
        levels_.each_pair([&](std::int64_t i, std::int64_t j) {
            const double alpha = v.dot(i, j);
            c_[i] -= alpha;
            c_[j] += alpha;
            v.add_slopes(i, j, t_[i] - t_[j] - 1.0, slopes_.data());
        });
        move(q, rate, V);
        const double sum = add_coefficients(v);
        rows.add(c_.data(), beta_.data());
        return sum;
    }

private:
    RowRange<Storage> range(std::int64_t q) const {
        return {rows_, p_.order, p_.pairs.begin(q), p_.pairs.length(q)};
    }
    void arrange(std::int64_t q) {
        levels_.arrange(p_.pairs, q);
        c_.assign(p_.pairs.length(q), 0.0);
        slopes_.assign(p_.pairs.length(q) * p_.n_factors, 0.0);
    }
    /// c += the coefficients of β_q = Σ c_i x_i; returns the sum of α.
    double add_coefficients(const Factors &v) {
        double sum = 0;
        levels_.each_pair([&](std::int64_t i, std::int64_t j) {
            const double alpha = v.dot(i, j);
            c_[i] += alpha;
            c_[j] -= alpha;
            sum += alpha;
        });
        return sum;
    }
    /// Line 8 with (12), for all rows.
    void move(std::int64_t q, double rate, double *V) const {
        const double *largest = p_.largest.data() + p_.pairs.begin(q);
        const std::int64_t K = p_.n_factors;
        for (std::int64_t i = 0; i < p_.pairs.length(q); ++i)
            for (std::int64_t k = i * K; k < (i + 1) * K; ++k)
                V[k] = std::clamp(V[k] - rate * slopes_[k], 0.0, largest[i]);
    }

    const FactorPairs &p_;
    const Storage &rows_;
    Differences<Storage> differences_;
    LevelOrder levels_;
    std::vector<double> beta_, change_, c_, t_, slopes_;
};

/// visit(epoch, q, first number of the query in V) for every query that has pairs; the sum of what it
/// returns. β is beta, before and after.
template <class Visit>
double each_query(const FactorPairs &problem, std::span<double> beta, const Visit &visit) {
    return std::visit([&](const auto &rows) {
        Epoch epoch(problem, rows, beta);
        double sum = 0;
        for (std::int64_t q = 0; q < problem.pairs.n_queries(); ++q)
            if (problem.pairs.has_pairs(q))
                sum += visit(epoch, q, problem.pairs.begin(q) * problem.n_factors);
        epoch.store(beta);
        return sum;
    }, problem.rows);
}

}  // namespace

double factor_start(const FactorPairs &problem, std::span<const double> V, std::span<double> beta) {
    std::fill(beta.begin(), beta.end(), 0.0);
    return each_query(problem, beta, [&](auto &epoch, std::int64_t q, std::int64_t at) {
        return epoch.start(q, V.data() + at);
    });
}

double factor_epoch(const FactorPairs &problem, PairWork work, double rate, std::span<double> V,
                    std::span<double> beta) {
    return each_query(problem, beta, [&](auto &epoch, std::int64_t q, std::int64_t at) {
        double *v = V.data() + at;
        return work == PairWork::by_pair ? epoch.step_by_pair(q, rate, v)
                                         : epoch.step_by_row(q, rate, v);
    });
}

}  // namespace linrank::published
