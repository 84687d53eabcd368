#include "scaling.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <type_traits>

#include "parallel.hpp"

namespace linrank {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr std::int64_t tile_columns = 8;  // enough sums under way to hide the latency of an addition

template <class Value, class Body>
void for_each_entry(const DenseRows<Value> &rows, std::int64_t i, const Body &body) {
    const Value *row = rows.values + i * rows.stride;
    for (std::int64_t j = 0; j < rows.n_columns; ++j) body(j, i * rows.n_columns + j, row[j]);
}

template <class Value, class Index, class Body>
void for_each_entry(const CsrRows<Value, Index> &rows, std::int64_t i, const Body &body) {
    for (std::int64_t k = rows.offsets[i]; k < rows.offsets[i + 1]; ++k)
        body(static_cast<std::int64_t>(rows.columns[k]), k, rows.values[k]);
}

template <class View>
constexpr bool has_gaps = requires(const View &view) { view.offsets; };

/// Sums of one chunk of rows, of the values less the pivot of their column.
struct Partial {
    explicit Partial(std::int64_t n_columns)
        : count(n_columns), weight(n_columns), sum(n_columns), square(n_columns),
          minimum(n_columns, infinity), maximum(n_columns, -infinity) {}

    void add(std::int64_t j, double x, double pivot, double w) {
        const double shifted = x - pivot;
        count[j] += 1;
        weight[j] += w;
        sum[j] += w * shifted;
        square[j] += w * shifted * shifted;
        minimum[j] = std::min(minimum[j], x);
        maximum[j] = std::max(maximum[j], x);
    }

    void add(const Partial &other) {
        for (std::size_t j = 0; j < sum.size(); ++j) {
            count[j] += other.count[j];
            weight[j] += other.weight[j];
            sum[j] += other.sum[j];
            square[j] += other.square[j];
            minimum[j] = std::min(minimum[j], other.minimum[j]);
            maximum[j] = std::max(maximum[j], other.maximum[j]);
        }
    }

