// The module of the core: every part checks shapes, releases the GIL and calls the core.
#include "module.hpp"

namespace nb = nanobind;

NB_MODULE(_core, m) {
    m.doc() = "The C++ core of linrank.";
    // A dataset that lives until the interpreter exits is no leak, and not worth a page on stderr.
    nb::set_leak_warnings(false);
    bind_rows(m);
    bind_queries(m);
    bind_reader(m);
    bind_pairs(m);
    bind_layering(m);
    bind_domination(m);
    bind_coordinates(m);
    bind_factors(m);
    bind_preferences(m);
    bind_swaps(m);
    bind_published(m);
    bind_products(m);
    bind_hessian(m);
    bind_scaling(m);
    bind_curves(m);
    bind_metrics(m);
    bind_trec(m);
    bind_samplers(m);
    bind_descent(m);
    bind_stream(m);
    bind_rectangles(m);
    bind_kernels(m);
    bind_checksum(m);
    bind_writer(m);
    bind_tables(m);
}
