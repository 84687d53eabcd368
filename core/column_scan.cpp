#include "column_scan.hpp"

#include "parallel.hpp"
#include "products.hpp"
#include "simd.hpp"

namespace linrank {

namespace {

/// Rows of weight 0 are absent from moments: n_rows and weight count the others.
struct Totals {
    Index n_rows = 0;
    Index heaviest = 0;
    double weight = 0.0;
};

Totals count_rows(Index n_rows, Doubles weight) {
    if (weight.empty()) return {n_rows, 0, double(n_rows)};
    Totals totals;
    for (Index i = 0; i < n_rows; ++i) {
        totals.n_rows += weight[i] > 0.0;
        totals.weight += weight[i];
        if (weight[i] > weight[totals.heaviest]) totals.heaviest = i;
    }
    return totals;
}

/// What the stored entries of one column add up to, in a chunk of rows (32 bits count those) or in
/// all.
template <class Value, class Count>
struct Sums {
    static constexpr Value infinity = std::numeric_limits<Value>::infinity();
    double sum = 0, square = 0;               // Σ w (x - pivot), Σ w (x - pivot)²
    double squares = 0;                       // Σ x²
    // Σ w of the stored entries, of the missing ones among them
    double weight = 0, missing_weight = 0;
    Value low = infinity, high = -infinity, largest = 0;
    Count n_stored = 0, n_nonzero = 0, n_missing = 0;  // n_stored: in rows of positive weight

    void add(Value x, double pivot, double w) {
        n_nonzero += x != 0;
        n_stored += w > 0.0;
        weight += w;
        if (x != x) {
            n_missing += 1;
            missing_weight += w;
            return;
        }
        const double wide = x;
        squares += wide * wide;
        largest = std::max(largest, x < 0 ? -x : x);
        if (w > 0.0) add_to_moments(x, pivot, w);
    }

    void add_to_moments(Value x, double pivot, double w) {
        const double shifted = double(x) - pivot, scaled = w * shifted;
        sum += scaled;
        square += scaled * shifted;
        low = std::min(low, x);
        high = std::max(high, x);
    }

    template <class Other>
    void add(const Sums<Value, Other> &other) {
        sum += other.sum;
        square += other.square;
        squares += other.squares;
        weight += other.weight;
        missing_weight += other.missing_weight;
        low = std::min(low, other.low);
        high = std::max(high, other.high);
        largest = std::max(largest, other.largest);
        n_stored += other.n_stored;
        n_nonzero += other.n_nonzero;
        n_missing += other.n_missing;
    }
};

/// The checksum of consecutive bytes, and how many they are.
struct Check {
    std::uint32_t sum = 0;
    std::uint64_t n_bytes = 0;

    template <class T>
    void add(const T *first, Index n) {
        const std::span bytes(reinterpret_cast<const std::uint8_t *>(first),
                              std::size_t(n) * sizeof(T));
        sum = crc32c(bytes, sum);
        n_bytes += bytes.size();
    }
    void add(const Check &next) {
        sum = join_crc32c(sum, next.sum, next.n_bytes);
        n_bytes += next.n_bytes;
    }
};

/// Those of the arrays of a chunk.
struct Checks {
    Check offsets, columns, values;
};

constexpr Index block_bytes = 1 << 15;  // that stay in cache between checksum and sums

/// A chunk of dense rows without missing values: no column has gaps, so that neither stored entries
/// nor their weights are counted, and vector kernels sum row by row. A missing value makes
/// `squares` NaN.
template <class Value>
class DenseChunk : public Checks {
public:
    void scan(const DenseRows<Value> &rows, Doubles weight, const std::vector<double> &pivot,
              Index begin, Index end, Index, Index) {
        const Index width = rows.n_columns;
        sum.assign(width, 0.0);
        square = squares = n_nonzero = sum;
        low.assign(width, Sums<Value, Index>::infinity);
        high.assign(width, -Sums<Value, Index>::infinity);
        weightless.assign(width, 0);
        const ColumnSums<Value> sums{pivot.data(), sum.data(), square.data(), squares.data(),
                                     n_nonzero.data(), low.data(), high.data(), weightless.data()};
        const auto row_bytes = std::max<Index>(1, width * Index(sizeof(Value)));
        const Index block = std::max<Index>(16, block_bytes / row_bytes);
        for (Index b = begin; b < end; b += block) {
            const Index n = std::min(end - b, block);
            const Value *first = rows.values + b * rows.stride;
            if (rows.stride == width) values.add(first, n * width);
            else for (Index t = 0; t < n; ++t) values.add(first + t * rows.stride, width);
            const DenseBlock<Value> x{rows.values, rows.stride, width, nullptr, b, n};
            const double *w = weight.empty() ? nullptr : weight.data() + b;
            simd().of<Value>().add_columns(x, w, sums);
        }
    }

