// A layering as Python holds it.
#pragma once
#include <memory>

#include "arrays.hpp"
#include "layering.hpp"

/// Owns all of its arrays: nothing that Python may write to is looked at later.
struct BoundLayering {
    std::shared_ptr<const Layering> layering;
};
