// Metrics and ranks.
#include "arrays.hpp"
#include "concordance.hpp"
#include "metrics.hpp"
#include "ranking.hpp"

namespace {

auto concordance(IntegerArray offsets, LevelArray levels, DoubleArray scores, DoubleArray weight) {
    const std::size_t n_rows = levels.shape(0);
    check_offsets(span_of(offsets), n_rows);
    const std::vector<double> own = checked_scores(scores, n_rows);
    require_length(weight.shape(0), Index(n_rows), "weight");
    check_indices(span_of(levels), Index(n_rows), "a level is out of range");
    const Concordance found = unlocked([&] {
        return weighted_concordance({span_of(offsets), span_of(levels), {}, span_of(weight)}, own);
    });
    return std::make_tuple(found.right, found.wrong, found.tied);
}

/// A list holds rows of its query only.
void check_ranked(std::span<const Index> n_ranked, std::span<const Index> offsets) {
    require_length(n_ranked.size(), Index(offsets.size()) - 1, "n_ranked");
    for (std::size_t q = 0; q < n_ranked.size(); ++q)
        if (n_ranked[q] < 0 || n_ranked[q] > offsets[q + 1] - offsets[q])
            throw std::invalid_argument("a query has more ranked rows than rows");
}

auto censored_concordance_of(IntegerArray offsets, Vector<bool> event, DoubleArray time, DoubleArray risk, double tolerance) {
    check_offsets(span_of(offsets), time.shape(0));
    const std::vector<double> risks = checked_scores(risk, time.shape(0)), times = without_nan(time, "a time");
    require_length(event.shape(0), Index(time.shape(0)), "event");
    const CensoredCounts counts = unlocked([&] {
        return censored_concordance(span_of(offsets), {span_of(event), times, risks, tolerance});
    });
    return std::make_tuple(counts.concordant, counts.discordant, counts.tied, counts.tied_time);
}

auto evaluate_queries_of(DoubleArray labels, DoubleArray scores, IntegerArray offsets, OptionalOrder order, LevelArray levels,
                         LevelArray n_levels, std::optional<IntegerArray> docid, std::optional<IntegerArray> n_ranked,
                         const std::vector<Measure> &measures, Ties ties, bool with_pairs, bool with_rows,
                         int n_threads) {
    const std::size_t n_rows = labels.shape(0);
    const Queries queries = checked_queries(offsets, order, n_rows);
    const std::vector<double> own = checked_scores(scores, n_rows);
    require_length(docid, Index(n_rows), "docid");
    check_levels(span_of(levels), span_of(offsets), span_of(n_levels));
    if (n_ranked) check_ranked(span_of(*n_ranked), span_of(offsets));
    const RankInput input{{span_of(offsets), span_of(levels), span_of(n_levels), {}, {}, queries.order},
                          span_of(labels), own, span_of(docid), span_of(n_ranked)};
    MetricValues found = unlocked([&] {
        return evaluate_queries(input, measures, ties, {with_pairs, with_rows}, n_threads);
    });
    return to_tuple(std::move(found.values), std::move(found.means), std::move(found.pairs), std::move(found.rows));
}

auto ranks_within_queries_of(DoubleArray scores, IntegerArray offsets, OptionalOrder order, int n_threads) {
    const Queries queries = checked_queries(offsets, order, scores.shape(0));
    const std::vector<double> own = checked_scores(scores, scores.shape(0));
    return filled(std::vector<Index>(scores.shape(0)), [&](auto ranks) {
        ranks_within_queries(queries, own, n_threads, ranks);
    });
}

Measure new_measure(Kind kind, Index k, Gain gain, Discount discount, double relevant_from, double y_max,
                    double empty, bool short_is_zero, bool reachable, bool step_precision, double persistence) {
    if (k < 0) throw std::invalid_argument("k must be >= 0");
    return {kind, k, gain, discount, relevant_from, y_max, empty, short_is_zero, reachable, step_precision, persistence};
}

template <class Choice>
void bind_enum(nb::module_ &m, const char *name, const char *text,
               std::initializer_list<std::pair<const char *, Choice>> values) {
    nb::enum_<Choice> choices(m, name, text);
    for (const auto &[value, choice] : values) choices.value(value, choice);
}

void bind_measure(nb::module_ &m) {
    bind_enum<Ties>(m, "Ties", "Who comes first among equal scores.",
                    {{"stable", Ties::stable}, {"average", Ties::average}, {"pessimistic", Ties::pessimistic},
                     {"docid", Ties::docid}});
    bind_enum<Gain>(m, "Gain", "", {{"exponential", Gain::exponential}, {"linear", Gain::linear}});
    bind_enum<Discount>(m, "Discount", "", {{"standard", Discount::standard}, {"letor", Discount::letor}});
    bind_enum<Kind>(m, "Kind", "The measures of one query.",
                    {{"ndcg", Kind::ndcg}, {"mean_ndcg", Kind::mean_ndcg},
                     {"average_precision", Kind::average_precision}, {"precision", Kind::precision},
                     {"recall", Kind::recall}, {"reciprocal_rank", Kind::reciprocal_rank}, {"err", Kind::err},
                     {"auc", Kind::auc}, {"rbp", Kind::rbp}, {"success", Kind::success},
                     {"kendall_tau", Kind::kendall_tau}});
    nb::class_<Measure>(m, "Measure", "A measure with every convention decided.")
        .def(nb::new_(&new_measure), nb::kw_only(), nb::arg("kind"), nb::arg("k"), nb::arg("gain"),
             nb::arg("discount"), nb::arg("relevant_from"), nb::arg("y_max"), nb::arg("empty"),
             nb::arg("short_is_zero"), nb::arg("reachable"), nb::arg("step_precision"), nb::arg("persistence"));
}

}  // namespace

void bind_metrics(nb::module_ &m) {
    bind_measure(m);
    def(m, "evaluate_queries", &evaluate_queries_of,
        {"labels", "scores", "offsets", "order", "levels", "n_levels", "docid", "n_ranked", "measures", "ties",
         "with_pairs", "with_rows"}, nb::arg("n_threads") = 1,
        "(values by measure and query, means, pair counts, row counts by query), each flat.");
    def(m, "ranks_within_queries", &ranks_within_queries_of, {"scores", "offsets", "order"}, nb::arg("n_threads") = 1,
        "Rank of each row in its query, from 1.");
    def(m, "weighted_concordance", &concordance, {"offsets", "levels", "scores", "weight"},
        "Total weight of the pairs in the right order, in the wrong one, and tied.");
    def(m, "censored_concordance", &censored_concordance_of, {"offsets", "event", "time", "risk", "tolerance"},
        "Comparable pairs: concordant, discordant, tied in risk, in time.");
}
