// The parts of the module, each bound by a file of its own.
#pragma once
#include <nanobind/nanobind.h>

void bind_rows(nanobind::module_ &m);
void bind_queries(nanobind::module_ &m);
void bind_reader(nanobind::module_ &m);
void bind_pairs(nanobind::module_ &m);
void bind_layering(nanobind::module_ &m);
void bind_domination(nanobind::module_ &m);
void bind_coordinates(nanobind::module_ &m);
void bind_factors(nanobind::module_ &m);
void bind_preferences(nanobind::module_ &m);
void bind_swaps(nanobind::module_ &m);
void bind_published(nanobind::module_ &m);
void bind_products(nanobind::module_ &m);
void bind_hessian(nanobind::module_ &m);
void bind_scaling(nanobind::module_ &m);
void bind_curves(nanobind::module_ &m);
void bind_metrics(nanobind::module_ &m);
void bind_trec(nanobind::module_ &m);
void bind_descent(nanobind::module_ &m);
void bind_stream(nanobind::module_ &m);
void bind_samplers(nanobind::module_ &m);
void bind_rectangles(nanobind::module_ &m);
void bind_kernels(nanobind::module_ &m);
void bind_checksum(nanobind::module_ &m);
void bind_writer(nanobind::module_ &m);
void bind_tables(nanobind::module_ &m);
