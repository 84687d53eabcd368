// Matrices, checked once; their columns, scanned, scaled and gathered from tables; queries and levels.
#include <nanobind/stl/pair.h>

#include "arrays.hpp"
#include "checksum.hpp"
#include "column_scan.hpp"
#include "interleave.hpp"
#include "rows.hpp"

namespace {

template <class Value>
BoundRows dense_rows(Matrix<Value> x) {
    // NumPy gives arrays without elements strides of 0.
    require(x.shape(0) == 0 || x.shape(1) <= 1 || x.stride(1) == 1, "rows must be contiguous");
    const auto n_rows = Index(x.shape(0)), n_columns = Index(x.shape(1));
    const Index stride = n_rows > 1 ? x.stride(0) : n_columns;
    return {DenseRows<Value>{x.data(), stride, n_rows, n_columns}, nb::cast(x)};
}

template <class Value>
BoundRows csr_rows(Vector<Value> values, Vector<std::int32_t> columns, IntegerArray offsets, Index n_columns,
                   Index n_checked) {
    unlocked([&] { check_csr(values.shape(0), span_of(columns), span_of(offsets), n_columns, n_checked); });
    const auto n_rows = Index(offsets.shape(0)) - 1;
    return {CsrRows<Value>{values.data(), columns.data(), offsets.data(), n_rows, n_columns},
            nb::make_tuple(values, columns, offsets)};
}

template <class Value>
void bind_rows_of(nb::module_ &m) {
    def(m, "dense_rows", &dense_rows<Value>, {"x"});
    def(m, "csr_rows", &csr_rows<Value>, {"values", "columns", "offsets", "n_columns"}, nb::arg("n_checked") = 0,
        "n_checked: rows at the start that an earlier view has checked, and nobody has changed.");
}

// ---- columns ----------------------------------------------------------------------------------

/// The arrays, which are moved from, by name.
template <class... T>
nb::dict named_arrays(const char *const (&names)[sizeof...(T)], std::vector<T> &...arrays) {
    nb::dict out;
    const char *const *name = names;
    ((out[*name++] = to_numpy(std::move(arrays))), ...);
    return out;
}

/// What the scan found, by the names of ColumnScan.
nb::dict scan(const BoundRows &x, OptionalDoubles weight, int n_threads) {
    require_length(weight, n_rows(x.rows), "weight");
    ColumnScan found = unlocked([&] { return scan_columns(x.rows, span_of(weight), n_threads); });
    nb::dict out = named_arrays({"mean", "variance", "low", "high", "norms", "largest", "n_nonzero", "n_missing"},
                                found.mean, found.variance, found.low, found.high, found.norms, found.largest,
                                found.n_nonzero, found.n_missing);
    out["checksum"] = found.checksum;
    return out;
}

/// What lies outside of a range, by the names of ColumnStrays.
nb::dict strays(const BoundRows &x, DoubleArray floor, DoubleArray ceiling, int n_threads) {
    require_lengths(n_columns(x.rows), {"floor", "ceiling"}, floor, ceiling);
    ColumnStrays found = unlocked([&] { return find_strays(x.rows, span_of(floor), span_of(ceiling), n_threads); });
    return named_arrays({"n_outside", "excess", "worst", "worst_row", "first_missing"}, found.n_outside, found.excess,
                        found.worst, found.worst_row, found.first_missing);
}

nb::object scale_queries(const BoundRows &x, IntegerArray offsets, OptionalOrder order, int n_threads) {
    const Queries queries = checked_queries(offsets, order, std::size_t(n_rows(x.rows)));
    return cast_values(unlocked([&] {
        return divide_by_query_range(x.rows, queries.offsets, queries.order, n_threads);
    }));
}

// ---- columns of tables, as Arrow lays them out --------------------------------------------------

using AnyVector = nb::ndarray<nb::ro, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Bits = Vector<std::uint8_t>;

template <class... Types>
TableColumn::Values typed(const AnyVector &column, std::variant<const Types *...>) {
    TableColumn::Values values;
    const bool known = ((column.dtype() == nb::dtype<Types>() &&
                         (values = static_cast<const Types *>(column.data()), true)) || ...);
    require(known, "a column is of a type that is no plain number");
    return values;
}

template <class Value>
std::tuple<bool, bool> interleave(const nb::list &columns, const nb::list &valid, IntegerArray first_bit,
                                  nb::ndarray<Value, nb::ndim<2>, nb::device::cpu> out, int n_threads) {
    const auto n_rows = Index(out.shape(0)), n_columns = Index(out.shape(1));
    require_length(nb::len(columns), n_columns, "columns");
    require_length(nb::len(valid), n_columns, "valid");
    require_length(first_bit.shape(0), n_columns, "first_bit");
    require(n_rows == 0 || n_columns <= 1 || out.stride(1) == 1, "rows must be contiguous");
    std::vector<AnyVector> held;  // the arrays live as long as the copying
    std::vector<Bits> bits;
    std::vector<TableColumn> parts;
    for (std::size_t j = 0; j < out.shape(1); ++j) {
        held.push_back(nb::cast<AnyVector>(columns[j], false));
        require_length(held.back().shape(0), n_rows, "a column");
        TableColumn part{typed(held.back(), TableColumn::Values()), nullptr, first_bit(j)};
        if (!valid[j].is_none()) {
            bits.push_back(nb::cast<Bits>(valid[j], false));
            const auto n_bits = 8 * Index(bits.back().shape(0));
            require(part.first_bit >= 0 && part.first_bit <= n_bits - n_rows, "a validity bitmap is too short");
            part.valid = bits.back().data();
        }
        parts.push_back(part);
    }
    const Index stride = n_rows > 1 ? out.stride(0) : n_columns;
    const Specials seen = unlocked([&] {
        return interleave_columns<Value>(parts, n_rows, out.data(), stride, n_threads);
    });
    return {seen.missing, seen.infinite};
}

template <class Value>
void bind_interleave(nb::module_ &m) {
    def(m, "interleave_columns", &interleave<Value>, {"columns", "valid", "first_bit", "out"}, nb::arg("n_threads") = 1,
        "Columns into the rows of `out`, NaN where a bit of `valid` is 0: whether any is NaN, "
        "and whether any is infinite.");
}

// ---- queries ----------------------------------------------------------------------------------

auto factorize_ids(IntegerArray ids) {
    Codes found = unlocked([&] { return factorize(span_of(ids)); });
    return to_tuple(std::move(found.codes), std::move(found.first));
}

auto group_rows_of(IntegerArray codes, Index n_queries) {
    require(n_queries >= 0, "n_queries must be >= 0");
    Grouping found = unlocked([&] { return group_rows(span_of(codes), n_queries); });
    return std::make_tuple(to_numpy(std::move(found.order)), to_numpy(std::move(found.offsets)), found.is_identity);
}

auto rank_levels_of(DoubleArray labels, IntegerArray offsets, OptionalOrder order, int n_threads) {
    const Queries queries = checked_queries(offsets, order, labels.shape(0));
    const std::vector<double> own = without_nan(labels, "a label");
    RankedLevels found = unlocked([&] { return rank_levels(own, queries.offsets, queries.order, n_threads); });
    return to_tuple(std::move(found.levels), std::move(found.n_levels));
}

auto count_pairs_of(LevelArray levels, IntegerArray offsets, LevelArray n_levels) {
    check_queries(offsets, levels, n_levels);
    return to_numpy(unlocked([&] { return count_pairs({span_of(offsets), span_of(levels), span_of(n_levels)}); }));
}

}  // namespace

