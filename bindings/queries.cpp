// Query ids to offsets, labels to levels.
#include <nanobind/stl/pair.h>
#include <nanobind/stl/tuple.h>

#include "arrays.hpp"
#include "module.hpp"
#include "queries.hpp"

namespace {

auto factorise_ids(Vector<std::int64_t> ids) {
    Codes result = unlocked([&] { return factorise(span_of(ids)); });
    return std::make_tuple(to_numpy(std::move(result.codes)), to_numpy(std::move(result.first)));
}

auto group_rows_of(Vector<std::int64_t> codes, std::int64_t n_queries) {
    if (n_queries < 0) throw std::invalid_argument("n_queries must be >= 0");
    Grouping result = unlocked([&] { return group_rows(span_of(codes), n_queries); });
    return std::make_tuple(to_numpy(std::move(result.order)), to_numpy(std::move(result.offsets)),
                           result.is_identity);
}

auto rank_levels_of(Vector<double> labels, Vector<std::int64_t> offsets, OptionalOrder order,
                    int n_threads) {
    const QueryView queries = checked_queries(offsets, order, labels.shape(0));
    const std::vector<double> own = without_nan(labels, "a label");
    Levels result = unlocked(
        [&] { return rank_levels(own, queries.offsets, queries.order, n_threads); });
    return std::make_tuple(to_numpy(std::move(result.levels)), to_numpy(std::move(result.n_levels)));
}

auto count_pairs_of(Vector<std::int32_t> levels, Vector<std::int64_t> offsets,
                    Vector<std::int32_t> n_levels) {
    check_offsets(span_of(offsets), levels.shape(0));
    check_levels(span_of(levels), span_of(offsets), span_of(n_levels));
    return to_numpy(unlocked(
        [&] { return count_pairs(span_of(levels), span_of(offsets), span_of(n_levels)); }));
}

}  // namespace

void bind_queries(nb::module_ &m) {
    m.def("factorise", &factorise_ids, nb::arg("ids").noconvert(),
          "(codes, first): ids numbered by first appearance, and the row of each first appearance.");
    m.def("group_rows", &group_rows_of, nb::arg("codes").noconvert(), nb::arg("n_queries"),
          "(order, offsets, is_identity): a stable counting sort; order is empty if the identity.");
    m.def("rank_levels", &rank_levels_of, nb::arg("labels").noconvert(),
          nb::arg("offsets").noconvert(), nb::arg("order").noconvert().none(),
          nb::arg("n_threads") = 1, "(levels, n_levels): dense ranks of the labels of each query.");
    m.def("count_pairs", &count_pairs_of, nb::arg("levels").noconvert(),
          nb::arg("offsets").noconvert(), nb::arg("n_levels").noconvert(),
          "Pairs (i above j) of each query.");
}
