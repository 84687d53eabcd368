#include "domination.hpp"

#include <deque>

namespace linrank {

namespace {

constexpr Index parts_of_long = 16;
constexpr Index most_mean_cells = 1 << 22;  // numbers by layer and column, for all parts
constexpr Index most_layers = 64;           // of an exact diagonal

/// What a row has to do with the Hessian: the curvature that rows above it give it, and its own.
struct RowTerms {
    double pulled;  // π_j T_κ
    double own;     // b_j = ω_j ρ_j (1 - ρ_j)

    RowTerms(const DominationPoint &point, Index q, Index t) {
        const Layering &l = point.layering;
        const auto cell = std::size_t(l.first_cell[q] + l.levels[t]);
        const double rho = point.rho[t];
        pulled = point.share[t] * point.pull[cell];
        own = l.c(q) * l.u(t) * rho * (1.0 - rho);
    }
    double sum() const { return pulled + own; }
};

/// By layer of one query: the mean row a_κ of the layer, weighted by π, and the mean row x̄_k of
/// all lower layers, weighted as in Z_k.
struct LayerMeans {
    Index n;
    std::vector<double> own, below;

    template <class Storage>
    LayerMeans(const Storage &storage, Order order, const DominationPoint &point, Index q,
               int n_threads)
        : n(storage.n_columns) {
        const Layering &l = point.layering;
        const Index begin = l.begin(q), length = l.length(q), size = l.n_levels[q] * n;
        const Index fitting = std::max<Index>(1, most_mean_cells / std::max<Index>(1, size));
        const Index n_parts = length >= 1 << 16 ? std::min(parts_of_long, fitting) : 1;
        std::vector<std::vector<double>> parts(n_parts);
        for_parts(length, n_parts, n_threads, [&](Index p, Index first, Index last) {
            std::vector<double> &sums = parts[p];
            sums.assign(size, 0.0);
            for (Index t = begin + first; t < begin + last; ++t)
                RowRange<Storage>(storage, order, t, 1).add(&point.share[t],
                                                            &sums[l.levels[t] * n]);
        });
        own = std::move(parts[0]);
        for (std::size_t p = 1; p < parts.size(); ++p)
            for (std::size_t c = 0; c < own.size(); ++c) own[c] += parts[p][c];
        below.resize(own.size());
        point.shares.average_below(q, own.data(), below.data(), n);
    }
    const double *of(std::size_t k) const { return own.data() + k * std::size_t(n); }
    const double *under(std::size_t k) const { return below.data() + k * std::size_t(n); }
};

/// XᵀHX with H = ∇²L(z), as a sum of squares but for a few vectors a layer.
///
/// p_i, the softmax of row i of layer k over itself and the rows below, has the covariance
/// ρ_i Cov(Z_k) + ρ_i (1 - ρ_i) (x_i - x̄_k)(x_i - x̄_k)ᵀ. Summed over i with b_i = ω_i ρ_i (1 -
/// ρ_i), and Cov(Z_k) taken apart into layers, row j of layer κ gets
///
///   π_j T_κ (x_j - a_κ)² + b_j (x_j - x̄_κ)² = d_j (x_j - μ_j)² + (π_j T_κ b_j / d_j) (a_κ -
/// x̄_κ)²
///
/// with squares for outer products, d_j = π_j T_κ + b_j and μ_j the mean of a_κ and x̄_κ weighted
/// so. What is between layers, Σ_κ T_κ a_κ a_κᵀ - Σ_k R_k x̄_k x̄_kᵀ, is summed in double: there
/// alone is a difference. Nothing depends on the offset of a query.
template <class Storage>
class DominationGram {
    using Real = typename Storage::value_type;

public:
    DominationGram(const Storage &storage, Order order, const DominationPoint &point, Index padded)
        : storage_(storage), order_(order), point_(point), x_(storage.n_columns),
          rows_(sum, padded), layers_(sum, padded, 16) {}

    std::vector<double> sum;  // on and above the diagonal, padded; empty if nothing was added

