#include "kernels.hpp"

#define LINRANK_STRING(x) #x
#define LINRANK_NAME(x) LINRANK_STRING(x)

namespace linrank::LINRANK_ISA {
namespace {

template <class Value>
constexpr RowKernels<Value> rows{.dot = dot<Value>,
                                 .add = add<Value>, .add_cached = add_cached<Value>,
                                 .add_columns = add_columns<Value>,
                                 .add_cross_product = add_cross_product<Value>, .axpy = axpy<Value>,
                                 .dense = {descend_one<DenseRows<Value>>, descend_lanes<DenseRows<Value>>},
                                 .sparse = {descend_one<CsrRows<Value>>, descend_lanes<CsrRows<Value>>}};

}  // namespace

extern const Simd table;
const Simd table = {.name = LINRANK_NAME(LINRANK_ISA),
                    .of_float = rows<float>, .of_double = rows<double>,
                    .prefix_table = {prefix_table<1>, prefix_table<2>},
                    .ranked_sums = {ranked_sums<1>, ranked_sums<2>}, .radix_above = radix_above,
                    .radix_below = radix_below, .dot_vectors = dot_vectors, .dot_twice = dot_twice,
                    .exp_vector = exp_vector, .power_vector = power_vector,
                    .panel_distances = panel_distances, .panel_products = panel_products,
                    .add_symmetric = add_symmetric, .add_swaps = add_swaps,
                    .multiply_swaps = multiply_swaps, .swap_curvatures = swap_curvatures};

}  // namespace linrank::LINRANK_ISA
