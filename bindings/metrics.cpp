// Metrics and ranks.
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include "arrays.hpp"
#include "censored.hpp"
#include "concordance.hpp"
#include "metrics.hpp"
#include "module.hpp"
#include "ranking.hpp"

namespace {

std::tuple<double, double, double> concordance(Vector<std::int64_t> offsets,
                                               Vector<std::int32_t> levels, Vector<double> scores,
                                               Vector<double> weight) {
    const std::size_t n_rows = levels.shape(0);
    check_offsets(span_of(offsets), n_rows);
    const std::vector<double> own = checked_scores(scores, n_rows);
    require_length(weight.shape(0), std::int64_t(n_rows), "weight");
    for (const std::int32_t level : span_of(levels))
        if (level < 0 || std::size_t(level) >= n_rows)
            throw std::invalid_argument("a level is out of range");
    const Concordance result = unlocked([&] {
        return weighted_concordance(span_of(offsets), span_of(levels), own, span_of(weight));
    });
    return {result.right, result.wrong, result.tied};
}

/// A list holds rows of its query only.
void check_ranked(std::span<const std::int64_t> n_ranked, std::span<const std::int64_t> offsets) {
    require_length(n_ranked.size(), std::int64_t(offsets.size()) - 1, "n_ranked");
    for (std::size_t q = 0; q < n_ranked.size(); ++q)
        if (n_ranked[q] < 0 || n_ranked[q] > offsets[q + 1] - offsets[q])
            throw std::invalid_argument("a query has more ranked rows than rows");
}

std::tuple<std::int64_t, std::int64_t, std::int64_t, std::int64_t> censored_concordance_of(
    Vector<std::int64_t> offsets, Vector<bool> event, Vector<double> time, Vector<double> risk,
    double tolerance) {
    check_offsets(span_of(offsets), time.shape(0));
    const std::vector<double> risks = checked_scores(risk, time.shape(0)), times = without_nan(time, "a time");
    require_length(event.shape(0), std::int64_t(time.shape(0)), "event");
    const CensoredCounts counts = unlocked([&] {
        return censored_concordance(span_of(offsets), span_of(event), times, risks, tolerance);
    });
    return {counts.concordant, counts.discordant, counts.tied, counts.tied_time};
}

auto evaluate_queries_of(Vector<double> labels, Vector<double> scores, Vector<std::int64_t> offsets,
                         OptionalOrder order, Vector<std::int32_t> levels,
                         Vector<std::int32_t> n_levels, std::optional<Vector<std::int64_t>> docid,
                         std::optional<Vector<std::int64_t>> n_ranked,
                         const std::vector<Measure> &measures, Ties ties, bool with_pairs,
                         bool with_rows, int n_threads) {
    const std::size_t n_rows = labels.shape(0);
    const QueryView queries = checked_queries(offsets, order, n_rows);
    const std::vector<double> own = checked_scores(scores, n_rows);
    if (docid) require_length(docid->shape(0), std::int64_t(n_rows), "docid");
    check_levels(span_of(levels), span_of(offsets), span_of(n_levels));
    if (n_ranked) check_ranked(span_of(*n_ranked), span_of(offsets));
    const RankInput input{queries,           span_of(labels), own,              span_of(levels),
                          span_of(n_levels), span_of(docid),  span_of(n_ranked)};
    const Counted counted{with_pairs, with_rows};
    MetricValues result =
        unlocked([&] { return evaluate_queries(input, measures, ties, counted, n_threads); });
    return std::make_tuple(to_numpy(std::move(result.values)), to_numpy(std::move(result.means)),
                           to_numpy(std::move(result.pairs)), to_numpy(std::move(result.rows)));
}

auto ranks_within_queries_of(Vector<double> scores, Vector<std::int64_t> offsets,
                             OptionalOrder order, int n_threads) {
    const QueryView queries = checked_queries(offsets, order, scores.shape(0));
    const std::vector<double> own = checked_scores(scores, scores.shape(0));
    std::vector<std::int64_t> ranks(scores.shape(0));
    unlocked([&] { ranks_within_queries(queries, own, n_threads, ranks); });
    return to_numpy(std::move(ranks));
}

void bind_measure(nb::module_ &m) {
    nb::enum_<Ties>(m, "Ties", "Who comes first among equal scores.")
        .value("stable", Ties::stable)
        .value("average", Ties::average)
        .value("pessimistic", Ties::pessimistic)
        .value("docid", Ties::docid);
    nb::enum_<Gain>(m, "Gain").value("exponential", Gain::exponential).value("linear", Gain::linear);
    nb::enum_<Discount>(m, "Discount")
        .value("standard", Discount::standard)
        .value("letor", Discount::letor);
    nb::enum_<Kind>(m, "Kind", "The measures of one query.")
        .value("ndcg", Kind::ndcg)
        .value("mean_ndcg", Kind::mean_ndcg)
        .value("average_precision", Kind::average_precision)
        .value("precision", Kind::precision)
        .value("recall", Kind::recall)
        .value("reciprocal_rank", Kind::reciprocal_rank)
        .value("err", Kind::err)
        .value("auc", Kind::auc)
        .value("rbp", Kind::rbp)
        .value("success", Kind::success)
        .value("kendall_tau", Kind::kendall_tau);
    nb::class_<Measure>(m, "Measure", "A measure with every convention decided.")
        .def("__init__",
             [](Measure *self, Kind kind, std::int64_t k, Gain gain, Discount discount,
                double relevant_from, double y_max, double empty, bool short_is_zero,
                bool reachable, bool step_precision, double persistence) {
                 if (k < 0) throw std::invalid_argument("k must be >= 0");
                 new (self) Measure{kind,  k,     gain,          discount,  relevant_from,
                                    y_max, empty, short_is_zero, reachable, step_precision,
                                    persistence};
             },
             nb::kw_only(), nb::arg("kind"), nb::arg("k"), nb::arg("gain"), nb::arg("discount"),
             nb::arg("relevant_from"), nb::arg("y_max"), nb::arg("empty"),
             nb::arg("short_is_zero"), nb::arg("reachable"), nb::arg("step_precision"),
             nb::arg("persistence"));
}

}  // namespace