    std::vector<double> count, weight, sum, square, minimum, maximum;
};

/// Rows of weight 0 are absent: n_rows and total count the others.
struct Totals {
    std::int64_t n_rows = 0;
    std::int64_t heaviest = 0;
    double weight = 0.0;
};

Totals count_rows(std::int64_t n_rows, std::span<const double> weight) {
    if (weight.empty()) return {n_rows, 0, static_cast<double>(n_rows)};
    Totals totals;
    for (std::int64_t i = 0; i < n_rows; ++i) {
        totals.n_rows += weight[i] > 0.0;
        totals.weight += weight[i];
        if (weight[i] > weight[totals.heaviest]) totals.heaviest = i;
    }
    return totals;
}

/// A few neighbouring columns, whose sums stay in registers while a block of rows, which stays in
/// cache, goes by: summed row by row, every row would load and store six numbers a column. The
/// order of the sums of a column, and so their bits, are the same.
template <bool weighted, class Value>
void sum_tile(const DenseRows<Value> &rows, const double *weight, const double *pivot,
              std::int64_t first, std::int64_t begin, std::int64_t end, Partial &partial) {
    constexpr std::int64_t width = tile_columns;
    double p[width], sum[width], square[width], low[width], high[width];
    for (std::int64_t j = 0; j < width; ++j) {
        p[j] = pivot[first + j];
        sum[j] = partial.sum[first + j];
        square[j] = partial.square[first + j];
        low[j] = partial.minimum[first + j];
        high[j] = partial.maximum[first + j];
    }
    for (std::int64_t i = begin; i < end; ++i) {
        const double w = weighted ? weight[i] : 1.0;
        if (weighted && w <= 0.0) continue;
        const Value *row = rows.values + i * rows.stride + first;
        for (std::int64_t j = 0; j < width; ++j) {
            const double x = row[j], shifted = x - p[j];
            const double scaled = weighted ? w * shifted : shifted;
            sum[j] += scaled;
            square[j] += scaled * shifted;
            low[j] = std::min(low[j], x);
            high[j] = std::max(high[j], x);
        }
    }
    for (std::int64_t j = 0; j < width; ++j) {
        partial.sum[first + j] = sum[j];
        partial.square[first + j] = square[j];
        partial.minimum[first + j] = low[j];
        partial.maximum[first + j] = high[j];
    }
}

/// Dense rows: no column has gaps, so that counts and weights by column are not needed.
template <class Value>
Partial sum_rows(const DenseRows<Value> &rows, std::span<const double> weight,
                 const std::vector<double> &pivot, std::int64_t begin, std::int64_t end) {
    Partial partial(rows.n_columns);
    const std::int64_t tiled = rows.n_columns - rows.n_columns % tile_columns;
    const std::int64_t bytes = std::max<std::int64_t>(1, rows.n_columns * sizeof(Value));
    const std::int64_t block = std::max<std::int64_t>(16, (1 << 15) / bytes);
    for (std::int64_t b = begin; b < end; b += block) {
        const std::int64_t e = std::min(end, b + block);
        for (std::int64_t j = 0; j < tiled; j += tile_columns) {
            if (weight.empty())
                sum_tile<false>(rows, nullptr, pivot.data(), j, b, e, partial);
            else
                sum_tile<true>(rows, weight.data(), pivot.data(), j, b, e, partial);
        }
        for (std::int64_t i = b; i < e; ++i) {
            const double w = weight.empty() ? 1.0 : weight[i];
            if (w <= 0.0) continue;
            const Value *row = rows.values + i * rows.stride;
            for (std::int64_t j = tiled; j < rows.n_columns; ++j) partial.add(j, row[j], pivot[j], w);
        }
    }
    return partial;
}

template <class View>
Partial sum_rows(const View &rows, std::span<const double> weight, const std::vector<double> &pivot,
                 std::int64_t begin, std::int64_t end) {
    Partial partial(rows.n_columns);
    for (std::int64_t i = begin; i < end; ++i) {
        const double w = weight.empty() ? 1.0 : weight[i];
        if (w <= 0.0) continue;
        for_each_entry(rows, i, [&](std::int64_t j, std::int64_t, double x) {
            partial.add(j, x, pivot[j], w);
        });
    }
    return partial;
}

/// Adds the zeros that CSR rows leave out: the weight that no entry of the column accounts for.
void add_gaps(Partial &sums, const std::vector<double> &pivot, const Totals &totals) {
    for (std::size_t j = 0; j < pivot.size(); ++j) {
        // Compared as a count, which is exact: a rounding error of the weights times pivot² could
        // exceed the variance itself.
        if (sums.count[j] >= static_cast<double>(totals.n_rows)) continue;
        sums.add(static_cast<std::int64_t>(j), 0.0, pivot[j], totals.weight - sums.weight[j]);
    }
}

ColumnSummary finish(Partial &&sums, const std::vector<double> &pivot, double total) {
    ColumnSummary summary{std::vector<double>(pivot.size()), std::vector<double>(pivot.size()),
                          std::move(sums.minimum), std::move(sums.maximum)};
    for (std::size_t j = 0; j < pivot.size(); ++j) {
        const double shift = sums.sum[j] / total;
        summary.mean[j] = pivot[j] + shift;
        summary.variance[j] = std::max(0.0, sums.square[j] / total - shift * shift);
    }
    return summary;
}

template <class View>
ColumnSummary summarise(const View &rows, std::span<const double> weight, int n_threads) {
    const Totals totals = count_rows(rows.n_rows, weight);
    if (totals.weight <= 0.0)
        throw std::invalid_argument("there is no row of positive weight to scale by");
    // var x = E(x - p)² - (E x - p)² for every p. With p the value of one of the rows, cancellation
    // is harmless in a single pass: var x >= (w_p / Σw)(p - E x)², so at most a factor Σw / w_p of
    // the precision is lost. The heaviest row makes that at most n_rows.
    std::vector<double> pivot(rows.n_columns);
    for_each_entry(rows, totals.heaviest,
                   [&](std::int64_t j, std::int64_t, double x) { pivot[j] = x; });
    // Few chunks when the columns are many: the sums of a chunk take 48 bytes a column.
    const std::int64_t columns = std::max<std::int64_t>(1, rows.n_columns);
    const std::int64_t most = std::clamp<std::int64_t>((1 << 20) / columns, 1, 64);
    const std::int64_t n_chunks = std::clamp<std::int64_t>(rows.n_rows / 512, 1, most);
    std::vector<Partial> partials(n_chunks, Partial(0));
    parallel_for(n_chunks, n_threads, [&](std::int64_t c) {
        partials[c] = sum_rows(rows, weight, pivot, rows.n_rows * c / n_chunks,
                               rows.n_rows * (c + 1) / n_chunks);
    });
    for (std::int64_t c = 1; c < n_chunks; ++c) partials[0].add(partials[c]);
    if constexpr (has_gaps<View>) add_gaps(partials[0], pivot, totals);
    return finish(std::move(partials[0]), pivot, totals.weight);
}

/// Chunks of fewer than 2³² rows, so that 32 bits count them: half the traffic of 64.
template <class View>
std::vector<std::int64_t> count_entries(const View &rows, int n_threads) {
    const std::int64_t n_chunks =
        std::max<std::int64_t>(std::clamp<std::int64_t>(rows.n_rows / 512, 1, std::max(1, n_threads)),
                               (rows.n_rows >> 31) + 1);
    std::vector<std::vector<std::uint32_t>> counts(n_chunks);
    parallel_for(n_chunks, n_threads, [&](std::int64_t c) {
        counts[c].assign(rows.n_columns, 0);
        std::uint32_t *count = counts[c].data();
        for (std::int64_t i = rows.n_rows * c / n_chunks; i < rows.n_rows * (c + 1) / n_chunks; ++i)
            for_each_entry(rows, i, [&](std::int64_t j, std::int64_t, auto x) { count[j] += x != 0; });
    });
    std::vector<std::int64_t> total(rows.n_columns);
    for (const auto &part : counts)
        for (std::size_t j = 0; j < part.size(); ++j) total[j] += part[j];
    return total;
}

/// The range of every column over the rows of one query; all zero between uses.
class QueryRange {
public:
    explicit QueryRange(std::int64_t n_columns)
        : count(n_columns), minimum(n_columns), maximum(n_columns) {}