    Sums<Value, Index> column(Index j) const {
        const Value largest = low[j] > high[j] ? 0 : std::max(-low[j], high[j]);
        return {sum[j], square[j], squares[j], 0.0, 0.0, low[j], high[j],
                std::max(largest, weightless[j]), 0, Index(n_nonzero[j]), 0};
    }

private:
    std::vector<double> sum, square, squares, n_nonzero;
    std::vector<Value> low, high, weightless;
};

/// A chunk of rows of any storage, entry by entry. The sums of a column lie side by side: entries
/// of CSR rows come in no order of columns.
template <class Storage>
class StoredChunk : public Checks {
    using Value = typename Storage::value_type;

public:
    /// The sums of the columns [low, high), the checksums beside those of the first.
    void scan(const Storage &rows, Doubles weight, const std::vector<double> &pivot,
              Index begin, Index end, Index low, Index high) {
        first_column = low;
        sums.resize(high - low);
        if constexpr (requires { rows.offsets; })
            if (low == 0) offsets.add(rows.offsets + begin, end - begin + (end == rows.n_rows));
        for (Index i = begin, last = end; i < end; i = last) {
            if (low == 0) last = add_checks(rows, i, end);
            for (Index t = i; t < last; ++t) {
                const double w = weight.empty() ? 1.0 : weight[t];
                for_each_entry(rows, t, [&](Index c, Value x) {
                    if (c >= low && c < high) sums[c - low].add(x, pivot[c], w);
                });
            }
        }
    }

    const Sums<Value, std::uint32_t> &column(Index j) const { return sums[j - first_column]; }

private:
    Index first_column = 0;
    std::vector<Sums<Value, std::uint32_t>> sums;

