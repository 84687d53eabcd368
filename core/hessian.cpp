#include "hessian.hpp"

namespace linrank {

namespace {

/// Totals in the fast type, poured into a total in double before their rounding counts.
template <class T>
class Accumulator {
public:
    static constexpr Index most_rows = 256;  // to be added between open and close

    explicit Accumulator(std::size_t n) : total_(n, 0.0) {
        if constexpr (!std::is_same_v<T, double>) fast_.assign(n, T(0));
    }
    T *open() {
        if constexpr (std::is_same_v<T, double>) return total_.data();
        else return fast_.data();
    }
    void close(Index n_rows) {
        if constexpr (!std::is_same_v<T, double>)
            if ((pending_ += n_rows) >= most_rows) add_to_total();
    }
    std::vector<double> take() {
        if constexpr (!std::is_same_v<T, double>) add_to_total();
        return std::move(total_);
    }

private:
    void add_to_total() {
        for (std::size_t c = 0; c < total_.size(); ++c) {
            total_[c] += double(fast_[c]);
            fast_[c] = T(0);
        }
        pending_ = 0;
    }
    std::vector<double> total_;
    std::vector<T> fast_;
    Index pending_ = 0;
};

template <class Storage>
std::vector<double> chunk_product(const Storage &storage, Order order, const PairPoint &point,
                                  const QueryChunk &chunk, Doubles v, std::span<double> image) {
    const PairProblem &problem = point.problem();
    using Total = Accumulator<typename FastSum<Storage>::type>;
    Total total(std::size_t(storage.n_columns));
    SweepScratch scratch;
    std::vector<double> u;
    for (Index q = chunk.first; q < chunk.last; ++q) {
        const Index begin = problem.begin(q), n = problem.length(q);
        if (!problem.has_pairs(q)) {
            std::fill_n(image.data() + begin, n, 0.0);
            continue;
        }
        const RowRange<Storage> rows(storage, order, begin, n);
        double *z = image.data() + begin;
        u.resize(n);
        rows.dot(v.data(), z);
        point.multiply(q, z, u.data(), scratch);
        for (Index first = 0, last; first < n; first = last) {
            last = std::min(first + Total::most_rows, n);
            RowRange<Storage>(storage, order, begin + first, last - first)
                .add_cached(u.data() + first, total.open());
            total.close(last - first);
        }
    }
    return total.take();
}

/// A long query does not fit any cache: two passes, each shared by the threads.
template <class Storage>
std::vector<double> long_product(const Storage &storage, Order order, const PairPoint &point,
                                 Index q, Doubles v, std::span<double> image,
                                 Index n_parts, int n_threads) {
    const Index begin = point.problem().begin(q), n = point.problem().length(q);
    PageArray<double> u(n, huge_pages);
    for_parts(n, n_parts, n_threads, [&](Index, Index first, Index last) {
        RowRange<Storage>(storage, order, begin + first, last - first).dot(v.data(), image.data() + begin + first);
    });
    point.multiply_long(q, image.data() + begin, u.data(), n_threads);
    std::vector<std::vector<double>> totals(n_parts);
    for_parts(n, n_parts, n_threads, [&](Index k, Index first, Index last) {
        totals[k].assign(v.size(), 0.0);
        RowRange<Storage>(storage, order, begin + first, last - first).add(u.data() + first, totals[k].data());
    });
    std::vector<double> out(v.size());
    reduce(totals, out, n_threads);
    return out;
}

}  // namespace

void hessian_product(const Rows &rows, Order order, const PairPoint &point, Doubles v,
                     std::span<double> out, std::span<double> image, int n_threads) {
    const Index n_parts = n_accumulators(rows);
    const std::vector<QueryChunk> chunks = point.problem().chunks(n_parts);
    std::vector<std::vector<double>> totals(chunks.size());
    std::visit([&]<class Storage>(const Storage &storage) {
        parallel_for(Index(chunks.size()), n_threads, [&](Index k) {
            const QueryChunk &chunk = chunks[k];
            if (chunk.is_long) return;
            totals[k] = chunk_product(storage, order, point, chunk, v, image);
        });
        for (std::size_t k = 0; k < chunks.size(); ++k)
            if (chunks[k].is_long)
                totals[k] = long_product(storage, order, point, chunks[k].first, v, image, n_parts,
                                         n_threads);
    }, rows);
    reduce(totals, out, n_threads);
}

std::vector<double> hessian_matrix(const Rows &rows, Order order, const PairPoint &point,
                                   int n_threads) {
    const PaddedSquare square(n_columns(rows));
    const PairProblem &problem = point.problem();
    const std::vector<QueryChunk> chunks = problem.chunks(square.n_parts());
    return square.sum(parts_of(rows, Index(chunks.size()), n_threads, [&](const auto &storage, Index k) {
        GramAccumulator gram(storage);
        for (Index q = chunks[k].first; q < chunks[k].last; ++q)
            if (problem.has_pairs(q)) gram.add(order, point, q);
        gram.product.flush();
        return std::move(gram.sum);
    }), point.curvature(), n_threads);
}

std::vector<double> hessian_diagonal(const Rows &rows, Order order, const PairPoint &point,
                                     int n_threads) {
    const PairProblem &problem = point.problem();
    const std::vector<QueryChunk> chunks = problem.chunks(n_accumulators(rows));
    const double curve = point.curvature();
    return sum_diagonal(rows, Index(chunks.size()), n_threads, [&](const auto &storage, Index k) {
        std::vector<double> out(storage.n_columns), first_moment(out.size());
        std::vector<Index> touched;
        for (Index q = chunks[k].first; q < chunks[k].last; ++q) {
            if (!problem.has_pairs(q)) continue;
            double total_degree = 0;
            for (Index t = 0; t < problem.length(q); ++t) {
                const double degree = point.degree(q)[t];
                // Of a band, rounding may leave a little less than nothing; with none of that the estimate
                // is not negative, and never divided by 0.
                if (!(degree > 0.0)) continue;
                total_degree += degree;
                for_each_entry(storage, row_at(order, problem.begin(q) + t), [&](Index c, double x) {
                    if (x == 0.0) return;  // `touched` would get an entry for every zero of dense rows
                    if (first_moment[c] == 0.0) touched.push_back(c);
                    first_moment[c] += degree * x;
                    out[c] += curve * degree * x * x;
                });
            }
            for (const Index c : touched) {
                double &moment = first_moment[c];
                out[c] -= curve * moment * moment / total_degree;
                moment = 0.0;
            }
            touched.clear();
        }
        return out;
    });
}

}  // namespace linrank
