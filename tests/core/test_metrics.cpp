// Metrics of the core against sums over all pairs and hand-made values.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include "metrics.hpp"
#include "parallel.hpp"

using namespace linrank;

namespace {

int n_failures = 0;

void check(bool holds, const std::string &what) {
    if (holds) return;
    std::fprintf(stderr, "failed: %s\n", what.c_str());
    ++n_failures;
}

struct Problem {
    std::vector<std::int64_t> offsets, order;
    std::vector<double> labels, scores;
    std::vector<std::int32_t> levels, n_levels;
    RankInput input() const { return {{offsets, levels, n_levels, {}, {}, order}, labels, scores}; }
};

/// Queries of 1..60 rows in a shuffled row order; every label 0..k-1 is a level of its query.
Problem random_problem(unsigned seed, int n_queries, int n_levels, int n_scores) {
    std::mt19937 random(seed);
    Problem p;
    p.offsets.push_back(0);
    for (int q = 0; q < n_queries; ++q) {
        const int n = 1 + static_cast<int>(random() % 60), k = std::min(n, n_levels);
        for (int i = 0; i < n; ++i)
            p.levels.push_back(i < k ? i : static_cast<std::int32_t>(random() % static_cast<unsigned>(k)));
        p.n_levels.push_back(k);
        p.offsets.push_back(p.offsets.back() + n);
    }
    const auto n_rows = static_cast<std::size_t>(p.offsets.back());
    p.order.resize(n_rows);
    for (std::size_t t = 0; t < n_rows; ++t) p.order[t] = static_cast<std::int64_t>(t);
    std::shuffle(p.order.begin(), p.order.end(), random);
    p.labels.resize(n_rows);
    p.scores.resize(n_rows);
    for (std::size_t t = 0; t < n_rows; ++t) {
        const auto row = static_cast<std::size_t>(p.order[t]);
        p.labels[row] = p.levels[t];
        p.scores[row] = static_cast<double>(random() % static_cast<unsigned>(n_scores));
    }
    return p;
}

void pair_counts_equal_all_pairs() {
    for (const int n_levels : {1, 2, 5, 60}) {
        const Problem p = random_problem(static_cast<unsigned>(n_levels), 200, n_levels, 20);
        const MetricValues got = evaluate_queries(p.input(), {}, Ties::stable, {true, true}, 2);
        for (std::size_t q = 0; q < p.n_levels.size(); ++q) {
            PairCounts truth;
            for (std::int64_t a = p.offsets[q]; a < p.offsets[q + 1]; ++a)
                for (std::int64_t b = p.offsets[q]; b < p.offsets[q + 1]; ++b) {
                    const auto i = static_cast<std::size_t>(p.order[static_cast<std::size_t>(a)]);
                    const auto j = static_cast<std::size_t>(p.order[static_cast<std::size_t>(b)]);
                    if (p.labels[i] <= p.labels[j]) continue;
                    truth.concordant += p.scores[i] > p.scores[j];
                    truth.discordant += p.scores[i] < p.scores[j];
                    truth.tied += p.scores[i] == p.scores[j];
                }
            check(got.pairs[3 * q] == truth.concordant && got.pairs[3 * q + 1] == truth.discordant &&
                      got.pairs[3 * q + 2] == truth.tied,
                  "pairs of query " + std::to_string(q));
        }
    }
}

/// total, wrong, tied of the rows that dominate some row (sign 1) or are dominated (sign -1).
RowCounts rows_by_definition(const Problem &p, std::size_t q, double sign) {
    RowCounts counts;
    for (std::int64_t a = p.offsets[q]; a < p.offsets[q + 1]; ++a) {
        const auto i = static_cast<std::size_t>(p.order[static_cast<std::size_t>(a)]);
        bool has_partner = false, is_wrong = false, is_tied = false;
        for (std::int64_t b = p.offsets[q]; b < p.offsets[q + 1]; ++b) {
            const auto j = static_cast<std::size_t>(p.order[static_cast<std::size_t>(b)]);
            if (sign * (p.labels[i] - p.labels[j]) <= 0.0) continue;
            has_partner = true;
            is_wrong = is_wrong || sign * (p.scores[j] - p.scores[i]) > 0.0;
            is_tied = is_tied || p.scores[j] == p.scores[i];
        }
        counts.total += has_partner;
        counts.wrong += is_wrong;
        counts.tied += is_tied && !is_wrong;
    }
    return counts;
}

void row_counts_equal_the_definition() {
    for (const int n_levels : {1, 2, 5, 60}) {
        const Problem p = random_problem(50 + static_cast<unsigned>(n_levels), 200, n_levels, 20);
        const MetricValues got = evaluate_queries(p.input(), {}, Ties::average, {false, true}, 2);
        for (std::size_t q = 0; q < p.n_levels.size(); ++q)
            for (const std::size_t side : {0U, 1U}) {
                const RowCounts truth = rows_by_definition(p, q, side == 0 ? 1.0 : -1.0);
                const std::int64_t *at = &got.rows[6 * q + 3 * side];
                check(at[0] == truth.total && at[1] == truth.wrong && at[2] == truth.tied,
                      "rows of query " + std::to_string(q));
            }
    }
}

std::vector<Measure> all_measures() {
    std::vector<Measure> measures;
    for (const Kind kind : {Kind::ndcg, Kind::mean_ndcg, Kind::average_precision, Kind::precision,
                            Kind::recall, Kind::reciprocal_rank, Kind::err, Kind::auc, Kind::rbp,
                            Kind::success}) {
        Measure m{kind};
        m.y_max = 4.0;
        measures.push_back(m);
        m.k = 10;
        m.discount = Discount::letor;
        m.gain = Gain::linear;
        measures.push_back(m);
    }
    return measures;
}

void threads_change_no_bit() {
    const Problem p = random_problem(7, 3000, 5, 1000);
    const std::vector<Measure> measures = all_measures();
    for (const Ties ties : {Ties::stable, Ties::average, Ties::pessimistic, Ties::docid}) {
        const MetricValues one = evaluate_queries(p.input(), measures, ties, {true, true}, 1);
        const MetricValues four = evaluate_queries(p.input(), measures, ties, {true, true}, 4);
        for (std::size_t i = 0; i < one.values.size(); ++i)
            check(one.values[i] == four.values[i] ||
                      (std::isnan(one.values[i]) && std::isnan(four.values[i])),
                  "a value depends on the threads");
        check(one.means == four.means && one.pairs == four.pairs && one.rows == four.rows, "a mean depends on the threads");
        for (const double mean : one.means)
            check(mean >= 0.0 && mean <= 1.0 + 1e-12, "a mean is outside [0, 1]");
    }
}

/// Pessimistic <= average for every measure; both equal without ties.
void tie_rules_are_ordered() {
    const std::vector<Measure> measures = all_measures();
    const Problem tied = random_problem(9, 400, 5, 6);
    const auto low = evaluate_queries(tied.input(), measures, Ties::pessimistic, {}, 1);
    const auto mean = evaluate_queries(tied.input(), measures, Ties::average, {}, 1);
    for (std::size_t i = 0; i < low.values.size(); ++i)
        check(std::isnan(low.values[i]) || low.values[i] <= mean.values[i] + 1e-12,
              "pessimistic is above average");
}

void gains_are_scaled() {
    check(scaled_gain(3, 4) == 7.0 / 16.0, "(2^3 - 1)/2^4");
    check(scaled_gain(3e9, 4) == INFINITY && scaled_gain(-3e9, 4) == -1.0 / 16.0, "a label beyond an int");
    check(scaled_gain(0, 5000) == 0.0 && scaled_gain(5000, 5000) == 1.0, "gains of huge labels");
    check(std::abs(scaled_gain(1e-20, 0.5) / 1e-20 - std::log(2.0) / std::sqrt(2.0)) < 1e-15,
          "gain of a tiny label");
}

void err_has_its_check_value() {
    const Problem p{{0, 4}, {}, {3, 0, 2, 1}, {4, 3, 2, 1}, {3, 0, 2, 1}, {4}};
    Measure m{Kind::err};
    m.y_max = 4.0;
    const auto got = evaluate_queries(p.input(), std::vector{m}, Ties::stable, {}, 1);
    check(std::abs(got.means[0] - 0.479797363) < 5e-10, "ERR of 3 0 2 1");
}

double value_of(const Problem &p, Kind kind, std::int64_t n_ranked, std::int64_t k = 0) {
    Measure m{kind};
    m.k = k;
    m.y_max = 4.0;
    RankInput input = p.input();
    const std::vector<std::int64_t> listed{n_ranked};
    input.n_ranked = listed;
    return evaluate_queries(input, std::vector{m}, Ties::stable, {}, 1).means[0];
}

/// A list that ends before the last rows: nothing is found behind its end, and all is to be found.
void rows_behind_the_list_have_no_rank() {
    const Problem p{{0, 4}, {}, {1, 0, 1, 2}, {4, 3, 0, 0}, {1, 0, 1, 2}, {3}};
    check(value_of(p, Kind::recall, 2, 4) == 1.0 / 3.0, "recall of a list of two");
    check(value_of(p, Kind::average_precision, 2) == 1.0 / 3.0, "AP of a list of two");
    check(value_of(p, Kind::precision, 2, 4) == 0.25, "precision of a list of two");
    check(std::abs(value_of(p, Kind::rbp, 2) - 0.2) < 1e-15, "RBP of a list of two");
    const double ideal = 3.0 + 1.0 / std::log2(3.0) + 0.5;
    check(std::abs(value_of(p, Kind::ndcg, 2) - 1.0 / ideal) < 1e-15, "NDCG of a list of two");
    for (const Kind kind : {Kind::ndcg, Kind::mean_ndcg, Kind::average_precision, Kind::recall,
                            Kind::reciprocal_rank, Kind::err, Kind::rbp, Kind::success})
        check(value_of(p, kind, 0, kind == Kind::mean_ndcg ? 0 : 3) == 0.0, "an empty list");
    // The rows behind the list are tied below it: (1, 0) right; (2, 1) and (2, 0), (1, 0) not.
    RankInput input = p.input();
    const std::vector<std::int64_t> listed{2};
    input.n_ranked = listed;
    const auto counts = evaluate_queries(input, {}, Ties::stable, {true, false}, 1).pairs;
    check(counts == std::vector<std::int64_t>({1, 3, 1}), "pairs of a list of two");
}

void ranks_are_a_permutation_of_each_query() {
    const Problem p = random_problem(11, 500, 5, 10);
    const auto ranks = ranks_within_queries(p.input(), p.scores, 3);
    for (std::size_t q = 0; q < p.n_levels.size(); ++q) {
        std::vector<bool> seen(static_cast<std::size_t>(p.offsets[q + 1] - p.offsets[q]), false);
        for (std::int64_t t = p.offsets[q]; t < p.offsets[q + 1]; ++t) {
            const auto row = static_cast<std::size_t>(p.order[static_cast<std::size_t>(t)]);
            const auto rank = static_cast<std::size_t>(ranks[row]);
            check(rank >= 1 && rank <= seen.size() && !seen[rank - 1], "a rank is taken twice");
            if (rank >= 1 && rank <= seen.size()) seen[rank - 1] = true;
        }
    }
}

void cuts_cover_all_queries() {
    check(cut_queries(std::vector<std::int64_t>{0}) == std::vector<std::int64_t>{0}, "no query");
    const std::vector<std::int64_t> offsets{0, 5, 6, 100, 101, 102};
    const auto cuts = cut_queries(offsets, 6);
    check(cuts == std::vector<std::int64_t>({0, 2, 3, 5}), "cuts after 6, 94 and 2 rows");
}

}  // namespace

int main() {
    pair_counts_equal_all_pairs();
    row_counts_equal_the_definition();
    threads_change_no_bit();
    tie_rules_are_ordered();
    gains_are_scaled();
    err_has_its_check_value();
    rows_behind_the_list_have_no_rank();
    ranks_are_a_permutation_of_each_query();
    cuts_cover_all_queries();
    return n_failures == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
