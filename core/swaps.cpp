#include "swaps.hpp"

namespace linrank {
namespace {

constexpr Index piece_rows = 2048;  // their scores, gains, places and slopes stay in the nearest caches
constexpr Index n_tasks = 64;

/// Rows [begin, end) of query q, as the later rows of its pairs.
struct Piece {
    Index q, begin, end;
};

std::vector<Piece> pieces_of(const SwapProblem &problem) {
    std::vector<Piece> pieces;
    for (Index q = 0; q < problem.n_queries(); ++q) {
        const Index end = problem.offsets[q + 1];
        for (Index begin = problem.offsets[q]; begin < end; begin += piece_rows)
            pieces.push_back({q, begin, std::min(begin + piece_rows, end)});
    }
    return pieces;
}

/// Bounds of at most n_parts ranges of 0..n with about the same cost, cost_of(k) being that of the k-th.
std::vector<Index> parts_of_cost(Index n, Index n_parts, const auto &cost_of) {
    std::vector<Index> total(n + 1);
    for (Index k = 0; k < n; ++k) total[k + 1] = total[k] + cost_of(k);
    return equal_parts(n, n_parts, [&](Index k) { return total[k]; });
}

/// d_i = Σ_j ω_ij l'' over the pairs of each row of a query.
void degrees_of(const SwapPoint &point, Index q, std::vector<double> &degree, std::vector<double> &bent) {
    const SwapProblem &p = point.problem();
    const Index begin = p.offsets[q], n = p.length(q);
    degree.assign(n, 0.0);
    bent.resize(n);
    for (Index t = 0; t < std::min<Index>(p.depth[q], n); ++t) {
        point.curvatures(begin + t, begin + t + 1, begin + n, bent.data());
        double own = 0;
        for (Index j = t + 1; j < n; ++j) {
            degree[j] += bent[j - t - 1];
            own += bent[j - t - 1];
        }
        degree[t] += own;
    }
}

/// XᵀΛX, Λ the Laplacian of the curved pairs, gathered query by query in blocks for add_cross_product.
///
/// With d the degrees and h the curvatures, XᵀΛX = Σ_i d_i x_i x_iᵀ - Σ_t (x_t y_tᵀ + y_t x_tᵀ) over the first
/// rows t, y_t = Σ_{j > t} h_tj x_j: a sum of as many outer products as there are rows, and two for each first
/// row, where the sum over pairs would take depth times as many. Rows are centered by query, which changes
/// nothing and saves float32 from large offsets.
template <class Storage>
class SwapGram {
    using Real = typename Storage::value_type;

public:
    SwapGram(const Storage &storage, Index padded)
        : product(sum, padded), storage_(storage), padded_(padded), x_(padded), y_(slab_rows * padded),
          tops_(y_.size()) {}

    std::vector<double> sum;
    CrossProduct<Real> product;

    void add(Order order, const SwapPoint &point, Index q) {
        const SwapProblem &p = point.problem();
        const Index begin = p.offsets[q], n = p.length(q);
        const Index depth = std::min<Index>(p.depth[q], n);
        if (depth == 0) return;
        degrees_of(point, q, degree_, bent_);
        const CenteredRows<Storage> rows(storage_, order, begin, n);
        bent_.resize(slab_rows * piece_rows);
        for (Index slab = 0; slab < depth; slab += slab_rows)
            add_slab(rows, point, begin, slab, std::min(slab + slab_rows, depth), n);
    }

private:
    static constexpr Index slab_rows = 64;

