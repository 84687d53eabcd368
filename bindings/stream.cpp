// The index of the rows that are kept of a stream.
#include <nanobind/stl/tuple.h>

#include "arrays.hpp"
#include "exclusive.hpp"
#include "module.hpp"
#include "stream_index.hpp"

namespace {

using Shared = Exclusive<StreamIndex>;
/// An index that no other call is at work on.
struct InUse : Shared::Use {
    explicit InUse(Shared &shared) : Use(shared, "StreamIndex") {}
};

using Integers = Vector<std::int64_t>;

void check_rows(const Integers &ids, const Vector<double> &labels, const Integers &sizes) {
    require_length(labels.shape(0), std::int64_t(ids.shape(0)), "labels");
    require_length(sizes.shape(0), std::int64_t(ids.shape(0)), "sizes");
    // So that no sum of sizes overflows.
    for (const std::int64_t size : span_of(sizes))
        if (size < 0 || size > INT32_MAX)
            throw std::invalid_argument("the size of a row must lie in [0, 2^31), got " + std::to_string(size));
}

/// Positions are numbers of 32 bits.
void check_n_rows(std::int64_t n_rows) {
    if (n_rows < 0 || n_rows > INT32_MAX)
        throw std::invalid_argument("a buffer holds at most 2147483647 rows, got " + std::to_string(n_rows));
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

auto add_rows(Shared &shared, Integers ids, Vector<double> labels, Integers sizes) {
    const InUse index(shared);
    check_rows(ids, labels, sizes);
    check_n_rows(index->n_used() + std::int64_t(ids.shape(0)));
    const std::vector<double> own = without_nan(labels, "a label");
    return to_tuple(unlocked([&] { return index->add(span_of(ids), own, span_of(sizes)); }));
}

auto index_state(Shared &shared) {
    const InUse index(shared);
    if (index->n_used() != index->n_rows()) throw std::invalid_argument("call compact() first");
    StreamIndex::State state = index->state();
    return std::make_tuple(to_numpy(std::move(state.ids)), to_numpy(std::move(state.labels)),
                           to_numpy(std::move(state.sizes)), to_numpy(std::move(state.recency)),
                           state.n_forgotten);
}

Shared restored(std::int64_t rows_per_level, std::int64_t rows_per_query, Integers ids,
                Vector<double> labels, Integers sizes, Integers recency, std::int64_t n_forgotten) {
    check_bounds(rows_per_level, rows_per_query);
    check_rows(ids, labels, sizes);
    check_n_rows(std::int64_t(ids.shape(0)));
    StreamIndex::State state;
    state.ids = own_copy(ids);
    state.labels = without_nan(labels, "a label");
    state.sizes = own_copy(sizes);
    state.recency = own_copy(recency);
    state.n_forgotten = n_forgotten;
    return Shared(StreamIndex::restore(rows_per_level, rows_per_query, state));
}

}  // namespace

void bind_stream(nb::module_ &m) {
    nb::class_<Shared>(m, "StreamIndex",
                       "Which rows of a stream are kept, and the pairs that new ones make.")
        .def("__init__",
             [](Shared *self, std::int64_t rows_per_level, std::int64_t rows_per_query) {
                 check_bounds(rows_per_level, rows_per_query);
                 new (self) Shared(StreamIndex(rows_per_level, rows_per_query));
             }, nb::arg("rows_per_level"), nb::arg("rows_per_query"))
        .def("add", &add_rows, nb::arg("ids").noconvert(), nb::arg("labels").noconvert(),
             nb::arg("sizes").noconvert(),
             "(order, winner_begin, winner_end, loser_begin, loser_end, query, n_pairs): the cells of "
             "the pairs with at least one of the rows.")
        .def("reserve", [](Shared &shared, std::int64_t n_rows) {
            check_n_rows(n_rows);
            InUse(shared)->reserve(n_rows);
        }, nb::arg("n_rows"))
        .def("touch", [](Shared &shared, Integers ids) { InUse(shared)->touch(span_of(ids)); },
             nb::arg("ids").noconvert(), "Mark queries as seen now.")
        .def("evict", [](Shared &shared, std::int64_t max_rows, std::int64_t max_size) {
                 InUse(shared)->evict(max_rows, max_size);
             }, nb::arg("max_rows"), nb::arg("max_size"),
             "Forget the queries seen least recently until the rest is within both bounds.")
        .def("compact", [](Shared &shared) { return to_numpy(InUse(shared)->compact()); },
             "Close the gaps; the old positions of the rows that are left.")
        .def_prop_ro("n_rows", [](Shared &shared) { return InUse(shared)->n_rows(); })
        .def_prop_ro("n_queries", [](Shared &shared) { return InUse(shared)->n_queries(); })
        .def_prop_ro("size", [](Shared &shared) { return InUse(shared)->size(); })
        .def_prop_ro("n_used", [](Shared &shared) { return InUse(shared)->n_used(); },
                     "Positions in use, gaps included.")
        .def_prop_ro("n_forgotten", [](Shared &shared) { return InUse(shared)->n_forgotten(); })
        .def("state", &index_state, "(ids, labels, sizes, recency, n_forgotten), without gaps only.")
        .def_static("restore", &restored, nb::arg("rows_per_level"), nb::arg("rows_per_query"),
                    nb::arg("ids").noconvert(), nb::arg("labels").noconvert(),
                    nb::arg("sizes").noconvert(), nb::arg("recency").noconvert(),
                    nb::arg("n_forgotten"));
}
