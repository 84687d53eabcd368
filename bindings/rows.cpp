// Matrices, checked once; their columns, scanned, scaled and gathered from tables; queries and
// levels.
#include "arrays.hpp"
#include "column_scan.hpp"
#include "interleave.hpp"


namespace {

template <class Value>
Rows dense_rows(Matrix<const Value> x) {
    // NumPy gives arrays without elements strides of 0.
    require(x.shape(0) == 0 || x.shape(1) <= 1 || x.stride(1) == 1, "rows must be contiguous");
    const auto n_rows = Index(x.shape(0)), n_columns = Index(x.shape(1));
    return DenseRows<Value>{x.data(), n_rows > 1 ? x.stride(0) : n_columns, n_rows, n_columns};
}

template <class Value>
Rows csr_rows(std::span<const Value> values, std::span<const std::int32_t> columns,
              Integers offsets, Index n_columns, Index n_checked) {
    check_csr(values.size(), columns, offsets, n_columns, n_checked);
    return CsrRows<Value>{values.data(), columns.data(), offsets.data(), std::ssize(offsets) - 1,
                          n_columns};
}

// ---- columns ----------------------------------------------------------------------------------

/// By name, an array of each member.
template <class T, class... Member>
nb::dict named_arrays(const std::vector<T> &all, const char *const (&names)[sizeof...(Member)],
                      Member T::*...members) {
    nb::dict out;
    const char *const *name = names;
    ((out[*name++] = to_numpy(member_of(all, members))), ...);
    return out;
}

nb::dict scan(const Rows &rows, OptionalDoubles weight, int n_threads) {
    require_length(weight, n_rows(rows), "weight");
    const auto [columns, checksum] = run_unlocked([&] {
        return scan_columns(rows, or_empty(weight), n_threads);
    });
    nb::dict out = named_arrays(columns, {"mean", "variance", "low", "high", "norms", "largest",
                                          "n_nonzero", "n_missing"}, &ColumnFacts::mean,
                                          &ColumnFacts::variance, &ColumnFacts::low,
                                          &ColumnFacts::high, &ColumnFacts::norm,
                                          &ColumnFacts::largest, &ColumnFacts::n_nonzero,
                                          &ColumnFacts::n_missing);
    out["checksum"] = checksum;
    return out;
}

nb::dict strays(const Rows &rows, Doubles floor, Doubles ceiling, int n_threads) {
    require_lengths(n_columns(rows), {"floor", "ceiling"}, floor, ceiling);
    return named_arrays(run_unlocked([&] { return find_strays(rows, floor, ceiling, n_threads); }),
                        {"n_outside", "excess", "worst", "worst_row", "first_missing"},
                        &ColumnStrays::n_outside, &ColumnStrays::excess, &ColumnStrays::worst,
                        &ColumnStrays::worst_row, &ColumnStrays::first_missing);
}

Values scale_queries(const Rows &rows, Integers offsets, OptionalOrder order, int n_threads) {
    return divide_by_query_range(rows, ordered_queries(offsets, order, std::size_t(n_rows(rows))),
                                 n_threads);
}

// ---- columns of tables, as Arrow lays them out --------------------------------------------------

using AnyVector = nb::ndarray<nb::ro, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Bits = Vector<const std::uint8_t>;

template <class... Types>
TableColumn::Values typed(const AnyVector &column, std::variant<const Types *...>) {
    TableColumn::Values values;
    const bool known = ((column.dtype() == nb::dtype<Types>() &&
                         (values = static_cast<const Types *>(column.data()), true)) || ...);
    require(known, "a column is of a type that is no plain number");
    return values;
}

template <class Value>
std::tuple<bool, bool> interleave(const nb::list &columns, const nb::list &valid,
                                  Integers first_bit, Matrix<Value> out, int n_threads) {
    const auto n_rows = Index(out.shape(0)), n_columns = Index(out.shape(1));
    require_length(nb::len(columns), n_columns, "columns");
    require_length(nb::len(valid), n_columns, "valid");
    require_length(first_bit, n_columns, "first_bit");
    require(n_rows == 0 || n_columns <= 1 || out.stride(1) == 1, "rows must be contiguous");
    std::vector<AnyVector> held;  // the arrays live as long as the copying
    std::vector<Bits> bits;
    std::vector<TableColumn> parts;
    for (std::size_t j = 0; j < out.shape(1); ++j) {
        held.push_back(nb::cast<AnyVector>(columns[j], false));
        require_length(held.back().shape(0), n_rows, "a column");
        TableColumn part{typed(held.back(), TableColumn::Values()), nullptr, first_bit[j]};
        if (!valid[j].is_none()) {
            bits.push_back(nb::cast<Bits>(valid[j], false));
            const auto n_bits = 8 * Index(bits.back().shape(0));
            require(part.first_bit >= 0 && part.first_bit <= n_bits - n_rows,
                    "a validity bitmap is too short");
            part.valid = bits.back().data();
        }
        parts.push_back(part);
    }
    const Index stride = n_rows > 1 ? out.stride(0) : n_columns;
    const Specials seen = run_unlocked([&] {
        return interleave_columns<Value>(parts, n_rows, out.data(), stride, n_threads);
    });
    return {seen.missing, seen.infinite};
}

template <class Value>
void bind_of(nb::module_ &m) {
    def(m, "dense_rows(x)", &dense_rows<Value>, nb::keep_alive<0, 1>());
    def(m, "csr_rows(values, columns, offsets, n_columns)", unlocked(&csr_rows<Value>),
        nb::arg("n_checked") = 0, nb::keep_alive<0, 1>(), nb::keep_alive<0, 2>(),
        nb::keep_alive<0, 3>(),
        "n_checked: rows at the start that an earlier view has checked, and nobody has changed.");
    def(m, "interleave_columns(columns, valid, first_bit, out)", &interleave<Value>,
        nb::arg("n_threads") = 1,
        "Columns into the rows of `out`, NaN where a bit of `valid` is 0: whether any is NaN, "
        "and whether any is infinite.");
}

// ---- queries ----------------------------------------------------------------------------------

RankedLevels rank_levels_of(std::vector<double> labels, Integers offsets, OptionalOrder order,
                            int n_threads) {
    const Queries queries = ordered_queries(offsets, order, labels.size());
    check_not_nan(labels, "a label");
    return rank_levels(labels, queries.offsets, queries.order, n_threads);
}

}  // namespace

