// The module of the core: every part checks shapes, releases the GIL and calls the core.
#include <nanobind/nanobind.h>

#include <optional>

#include "parallel.hpp"

namespace nb = nanobind;

void bind_rows(nb::module_ &m);
void bind_text(nb::module_ &m);
void bind_products(nb::module_ &m);
void bind_pairs(nb::module_ &m);
void bind_domination(nb::module_ &m);
void bind_duals(nb::module_ &m);
void bind_stochastic(nb::module_ &m);
void bind_metrics(nb::module_ &m);

NB_MODULE(_core, m) {
    m.doc() = "The C++ core of linrank.";
    // A dataset that lives until the interpreter exits is no leak, and not worth a page on stderr.
    nb::set_leak_warnings(false);
    for (const auto bind : {bind_rows, bind_text, bind_products, bind_pairs, bind_domination,
                            bind_duals, bind_stochastic, bind_metrics})
        bind(m);
    // A function and not a context manager: a pool ends on the thread that it serves.
    m.def("keep_threads", [](const nb::callable &work) {
        std::optional<linrank::ThreadPool> pool;
        if (!linrank::ThreadPool::current()) pool.emplace();
        return work();
    }, nb::sig("def keep_threads(work: collections.abc.Callable[[], typing.Any]) -> typing.Any"),
       "work(), in which all calls from this thread share the threads they start.");
}
