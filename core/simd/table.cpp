// All kernels of one instruction set, compiled together; what contraction would change lies apart.
#include "dense.hpp"
#include "descent.hpp"
#include "sweep.hpp"
#include "tiles.hpp"

#define LINRANK_STRING(x) #x
#define LINRANK_NAME(x) LINRANK_STRING(x)

namespace linrank::LINRANK_ISA {

template <class Value>
void add_columns(const DenseBlock<Value> &x, const double *weight, const ColumnSums<Value> &sums);
double dot_twice(Index n, const double *x, const double *y);

namespace {

template <class Value>
constexpr RowKernels<Value> rows{
    .dot = dot<Value>, .add = add_rows<false, double, Value>, .add_cached = add_rows<true, Value, Value>,
    .add_columns = add_columns<Value>, .add_cross_product = add_cross_product<Value>, .axpy = axpy<Value>,
    .dense = {descend_by_rule<Value>, descend_lanes<DenseLanesDifference<Value>, DenseRows<Value>>},
    .sparse = {descend_by_rule<Value>, descend_lanes<SparseDifference<CsrRows<Value>, F64x8>, CsrRows<Value>>}};

}  // namespace

extern const Simd table;
const Simd table = {.name = LINRANK_NAME(LINRANK_ISA),
                    .of_float = rows<float>, .of_double = rows<double>,
                    .prefix_table = {prefix_table<1>, prefix_table<2>},
                    .ranked_sums = {ranked_sums<1>, ranked_sums<2>},
                    .radix_sums = {radix_sums<false>, radix_sums<true>}, .dot_vectors = dot_vectors,
                    .dot_twice = dot_twice, .exp_vector = exp_vector, .power_vector = power_vector,
                    .panel_distances = panel_distances, .panel_products = panel_products,
                    .add_symmetric = add_symmetric, .add_swaps = add_swaps,
                    .multiply_swaps = multiply_swaps, .swap_curvatures = swap_curvatures};

}  // namespace linrank::LINRANK_ISA