    /// The first rows [slab, end) with all rows after them; with the first slab, the term of the degrees.
    void add_slab(const CenteredRows<Storage> &rows, const SwapPoint &point, Index begin, Index slab,
                  Index end, Index n) {
        std::fill(y_.begin(), y_.end(), Real(0));
        for (Index first = slab; first < n; first += piece_rows) {
            const Index last = std::min(first + piece_rows, n);
            for (Index t = slab; t < std::min(end, last); ++t) {
                const Index after = std::max(t + 1, first);
                point.curvatures(begin + t, begin + after, begin + last,
                                 bent_.data() + (t - slab) * piece_rows + (after - first));
            }
            for (Index j = first; j < last; ++j) {
                if (degree_[j] == 0.0) continue;
                rows.unpack(j, 0, padded_, x_.data());
                if (j < end) std::copy_n(x_.data(), padded_, tops_.data() + (j - slab) * padded_);
                for (Index t = slab; t < std::min(end, j); ++t) {
                    const double h = bent_[(t - slab) * piece_rows + j - first];
                    if (h != 0.0) kernels_.axpy(padded_, Real(h), x_.data(), y_.data() + (t - slab) * padded_);
                }
                if (slab == 0) put(x_.data(), Real(degree_[j]), x_.data());
            }
        }
        for (Index t = slab; t < end; ++t) {
            if (degree_[t] == 0.0) continue;
            const Real *x = tops_.data() + (t - slab) * padded_, *y = y_.data() + (t - slab) * padded_;
            put(x, Real(-1), y);
            put(y, Real(-1), x);
        }
    }
    /// The term factor·x yᵀ.
    void put(const Real *x, Real factor, const Real *y) {
        std::copy_n(x, padded_, product.a());
        Real *b = product.b();
        for (Index c = 0; c < padded_; ++c) b[c] = factor * y[c];
        product.add();
    }