void bind_rows(nb::module_ &m) {
    nb::class_<BoundRows>(m, "Rows", "A view of a row-major matrix, dense or CSR.")
        .def_prop_ro("shape", [](const BoundRows &r) { return nb::make_tuple(n_rows(r.rows), n_columns(r.rows)); });
    bind_rows_of<float>(m);
    bind_rows_of<double>(m);
    def(m, "first_non_finite", [](const BoundRows &rows, int n_threads) {
        return unlocked([&] { return first_non_finite(rows.rows, n_threads); });
    }, {"rows"}, nb::arg("n_threads") = 1, "(row, column) of the first NaN or infinity, or None.");
    def(m, "columns_increase", [](const BoundRows &rows, int n_threads) {
        return unlocked([&] { return columns_increase(rows.rows, n_threads); });
    }, {"rows"}, nb::arg("n_threads") = 1, "Whether the column indices of every row increase strictly.");
    def(m, "scan_columns", &scan, {"rows", "weight", "n_threads"},
        "Moments, ranges, norms and counts of every column, absent entries being 0, and the checksum of the rows.");
    def(m, "find_strays", &strays, {"rows", "floor", "ceiling", "n_threads"},
        "Values of every column below its floor, above its ceiling, or missing.");
    def(m, "scale_queries", &scale_queries, {"rows", "offsets", "order", "n_threads"},
        "The stored entries, each divided by the range of its column within its query.");
    bind_interleave<float>(m);
    bind_interleave<double>(m);
    def(m, "crc32c", [](Vector<std::uint8_t> bytes, std::uint32_t before) {
        return unlocked([&] { return crc32c(span_of(bytes), before); });
    }, {"bytes"}, nb::arg("before") = 0, "CRC-32C of the bytes, which continues that of what came before.");
    def(m, "factorize", &factorize_ids, {"ids"},
        "(codes, first): ids numbered by first appearance, and the row of each first appearance.");
    def(m, "group_rows", &group_rows_of, {"codes", "n_queries"},
        "(order, offsets, is_identity): a stable counting sort; order is empty if the identity.");
    def(m, "rank_levels", &rank_levels_of, {"labels", "offsets", "order"}, nb::arg("n_threads") = 1,
        "(levels, n_levels): dense ranks of the labels of each query.");
    def(m, "count_pairs", &count_pairs_of, {"levels", "offsets", "n_levels"}, "Pairs (i above j) of each query.");
}