    void add(std::int64_t j, double x) {
        minimum[j] = count[j] == 0 ? x : std::min(minimum[j], x);
        maximum[j] = count[j] == 0 ? x : std::max(maximum[j], x);
        ++count[j];
    }

    /// max - min, where a column seen in fewer than n_rows rows is 0 in the others.
    double width(std::int64_t j, std::int64_t n_rows) const {
        const bool gap = count[j] < n_rows;
        const double low = gap ? std::min(minimum[j], 0.0) : minimum[j];
        const double high = gap ? std::max(maximum[j], 0.0) : maximum[j];
        if (std::isinf(high - low))
            throw std::invalid_argument("a feature spans more than the largest number");
        return high - low;
    }

    void forget(std::int64_t j) { count[j] = 0; }

private:
    std::vector<std::int64_t> count;
    std::vector<double> minimum, maximum;
};

template <class View, class Value>
void divide_query(const View &rows, std::span<const std::int64_t> members, std::int64_t first,
                  std::int64_t n_rows, QueryRange &range, Value *out) {
    const auto row = [&](std::int64_t t) { return members.empty() ? first + t : members[t]; };
    for (std::int64_t t = 0; t < n_rows; ++t)
        for_each_entry(rows, row(t),
                       [&](std::int64_t j, std::int64_t, double x) { range.add(j, x); });
    for (std::int64_t t = 0; t < n_rows; ++t)
        for_each_entry(rows, row(t), [&](std::int64_t j, std::int64_t at, double x) {
            const double width = range.width(j, n_rows);
            out[at] = width > 0.0 ? static_cast<Value>(x / width) : Value{0};
        });
    for (std::int64_t t = 0; t < n_rows; ++t)
        for_each_entry(rows, row(t),
                       [&](std::int64_t j, std::int64_t, double) { range.forget(j); });
}

}  // namespace

ColumnSummary summarise_columns(const Rows &rows, std::span<const double> weight, int n_threads) {
    return std::visit([&](const auto &view) { return summarise(view, weight, n_threads); }, rows);
}

std::vector<std::int64_t> count_nonzero(const Rows &rows, int n_threads) {
    return std::visit([&](const auto &view) { return count_entries(view, n_threads); }, rows);
}

template <class Value>
void divide_by_query_range(const Rows &rows, std::span<const std::int64_t> offsets,
                           std::span<const std::int64_t> order, Value *out, int n_threads) {
    const auto n_queries = static_cast<std::int64_t>(offsets.size()) - 1;
    const std::int64_t n_tasks = std::min<std::int64_t>(n_queries, 4 * std::max(1, n_threads));
    const auto divide = [&](const auto &view) {
        using View = std::decay_t<decltype(view)>;
        if constexpr (std::is_same_v<typename View::value_type, Value>) {
            parallel_for(n_tasks, n_threads, [&](std::int64_t task) {
                QueryRange range(view.n_columns);
                const std::int64_t end = n_queries * (task + 1) / n_tasks;
                for (std::int64_t q = n_queries * task / n_tasks; q < end; ++q) {
                    const std::int64_t size = offsets[q + 1] - offsets[q];
                    const auto members = order.empty() ? order : order.subspan(offsets[q], size);
                    divide_query(view, members, offsets[q], size, range, out);
                }
            });
        } else {
            throw std::invalid_argument("the output must have the type of the rows");
        }
    };
    std::visit(divide, rows);
}

template void divide_by_query_range<float>(const Rows &, std::span<const std::int64_t>,
                                           std::span<const std::int64_t>, float *, int);
template void divide_by_query_range<double>(const Rows &, std::span<const std::int64_t>,
                                            std::span<const std::int64_t>, double *, int);

}  // namespace linrank