    /// The positions [first, last) of query q.
    void add_rows(const LayerMeans &means, Index q, Index first, Index last) {
        const RowRange<Storage> rows(storage_, order_, first, last - first);
        for (Index t = first; t < last; ++t) {
            const RowTerms terms(point_, q, t);
            const double d = terms.sum();
            if (!(d > 0.0)) continue;
            const auto k = std::size_t(point_.layering.levels[t]);
            const double of_layer = terms.pulled / d, of_lower = terms.own / d;
            const double *mean = means.of(k), *under = means.under(k);
            Real *a = rows_.a(), *b = rows_.b();
            rows.unpack(t - first, 0, storage_.n_columns, x_.data());
            for (std::size_t c = 0; c < x_.size(); ++c) {
                const double x = x_[c] - (of_layer * mean[c] + of_lower * under[c]);
                a[c] = Real(x);
                b[c] = Real(d * x);
            }
            rows_.add();
            if (rows_.is_at_start()) layers_.flush();
        }
    }
    /// Every other term of query q but those that add_rows found.
    void add_layers(const LayerMeans &means, Index q) {
        const Layering &l = point_.layering;
        const auto n_layers = std::size_t(l.n_levels[q]);
        const auto cell = std::size_t(l.first_cell[q]);
        coupling_.assign(n_layers, 0.0);
        for (Index t = l.offsets[q]; t < l.offsets[q + 1]; ++t) {
            const RowTerms terms(point_, q, t);
            if (terms.own > 0.0)
                coupling_[l.levels[t]] += terms.pulled * (terms.own / terms.sum());
        }
        const double *origin = means.under(n_layers - 1);
        for (std::size_t k = 0; k < n_layers; ++k) {
            add_square(coupling_[k], means.of(k), means.under(k));
            add_square(point_.pull[cell + k], means.of(k), origin);
            add_square(-point_.risk[cell + k], means.under(k), origin);
        }
    }
    void flush() {
        rows_.flush();
        layers_.flush();
    }

private:
    /// sum += factor (x - origin)(x - origin)ᵀ.
    void add_square(double factor, const double *x, const double *origin) {
        if (factor == 0.0 || x == origin) return;
        double *a = layers_.a(), *b = layers_.b();
        for (std::size_t c = 0; c < x_.size(); ++c) {
            a[c] = x[c] - origin[c];
            b[c] = factor * a[c];
        }
        layers_.add();
    }

    const Storage &storage_;
    const Order order_;
    const DominationPoint &point_;
    std::vector<double> x_;
    std::vector<double> coupling_;  // by layer: Σ π_j T_κ b_j / d_j
    CrossProduct<Real> rows_;
    CrossProduct<double> layers_;  // of vectors of layers
};

/// The diagonal, query by query: Σ_j d_j x_j² - Σ_k (2 v_k x̄_k + W_k x̄_k²) by column, v_k = Σ b_i
/// x_i and W_k = Σ ω_i ρ_i² over layer k.
template <class Storage>
class DiagonalSums {
public:
    DiagonalSums(const Storage &storage, Order order, const DominationPoint &point)
        : out(std::size_t(storage.n_columns)), storage_(storage), order_(order), point_(point),
          slot_(out.size(), -1) {}

    std::vector<double> out;

