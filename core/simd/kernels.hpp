// The vector kernels of one instruction set; simd.hpp says what they do.
#pragma once
#include "simd.hpp"

namespace linrank::LINRANK_ISA {

template <class Value>
void dot(const DenseBlock<Value> &x, const double *w, double *out);
template <class Value>
void add(const DenseBlock<Value> &x, const double *a, double *total);
template <class Value>
void add_cached(const DenseBlock<Value> &x, const double *a, Value *total);
template <class Value>
void add_columns(const DenseBlock<Value> &x, const double *weight, const ColumnSums<Value> &sums);
template <class Value>
void add_cross_product(std::int64_t n_rows, std::int64_t n, std::int64_t first, std::int64_t last, const Value *a,
                       const Value *b, double *product);
template <class Value>
void axpy(std::int64_t n, Value a, const Value *x, Value *y);

template <int n_vectors>
void prefix_table(const Windows &, const double *v, double *above, double *below, double *table);
template <int n_vectors>
void ranked_sums(const Windows &, const double *v, double *above, double *below, double *scratch);
void radix_above(const Windows &, const double *v, std::int64_t first, std::int64_t last, double *tree, double *above);
void radix_below(const Windows &, const double *v, std::int64_t first, std::int64_t last, double *tree, double sign,
                 double *below);

double dot_vectors(std::int64_t n, const double *x, const double *y);
double dot_twice(std::int64_t n, const double *x, const double *y);
void exp_vector(std::int64_t n, double *x);
void power_vector(std::int64_t n, int degree, double *x);

void panel_distances(std::int64_t n_columns, std::int64_t n_panels, const double *a, const double *b, double factor,
                     double *out, std::int64_t stride);
void panel_products(std::int64_t n_columns, std::int64_t n_panels, const double *a, const double *b, double factor,
                    double term, double *out, std::int64_t stride);
void add_symmetric(std::int64_t n_rows, std::int64_t n, const double *q, std::int64_t stride, const double *u,
                   const double *v, double *sums, double *total);

void add_swaps(PairLoss, const SwapRow &, const SwapRows &, double *gradient, SwapSums &sums);
double multiply_swaps(PairLoss, const SwapRow &, const SwapRows &, double v, const double *others, double *out);
void swap_curvatures(PairLoss, const SwapRow &, const SwapRows &, double *out);

template <class Storage>
void descend_one(const Storage &rows, const DescentBatch &batch);
template <class Storage>
void descend_lanes(const Storage &rows, const DescentBatch &batch);

}  // namespace linrank::LINRANK_ISA
