// Metrics and ranks.
#include "arrays.hpp"
#include "metrics.hpp"

template <>
inline constexpr Choices<Ties> choices<Ties>{"rule for ties", {
    {"stable", Ties::stable}, {"average", Ties::average}, {"pessimistic", Ties::pessimistic},
    {"docid", Ties::docid}}};
template <>
inline constexpr Choices<Gain> choices<Gain>{"gain", {
    {"exponential", Gain::exponential}, {"linear", Gain::linear}}};
template <>
inline constexpr Choices<Discount> choices<Discount>{"discount", {
    {"standard", Discount::standard}, {"letor", Discount::letor}}};
template <>
inline constexpr Choices<Kind> choices<Kind>{"measure", {
    {"ndcg", Kind::ndcg}, {"mean_ndcg", Kind::mean_ndcg}, {"precision", Kind::precision},
    {"average_precision", Kind::average_precision}, {"recall", Kind::recall}, {"err", Kind::err},
    {"reciprocal_rank", Kind::reciprocal_rank}, {"auc", Kind::auc}, {"rbp", Kind::rbp},
    {"success", Kind::success}, {"kendall_tau", Kind::kendall_tau}}};


namespace {

Concordance concordance(Integers offsets, Levels levels, std::vector<double> scores, Doubles weight) {
    check_offsets(offsets, levels.size());
    require_lengths(std::ssize(levels), {"scores", "weight"}, scores, weight);
    check_not_nan(scores, "a score");
    check_indices(levels, std::ssize(levels), "a level is out of range");
    return weighted_concordance({offsets, levels, {}, weight}, scores);
}

CensoredCounts censored_concordance_of(Integers offsets, std::span<const bool> event,
                                       std::vector<double> time, std::vector<double> risk,
                                       double tolerance) {
    check_offsets(offsets, time.size());
    require_lengths(std::ssize(time), {"scores", "event"}, risk, event);
    check_not_nan(risk, "a score");
    check_not_nan(time, "a time");
    return censored_concordance(offsets, {event, time, risk, tolerance});
}

MetricValues evaluate(Doubles labels, std::vector<double> scores, Integers offsets,
                      OptionalOrder order, Levels levels, Levels n_levels,
                      std::optional<Integers> docid, std::optional<Integers> n_ranked,
                      const std::vector<Measure> &measures, Ties ties, bool with_pairs,
                      bool with_rows, int n_threads) {
    RankInput input{ordered_queries(offsets, order, labels.size()), labels, scores, or_empty(docid),
                    or_empty(n_ranked)};
    input.levels = levels;
    input.n_levels = n_levels;
    check_levels(input);
    require_lengths(input.n_rows(), {"scores", "docid"}, scores, docid);
    check_not_nan(scores, "a score");
    require_length(n_ranked, input.n_queries(), "n_ranked");
    for (Index q = 0; n_ranked && q < input.n_queries(); ++q)
        require((*n_ranked)[q] >= 0 && (*n_ranked)[q] <= input.length(q),
                "a query has more ranked rows than rows");
    return evaluate_queries(input, measures, ties, {with_pairs, with_rows}, n_threads);
}

std::vector<Index> ranks(std::vector<double> scores, Integers offsets, OptionalOrder order,
                         int n_threads) {
    const Queries queries = ordered_queries(offsets, order, scores.size());
    check_not_nan(scores, "a score");
    return ranks_within_queries(queries, scores, n_threads);
}

}  // namespace

void bind_metrics(nb::module_ &m) {
    nb::class_<Measure> measure(m, "Measure", "A measure with every convention decided.");
    def(measure,
        "__init__(kind, k, gain, discount, relevant_from, y_max, empty, short_is_zero, reachable, "
        "step_precision, persistence)",
        [](Measure *self, Kind kind, Index k, Gain gain, Discount discount, double relevant_from,
           double y_max, double empty, bool short_is_zero, bool reachable, bool step_precision,
           double persistence) {
        require(k >= 0, "k must be >= 0");
        new (self) Measure{kind, k, gain, discount, relevant_from, y_max, empty, short_is_zero,
                           reachable, step_precision, persistence};
    });
    def(m,
        "evaluate_queries(labels, scores, offsets, order, levels, n_levels, docid, n_ranked, "
        "measures, ties, with_pairs, with_rows)", unlocked(&evaluate), nb::arg("n_threads") = 1,
        "(values by measure and query, means, pair counts, row counts by query), each flat.");
    def(m, "ranks_within_queries(scores, offsets, order)", unlocked(&ranks),
        nb::arg("n_threads") = 1, "Rank of each row in its query, from 1.");
    def(m, "weighted_concordance(offsets, levels, scores, weight)", unlocked(&concordance),
        "Total weight of the pairs in the right order, in the wrong one, and tied.");
    def(m, "censored_concordance(offsets, event, time, risk, tolerance)",
        unlocked(&censored_concordance_of),
        "Comparable pairs: concordant, discordant, tied in risk, in time.");
}
