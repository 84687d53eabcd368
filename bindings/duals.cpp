// Dual variables of pairs: of low rank, and one rectangle a query.
#include "exclusive.hpp"
#include "factor_descent.hpp"
#include "points.hpp"
#include "published/factor_pairs.hpp"
#include "rectangles.hpp"

namespace {

// ---- low rank ---------------------------------------------------------------------------------

using BoundFactors = Exclusive<FactorDescent>;

void check_factors(const DoubleArray &factors, Index n_rows, Index n_factors) {
    if (n_factors < 1 || n_factors > INT32_MAX)
        throw std::invalid_argument("n_factors must lie in [1, 2^31), got " + std::to_string(n_factors));
    require(n_rows <= INT64_MAX / n_factors, "there are too many rows for n_factors");
    require_length(factors.shape(0), n_rows * n_factors, "factors");
    check_finite(span_of(factors), "a factor");
}

/// Rows of the order, each at most once.
void check_distinct(Order order, Index n_rows) {
    std::vector<bool> is_known(order.empty() ? 0 : n_rows, false);
    for (const Index row : order) {
        if (is_known[row]) throw std::invalid_argument("order names row " + std::to_string(row) + " twice");
        is_known[row] = true;
    }
}

// All arrays are copied: another thread of Python may write to them once the GIL is let go of.
BoundFactors factor_descent(const BoundRows &rows, OptionalOrder order, IntegerArray offsets, LevelArray levels,
                      LevelArray n_levels, OptionalDoubles scale, DoubleArray bound, const std::string &constraint,
                      Index n_factors, DoubleArray factors, std::uint64_t seed) {
    const Positions x = positions(rows, order);
    const Index n = x.n;
    check_distinct(x.order, n_rows(rows.rows));
    check_offsets(span_of(offsets), std::size_t(n));
    check_levels(span_of(levels), span_of(offsets), span_of(n_levels));
    require_length(scale, n_columns(rows.rows), "scale");
    check_finite(span_of(scale), "a scale");
    require_length(bound.shape(0), n, "bound");
    check_weights(span_of(bound), "a bound");
    check_factors(factors, n, n_factors);
    const auto kind = choose<Constraint>("constraint", constraint, {{"box", Constraint::box}, {"ball", Constraint::ball}});
    FactorProblem problem{own_copy(levels), own_copy(n_levels), own_copy(bound), n_factors, kind};
    auto positions = own_copy(order), by_query = own_copy(offsets);
    auto start = own_copy(factors), stretch = own_copy(scale);
    return unlocked([&] {
        QueryRows own(x.rows, std::move(positions), std::move(by_query), std::move(stretch));
        return BoundFactors(FactorDescent(std::move(own), std::move(problem), std::move(start), seed), "FactorDescent");
    });
}

double epoch(BoundFactors &self, double momentum, int n_threads) {
    require(std::isfinite(momentum), "momentum is NaN or infinite");
    const auto descent = self.use();
    return unlocked([&] { return descent->epoch(momentum, n_threads); });
}

void bind_factors(nb::module_ &m) {
    nb::class_<BoundFactors> descent(m, "FactorDescent", "Duals of low rank on their way down.");
    def(descent, "epoch", &epoch, {"momentum", "n_threads"});
    descent.def("accept", [](BoundFactors &self) { self.use()->accept(); });
    descent.def("reject", [](BoundFactors &self) { self.use()->reject(); });
    descent.def("shrink", [](BoundFactors &self) { self.use()->shrink(); });
    descent.def("value", [](BoundFactors &self) { return self.use()->value(); });
    descent.def("factors", [](BoundFactors &self) { return to_numpy(std::vector(self.use()->factors())); });
    descent.def("weights", [](BoundFactors &self) { return to_numpy(std::vector(self.use()->weights())); });
    def(descent, "linear_decrease", [](BoundFactors &self, int n_threads) {
        const auto use = self.use();
        return unlocked([&] { return use->linear_decrease(n_threads); });
    }, {"n_threads"});
    def(m, "factor_descent", &factor_descent, {"rows", "order", "offsets", "levels", "n_levels",
        "scale", "bound", "constraint", "n_factors", "factors", "seed"}, nb::keep_alive<0, 1>());
}

// ---- low rank, as published -------------------------------------------------------------------

using WritableRows = nb::ndarray<double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

/// Calls work(problem, V, beta), all lengths checked.
template <class Work>
double with_factors(const BoundRows &rows, const OptionalOrder &order, const BoundProblem &problem,
                    const DoubleArray &largest, const WritableRows &V, const Writable<double> &beta, const Work &work) {
    const Positions x = positions(rows, order);
    const PairProblem &pairs = problem.checked(largest, "largest");
    for (const double bound : span_of(largest))
        require(bound >= 0.0, "largest has an entry that is negative or NaN");
    check_published(pairs);
    require_length(std::size_t(x.n), pairs.n_rows(), "rows");
    require_length(V.shape(0), pairs.n_rows(), "V");
    require_length(beta.shape(0), n_columns(rows.rows), "beta");
    const published::FactorPairs factors{x.rows, x.order, pairs, Index(V.shape(1)), span_of(largest)};
    return unlocked([&] { return work(factors, std::span<double>(V.data(), V.size()), writable(beta)); });
}

double factor_start(const BoundRows &rows, OptionalOrder order, const BoundProblem &problem, DoubleArray largest,
                    WritableRows V, Writable<double> beta) {
    return with_factors(rows, order, problem, largest, V, beta,
                        [](const auto &p, auto v, auto b) { return published::factor_start(p, v, b); });
}

double factor_epoch(const BoundRows &rows, OptionalOrder order, const BoundProblem &problem, DoubleArray largest,
                    WritableRows V, Writable<double> beta, const std::string &work, double rate) {
    const auto how = choose<published::PairWork>("work", work, {{"by_pair", published::PairWork::by_pair},
        {"by_row", published::PairWork::by_row}});
    return with_factors(rows, order, problem, largest, V, beta, [=](const auto &p, auto v, auto b) {
        return published::factor_epoch(p, how, rate, v, b);
    });
}

// ---- rectangles -------------------------------------------------------------------------------

/// A layout in Python, with the checks of what is by position, by entry and by rectangle.
struct BoundRectangles {
    std::shared_ptr<const Rectangles> layout;

