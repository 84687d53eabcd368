#include "columns.hpp"
#include "dense.hpp"
#include "descent.hpp"
#include "exact.hpp"
#include "exponential.hpp"
#include "gram.hpp"
#include "swaps.hpp"
#include "sweep.hpp"
#include "tiles.hpp"

#define LINRANK_STRING(x) #x
#define LINRANK_NAME(x) LINRANK_STRING(x)

namespace linrank::LINRANK_ISA {

namespace {
template <class Storage>
constexpr DescentKernel<Storage> descent{descend_one<Storage>, descend_lanes<Storage>};
}

extern const Kernels table;
const Kernels table = {
    LINRANK_NAME(LINRANK_ISA),
    dot_f32, dot_f64,
    add_f32, add_f64, add_cached_f32, add_cached_f64, add_columns_f32, add_columns_f64,
    prefix_table, prefix_table_two, ranked_sums, ranked_sums_two, radix_above, radix_below,
    add_cross_product_f32, add_cross_product_f64, axpy_f32, axpy_f64, dot_vectors, dot_twice, exp_vector,
    panel_distances, panel_products, power_vector, add_symmetric,
    add_swaps, multiply_swaps, swap_curvatures,
    {descent<DenseRows<float>>, descent<DenseRows<double>>, descent<CsrRows<float>>, descent<CsrRows<double>>},
};

}  // namespace linrank::LINRANK_ISA
