// Measures of all queries at once: one sort per query, chunks of queries over threads.
#pragma once

#include "measures.hpp"

namespace linrank {

/// What is counted beside the measures.
struct Counted {
    bool pairs = false;
    bool rows = false;
};

struct MetricValues {
    std::vector<double> values;         // measure m of query q at [m * n_queries + q]; NaN: left out
    std::vector<double> means;          // by measure, over the queries that take part; NaN if none
    std::vector<std::int64_t> pairs;    // concordant, discordant, tied of query q at [3 q], if asked
    // Total, wrong, tied of the dominating rows of query q at [6 q], of the dominated at [6 q + 3].
    std::vector<std::int64_t> rows;
};

/// The values do not depend on n_threads: each is written by query and means are summed in order.
MetricValues evaluate_queries(const RankInput &input, std::span<const Measure> measures, Ties ties,
                              Counted counted, int n_threads);

}  // namespace linrank