    void check_scores(const DoubleArray &z, const char *name) const { require_length(z.shape(0), layout->n_positions, name); }
    template <class Array>
    void check_entries(const Array &values, const char *name) const {
        require_length(values.shape(0), layout->n_entries(), name);
    }
    void check_rho(const DoubleArray &rho) const {
        require_length(rho.shape(0), layout->size(), "rho");
        for (const double value : span_of(rho))
            require(value > 0.0 && std::isfinite(value), "rho must be finite and > 0");
    }
    void check(const DoubleArray &z, const DoubleArray &y, const DoubleArray &rho) const {
        check_scores(z, "z");
        check_entries(y, "y");
        check_rho(rho);
    }
};

BoundRectangles rectangles(IntegerArray offsets, LevelArray levels, LevelArray n_levels, IntegerArray chosen,
                           OptionalDoubles row_weight, OptionalDoubles query_weight, double C) {
    check_queries(offsets, levels, n_levels);
    // Weights of a pair are products of these.
    require_weights(row_weight, Index(levels.shape(0)), "row_weight");
    require_weights(query_weight, Index(n_levels.shape(0)), "query_weight");
    require(C > 0.0 && std::isfinite(C), "C must be finite and > 0");
    Index last = -1;
    for (const Index q : span_of(chosen)) {
        require(q > last && q < Index(n_levels.shape(0)), "chosen must increase and name queries that exist");
        require(n_levels(std::size_t(q)) >= 2, "a chosen query has no pairs");
        last = q;
    }
    // With the GIL: another thread of Python might write to what has been checked.
    return {std::make_shared<const Rectangles>(make_rectangles(
        {span_of(offsets), span_of(levels), span_of(n_levels), span_of(row_weight), span_of(query_weight)},
        span_of(chosen), C))};
}

nb::tuple loss(const BoundRectangles &self, DoubleArray z, DoubleArray y, DoubleArray rho, int n_threads) {
    self.check(z, y, rho);
    ProximalLoss found = unlocked([&] {
        return proximal_loss(*self.layout, span_of(z), span_of(y), span_of(rho), n_threads);
    });
    return nb::make_tuple(found.value, found.curvature, to_numpy(std::move(found.gradient)));
}

auto curvature(const BoundRectangles &self, DoubleArray z, DoubleArray y, DoubleArray rho, DoubleArray v, int n_threads) {
    self.check(z, y, rho);
    self.check_scores(v, "v");
    return to_numpy(unlocked([&] {
        return proximal_curvature(*self.layout, span_of(z), span_of(y), span_of(rho), span_of(v), n_threads);
    }));
}

void point(const BoundRectangles &self, DoubleArray z, DoubleArray y, DoubleArray rho, Writable<double> alpha, int n_threads) {
    self.check(z, y, rho);
    self.check_entries(alpha, "alpha");
    unlocked([&] { proximal_point(*self.layout, span_of(z), span_of(y), span_of(rho), writable(alpha), n_threads); });
}

auto coefficients(const BoundRectangles &self, DoubleArray alpha, int n_threads) {
    self.check_entries(alpha, "alpha");
    return to_numpy(unlocked([&] { return dual_coefficients(*self.layout, span_of(alpha), n_threads); }));
}

auto relaxed(const BoundRectangles &self, DoubleArray alpha, DoubleArray a, Writable<double> y, double over, int n_threads) {
    self.check_entries(alpha, "alpha");
    self.check_entries(a, "a");
    self.check_entries(y, "y");
    return to_numpy(unlocked([&] {
        return relax(*self.layout, span_of(alpha), span_of(a), writable(y), over, n_threads);
    }));
}

auto norms(const BoundRectangles &self, DoubleArray values, int n_threads) {
    self.check_entries(values, "values");
    return to_numpy(unlocked([&] { return squared_norms(*self.layout, span_of(values), n_threads); }));
}

double settled(const BoundRectangles &self, Index rectangle, OptionalDoubles s, double a_of_m, double a_of_s,
               double y_of_m, double y_of_s, Writable<double> a, Writable<double> y) {
    require(rectangle >= 0 && rectangle < self.layout->size(), "there is no such rectangle");
    self.check_entries(a, "a");
    self.check_entries(y, "y");
    require_length(s, self.layout->offsets[rectangle + 1] - self.layout->offsets[rectangle], "s");
    return unlocked([&] {
        return settle(*self.layout, rectangle, span_of(s), {a_of_m, a_of_s, y_of_m, y_of_s}, writable(a), writable(y));
    });
}

/// One array for each of the sums, by rectangle.
auto sums(const BoundRectangles &self, DoubleArray z, DoubleArray alpha, DoubleArray a, DoubleArray y, DoubleArray rho,
               int n_threads) {
    self.check(z, y, rho);
    self.check_entries(alpha, "alpha");
    self.check_entries(a, "a");
    const std::vector<CoupledSums> found = unlocked([&] {
        return coupled_sums(*self.layout, span_of(z), span_of(alpha), span_of(a), span_of(y), span_of(rho), n_threads);
    });
    return member_arrays(found, &CoupledSums::sum, &CoupledSums::distance, &CoupledSums::slope, &CoupledSums::square,
                         &CoupledSums::lowest, &CoupledSums::residual);
}

void bind_rectangles(nb::module_ &m) {
    nb::class_<BoundRectangles> c(m, "Rectangles", "Where the dual variables of pairs lie in a flat buffer.");
    const auto view = [&c](const char *name, auto member, const char *text = "") {
        c.def_prop_ro(name, [member](nb::handle_t<BoundRectangles> self) {
            return view_of(self, (*nb::cast<const BoundRectangles &>(self).layout).*member);
        }, nb::rv_policy::automatic, text);
    };
    view("upper", &Rectangles::upper, "Positions of the rows of all rectangles.");
    view("lower", &Rectangles::lower, "Positions of the columns of all rectangles.");
    view("n_pairs", &Rectangles::n_pairs, "Pairs of each row: a prefix of the columns.");
    view("first_row", &Rectangles::first_row);
    view("first_column", &Rectangles::first_column);
    view("offsets", &Rectangles::offsets, "Where each rectangle begins, and the end.");
    view("row_bound", &Rectangles::row_bound);
    view("column_bound", &Rectangles::column_bound);
    def(c, "loss", &loss, {"z", "y", "rho", "n_threads"},
        "(value, curvature, gradient by position) of the loss that is a maximum over alpha.");
    def(c, "curvature", &curvature, {"z", "y", "rho", "v", "n_threads"});
    def(c, "point", &point, {"z", "y", "rho", "alpha", "n_threads"}, "Writes the maximizer into alpha.");
    def(c, "coefficients", &coefficients, {"alpha", "n_threads"}, "Row sums less column sums, by position.");
    def(c, "relax", &relaxed, {"alpha", "a", "y", "over", "n_threads"});
    def(c, "squared_norms", &norms, {"values", "n_threads"});
    def(c, "settle", &settled, {"rectangle", "s", "a_of_m", "a_of_s", "y_of_m", "y_of_s", "a", "y"});
    def(c, "sums", &sums, {"z", "alpha", "a", "y", "rho", "n_threads"});
    def(m, "rectangles", &rectangles, {"offsets", "levels", "n_levels", "chosen", "row_weight", "query_weight", "C"});
}

}  // namespace

void bind_duals(nb::module_ &m) {
    bind_factors(m);
    def(m, "factor_start", &factor_start, {"rows", "order", "problem", "largest", "V", "beta"},
        "beta = sum of <v_i, v_j> (x_i - x_j) over the pairs; returns the sum of <v_i, v_j>.");
    def(m, "factor_epoch", &factor_epoch, {"rows", "order", "problem", "largest", "V", "beta", "work", "rate"},
        "A projected step of every query, V and beta in place; returns the sum of <v_i, v_j>.");
    bind_rectangles(m);
}
