// The module of the core: every part checks shapes, releases the GIL and calls the core.
#include <nanobind/nanobind.h>

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
}
