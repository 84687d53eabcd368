#include "interleave.hpp"

#include "parallel.hpp"

namespace linrank {
namespace {

// A task writes all columns of a block of rows that stays in the second cache, sixteen columns at a time: that
// many streams the hardware reads ahead. Their values are converted and checked where they lie side by side, in a
// strip that stays in the first cache, and turned from there: one by one, each would cost a store of its own.
constexpr Index columns_per_strip = 16;
constexpr Index rows_per_strip = 256;
constexpr Index rows_ahead = 16;  // that are asked for before they are written
constexpr Index values_per_task = 1 << 18;

/// Converts n values; whether one of the results is NaN or infinite.
template <class Source, class Value>
bool convert_values(const Source *x, Index n, Value *out) {
    if constexpr (std::is_integral_v<Source>) {
        for (Index i = 0; i < n; ++i) out[i] = Value(double(x[i]));
        return false;
    } else {
        // |v| <= largest fails for NaN as well.
        constexpr Value largest = std::numeric_limits<Value>::max();
        int n_special = 0;
        for (Index i = 0; i < n; ++i) {
            out[i] = Value(x[i]);
            n_special += !(std::abs(out[i]) <= largest);
        }
        return n_special > 0;
    }
}

template <class Value>
void mark_missing(const TableColumn &column, Index begin, Index n, Value *out) {
    for (Index i = 0; i < n; ++i) {
        const Index bit = column.first_bit + begin + i;
        if ((column.valid[bit >> 3] >> (bit & 7) & 1) == 0) out[i] = std::numeric_limits<Value>::quiet_NaN();
    }
}

template <class Value>
void find_specials(const Value *out, Index n, Specials &seen) {
    for (Index i = 0; i < n; ++i) {
        seen.missing |= std::isnan(out[i]);
        seen.infinite |= std::isinf(out[i]);
    }
}

/// Writes strip[j][i] to out[i*stride + j].
template <class Value>
void turn_strip(const Value (*strip)[rows_per_strip], Index n_columns, Index n, Value *out,
                Index stride) {
    typedef Value Four __attribute__((vector_size(4 * sizeof(Value))));
    Index i = 0;
    for (; n_columns == columns_per_strip && i + 4 <= n; i += 4) {
        for (Index k = 0; k < 4; ++k) {
            // Rows lie far apart: the hardware, which follows dense streams, fetches none of their lines in time.
            __builtin_prefetch(out + (i + rows_ahead + k) * stride, 1);
            __builtin_prefetch(out + (i + rows_ahead + k) * stride + columns_per_strip - 1, 1);
        }
        for (Index j = 0; j < columns_per_strip; j += 4) {
            Four a, b, c, d;
            std::memcpy(&a, strip[j] + i, sizeof a);
            std::memcpy(&b, strip[j + 1] + i, sizeof b);
            std::memcpy(&c, strip[j + 2] + i, sizeof c);
            std::memcpy(&d, strip[j + 3] + i, sizeof d);
            const Four ac = __builtin_shufflevector(a, c, 0, 4, 1, 5), AC = __builtin_shufflevector(a, c, 2, 6, 3, 7);
            const Four bd = __builtin_shufflevector(b, d, 0, 4, 1, 5), BD = __builtin_shufflevector(b, d, 2, 6, 3, 7);
            const Four rows[] = {
                __builtin_shufflevector(ac, bd, 0, 4, 1, 5), __builtin_shufflevector(ac, bd, 2, 6, 3, 7),
                __builtin_shufflevector(AC, BD, 0, 4, 1, 5), __builtin_shufflevector(AC, BD, 2, 6, 3, 7)};
            for (int k = 0; k < 4; ++k) std::memcpy(out + (i + k) * stride + j, &rows[k], sizeof rows[k]);
        }
    }
    for (; i < n; ++i)
        for (Index j = 0; j < n_columns; ++j) out[i * stride + j] = strip[j][i];
}

template <class Value>
void fill_strip(std::span<const TableColumn> columns, Index begin, Index n, Value *out,
                Index stride, Specials &seen) {
    alignas(64) Value strip[columns_per_strip][rows_per_strip];
    for (std::size_t j = 0; j < columns.size(); ++j) {
        bool special = std::visit([&](const auto *x) { return convert_values(x + begin, n, strip[j]); },
                                  columns[j].values);
        if (columns[j].valid != nullptr) {
            mark_missing(columns[j], begin, n, strip[j]);
            special = true;
        }
        if (special) find_specials(strip[j], n, seen);
    }
    turn_strip(strip, Index(columns.size()), n, out, stride);
}

}  // namespace

template <class Value>
Specials interleave_columns(std::span<const TableColumn> columns, Index n_rows, Value *out,
                            Index stride, int n_threads) {
    const auto n_columns = Index(columns.size());
    const Index rows_per_task =
        rows_per_strip * std::max<Index>(1, values_per_task / (rows_per_strip * std::max<Index>(1, n_columns)));
    const Index n_tasks = (n_rows + rows_per_task - 1) / rows_per_task;
    std::vector<Specials> seen(n_tasks);
    parallel_for(n_tasks, n_tasks < 4 ? 1 : n_threads, [&](Index task) {
        const Index last = std::min((task + 1) * rows_per_task, n_rows);
        for (Index j = 0; j < n_columns; j += columns_per_strip) {
            const auto some = columns.subspan(j, std::min(columns_per_strip, n_columns - j));
            for (Index i = task * rows_per_task; i < last; i += rows_per_strip)
                fill_strip(some, i, std::min(rows_per_strip, last - i), out + i * stride + j, stride, seen[task]);
        }
    });
    Specials all;
    for (const Specials &part : seen) {
        all.missing |= part.missing;
        all.infinite |= part.infinite;
    }
    return all;
}

template Specials interleave_columns(std::span<const TableColumn>, Index, float *, Index, int);
template Specials interleave_columns(std::span<const TableColumn>, Index, double *, Index, int);

}  // namespace linrank
