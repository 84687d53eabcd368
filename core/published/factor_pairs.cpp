#include "factor_pairs.hpp"

#include "../queries.hpp"

namespace linrank::published {
namespace {

/// The rows of a query in ascending order of level: the losers of the pairs of by_level[s] are all before
/// lower[s], so a loop over pairs neither looks at levels nor reads a list.
struct LevelOrder {
    std::vector<std::int32_t> by_level;
    std::vector<Index> first, lower;

    void arrange(const PairProblem &pairs, Index q) {
        const std::int32_t *level = pairs.levels.data() + pairs.begin(q);
        const Index n = pairs.length(q);
        by_level.resize(n), lower.resize(n);
        first = counting_sort(n, pairs.n_levels[q], [&](Index i) { return level[i]; },
                              [&](Index i, Index s) { by_level[s] = std::int32_t(i); });
        for (Index s = 0; s < n; ++s) lower[s] = first[level[by_level[s]]];
    }

    /// visit(i, j) for every pair, rows counted from the beginning of the query.
    template <class Visit>
    void each_pair(const Visit &visit) const {
        for (std::size_t s = std::size_t(first[1]); s < by_level.size(); ++s)
            for (Index r = 0; r < lower[s]; ++r)
                visit(Index(by_level[s]), Index(by_level[r]));
    }
};

/// The difference of two rows.
template <class Storage>
class Difference {
public:
    Difference(const Storage &storage, Index winner, Index loser)
        : storage_(storage), rows_{winner, loser} {}

    double dot(const double *w) const {
        double z[2];
        RowRange<Storage>(storage_, rows_, 0, 2).dot(w, z);
        return z[0] - z[1];
    }
    void add(double a, double *w) const {
        const double factors[] = {a, -a};
        RowRange<Storage>(storage_, rows_, 0, 2).add(factors, w);
    }

private:
    const Storage &storage_;
    std::array<Index, 2> rows_;
};

/// The vectors v of the rows of a query.
struct Factors {
    const double *values;
    Index K;

    const double *operator[](Index i) const { return values + i * K; }
    double dot(Index i, Index j) const {
        const double *a = (*this)[i], *b = (*this)[j];
        double sum = 0;
        for (Index k = 0; k < K; ++k) sum += a[k] * b[k];
        return sum;
    }
    /// g_i += a v_j, g_j += a v_i
    void add_slopes(Index i, Index j, double a, double *slopes) const {
        const double *vi = (*this)[i], *vj = (*this)[j];
        double *__restrict gi = slopes + i * K, *__restrict gj = slopes + j * K;
        for (Index k = 0; k < K; ++k) {
            gi[k] += a * vj[k];
            gj[k] += a * vi[k];
        }
    }
};

template <class Storage>
class Epoch {
public:
    Epoch(const FactorPairs &problem, const Storage &rows, std::span<double> beta)
        : p_(problem), rows_(rows), beta_(beta), change_(beta.size()) {}

    /// beta += β_q; returns the sum of the α of the query.
    double start(Index q, const double *V) {
        arrange(q);
        const Factors v{V, p_.n_factors};
        const double sum = add_coefficients(v);
        range(q).add(c_.data(), beta_.data());
        return sum;
    }

    /// As printed.
    double step_by_pair(Index q, double rate, double *V) {
        arrange(q);
        const Factors v{V, p_.n_factors};
        std::fill(change_.begin(), change_.end(), 0.0);
        levels_.each_pair([&](Index i, Index j) {  // line 6, (11)
            const Difference x = difference(q, i, j);
            x.add(-v.dot(i, j), change_.data());
            v.add_slopes(i, j, x.dot(beta_.data()) - 1.0, slopes_.data());
        });
        move(q, rate, V);
        double sum = 0;
        levels_.each_pair([&](Index i, Index j) {  // line 10
            const double alpha = v.dot(i, j);
            difference(q, i, j).add(alpha, change_.data());
            sum += alpha;
        });
        for (std::size_t c = 0; c < beta_.size(); ++c) beta_[c] += change_[c];  // line 11
        return sum;
    }

    /// ⟨β, x_i - x_j⟩ = t_i - t_j, and the change of β from that of c.
    double step_by_row(Index q, double rate, double *V) {
        arrange(q);
        const RowRange<Storage> rows = range(q);
        t_.resize(c_.size());
        rows.dot(beta_.data(), t_.data());
        const Factors v{V, p_.n_factors};
        levels_.each_pair([&](Index i, Index j) {
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
    RowRange<Storage> range(Index q) const {
        return {rows_, p_.order, p_.pairs.begin(q), p_.pairs.length(q)};
    }
    Difference<Storage> difference(Index q, Index i, Index j) const {
        const Index begin = p_.pairs.begin(q);
        return {rows_, row_at(p_.order, begin + i), row_at(p_.order, begin + j)};
    }
    void arrange(Index q) {
        levels_.arrange(p_.pairs, q);
        c_.assign(p_.pairs.length(q), 0.0);
        slopes_.assign(p_.pairs.length(q) * p_.n_factors, 0.0);
    }
    /// c += the coefficients of β_q = Σ c_i x_i; returns the sum of α.
    double add_coefficients(const Factors &v) {
        double sum = 0;
        levels_.each_pair([&](Index i, Index j) {
            const double alpha = v.dot(i, j);
            c_[i] += alpha;
            c_[j] -= alpha;
            sum += alpha;
        });
        return sum;
    }
    /// Line 8 with (12), for all rows.
    void move(Index q, double rate, double *V) const {
        const double *largest = p_.largest.data() + p_.pairs.begin(q);
        const Index K = p_.n_factors;
        for (Index i = 0; i < p_.pairs.length(q); ++i)
            for (Index k = i * K; k < (i + 1) * K; ++k)
                V[k] = std::clamp(V[k] - rate * slopes_[k], 0.0, largest[i]);
    }

    const FactorPairs &p_;
    const Storage &rows_;
    std::span<double> beta_;
    LevelOrder levels_;
    std::vector<double> change_, c_, t_, slopes_;
};

/// visit(epoch, q, first number of the query in V) for every query that has pairs; the sum of what it
/// returns. β is beta, before and after.
template <class Visit>
double each_query(const FactorPairs &problem, std::span<double> beta, const Visit &visit) {
    return std::visit([&](const auto &rows) {
        Epoch epoch(problem, rows, beta);
        double sum = 0;
        for (Index q = 0; q < problem.pairs.n_queries(); ++q)
            if (problem.pairs.has_pairs(q))
                sum += visit(epoch, q, problem.pairs.begin(q) * problem.n_factors);
        return sum;
    }, problem.rows);
}

}  // namespace

double factor_start(const FactorPairs &problem, Doubles V, std::span<double> beta) {
    std::fill(beta.begin(), beta.end(), 0.0);
    return each_query(problem, beta, [&](auto &epoch, Index q, Index at) {
        return epoch.start(q, V.data() + at);
    });
}

double factor_epoch(const FactorPairs &problem, PairWork work, double rate, std::span<double> V,
                    std::span<double> beta) {
    return each_query(problem, beta, [&](auto &epoch, Index q, Index at) {
        double *v = V.data() + at;
        return work == PairWork::by_pair ? epoch.step_by_pair(q, rate, v)
                                         : epoch.step_by_row(q, rate, v);
    });
}

}  // namespace linrank::published