    void add(Index q) {
        const Layering &l = point_.layering;
        n_layers_ = l.n_levels[q];
        if (n_layers_ < 2) return;
        is_exact_ = n_layers_ <= most_layers;
        width_ = is_exact_ ? 2 * std::size_t(n_layers_) : 1;
        double total = 0;
        for (Index t = l.offsets[q]; t < l.offsets[q + 1]; ++t)
            total += add_row(q, t);
        for (std::size_t s = 0; s < columns_.size(); ++s) {
            const auto c = std::size_t(columns_[s]);
            if (is_exact_) out[c] -= mixed(q, s);
            else if (total > 0.0) out[c] -= sums_[s] * sums_[s] / total;
            slot_[c] = -1;
        }
        columns_.clear();
        sums_.clear();
    }

private:
    /// Sums by touched column: π x by layer, then b x by layer; or d x alone.
    double add_row(Index q, Index t) {
        const Layering &l = point_.layering;
        const RowTerms terms(point_, q, t);
        const double d = terms.sum(), share = point_.share[t];
        const auto k = std::size_t(l.levels[t]);
        const Index first = l.offsets[q];
        if (!(d > 0.0) && !(share > 0.0)) return 0.0;
        // Dense rows by their difference to one of the query: an offset of a column costs no
        // digits.
        const auto value = [&](Index c, double x) {
            if constexpr (requires { storage_.stride; })
                return x - double(storage_.values[row_at(order_, first) * storage_.stride + c]);
            else return static_cast<void>(c), x;
        };
        for_each_entry(storage_, row_at(order_, t), [&](Index c, double entry) {
            const double x = value(c, entry);
            if (x == 0.0) return;
            double *sums = sums_of(c);
            out[c] += d * x * x;
            if (!is_exact_) {
                sums[0] += d * x;
                return;
            }
            sums[k] += share * x;
            sums[n_layers_ + k] += terms.own * x;
        });
        return d;
    }
    double *sums_of(Index c) {
        Index &slot = slot_[c];
        if (slot < 0) {
            slot = Index(columns_.size());
            columns_.push_back(c);
            sums_.resize(sums_.size() + width_, 0.0);
        }
        return sums_.data() + std::size_t(slot) * width_;
    }
    double mixed(Index q, std::size_t s) {
        const double *mean = sums_.data() + s * width_, *own = mean + n_layers_;
        const double *square = point_.square_risk.data() + point_.layering.first_cell[q];
        below_.resize(n_layers_);
        point_.shares.average_below(q, mean, below_.data());
        double sum = 0;
        for (std::size_t k = 0; k < below_.size(); ++k)
            sum += (2.0 * own[k] + square[k] * below_[k]) * below_[k];
        return sum;
    }

    const Storage &storage_;
    const Order order_;
    const DominationPoint &point_;
    Index n_layers_ = 0;
    bool is_exact_ = true;
    std::size_t width_ = 0;
    std::vector<Index> slot_, columns_;
    std::vector<double> sums_, below_;
};

}  // namespace

std::vector<double> hessian_matrix(const Positions &x, const DominationPoint &point,
                                   int n_threads) {
    const PaddedSquare square(n_columns(x.rows));
    const Layering &l = point.layering;
    const std::vector<QueryChunk> chunks = l.chunks(square.n_parts());
    const Index n = std::max(square.n_parts(), std::ssize(chunks));
    std::vector<std::vector<double>> parts;
    std::visit([&]<class Storage>(const Storage &storage) {
        std::deque<DominationGram<Storage>> grams;
        for (Index k = 0; k < n; ++k) grams.emplace_back(storage, x.order, point, square.padded);
        for_each_query<std::monostate>(chunks, n_threads, [&](Index c, Index q, std::monostate) {
            if (l.n_levels[q] < 2) return;
            const Index begin = l.offsets[q], end = l.offsets[q + 1];
            const bool is_long = chunks[c].is_long;
            const LayerMeans means(storage, x.order, point, q, is_long ? n_threads : 1);
            if (is_long)
                for_parts(end - begin, n, n_threads, [&](Index k, Index first, Index last) {
                    grams[k].add_rows(means, q, begin + first, begin + last);
                });
            else grams[c].add_rows(means, q, begin, end);
            grams[is_long ? 0 : c].add_layers(means, q);
        });
        for (DominationGram<Storage> &gram : grams) {
            gram.flush();
            parts.push_back(std::move(gram.sum));
        }
    }, x.rows);
    return square.sum(parts, 1.0, n_threads);
}

std::vector<double> hessian_diagonal(const Positions &x, const DominationPoint &point,
                                     int n_threads) {
    const std::vector<QueryChunk> chunks = point.layering.chunks(n_accumulators(x.rows));
    return sum_diagonal(x.rows, std::ssize(chunks), n_threads, [&](const auto &storage, Index k) {
        DiagonalSums sums(storage, x.order, point);
        for (Index q = chunks[k].first; q < chunks[k].last; ++q) sums.add(q);
        return std::move(sums.out);
    });
}

}  // namespace linrank