    /// The checksums of rows from `first` on that stay in cache; returns where they end.
    Index add_checks(const Storage &rows, Index first, Index end) {
        Index last = first + 1;
        if constexpr (requires { rows.offsets; }) {
            const Index k = rows.offsets[first];
            while (last < end && rows.offsets[last + 1] - k <= block_bytes / 8) ++last;
            columns.add(rows.columns + k, rows.offsets[last] - k);
            values.add(rows.values + k, rows.offsets[last] - k);
        } else {
            values.add(rows.values + first * rows.stride, rows.n_columns);
        }
        return last;
    }
};

template <class Value>
ColumnFacts facts_of(const Sums<Value, Index> &sums, double pivot, double total) {
    ColumnFacts facts{.low = sums.low, .high = sums.high, .norm = std::sqrt(sums.squares),
                      .largest = sums.largest,
                      .n_nonzero = sums.n_nonzero, .n_missing = sums.n_missing};
    const double weight = total - sums.missing_weight;
    if (weight > 0.0 && sums.low <= sums.high) {
        const double shift = sums.sum / weight;
        facts.mean = pivot + shift;
        facts.variance = std::max(0.0, sums.square / weight - shift * shift);
    }
    return facts;
}

/// Few chunks when the columns are many: the sums of a chunk take some 64 bytes a column. Fewer
/// than 2³² rows in each, which 32 bits count.
Index count_chunks(Index n_rows, Index n_columns) {
    const Index most = std::clamp<Index>((1 << 20) / std::max<Index>(1, n_columns), 1, 64);
    return std::max(std::clamp<Index>(n_rows / 512, 1, most), (n_rows >> 31) + 1);
}

template <class Chunk, class Storage>
ColumnScan scan_chunks(const Storage &rows, Doubles weight, const std::vector<double> &pivot,
                       int n_threads) {
    const Index n_chunks = count_chunks(rows.n_rows, rows.n_columns);
    // Threads that would have no chunk share the columns, where there is work for them: each reads
    // all entries of its rows, and the sums are the same.
    Index n_ranges = 1;
    if constexpr (requires { rows.offsets; })
        n_ranges = std::clamp<Index>(std::min(n_threads / n_chunks, n_entries(rows) >> 20), 1, 16);
    const Index width = rows.n_columns / n_ranges + 1;
    std::vector<Chunk> chunks(n_chunks * n_ranges);  // range by range
    parallel_for(std::ssize(chunks), n_threads, [&](Index k) {
        const Index c = k % n_chunks, low = std::min(k / n_chunks * width, rows.n_columns);
        chunks[k].scan(rows, weight, pivot, rows.n_rows * c / n_chunks,
                       rows.n_rows * (c + 1) / n_chunks, low,
                       std::min(low + width, rows.n_columns));
    });
    ColumnScan scan{std::vector<ColumnFacts>(rows.n_columns), 0};
    const Totals totals = count_rows(rows.n_rows, weight);
    for_blocks(rows.n_columns, 4096, n_threads, [&](Index first, Index last) {
        for (Index j = first; j < last; ++j) {
            Sums<typename Storage::value_type, Index> sums;
            const auto range = chunks.begin() + j / width * n_chunks;
            for (const Chunk &chunk : std::span(range, n_chunks)) sums.add(chunk.column(j));
            if constexpr (requires { rows.offsets; }) {
                // The zeros that CSR rows leave out: the weight that no entry accounts for. Told by
                // their number, which is exact: a rounding error of the weights times pivot² could
                // exceed the variance itself.
                if (sums.n_stored < totals.n_rows)
                    sums.add_to_moments(0, pivot[j], totals.weight - sums.weight);
            }
            scan.columns[j] = facts_of(sums, pivot[j], totals.weight);
        }
    });
    const Index shape[] = {rows.n_rows, rows.n_columns};
    Check check;
    check.add(shape, 2);
    for (const auto part : {&Checks::offsets, &Checks::columns, &Checks::values})
        for (const Chunk &chunk : chunks) check.add(chunk.*part);
    scan.checksum = check.sum;
    return scan;
}

/// var x = E(x - p)² - (E x - p)² for every p. With p the value of one of the rows, cancellation is
/// harmless in a single pass: var x >= (w_p / Σw)(p - E x)², so at most a factor Σw / w_p of the
/// precision is lost. The heaviest row makes that at most n_rows.
/// A value that CSR rows leave out, or lack, is 0.
template <class Storage>
std::vector<double> values_of_row(const Storage &rows, Index i) {
    std::vector<double> values(rows.n_columns);
    if (rows.n_rows == 0) return values;
    for_each_entry(rows, i, [&](Index c, double x) {
        values[c] = std::isnan(x) && requires { rows.offsets; } ? 0 : x;
    });
    return values;
}

/// What strays in one column, in a chunk of rows or in all.
struct Strays : ColumnStrays {
    Index n_stored = 0;

    void add(double x, Index row, double floor, double ceiling) {
        ++n_stored;
        if (x == x) add_outside(x, 1, row, floor, ceiling);
        else if (first_missing < 0) first_missing = row;
    }

    void add_outside(double x, Index n, Index row, double floor, double ceiling) {
        const double beyond = std::max(x - ceiling, floor - x);
        if (!(beyond > 0.0)) return;
        n_outside += n;
        if (beyond > excess) excess = beyond, worst = x, worst_row = row;
    }

    /// Adds those of the rows that follow.
    void add(const Strays &other) {
        n_stored += other.n_stored;
        n_outside += other.n_outside;
        if (other.excess > excess)
            excess = other.excess, worst = other.worst, worst_row = other.worst_row;
        if (first_missing < 0) first_missing = other.first_missing;
    }
};

/// The range of every column over the rows of one query; all zero between uses.
class QueryRange {
public:
    explicit QueryRange(Index n_columns) : count(n_columns), minimum(n_columns),
        maximum(n_columns) {}

    void add(Index j, double x) {
        minimum[j] = count[j] == 0 ? x : std::min(minimum[j], x);
        maximum[j] = count[j] == 0 ? x : std::max(maximum[j], x);
        ++count[j];
    }

