// Stochastic pairwise descent.
#include <nanobind/stl/vector.h>

#include "arrays.hpp"
#include "descent.hpp"
#include "exclusive.hpp"
#include "module.hpp"

namespace {

using Shared = Exclusive<Descent>;
/// A descent that no other call is at work on.
struct InUse : Shared::Use {
    explicit InUse(Shared &shared) : Use(shared, "Descent") {}
};

constexpr int n_scalars = 10;
constexpr std::int64_t most_columns = std::int64_t(1) << 40;

/// A learner as numbers, for a state that is saved: exact, as counts stay below 2⁵³.
std::vector<double> scalars_of(const Learner &m) {
    return {double(int(m.algorithm)), m.strength, m.a, m.t, m.square, m.first, m.K, m.total,
            m.loss, double(m.n_updates)};
}

Learner learner_of(const Vector<double> &numbers) {
    require_length(numbers.shape(0), n_scalars, "learner");
    for (const double x : span_of(numbers))
        if (!(x - x == 0)) throw std::invalid_argument("a learner's number is not finite");
    if (numbers(0) < 0 || numbers(0) > 4 || numbers(0) != double(int(numbers(0))))
        throw std::invalid_argument("unknown algorithm " + std::to_string(numbers(0)));
    Learner m;
    m.algorithm = Algorithm(int(numbers(0)));
    m.strength = numbers(1), m.a = numbers(2), m.t = numbers(3), m.square = numbers(4);
    m.first = numbers(5), m.K = numbers(6), m.total = numbers(7), m.loss = numbers(8);
    if (m.shrinks() && !(m.strength > 0))
        throw std::invalid_argument("alpha must be > 0, got " + std::to_string(m.strength));
    // ‖v‖² is kept by adding what every step changes: near 0 rounding may leave it below.
    if (!(m.strength >= 0 && m.a > 0 && m.t >= m.first && m.first >= 0 && m.total >= 0))
        throw std::invalid_argument("a learner's number is negative");
    if (!(numbers(9) >= 0 && numbers(9) <= 0x1p53)) throw std::invalid_argument("a count is out of range");
    m.n_updates = std::int64_t(numbers(9));
    return m;
}

Descent make(std::int64_t n_columns, const std::vector<Vector<double>> &learners, int average) {
    if (n_columns < 0 || n_columns > most_columns)
        throw std::invalid_argument("n_columns must lie in [0, 2^40], got " + std::to_string(n_columns));
    if (learners.empty()) throw std::invalid_argument("there is no learner");
    if (average < 0 || average > 2) throw std::invalid_argument("unknown average " + std::to_string(average));
    std::vector<Learner> checked;
    for (const auto &numbers : learners) checked.push_back(learner_of(numbers));
    return Descent(n_columns, checked, Average(average));
}

void check_model(const Descent &descent, std::int64_t model) {
    if (model < 0 || model >= descent.n_models())
        throw std::invalid_argument("there is no model " + std::to_string(model));
}

/// The rows have no column that the weights lack.
void check_columns(const Descent &descent, const BoundRows &rows) {
    if (n_columns(rows.rows) > descent.n_columns())
        throw std::invalid_argument("the rows have " + std::to_string(n_columns(rows.rows)) +
                                    " columns, the weights " + std::to_string(descent.n_columns()));
}

void run(Shared &shared, const BoundRows &rows, const PairSampler &sampler, Random &random,
         std::int64_t n_steps, int n_threads) {
    const InUse descent(shared);
    check_columns(*descent, rows);
    if (sampler.n_rows() > n_rows(rows.rows))
        throw std::invalid_argument("the sampler draws from " + std::to_string(sampler.n_rows()) +
                                    " rows, the matrix has " + std::to_string(n_rows(rows.rows)));
    if (n_steps < 0) throw std::invalid_argument("n_steps must be >= 0, got " + std::to_string(n_steps));
    Random own = random;  // others may draw from it while the GIL is let go
    unlocked([&] { descent->run(rows.rows, sampler, own, n_steps, n_threads); });
    random = own;
}

void step(Shared &shared, const BoundRows &rows, const Vector<std::int64_t> &winners,
          const Vector<std::int64_t> &losers, int n_threads) {
    const InUse descent(shared);
    check_columns(*descent, rows);
    require_length(losers.shape(0), std::int64_t(winners.shape(0)), "losers");
    std::vector<RowPair> pairs(winners.shape(0));
    for (std::size_t k = 0; k < pairs.size(); ++k) {
        pairs[k] = {winners(k), losers(k)};
        for (const std::int64_t row : {pairs[k].winner, pairs[k].loser})
            if (row < 0 || row >= n_rows(rows.rows))
                throw std::invalid_argument("pair " + std::to_string(k) + " names row " +
                                            std::to_string(row) + ", which does not exist");
    }
    unlocked([&] { descent->step(rows.rows, pairs, n_threads); });
}

auto weights(Shared &shared, std::int64_t model) {
    const InUse descent(shared);
    check_model(*descent, model);
    std::vector<double> out(descent->n_columns());
    descent->weights(model, out);
    return to_numpy(std::move(out));
}

void become(Shared &shared, std::int64_t model, const Vector<double> &learner,
            const Vector<double> &w) {
    const InUse descent(shared);
    check_model(*descent, model);
    require_length(w.shape(0), descent->n_columns(), "w");
    descent->become(model, learner_of(learner), span_of(w));
}

nb::tuple kept(Shared &shared, std::int64_t model) {
    const InUse descent(shared);
    check_model(*descent, model);
    Descent::Vectors vectors = descent->vectors(model);
    return nb::make_tuple(to_numpy(scalars_of(descent->learner(model))), to_numpy(std::move(vectors.v)),
                          to_numpy(std::move(vectors.z)));
}

void restore(Shared &shared, std::int64_t model, const Vector<double> &learner,
             const Vector<double> &v, const Vector<double> &z) {
    const InUse descent(shared);
    check_model(*descent, model);
    require_length(v.shape(0), descent->n_columns(), "v");
    require_length(z.shape(0), descent->average() == Average::none ? 0 : descent->n_columns(), "z");
    descent->restore(model, learner_of(learner),
                     {{v.data(), v.data() + v.shape(0)}, {z.data(), z.data() + z.shape(0)}});
}

void grow(Shared &shared, std::int64_t n_columns) {
    const InUse descent(shared);
    if (n_columns > most_columns)
        throw std::invalid_argument("n_columns must be at most 2^40, got " + std::to_string(n_columns));
    descent->grow(n_columns);
}

void set_n_steps(Shared &shared, std::int64_t n) {
    if (n < 0) throw std::invalid_argument("n_steps must be >= 0, got " + std::to_string(n));
    InUse(shared)->set_n_steps(n);
}

}  // namespace

