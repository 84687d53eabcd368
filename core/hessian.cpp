#include "hessian.hpp"

namespace linrank {

namespace {

/// Totals in the fast type, added to a total in double before their rounding counts.
template <class T>
class Accumulator {
public:
    static constexpr Index most_rows = 256;  // to be added between open and close

    explicit Accumulator(std::size_t n) : total_(n), fast_(is_narrow ? n : 0) {}
    T *open() {
        if constexpr (is_narrow) return fast_.data();
        else return total_.data();
    }
    void close(Index n_rows) {
        if ((pending_ += n_rows) >= most_rows) add_to_total();
    }
    std::vector<double> take() {
        add_to_total();
        return std::move(total_);
    }

private:
    static constexpr bool is_narrow = !std::is_same_v<T, double>;

    void add_to_total() {
        for (std::size_t c = 0; c < fast_.size(); ++c)
            total_[c] += double(std::exchange(fast_[c], T(0)));
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
        double *z = image.data() + begin;
        if (!problem.has_pairs(q)) {
            std::fill_n(z, n, 0.0);
            continue;
        }
        u.resize(n);
        RowRange<Storage>(storage, order, begin, n).dot(v.data(), z);
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
std::vector<double> long_product(const Positions &x, const PairPoint &point, Index q, Doubles v,
                                 std::span<double> image, int n_threads) {
    const Positions own{x.rows, x.order, point.problem().begin(q), point.problem().length(q)};
    PageArray<double> u(own.n, huge_pages);
    multiply(own, v, image.subspan(own.first, own.n), n_threads);
    point.multiply_long(q, image.data() + own.first, u.data(), n_threads);
    return multiply_transposed(own, u.view(), n_threads);
}

}  // namespace

std::vector<double> hessian_product(const Positions &x, const PairPoint &point, Doubles v,
                                    std::span<double> image, int n_threads) {
    const std::vector<QueryChunk> chunks = point.problem().chunks(n_accumulators(x.rows));
    const Index n_chunks = std::ssize(chunks);
    auto totals = parts_of(x.rows, n_chunks, n_threads, [&](const auto &storage, Index k) {
        if (chunks[k].is_long) return std::vector<double>();
        return chunk_product(storage, x.order, point, chunks[k], v, image);
    });
    for (Index k = 0; k < n_chunks; ++k)
        if (chunks[k].is_long)
            totals[k] = long_product(x, point, chunks[k].first, v, image, n_threads);
    return reduce(totals, v.size(), n_threads);
}

std::vector<double> hessian_matrix(const Positions &x, const PairPoint &point, int n_threads) {
    const PaddedSquare square(n_columns(x.rows));
    const PairProblem &problem = point.problem();
    struct Task {
        QueryChunk chunk;
        Index part, n_parts;
    };
    // Where queries are few, a chunk of one is shared by its columns: to the last bit the same sum.
    const std::vector<QueryChunk> chunks = problem.chunks(square.n_parts());
    std::vector<Task> tasks;
    for (const QueryChunk &chunk : chunks) {
        const Index n = chunk.last - chunk.first == 1 ? square.n_parts() / std::ssize(chunks) : 1;
        for (Index part = 0; part < std::max<Index>(1, n); ++part)
            tasks.push_back({chunk, part, std::max<Index>(1, n)});
    }
    return square.sum(parts_of(x.rows, std::ssize(tasks), n_threads,
                               [&](const auto &storage, Index k) {
        const auto &[chunk, part, n_parts] = tasks[k];
        GramAccumulator gram(storage);
        for (Index q = chunk.first; q < chunk.last; ++q)
            if (problem.has_pairs(q)) gram.add(x.order, point, q, part, n_parts);
        gram.product.flush();
        return std::move(gram.sum);
    }), point.curvature(), n_threads);
}

std::vector<double> hessian_diagonal(const Positions &x, const PairPoint &point, int n_threads) {
    const PairProblem &problem = point.problem();
    const std::vector<QueryChunk> chunks = problem.chunks(n_accumulators(x.rows));
    const double curve = point.curvature();
    return sum_diagonal(x.rows, std::ssize(chunks), n_threads, [&](const auto &storage, Index k) {
        struct Cell {
            double moment = 0, sum = 0;  // side by side: columns are many, each a miss of the cache
        };
        std::vector<Cell> cells(storage.n_columns);
        std::vector<Index> touched;
        for (Index q = chunks[k].first; q < chunks[k].last; ++q) {
            if (!problem.has_pairs(q)) continue;
            double total_degree = 0;
            for (Index t = 0; t < problem.length(q); ++t) {
                const double degree = point.degree(q)[t];
                // Of a band, rounding may leave a little less than nothing; with none of that the
                // estimate is not negative, and never divided by 0.
                if (!(degree > 0.0)) continue;
                total_degree += degree;
                for_each_entry(storage, row_at(x.order, problem.begin(q) + t),
                               [&](Index c, double value) {
                    // `touched` would get an entry for every zero of dense rows
                    if (value == 0.0) return;
                    Cell &cell = cells[c];
                    if (cell.moment == 0.0) touched.push_back(c);
                    cell.moment += degree * value;
                    cell.sum += curve * degree * value * value;
                });
            }
            for (const Index c : touched) {
                Cell &cell = cells[c];
                cell.sum -= curve * cell.moment * cell.moment / total_degree;
                cell.moment = 0.0;
            }
            touched.clear();
        }
        std::vector<double> out(cells.size());
        std::ranges::transform(cells, out.begin(), &Cell::sum);
        return out;
    });
}

}  // namespace linrank