void bind_rows(nb::module_ &m) {
    nb::class_<Rows> rows(m, "Rows", "A view of a row-major matrix, dense or CSR.");
    def_properties(rows, {{"shape"}}, [](const Rows &r) {
        return std::tuple(n_rows(r), n_columns(r));
    });
    bind_of<float>(m);
    bind_of<double>(m);
    def(m, "first_non_finite(rows)", unlocked(&first_non_finite), nb::arg("n_threads") = 1,
        "(row, column) of the first NaN or infinity, or None.");
    def(m, "columns_increase(rows)", unlocked(&columns_increase), nb::arg("n_threads") = 1,
        "Whether the column indices of every row increase strictly.");
    def(m, "scan_columns(rows, weight, n_threads)", &scan,
        "Moments, ranges, norms and counts of every column, absent entries being 0, and the "
        "checksum of the rows.");
    def(m, "find_strays(rows, floor, ceiling, n_threads)", &strays,
        "Values of every column below its floor, above its ceiling, or missing.");
    def(m, "scale_queries(rows, offsets, order, n_threads)", unlocked(&scale_queries),
        "The stored entries, each divided by the range of its column within its query.");
    def(m, "crc32c(bytes)", unlocked(&crc32c), nb::arg("before") = 0,
        "CRC-32C of the bytes, which continues that of what came before.");
    def(m, "factorize(ids)", unlocked(&factorize),
        "(codes, first): ids numbered by first appearance, and the row of each first appearance.");
    def(m, "group_rows(codes, n_queries)", unlocked(&group_rows),
        "(order, offsets, is_identity): a stable counting sort; order is empty if the identity.");
    def(m, "rank_levels(labels, offsets, order)", unlocked(&rank_levels_of),
        nb::arg("n_threads") = 1, "(levels, n_levels): dense ranks of the labels of each query.");
    def(m, "count_pairs(levels, offsets, n_levels)",
        unlocked([](Levels levels, Integers offsets, Levels n_levels) {
        return count_pairs(leveled_queries(offsets, levels, n_levels));
    }), "Pairs (i above j) of each query.");
}