void bind_descent(nb::module_ &m) {
    nb::class_<Shared>(m, "Descent", "Models that learn from one stream of pairs.")
        .def("__init__",
             [](Shared *self, std::int64_t n_columns, const std::vector<Vector<double>> &learners,
                int average) { new (self) Shared(make(n_columns, learners, average)); },
             nb::arg("n_columns"), nb::arg("learners"), nb::arg("average"))
        .def_prop_ro("n_columns", [](Shared &shared) { return InUse(shared)->n_columns(); })
        .def_prop_ro("n_models", [](Shared &shared) { return InUse(shared)->n_models(); })
        .def_prop_rw("n_steps", [](Shared &shared) { return InUse(shared)->n_steps(); }, &set_n_steps)
        .def("run", &run, nb::arg("rows"), nb::arg("sampler"), nb::arg("random"), nb::arg("n_steps"),
             nb::arg("n_threads") = 1)
        .def("step", &step, nb::arg("rows"), nb::arg("winners").noconvert(),
             nb::arg("losers").noconvert(), nb::arg("n_threads") = 1)
        .def("weights", &weights, nb::arg("model"))
        .def("become", &become, nb::arg("model"), nb::arg("learner").noconvert(), nb::arg("w").noconvert())
        .def("grow", &grow, nb::arg("n_columns"))
        .def("kept", &kept, nb::arg("model"), "(scalars, v, z) of a model, for `restore`.")
        .def("restore", &restore, nb::arg("model"), nb::arg("learner").noconvert(),
             nb::arg("v").noconvert(), nb::arg("z").noconvert());
}
