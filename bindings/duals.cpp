// Dual variables of pairs: of low rank, and one rectangle a query.
#include "factor_descent.hpp"
#include "points.hpp"
#include "published/factor_pairs.hpp"
#include "rectangles.hpp"

template <>
inline constexpr Choices<Constraint> choices<Constraint>{"constraint", {
    {"box", Constraint::box}, {"ball", Constraint::ball}}};
template <>
inline constexpr Choices<published::PairWork> choices<published::PairWork>{"work", {
    {"by_pair", published::PairWork::by_pair}, {"by_row", published::PairWork::by_row}}};


namespace {

// ---- low rank ---------------------------------------------------------------------------------

using BoundFactors = Exclusive<FactorDescent>;

/// Rows of the order, each at most once.
void check_distinct(Order order, Index n_rows) {
    std::vector<bool> is_known(order.empty() ? 0 : n_rows, false);
    for (const Index row : order) {
        require(!is_known[row], "order names row ", row, " twice");
        is_known[row] = true;
    }
}

// All arrays are copied: another thread of Python may write to them once the GIL is let go of.
BoundFactors factor_descent(const Rows &rows, OptionalOrder order, Integers offsets, Levels levels,
                            Levels n_levels, std::optional<std::vector<double>> scale,
                            std::vector<double> bound, Constraint constraint, Index n_factors,
                            std::vector<double> factors, std::uint64_t seed) {
    const Positions x = positions(rows, order);
    check_distinct(x.order, n_rows(rows));
    require_length(levels, x.n, "levels");
    leveled_queries(offsets, levels, n_levels);
    require_length(scale, n_columns(rows), "scale");
    if (scale) check_finite(*scale, "a scale");
    require_length(bound, x.n, "bound");
    check_weights(bound, "a bound");
    require(n_factors >= 1 && n_factors <= INT32_MAX, "n_factors must lie in [1, 2^31), got ",
            n_factors);
    require(x.n <= INT64_MAX / n_factors, "there are too many rows for n_factors");
    require_length(factors, x.n * n_factors, "factors");
    check_finite(factors, "a factor");
    QueryRows own(x.rows, copy_of(x.order), copy_of(offsets),
                  scale ? std::move(*scale) : std::vector<double>());
    return BoundFactors(FactorDescent(std::move(own),
                                      {copy_of(levels), copy_of(n_levels), std::move(bound),
                                       n_factors, constraint}, std::move(factors), seed),
                                       "FactorDescent");
}

double epoch(BoundFactors &self, double momentum, int n_threads) {
    require(std::isfinite(momentum), "momentum is NaN or infinite");
    return self.use()->epoch(momentum, n_threads);
}

void bind_factors(nb::module_ &m) {
    nb::class_<BoundFactors> descent(m, "FactorDescent", "Duals of low rank on their way down.");
    def(descent, "epoch(momentum, n_threads)", unlocked(&epoch));
    def(descent, "accept()", exclusive(&FactorDescent::accept));
    def(descent, "reject()", exclusive(&FactorDescent::reject));
    def(descent, "shrink()", exclusive(&FactorDescent::shrink));
    def(descent, "value()", exclusive(&FactorDescent::value));
    def(descent, "factors()", exclusive(&FactorDescent::factors));
    def(descent, "weights()", exclusive(&FactorDescent::weights));
    def(descent, "linear_decrease(n_threads)",
        unlocked(exclusive(&FactorDescent::linear_decrease)));
    def(m,
        "factor_descent(rows, order, offsets, levels, n_levels, scale, bound, constraint, "
        "n_factors, factors, seed)", &factor_descent, nb::keep_alive<0, 1>());
}

// ---- low rank, as published -------------------------------------------------------------------

using Factors = nb::ndarray<double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

/// The problem, all lengths checked.
published::FactorPairs factor_pairs(const Positions &x, const BoundProblem &problem,
                                    Doubles largest, const Factors &V, std::span<double> beta) {
    const PairProblem &pairs = problem.checked(largest, "largest");
    for (const double bound : largest)
        require(bound >= 0.0, "largest has an entry that is negative or NaN");
    check_published(pairs);
    require_length(std::size_t(x.n), pairs.n_rows(), "rows");
    require_length(V.shape(0), x.n, "V");
    require_length(beta, n_columns(x.rows), "beta");
    return {x.rows, x.order, pairs, Index(V.shape(1)), largest};
}

double factor_start(const Rows &rows, OptionalOrder order, const BoundProblem &problem,
                    Doubles largest, const Factors &V, std::span<double> beta) {
    const Positions x = positions(rows, order);
    return published::factor_start(factor_pairs(x, problem, largest, V, beta), {V.data(), V.size()},
                                   beta);
}

double factor_epoch(const Rows &rows, OptionalOrder order, const BoundProblem &problem,
                    Doubles largest, const Factors &V, std::span<double> beta,
                    published::PairWork work, double rate) {
    const Positions x = positions(rows, order);
    const published::FactorPairs factors = factor_pairs(x, problem, largest, V, beta);
    return published::factor_epoch(factors, work, rate, {V.data(), V.size()}, beta);
}

// ---- rectangles -------------------------------------------------------------------------------

Rectangles rectangles(Integers offsets, Levels levels, Levels n_levels, Integers chosen,
                      OptionalDoubles row_weight, OptionalDoubles query_weight, double C) {
    const Queries queries = leveled_queries(offsets, levels, n_levels, row_weight, query_weight);
    require(C > 0.0 && std::isfinite(C), "C must be finite and > 0");
    Index last = -1;
    for (const Index q : chosen) {
        require(q > last && q < queries.n_queries(),
                "chosen must increase and name queries that exist");
        require(queries.has_pairs(q), "a chosen query has no pairs");
        last = q;
    }
    // With the GIL: another thread of Python might write to what has been checked.
    return Rectangles(queries, chosen, C);
}

void bind_rectangles(nb::module_ &m) {
    nb::class_<Rectangles> c(m, "Rectangles",
                             "Where the dual variables of pairs lie in a flat buffer.");
    def_views(c, {{"upper", "Positions of the rows of all rectangles."},
                  {"lower", "Positions of the columns of all rectangles."},
                  {"n_pairs", "Pairs of each row: a prefix of the columns."}, {"first_row"},
                  {"first_column"}, {"offsets", "Where each rectangle begins, and the end."}},
                  &Rectangles::upper, &Rectangles::lower, &Rectangles::n_pairs,
                  &Rectangles::first_row, &Rectangles::first_column, &Rectangles::offsets);
    def(c, "loss(z, y, rho, n_threads)", unlocked(&Rectangles::loss),
        "(value, curvature, gradient by position) of the loss that is a maximum over alpha.");
    def(c, "curvature(z, y, rho, v, n_threads)", unlocked(&Rectangles::curvature));
    def(c, "point(z, y, rho, alpha, n_threads)", unlocked(&Rectangles::point),
        "Writes the maximizer into alpha.");
    def(c, "coefficients(alpha, n_threads)", unlocked(&Rectangles::coefficients),
        "Row sums less column sums, by position.");
    def(c, "relax(alpha, a, y, over, n_threads)", unlocked(&Rectangles::relax));
    def(c, "squared_norms(values, n_threads)", unlocked(&Rectangles::squared_norms));
    def(c, "settle(rectangle, s, a_of_m, a_of_s, y_of_m, y_of_s, a, y)",
        unlocked([](const Rectangles &at, Index rectangle, OptionalDoubles s, double a_of_m,
                    double a_of_s, double y_of_m, double y_of_s, std::span<double> a,
                    std::span<double> y) {
        return at.settle(rectangle, s, {a_of_m, a_of_s, y_of_m, y_of_s}, a, y);
    }));
    def(c, "sums(z, alpha, a, y, rho, n_threads)", unlocked(&Rectangles::sums));
    def(m, "rectangles(offsets, levels, n_levels, chosen, row_weight, query_weight, C)",
        &rectangles);
}

}  // namespace

void bind_duals(nb::module_ &m) {
    bind_factors(m);
    def(m, "factor_start(rows, order, problem, largest, V, beta)", unlocked(&factor_start),
        "beta = sum of <v_i, v_j> (x_i - x_j) over the pairs; returns the sum of <v_i, v_j>.");
    def(m, "factor_epoch(rows, order, problem, largest, V, beta, work, rate)",
        unlocked(&factor_epoch),
        "A projected step of every query, V and beta in place; returns the sum of <v_i, v_j>.");
    bind_rectangles(m);
}