    /// max - min, where a column seen in fewer than n_rows rows is 0 in the others.
    double width(Index j, Index n_rows) const {
        const bool gap = count[j] < n_rows;
        const double low = gap ? std::min(minimum[j], 0.0) : minimum[j];
        const double high = gap ? std::max(maximum[j], 0.0) : maximum[j];
        require(!std::isinf(high - low), "a feature spans more than the largest number");
        return high - low;
    }

    void forget(Index j) { count[j] = 0; }

private:
    std::vector<Index> count;
    std::vector<double> minimum, maximum;
};

template <class View, class Value>
void divide_query(const View &rows, const Queries &queries, Index q, QueryRange &range,
                  Value *out) {
    const Index n_rows = queries.length(q);
    const auto for_entries = [&](const auto &visit) {
        for (Index t = queries.begin(q); t < queries.begin(q + 1); ++t) {
            Value *at = out + first_entry(rows, queries.row(t));
            for_each_entry(rows, queries.row(t), [&](Index j, double x) { visit(j, x, *at++); });
        }
    };
    for_entries([&](Index j, double x, Value &) { range.add(j, x); });
    for_entries([&](Index j, double x, Value &to) {
        const double width = range.width(j, n_rows);
        to = width > 0.0 ? Value(x / width) : Value{0};
    });
    for_entries([&](Index j, double, Value &) { range.forget(j); });
}

}  // namespace

std::vector<ColumnStrays> find_strays(const Rows &rows, Doubles floor, Doubles ceiling,
                                      int n_threads) {
    const Index n_chunks = count_chunks(n_rows(rows), n_columns(rows));
    std::vector<std::vector<Strays>> chunks(n_chunks);
    std::vector<ColumnStrays> out;
    std::visit([&](const auto &view) {
        for_parts(view.n_rows, n_chunks, n_threads, [&](Index c, Index begin, Index end) {
            std::vector<Strays> &found = chunks[c];
            found.resize(view.n_columns);
            for (Index i = begin; i < end; ++i)
                for_each_entry(view, i, [&](Index j, double x) {
                    found[j].add(x, i, floor[j], ceiling[j]);
                });
        });
        for (Index j = 0; j < view.n_columns; ++j) {
            Strays all;
            for (const auto &chunk : chunks) all.add(chunk[j]);
            // The zeros that CSR rows leave out; dense rows leave out none.
            if (all.n_stored < view.n_rows)
                all.add_outside(0.0, view.n_rows - all.n_stored, -1, floor[j], ceiling[j]);
            out.push_back(all);
        }
    }, rows);
    return out;
}

ColumnScan scan_columns(const Rows &rows, Doubles weight, int n_threads) {
    return std::visit([&]<class Storage>(const Storage &view) {
        using Dense = DenseChunk<typename Storage::value_type>;
        std::vector<double> pivot = values_of_row(view, count_rows(view.n_rows, weight).heaviest);
        if constexpr (requires { view.stride; }) {
            ColumnScan scan = scan_chunks<Dense>(view, weight, pivot, n_threads);
            const auto has_nan = [](const ColumnFacts &facts) { return std::isnan(facts.norm); };
            if (std::ranges::none_of(scan.columns, has_nan)) return scan;
            // Values are missing: once more with care. The ranges know a value of each column.
            for (std::size_t j = 0; j < pivot.size(); ++j)
                if (const double low = scan.columns[j].low; std::isnan(pivot[j]))
                    pivot[j] = std::isfinite(low) ? low : 0.0;
        }
        return scan_chunks<StoredChunk<Storage>>(view, weight, pivot, n_threads);
    }, rows);
}

Values divide_by_query_range(const Rows &rows, const Queries &queries, int n_threads) {
    const Index n_queries = queries.n_queries();
    const Index n_tasks = std::min<Index>(n_queries, 4 * std::max(1, n_threads));
    return std::visit([&]<class View>(const View &view) -> Values {
        std::vector<typename View::value_type> out(n_entries(view));
        for_parts(n_queries, n_tasks, n_threads, [&](Index, Index first, Index last) {
            QueryRange range(view.n_columns);
            for (Index q = first; q < last; ++q) divide_query(view, queries, q, range, out.data());
        });
        return out;
    }, rows);
}

}  // namespace linrank