void bind_metrics(nb::module_ &m) {
    bind_measure(m);
    m.def("evaluate_queries", &evaluate_queries_of, nb::arg("labels").noconvert(),
          nb::arg("scores").noconvert(), nb::arg("offsets").noconvert(),
          nb::arg("order").noconvert().none(), nb::arg("levels").noconvert(),
          nb::arg("n_levels").noconvert(), nb::arg("docid").noconvert().none(),
          nb::arg("n_ranked").noconvert().none(),
          nb::arg("measures"), nb::arg("ties"), nb::arg("with_pairs"), nb::arg("with_rows"),
          nb::arg("n_threads") = 1,
          "(values by measure and query, means, pair counts, row counts by query), each flat.");
    m.def("ranks_within_queries", &ranks_within_queries_of, nb::arg("scores").noconvert(),
          nb::arg("offsets").noconvert(), nb::arg("order").noconvert().none(),
          nb::arg("n_threads") = 1, "Rank of each row in its query, from 1.");
    m.def("weighted_concordance", &concordance, nb::arg("offsets").noconvert(),
          nb::arg("levels").noconvert(), nb::arg("scores").noconvert(),
          nb::arg("weight").noconvert(),
          "Total weight of the pairs in the right order, in the wrong one, and tied.");
    m.def("censored_concordance", &censored_concordance_of, nb::arg("offsets").noconvert(),
          nb::arg("event").noconvert(), nb::arg("time").noconvert(), nb::arg("risk").noconvert(),
          nb::arg("tolerance"), "Comparable pairs: concordant, discordant, tied in risk, in time.");
}
