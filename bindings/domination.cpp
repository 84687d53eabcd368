// The domination loss at given scores.
#include "bound_layering.hpp"
#include "module.hpp"

void bind_domination(nb::module_ &) {}
