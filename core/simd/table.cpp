#include "dense.hpp"
#include "gram.hpp"
#include "sweep.hpp"

#define LINRANK_STRING(x) #x
#define LINRANK_NAME(x) LINRANK_STRING(x)

namespace linrank::LINRANK_ISA {

extern const Kernels table;
const Kernels table = {
    LINRANK_NAME(LINRANK_ISA),
    dot_f32, dot_f64,
    add_f32, add_f32_fast, add_f64,
    prefix_table, prefix_table_two, ranked_sums, ranked_sums_two, radix_above, radix_below,
    add_cross_product, axpy_f32, dot_vectors,
};

}  // namespace linrank::LINRANK_ISA
