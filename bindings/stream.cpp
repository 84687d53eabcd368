// The index of the rows that are kept of a stream.
#include <nanobind/stl/tuple.h>

#include "arrays.hpp"
#include "module.hpp"
#include "stream_index.hpp"

namespace {

using Integers = Vector<std::int64_t>;

void check_rows(const Integers &ids, const Vector<double> &labels, const Integers &sizes) {
    require_length(labels.shape(0), std::int64_t(ids.shape(0)), "labels");
    require_length(sizes.shape(0), std::int64_t(ids.shape(0)), "sizes");
    check_no_nan(labels, "a label");
    for (const std::int64_t size : span_of(sizes))
        if (size < 0) throw std::invalid_argument("a size is negative");
}

void check_bounds(std::int64_t rows_per_level, std::int64_t rows_per_query) {
    if (rows_per_level < 1 || rows_per_query < 1)
        throw std::invalid_argument("rows_per_level and rows_per_query must be >= 1");
}

/// (order, winner_begin, winner_end, loser_begin, loser_end, query, n_pairs)
auto to_tuple(PairCells &&cells) {
    return std::make_tuple(to_numpy(std::move(cells.order)), to_numpy(std::move(cells.winner_begin)),
                           to_numpy(std::move(cells.winner_end)),
                           to_numpy(std::move(cells.loser_begin)),
                           to_numpy(std::move(cells.loser_end)), to_numpy(std::move(cells.query)),
                           cells.n_pairs);
}

auto add_rows(StreamIndex &index, Integers ids, Vector<double> labels, Integers sizes) {
    check_rows(ids, labels, sizes);
    if (index.n_used() + std::int64_t(ids.shape(0)) > INT32_MAX)
        throw std::invalid_argument("a buffer holds at most 2147483647 rows");
    return to_tuple(
        unlocked([&] { return index.add(span_of(ids), span_of(labels), span_of(sizes)); }));
}

auto state_of(StreamIndex &index) {
    if (index.n_used() != index.n_rows()) throw std::invalid_argument("call compact() first");
    StreamIndex::State state = index.state();
    return std::make_tuple(to_numpy(std::move(state.ids)), to_numpy(std::move(state.labels)),
                           to_numpy(std::move(state.sizes)), to_numpy(std::move(state.recency)),
                           state.n_forgotten);
}

template <class T>
std::vector<T> copy_of(const Vector<T> &a) { return {a.data(), a.data() + a.shape(0)}; }

StreamIndex restored(std::int64_t rows_per_level, std::int64_t rows_per_query, Integers ids,
                     Vector<double> labels, Integers sizes, Integers recency,
                     std::int64_t n_forgotten) {
    check_bounds(rows_per_level, rows_per_query);
    check_rows(ids, labels, sizes);
    StreamIndex::State state;
    state.ids = copy_of(ids);
    state.labels = copy_of(labels);
    state.sizes = copy_of(sizes);
    state.recency = copy_of(recency);
    state.n_forgotten = n_forgotten;
    return StreamIndex::restore(rows_per_level, rows_per_query, state);
}

}  // namespace

void bind_stream(nb::module_ &m) {
    nb::class_<StreamIndex>(m, "StreamIndex",
                            "Which rows of a stream are kept, and the pairs that new ones make.")
        .def("__init__",
             [](StreamIndex *self, std::int64_t rows_per_level, std::int64_t rows_per_query) {
                 check_bounds(rows_per_level, rows_per_query);
                 new (self) StreamIndex(rows_per_level, rows_per_query);
             }, nb::arg("rows_per_level"), nb::arg("rows_per_query"))
        .def("add", &add_rows, nb::arg("ids").noconvert(), nb::arg("labels").noconvert(),
             nb::arg("sizes").noconvert(),
             "(order, winner_begin, winner_end, loser_begin, loser_end, query, n_pairs): the cells of "
             "the pairs with at least one of the rows.")
        .def("reserve", [](StreamIndex &index, std::int64_t n_rows) {
            if (n_rows < 0 || n_rows > INT32_MAX)
                throw std::invalid_argument("a buffer holds at most 2147483647 rows");
            index.reserve(n_rows);
        }, nb::arg("n_rows"))
        .def("touch", [](StreamIndex &index, Integers ids) { index.touch(span_of(ids)); },
             nb::arg("ids").noconvert(), "Mark queries as seen now.")
        .def("evict", &StreamIndex::evict, nb::arg("max_rows"), nb::arg("max_size"),
             "Forget the queries seen least recently until the rest is within both bounds.")
        .def("compact", [](StreamIndex &index) { return to_numpy(index.compact()); },
             "Close the gaps; the old positions of the rows that are left.")
        .def_prop_ro("n_rows", &StreamIndex::n_rows)
        .def_prop_ro("n_queries", &StreamIndex::n_queries)
        .def_prop_ro("size", &StreamIndex::size)
        .def_prop_ro("n_used", &StreamIndex::n_used, "Positions in use, gaps included.")
        .def_prop_ro("n_forgotten", &StreamIndex::n_forgotten)
        .def("state", &state_of, "(ids, labels, sizes, recency, n_forgotten), without gaps only.")
        .def_static("restore", &restored, nb::arg("rows_per_level"), nb::arg("rows_per_query"),
                    nb::arg("ids").noconvert(), nb::arg("labels").noconvert(),
                    nb::arg("sizes").noconvert(), nb::arg("recency").noconvert(),
                    nb::arg("n_forgotten"));
}
