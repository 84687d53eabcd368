// Random numbers, samplers of pairs, stochastic descent, and the index of the rows that are kept of
// a stream.
#include <nanobind/stl/unique_ptr.h>

#include <chrono>

#include "arrays.hpp"
#include "descent.hpp"
#include "stream_index.hpp"


namespace {

// ---- random numbers ---------------------------------------------------------------------------

void set_state(Random &random, const Vector<const std::uint64_t> &words) {
    Random::State state;
    require_length(words.shape(0), Index(state.size()), "the state of a generator");
    std::copy_n(words.data(), state.size(), state.begin());
    require(random.set_state(state),
            "a generator whose state is all zeros would give nothing but zeros");
}

std::vector<std::uint64_t> random_numbers(Random &random, Index n) {
    require_non_negative(n, "n");
    std::vector<std::uint64_t> out(n);
    for (std::uint64_t &number : out) number = random.next();
    return out;
}

// ---- samplers ---------------------------------------------------------------------------------

/// Draws from pair `first` on until all are drawn or 50 ms have passed; returns how many there are
/// then.
std::size_t draw_for_a_while(const PairSampler &sampler, Random &random, std::size_t first,
                             std::span<Index> winners, std::span<Index> losers) {
    using Clock = std::chrono::steady_clock;
    const auto end = Clock::now() + std::chrono::milliseconds(50);
    // random numbers come pair by pair: where a piece ends leaves no trace
    std::array<RowPair, 256> pairs;
    do {
        const std::size_t n = std::min(pairs.size(), winners.size() - first);
        sampler.draw(random, std::span(pairs).first(n));
        for (std::size_t k = 0; k < n; ++k, ++first) {
            winners[first] = pairs[k].winner;
            losers[first] = pairs[k].loser;
        }
    } while (first < winners.size() && Clock::now() < end);
    return first;
}

auto draw(const PairSampler &sampler, Random &random, Index n) {
    require_non_negative(n, "n");
    std::vector<Index> winners(n), losers(n);
    Random own = random;  // others may draw from it while the GIL is let go
    // By rejection a pair may take a millisecond: Ctrl-C is answered on the way.
    for (std::size_t done = 0; done < winners.size();) {
        done = run_unlocked([&] { return draw_for_a_while(sampler, own, done, winners, losers); });
        if (PyErr_CheckSignals() != 0) throw nb::python_error();
    }
    random = own;
    return std::tuple(std::move(winners), std::move(losers));
}

std::unique_ptr<PairSampler> cell_sampler(Integers rows, Integers winner_first, Integers n_winners,
                                          Integers loser_first, Integers n_losers, Doubles weights,
                                          OptionalDoubles row_weights,
                                          std::optional<Integers> restarts) {
    require_lengths(std::ssize(weights), {"winner_first", "n_winners", "loser_first", "n_losers"},
                    winner_first, n_winners, loser_first, n_losers);
    require(!restarts || row_weights, "restarts are of no use without row_weights");
    std::vector<Cell> cells;
    for (std::size_t c = 0; c < weights.size(); ++c)
        cells.push_back({winner_first[c], n_winners[c], loser_first[c], n_losers[c]});
    const Cells from{rows, cells, weights};
    const Index start = 0;
    if (!row_weights) return make_cell_sampler(from);
    return make_cell_sampler(from, {*row_weights, restarts.value_or(std::span(&start, 1))});
}

/// A sampler of the pairs of queries. The rows that the positions name may be those of a larger
/// matrix, so only their sign can be checked.
template <auto make>
void bind_query_sampler(nb::module_ &m, const char *name, const char *text) {
    def(m, std::string(name) + "(offsets, order, levels, n_levels, query_weight)",
        unlocked([](Integers offsets, OptionalOrder order, Levels levels, Levels n_levels,
                    OptionalDoubles query_weight, OptionalDoubles row_weight) {
        Queries queries = leveled_queries(offsets, levels, n_levels, row_weight, query_weight);
        require_length(order, queries.n_rows(), "order");
        check_indices(or_empty(order), INT64_MAX, "order names a row that does not exist");
        queries.order = or_empty(order);
        return make(queries);
    }), nb::arg("row_weight").noconvert() = nb::none(), text);
}

void bind_samplers(nb::module_ &m) {
    nb::class_<Random> random(m, "Random", "xoshiro256++, seeded by splitmix64.");
    random.def(nb::init<std::uint64_t>(), nb::arg("seed"));
    random.def_prop_rw("state", [](const Random &r) {
        return to_numpy(std::vector<std::uint64_t>(r.state().begin(), r.state().end()));
    }, &set_state, nb::for_getter(nb::rv_policy::move),
        nb::for_setter(nb::arg("state").noconvert()),
        "Four words, not all zero.");
    def(random, "numbers(n)", &random_numbers, "The next n numbers of 64 bits.");
    nb::class_<PairSampler> sampler(m, "PairSampler", "A distribution over pairs of rows.");
    def(sampler, "draw(random, n)", &draw, "(winners, losers) of the next n pairs.");
    def_properties(sampler, {{"n_rows", "One more than the largest row that may be drawn."}},
                   &PairSampler::n_rows);
    def(m, "cell_sampler(rows, winner_first, n_winners, loser_first, n_losers, weights)",
        unlocked(&cell_sampler), nb::arg("row_weights").noconvert() = nb::none(),
        nb::arg("restarts").noconvert() = nb::none(),
        "A cell by weight, its winner and its loser from two ranges of rows.");
    bind_query_sampler<make_level_sampler>(m, "level_sampler",
                                           "P(i, j) proportional to c_q u_i u_j.");
    bind_query_sampler<make_query_level_sampler>(
        m, "query_level_sampler", "A query by weight, two of its levels, a row of each.");
    bind_query_sampler<make_rejection_sampler>(m, "rejection_sampler",
                                               "Two rows until they make a pair.");
}

// ---- descent ----------------------------------------------------------------------------------

using BoundDescent = Exclusive<Descent>;

/// The numbers of a learner behind its algorithm and before its updates, in the order of a state
/// that is saved.
constexpr double Learner::*scalars[] = {
    &Learner::strength, &Learner::a, &Learner::t, &Learner::square, &Learner::first, &Learner::K,
    &Learner::total, &Learner::loss};
constexpr std::size_t n_numbers = std::size(scalars) + 2;

/// A learner as numbers, for a state that is saved: exact, as counts stay below 2⁵³.
std::vector<double> numbers_of(const Learner &m) {
    std::vector<double> numbers{double(int(m.algorithm))};
    for (const auto scalar : scalars) numbers.push_back(m.*scalar);
    numbers.push_back(double(m.n_updates));
    return numbers;
}

Learner learner_of(Doubles numbers) {
    require_length(numbers, n_numbers, "learner");
    for (const double x : numbers) require(x - x == 0, "a learner's number is not finite");
    const double algorithm = numbers.front(), n_updates = numbers.back();
    require(algorithm >= 0 && algorithm <= 4 && algorithm == double(int(algorithm)),
            "unknown algorithm ", algorithm);
    Learner m;
    m.algorithm = Algorithm(int(algorithm));
    for (std::size_t k = 0; k < std::size(scalars); ++k) m.*scalars[k] = numbers[k + 1];
    require(!m.shrinks() || m.strength > 0, "alpha must be > 0, got ", m.strength);
    // ‖v‖² is kept by adding what every step changes: near 0 rounding may leave it below.
    require(m.strength >= 0 && m.a > 0 && m.t >= m.first && m.first >= 0 && m.total >= 0,
            "a learner's number is negative");
    require(n_updates >= 0 && n_updates <= 0x1p53, "a count is out of range");
    m.n_updates = Index(n_updates);
    return m;
}

void check_n_columns(Index n_columns) {
    require(n_columns >= 0 && n_columns <= Index(1) << 40,
            "n_columns must lie in [0, 2^40], got ", n_columns);
}

/// `learners`: the numbers of one after the other.
void make_descent(BoundDescent *self, Index n_columns,
                  const std::vector<Vector<const double>> &learners, int average) {
    check_n_columns(n_columns);
    require(!learners.empty(), "there is no learner");
    require(average >= 0 && average <= 2, "unknown average ", average);
    std::vector<Learner> checked;
    for (const auto &numbers : learners)
        checked.push_back(learner_of(Parameter<Doubles>::of(numbers)));
    new (self) BoundDescent(Descent(n_columns, checked, Average(average)), "Descent");
}

/// The rows have no column that the weights lack.
void check_columns(const Descent &descent, const Rows &rows) {
    require(n_columns(rows) <= descent.n_columns(), "the rows have ", n_columns(rows),
            " columns, the weights ", descent.n_columns());
}

void run(BoundDescent &self, const Rows &rows, const PairSampler &sampler, Random &random,
         Index n_steps, int n_threads) {
    const auto descent = self.use();
    check_columns(*descent, rows);
    require(sampler.n_rows() <= n_rows(rows), "the sampler draws from ", sampler.n_rows(),
            " rows, the matrix has ", n_rows(rows));
    require_non_negative(n_steps, "n_steps");
    Random own = random;  // others may draw from it while the GIL is let go
    run_unlocked([&] { descent->run(rows, sampler, own, n_steps, n_threads); });
    random = own;
}

void step(BoundDescent &self, const Rows &rows, Integers winners, Integers losers, int n_threads) {
    const auto descent = self.use();
    check_columns(*descent, rows);
    require_length(losers, std::ssize(winners), "losers");
    std::vector<RowPair> pairs;
    for (std::size_t k = 0; k < winners.size(); ++k) {
        pairs.push_back({winners[k], losers[k]});
        for (const Index row : {winners[k], losers[k]})
            require(row >= 0 && row < n_rows(rows), "pair ", k, " names row ", row,
                    ", which does not exist");
    }
    descent->step(rows, pairs, n_threads);
}

void become(BoundDescent &self, Index model, Doubles learner, Doubles w) {
    const auto descent = self.use();
    require_length(w, descent->n_columns(), "w");
    descent->become(model, learner_of(learner), w);
}

auto kept(BoundDescent &self, Index model) {
    const auto descent = self.use();
    Descent::Vectors vectors = descent->vectors(model);
    return std::tuple(numbers_of(descent->learner(model)), std::move(vectors.v),
                      std::move(vectors.z));
}

void restore(BoundDescent &self, Index model, Doubles learner, std::vector<double> v,
             std::vector<double> z) {
    const auto descent = self.use();
    require_length(v, descent->n_columns(), "v");
    require_length(z, descent->average() == Average::none ? 0 : descent->n_columns(), "z");
    descent->restore(model, learner_of(learner), {std::move(v), std::move(z)});
}

void bind_descent(nb::module_ &m) {
    nb::class_<BoundDescent> c(m, "Descent", "Models that learn from one stream of pairs.");
    def(c, "__init__(n_columns, learners, average)", &make_descent);
    def_properties(c, {{"n_columns"}, {"n_models"}}, exclusive(&Descent::n_columns),
                   exclusive(&Descent::n_models));
    c.def_prop_rw("n_steps", exclusive(&Descent::n_steps), [](BoundDescent &self, Index n) {
        require_non_negative(n, "n_steps");
        self.use()->set_n_steps(n);
    });
    def(c, "run(rows, sampler, random, n_steps)", &run, nb::arg("n_threads") = 1);
    def(c, "step(rows, winners, losers)", unlocked(&step), nb::arg("n_threads") = 1);
    def(c, "weights(model)", unlocked(exclusive(&Descent::weights)));
    def(c, "become(model, learner, w)", &become);
    def(c, "grow(n_columns)", [](BoundDescent &self, Index n_columns) {
        check_n_columns(n_columns);
        self.use()->grow(n_columns);
    });
    def(c, "kept(model)", &kept, "(scalars, v, z) of a model, for `restore`.");
    def(c, "restore(model, learner, v, z)", &restore);
}

// ---- streams ----------------------------------------------------------------------------------

using BoundIndex = Exclusive<StreamIndex>;

void check_stream_rows(Integers ids, Doubles labels, Integers sizes) {
    require_lengths(std::ssize(ids), {"labels", "sizes"}, labels, sizes);
    check_not_nan(labels, "a label");
    // So that no sum of sizes overflows.
    for (const Index size : sizes)
        require(size >= 0 && size <= INT32_MAX,
                "the size of a row must lie in [0, 2^31), got ", size);
}

/// Positions are numbers of 32 bits.
void check_n_rows(Index n_rows) {
    require(n_rows >= 0 && n_rows <= INT32_MAX, "a buffer holds at most 2147483647 rows, got ",
            n_rows);
}

PairCells add_rows(BoundIndex &self, Integers ids, std::vector<double> labels, Integers sizes) {
    const auto index = self.use();
    check_stream_rows(ids, labels, sizes);
    check_n_rows(index->n_used() + std::ssize(ids));
    return index->add(ids, labels, sizes);
}

StreamIndex::State index_state(BoundIndex &self) {
    const auto index = self.use();
    require(index->n_used() == index->n_rows(), "call compact() first");
    return index->state();
}

void restore_rows(BoundIndex &self, std::vector<Index> ids, std::vector<double> labels,
                  std::vector<Index> sizes, std::vector<Index> recency, Index n_forgotten) {
    const auto index = self.use();
    require(index->n_used() == 0, "only an index without rows goes on from a state");
    check_stream_rows(ids, labels, sizes);
    check_n_rows(std::ssize(ids));
    index->restore({std::move(ids), std::move(labels), std::move(sizes), std::move(recency),
                    n_forgotten});
}

void bind_stream(nb::module_ &m) {
    nb::class_<BoundIndex> c(m, "StreamIndex",
                             "Which rows of a stream are kept, and the pairs that new ones make.");
    def(c, "__init__(rows_per_level, rows_per_query)",
        [](BoundIndex *self, Index rows_per_level, Index rows_per_query) {
        require(rows_per_level >= 1 && rows_per_query >= 1,
                "rows_per_level and rows_per_query must be >= 1");
        new (self) BoundIndex(StreamIndex(rows_per_level, rows_per_query), "StreamIndex");
    });
    def(c, "add(ids, labels, sizes)", unlocked(&add_rows),
        "(order, winner_begin, winner_end, loser_begin, loser_end, query, n_pairs): the cells of "
        "the pairs with at least one of the rows.");
    def(c, "reserve(n_rows)", [](BoundIndex &self, Index n_rows) {
        check_n_rows(n_rows);
        self.use()->reserve(n_rows);
    });
    def(c, "touch(ids)", exclusive(&StreamIndex::touch), "Mark queries as seen now.");
    def(c, "evict(max_rows, max_size)", exclusive(&StreamIndex::evict),
        "Forget the queries seen least recently until the rest is within both bounds.");
    def(c, "compact()", exclusive(&StreamIndex::compact),
        "Close the gaps; the old positions of the rows that are left.");
    def_properties(c, {{"n_rows"}, {"n_queries"}, {"size"},
                       {"n_used", "Positions in use, gaps included."}, {"n_forgotten"}},
                       exclusive(&StreamIndex::n_rows), exclusive(&StreamIndex::n_queries),
                       exclusive(&StreamIndex::size), exclusive(&StreamIndex::n_used),
                       exclusive(&StreamIndex::n_forgotten));
    def(c, "state()", &index_state,
        "(ids, labels, sizes, recency, n_forgotten), without gaps only.");
    def(c, "restore(ids, labels, sizes, recency, n_forgotten)", &restore_rows,
        "What `state` told of another.");
}

}  // namespace

void bind_stochastic(nb::module_ &m) {
    bind_samplers(m);
    bind_descent(m);
    bind_stream(m);
}
