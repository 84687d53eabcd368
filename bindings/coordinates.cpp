// Coordinate descent for the domination loss.
#include "bound_layering.hpp"
#include "module.hpp"

void bind_coordinates(nb::module_ &) {}
