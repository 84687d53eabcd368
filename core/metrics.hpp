// Measures of all queries at once: one sort per query, chunks of queries over threads.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "measures.hpp"

namespace linrank {

struct MetricValues {
    std::vector<double> values;         // measure m of query q at [m * n_queries + q]; NaN: left out
    std::vector<double> means;          // by measure, over the queries that take part; NaN if none
    std::vector<std::int64_t> pairs;    // concordant, discordant, tied of query q at [3 q], if asked
};

/// The values do not depend on n_threads: each is written by query and means are summed in order.
MetricValues evaluate_queries(const RankInput &input, std::span<const Measure> measures, Ties ties,
                              bool with_pairs, int n_threads);

}  // namespace linrank
