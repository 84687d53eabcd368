#include "domination.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "domination_sweep.hpp"
#include "parallel.hpp"

namespace linrank {
namespace {

constexpr std::int64_t n_chunks = 64;

/// h(x) = -x log x - (1 - x) log(1 - x).
double entropy(double x) {
    if (!(x > 0.0)) return 0.0;
    return -x * std::log(x) - (x < 1.0 ? (1.0 - x) * std::log1p(-x) : 0.0);
}

/// Calls body(chunk, query, threads, scratch): one thread for the queries of a chunk, all for a long one.
template <class Body>
void for_each_query(const std::vector<QueryChunk> &chunks, int n_threads, const Body &body) {
    parallel_for(std::int64_t(chunks.size()), n_threads, [&](std::int64_t c) {
        const QueryChunk &chunk = chunks[c];
        if (chunk.is_long) return;
        LayerScratch scratch;
        for (std::int64_t q = chunk.first; q < chunk.last; ++q) body(c, q, 1, scratch);
    });
    LayerScratch scratch;
    for (std::size_t c = 0; c < chunks.size(); ++c)
        if (chunks[c].is_long) body(std::int64_t(c), chunks[c].first, n_threads, scratch);
}

}  // namespace

DominationPoint::DominationPoint(const Layering &layering, std::span<const double> z, int n_threads)
    : gradient(z.size(), PageArray<double>::huge), layering_(layering), shares_(layering),
      share_(z.size(), PageArray<double>::huge), rho_(z.size(), PageArray<double>::huge),
      pull_(std::size_t(layering.n_cells())), risk_(pull_.size()), square_risk_(pull_.size()) {
    const std::vector<QueryChunk> chunks = layering.chunks(n_chunks);
    std::vector<DominationSums> sums(chunks.size());
    for_each_query(chunks, n_threads,
                   [&](std::int64_t c, std::int64_t q, int threads, LayerScratch &scratch) {
        sums[c] += DominationSweep(*this, q, threads, scratch).evaluate(z.data());
    });
    DominationSums total;
    for (const DominationSums &s : sums) total += s;
    value = total.value;
    slope = total.slope;
    linear_ = total.odds - total.slope;
    total_curvature = total.trace;
    // Beside the rounding of each query, that of their sum: at most so many additions one after the other.
    const double depth = 0x1p-53 * (double(layering.n_queries()) + double(n_chunks));
    value_error = total.value_error + depth * value;
    slope_error = total.slope_error + depth * std::abs(slope);
    gradient_error = std::sqrt(total.squared_error);
}

void DominationPoint::multiply(std::span<const double> v, std::span<double> out,
                               int n_threads) const {
    const std::vector<QueryChunk> chunks = layering_.chunks(n_chunks);
    for_each_query(chunks, n_threads,
                   [&](std::int64_t, std::int64_t q, int threads, LayerScratch &scratch) {
        DominationProduct(*this, q, threads, scratch).multiply(v.data(), out.data());
    });
}

double DominationPoint::dual(double t, int n_threads) const {
    if (t >= 1.0) return value - slope;
    const std::vector<QueryChunk> chunks = layering_.chunks(n_chunks);
    std::vector<double> sums(chunks.size());
    parallel_for(std::int64_t(chunks.size()), n_threads, [&](std::int64_t c) {
        double sum = 0;
        for (std::int64_t q = chunks[c].first; q < chunks[c].last; ++q)
            for (std::int64_t i = layering_.offsets[q];
                 i < layering_.offsets[q + 1]; ++i)
                if (rho_[i] != 0.0)
                    sum += layering_.c(q) * layering_.u(i) * entropy(t * rho_[i]);
        sums[c] = sum;
    });
    double total = t * linear_;
    for (const double sum : sums) total += sum;
    return total;
}

}  // namespace linrank