    const RowKernels<Real> &kernels_ = simd().of<Real>();
    Storage storage_;
    Index padded_;
    std::vector<Real> x_, y_, tops_;
    std::vector<double> degree_, bent_;
};

}  // namespace

std::vector<Index> SwapProblem::query_parts(Index n_parts) const {
    return parts_of_cost(n_queries(), n_parts, [&](Index q) { return length(q) * (depth[q] + 1); });
}

SwapTotals swap_totals(const SwapProblem &problem, int n_threads) {
    struct Scratch {
        std::vector<double> scores, weight;
    };
    const auto n_queries = std::size_t(problem.n_queries());
    SwapTotals totals{std::vector<double>(n_queries), std::vector<Index>(n_queries)};
    for_each_query<Scratch>(problem.offsets, n_threads, [&](Index q, Scratch &scratch) {
        auto &[scores, weight] = scratch;
        const Index begin = problem.offsets[q], n = problem.length(q);
        scores.assign(n, 0.0);
        weight.resize(n);
        double total = 0;
        Index n_pairs = 0;
        for (Index t = begin; t < begin + problem.depth[q]; ++t) {
            // At equal scores every slack is 1: a Huber loss of ε = 1 has the curvature ω there.
            const Index after = begin + n - t - 1;
            simd().swap_curvatures({PairLoss::huber, 1.0}, problem.row(t, 0.0),
                                      problem.rows(t + 1, begin + n, scores.data()), weight.data());
            for (Index j = 0; j < after; ++j) {
                total += weight[j];
                n_pairs += weight[j] > 0.0;
            }
        }
        totals.weight[q] = total;
        totals.n_pairs[q] = n_pairs;
    });
    return totals;
}

/// Calls visit(task, t, first, last, out + first) for the pairs of each row t with the rows [first, last) of a
/// piece, which returns what is to be added to out[t]; those sums are kept apart and added piece by piece, so
/// that no two threads write to the same number.
template <class Visit>
void SwapPoint::for_each_piece(int n_threads, double *out, const Visit &visit) const {
    const SwapProblem &p = problem_;
    const std::vector<Piece> pieces = pieces_of(p);
    const auto n = Index(pieces.size());
    const auto bounds = parts_of_cost(n, n_tasks, [&](Index k) {
        return (pieces[k].end - pieces[k].begin) * (p.depth[pieces[k].q] + 1);
    });
    std::vector<std::vector<double>> own(n);
    parallel_for(Index(bounds.size()) - 1, n_threads, [&](Index task) {
        for (Index k = bounds[task]; k < bounds[task + 1]; ++k) {
            const Piece &piece = pieces[k];
            std::fill(out + piece.begin, out + piece.end, 0.0);
            const Index begin = p.offsets[piece.q];
            const Index end = std::min<Index>(begin + p.depth[piece.q], piece.end);
            std::vector<double> &sums = own[k];
            sums.resize(std::max<Index>(end - begin, 0));
            for (Index t = begin; t < end; ++t) {
                const Index first = std::max(t + 1, piece.begin);
                sums[t - begin] = visit(task, t, first, piece.end, out + first);
            }
            if (piece.begin == begin && piece.end == p.offsets[piece.q + 1]) {
                for (std::size_t t = 0; t < sums.size(); ++t) out[begin + Index(t)] += sums[t];
                sums = {};
            }
        }
    });
    for (Index k = 0; k < n; ++k) {
        double *begin = out + p.offsets[pieces[k].q];
        for (std::size_t t = 0; t < own[k].size(); ++t) begin[t] += own[k][t];
    }
}

SwapPoint::SwapPoint(const SwapProblem &problem, PairLoss loss, Doubles z, int n_threads)
    : LossPoint(z.size()), problem_(problem), loss_(loss), z_(z.size(), huge_pages) {
    std::copy(z.begin(), z.end(), z_.data());
    std::vector<SwapSums> sums(n_tasks);
    for_each_piece(n_threads, gradient.data(), [&](Index task, Index t, Index first,
                                                   Index last, double *out) {
        const SwapSums s = simd().add_swaps(loss_, row(t), rows(first, last), out);
        add_sums(sums[task], s);
        return s.gradient;
    });
    const SwapSums total = sum_of(sums);
    set_sums(total);
    // The longest chain of additions: a row's pairs by eights within a piece, the pieces of a task, the tasks.
    const Index longest = longest_range(problem_.offsets);
    Index n_rows_of_pairs = 0;
    for (Index q = 0; q < problem_.n_queries(); ++q)
        n_rows_of_pairs += problem_.depth[q] * (1 + problem_.length(q) / piece_rows);
    const double chain = double(std::min(longest, piece_rows) / 8 + n_rows_of_pairs + n_tasks + 24);
    // A slack is off by two roundings of what it is the difference of, off <= 4μ(1 + |ξ|), and its sign may be
    // as well; so the sums of ω·off and of ω (l' + off) off over all pairs with ξ > -off are at most
    const double off = 4.0 * unit_roundoff;
    const double spread = 1.0001 * off * (total.all + sum_of_slacks);
    set_errors(loss_.kind == PairLoss::squared_hinge
                   ? 1.0001 * off * (2.0 * (sum_of_slacks + value) + off * (total.all + value))
                   : spread,
               spread, chain);
    gradient_error = 2.0 * unit_roundoff * double(longest + 8) * total.slope;
}

void SwapPoint::multiply(Doubles v, std::span<double> out, int n_threads) const {
    for_each_piece(n_threads, out.data(), [&](Index, Index t, Index first, Index last,
                                              double *sums) {
        return simd().multiply_swaps(loss_, row(t), rows(first, last), v[t], v.data() + first, sums);
    });
}

void SwapPoint::curvatures(Index t, Index first, Index last, double *out) const {
    simd().swap_curvatures(loss_, row(t), rows(first, last), out);
}

std::vector<double> hessian_matrix(const Positions &x, const SwapPoint &point, int n_threads) {
    const PaddedSquare square(n_columns(x.rows));
    const std::vector<Index> bounds = point.problem().query_parts(square.n_parts());
    return square.sum(parts_of(x.rows, std::ssize(bounds) - 1, n_threads,
                               [&](const auto &storage, Index k) {
        SwapGram gram(storage, square.padded);
        for (Index q = bounds[k]; q < bounds[k + 1]; ++q) gram.add(x.order, point, q);
        gram.product.flush();
        return std::move(gram.sum);
    }), 1.0, n_threads);
}

std::vector<double> hessian_diagonal(const Positions &x, const SwapPoint &point, int n_threads) {
    const std::vector<Index> bounds = point.problem().query_parts(n_accumulators(x.rows));
    return sum_diagonal(x.rows, std::ssize(bounds) - 1, n_threads,
                        [&](const auto &storage, Index k) {
        std::vector<double> out(storage.n_columns), degree, bent;
        for (Index q = bounds[k]; q < bounds[k + 1]; ++q) {
            degrees_of(point, q, degree, bent);
            for (Index i = 0; i < std::ssize(degree); ++i)
                if (degree[i] != 0.0)
                    for_each_entry(storage, row_at(x.order, point.problem().offsets[q] + i),
                                   [&](Index c, double v) { out[c] += degree[i] * v * v; });
        }
        return out;
    });
}

}  // namespace linrank
