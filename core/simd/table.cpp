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
    add_f32, add_f64, add_cached_f32, add_cached_f64,
    prefix_table, prefix_table_two, ranked_sums, ranked_sums_two, radix_above, radix_below,
    add_cross_product_f32, add_cross_product_f64, axpy_f32, axpy_f64, dot_vectors,
};

}  // namespace linrank::LINRANK_ISA
