// Random numbers, samplers of pairs, stochastic descent, and the index of the rows that are kept of a stream.
#include <nanobind/stl/unique_ptr.h>

#include <chrono>

#include "pair_sampler.hpp"
#include "arrays.hpp"
#include "descent.hpp"
#include "exclusive.hpp"
#include "stream_index.hpp"

namespace {

// ---- random numbers ---------------------------------------------------------------------------

auto state_of(const Random &random) {
    return to_numpy(std::vector<std::uint64_t>(random.state().begin(), random.state().end()));
}

void set_state(Random &random, const Vector<std::uint64_t> &words) {
    Random::State state;
    require_length(words.shape(0), Index(state.size()), "the state of a generator");
    std::copy_n(words.data(), state.size(), state.begin());
    require(random.set_state(state), "a generator whose state is all zeros would give nothing but zeros");
}

void check_count(Index n, const char *name) {
    if (n < 0) throw std::invalid_argument(std::string(name) + " must be >= 0, got " + std::to_string(n));
}

auto random_numbers(Random &random, Index n) {
    check_count(n, "n");
    std::vector<std::uint64_t> out(n);
    for (std::uint64_t &number : out) number = random.next();
    return to_numpy(std::move(out));
}

// ---- samplers ---------------------------------------------------------------------------------

/// Draws from pair `first` on until all are drawn or 50 ms have passed; returns how many there are then.
std::size_t draw_for_a_while(const PairSampler &sampler, Random &random, std::size_t first,
                             std::span<Index> winners, std::span<Index> losers) {
    using Clock = std::chrono::steady_clock;
    const auto end = Clock::now() + std::chrono::milliseconds(50);
    std::array<RowPair, 256> pairs;  // random numbers come pair by pair: where a piece ends leaves no trace
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
    check_count(n, "n");
    std::vector<Index> winners(n), losers(n);
    Random own = random;  // others may draw from it while the GIL is let go
    // By rejection a pair may take a millisecond: Ctrl-C is answered on the way.
    for (std::size_t done = 0; done < winners.size();) {
        done = unlocked([&] { return draw_for_a_while(sampler, own, done, winners, losers); });
        if (PyErr_CheckSignals() != 0) throw nb::python_error();
    }
    random = own;
    return to_tuple(std::move(winners), std::move(losers));
}

std::unique_ptr<PairSampler> cell_sampler(IntegerArray rows, IntegerArray winner_first, IntegerArray n_winners,
                                          IntegerArray loser_first, IntegerArray n_losers, DoubleArray weights,
                                          OptionalDoubles row_weights, OptionalOrder restarts) {
    const auto n_cells = Index(weights.shape(0));
    require_lengths(n_cells, {"winner_first", "n_winners", "loser_first", "n_losers"}, winner_first, n_winners,
                    loser_first, n_losers);
    require(!restarts || row_weights, "restarts are of no use without row_weights");
    std::vector<Cell> cells(n_cells);
    for (std::size_t c = 0; c < cells.size(); ++c)
        cells[c] = {winner_first(c), n_winners(c), loser_first(c), n_losers(c)};
    return unlocked([&] {
        const Cells from{span_of(rows), cells, span_of(weights)};
        const Index start = 0;
        if (!row_weights) return make_cell_sampler(from);
        return make_cell_sampler(from, {span_of(row_weights), restarts ? span_of(*restarts) : std::span(&start, 1)});
    });
}

/// A sampler of the pairs of queries. The rows that the positions name may be those of a larger matrix, so only
/// their sign can be checked.
template <auto make>
std::unique_ptr<PairSampler> query_sampler(IntegerArray offsets, OptionalOrder order, LevelArray levels,
                                           LevelArray n_levels, OptionalDoubles query_weight,
                                           OptionalDoubles row_weight) {
    check_queries(offsets, levels, n_levels);
    require_length(order, Index(levels.shape(0)), "order");
    check_indices(span_of(order), INT64_MAX, "order names a row that does not exist");
    require_weights(query_weight, Index(n_levels.shape(0)), "query_weight");
    require_weights(row_weight, Index(levels.shape(0)), "row_weight");
    return unlocked([&] {
        return make({span_of(offsets), span_of(levels), span_of(n_levels), span_of(row_weight), span_of(query_weight),
                     span_of(order)});
    });
}

template <auto make>
void bind_query_sampler(nb::module_ &m, const char *name, const char *text) {
    def(m, name, &query_sampler<make>, {"offsets", "order", "levels", "n_levels", "query_weight"},
        nb::arg("row_weight").noconvert() = nb::none(), text);
}

void bind_samplers(nb::module_ &m) {
    nb::class_<Random> random(m, "Random", "xoshiro256++, seeded by splitmix64.");
    random.def(nb::init<std::uint64_t>(), nb::arg("seed"));
    random.def_prop_rw("state", &state_of, &set_state, nb::for_getter(nb::rv_policy::move),
                       nb::for_setter(nb::arg("state").noconvert()), "Four words, not all zero.");
    def(random, "numbers", &random_numbers, {"n"}, "The next n numbers of 64 bits.");
    nb::class_<PairSampler> sampler(m, "PairSampler", "A distribution over pairs of rows.");
    def(sampler, "draw", &draw, {"random", "n"}, "(winners, losers) of the next n pairs.");
    sampler.def_prop_ro("n_rows", &PairSampler::n_rows, "One more than the largest row that may be drawn.");
    def(m, "cell_sampler", &cell_sampler, {"rows", "winner_first", "n_winners", "loser_first", "n_losers", "weights"},
        nb::arg("row_weights").noconvert() = nb::none(), nb::arg("restarts").noconvert() = nb::none(),
        "A cell by weight, its winner and its loser from two ranges of rows.");
    bind_query_sampler<make_level_sampler>(m, "level_sampler", "P(i, j) proportional to c_q u_i u_j.");
    bind_query_sampler<make_query_level_sampler>(m, "query_level_sampler",
                                                 "A query by weight, two of its levels, a row of each.");
    bind_query_sampler<make_rejection_sampler>(m, "rejection_sampler", "Two rows until they make a pair.");
}

// ---- descent ----------------------------------------------------------------------------------

using BoundDescent = Exclusive<Descent>;

constexpr Index most_columns = Index(1) << 40;

/// The numbers of a learner behind its algorithm and before its updates, in the order of a state that is saved.
constexpr double Learner::*scalars[] = {&Learner::strength, &Learner::a, &Learner::t, &Learner::square,
                                        &Learner::first, &Learner::K, &Learner::total, &Learner::loss};
constexpr std::size_t n_numbers = std::size(scalars) + 2;

/// A learner as numbers, for a state that is saved: exact, as counts stay below 2⁵³.
std::vector<double> numbers_of(const Learner &m) {
    std::vector<double> numbers{double(int(m.algorithm))};
    for (const auto scalar : scalars) numbers.push_back(m.*scalar);
    numbers.push_back(double(m.n_updates));
    return numbers;
}

Learner learner_of(const DoubleArray &numbers) {
    require_length(numbers.shape(0), n_numbers, "learner");
    for (const double x : span_of(numbers))
        require(x - x == 0, "a learner's number is not finite");
    const double algorithm = numbers(0), n_updates = numbers(n_numbers - 1);
    if (algorithm < 0 || algorithm > 4 || algorithm != double(int(algorithm)))
        throw std::invalid_argument("unknown algorithm " + std::to_string(algorithm));
    Learner m;
    m.algorithm = Algorithm(int(algorithm));
    for (std::size_t k = 0; k < std::size(scalars); ++k) m.*scalars[k] = numbers(k + 1);
    if (m.shrinks() && !(m.strength > 0))
        throw std::invalid_argument("alpha must be > 0, got " + std::to_string(m.strength));
    // ‖v‖² is kept by adding what every step changes: near 0 rounding may leave it below.
    if (!(m.strength >= 0 && m.a > 0 && m.t >= m.first && m.first >= 0 && m.total >= 0))
        throw std::invalid_argument("a learner's number is negative");
    require(n_updates >= 0 && n_updates <= 0x1p53, "a count is out of range");
    m.n_updates = Index(n_updates);
    return m;
}

Descent new_descent(Index n_columns, const std::vector<DoubleArray> &learners, int average) {
    if (n_columns < 0 || n_columns > most_columns)
        throw std::invalid_argument("n_columns must lie in [0, 2^40], got " + std::to_string(n_columns));
    require(!learners.empty(), "there is no learner");
    if (average < 0 || average > 2) throw std::invalid_argument("unknown average " + std::to_string(average));
    std::vector<Learner> checked;
    for (const auto &numbers : learners) checked.push_back(learner_of(numbers));
    return Descent(n_columns, checked, Average(average));
}

void check_model(const Descent &descent, Index model) {
    if (model < 0 || model >= descent.n_models())
        throw std::invalid_argument("there is no model " + std::to_string(model));
}

/// The rows have no column that the weights lack.
void check_columns(const Descent &descent, const BoundRows &rows) {
    if (n_columns(rows.rows) > descent.n_columns())
        throw std::invalid_argument("the rows have " + std::to_string(n_columns(rows.rows)) +
                                    " columns, the weights " + std::to_string(descent.n_columns()));
}

void run(BoundDescent &self, const BoundRows &rows, const PairSampler &sampler, Random &random, Index n_steps,
         int n_threads) {
    const auto descent = self.use();
    check_columns(*descent, rows);
    if (sampler.n_rows() > n_rows(rows.rows))
        throw std::invalid_argument("the sampler draws from " + std::to_string(sampler.n_rows()) +
                                    " rows, the matrix has " + std::to_string(n_rows(rows.rows)));
    check_count(n_steps, "n_steps");
    Random own = random;  // others may draw from it while the GIL is let go
    unlocked([&] { descent->run(rows.rows, sampler, own, n_steps, n_threads); });
    random = own;
}

void step(BoundDescent &self, const BoundRows &rows, IntegerArray winners, IntegerArray losers, int n_threads) {
    const auto descent = self.use();
    check_columns(*descent, rows);
    require_length(losers.shape(0), Index(winners.shape(0)), "losers");
    std::vector<RowPair> pairs(winners.shape(0));
    for (std::size_t k = 0; k < pairs.size(); ++k) {
        pairs[k] = {winners(k), losers(k)};
        for (const Index row : {pairs[k].winner, pairs[k].loser})
            if (row < 0 || row >= n_rows(rows.rows))
                throw std::invalid_argument("pair " + std::to_string(k) + " names row " +
                                            std::to_string(row) + ", which does not exist");
    }
    unlocked([&] { descent->step(rows.rows, pairs, n_threads); });
}

auto model_weights(BoundDescent &self, Index model) {
    const auto descent = self.use();
    check_model(*descent, model);
    return filled(std::vector<double>(descent->n_columns()), [&](auto out) { descent->weights(model, out); });
}

void become(BoundDescent &self, Index model, DoubleArray learner, DoubleArray w) {
    const auto descent = self.use();
    check_model(*descent, model);
    require_length(w.shape(0), descent->n_columns(), "w");
    descent->become(model, learner_of(learner), span_of(w));
}

nb::tuple kept(BoundDescent &self, Index model) {
    const auto descent = self.use();
    check_model(*descent, model);
    Descent::Vectors vectors = descent->vectors(model);
    return nb::make_tuple(to_numpy(numbers_of(descent->learner(model))), to_numpy(std::move(vectors.v)),
                          to_numpy(std::move(vectors.z)));
}

void restore(BoundDescent &self, Index model, DoubleArray learner, DoubleArray v, DoubleArray z) {
    const auto descent = self.use();
    check_model(*descent, model);
    require_length(v.shape(0), descent->n_columns(), "v");
    require_length(z.shape(0), descent->average() == Average::none ? 0 : descent->n_columns(), "z");
    descent->restore(model, learner_of(learner), {own_copy(v), own_copy(z)});
}

void grow(BoundDescent &self, Index n_columns) {
    if (n_columns > most_columns)
        throw std::invalid_argument("n_columns must be at most 2^40, got " + std::to_string(n_columns));
    self.use()->grow(n_columns);
}

void set_n_steps(BoundDescent &self, Index n) {
    check_count(n, "n_steps");
    self.use()->set_n_steps(n);
}

void bind_descent(nb::module_ &m) {
    nb::class_<BoundDescent> c(m, "Descent", "Models that learn from one stream of pairs.");
    def(c, "__init__", [](BoundDescent *self, Index n_columns, const std::vector<DoubleArray> &learners, int average) {
        new (self) BoundDescent(new_descent(n_columns, learners, average), "Descent");
    }, {"n_columns", "learners", "average"});
    c.def_prop_ro("n_columns", [](BoundDescent &self) { return self.use()->n_columns(); });
    c.def_prop_ro("n_models", [](BoundDescent &self) { return self.use()->n_models(); });
    c.def_prop_rw("n_steps", [](BoundDescent &self) { return self.use()->n_steps(); }, &set_n_steps);
    def(c, "run", &run, {"rows", "sampler", "random", "n_steps"}, nb::arg("n_threads") = 1);
    def(c, "step", &step, {"rows", "winners", "losers"}, nb::arg("n_threads") = 1);
    def(c, "weights", &model_weights, {"model"});
    def(c, "become", &become, {"model", "learner", "w"});
    def(c, "grow", &grow, {"n_columns"});
    def(c, "kept", &kept, {"model"}, "(scalars, v, z) of a model, for `restore`.");
    def(c, "restore", &restore, {"model", "learner", "v", "z"});
}

// ---- streams ----------------------------------------------------------------------------------

using BoundIndex = Exclusive<StreamIndex>;

void check_stream_rows(const IntegerArray &ids, const DoubleArray &labels, const IntegerArray &sizes) {
    require_lengths(Index(ids.shape(0)), {"labels", "sizes"}, labels, sizes);
    // So that no sum of sizes overflows.
    for (const Index size : span_of(sizes))
        if (size < 0 || size > INT32_MAX)
            throw std::invalid_argument("the size of a row must lie in [0, 2^31), got " + std::to_string(size));
}

/// Positions are numbers of 32 bits.
void check_n_rows(Index n_rows) {
    if (n_rows < 0 || n_rows > INT32_MAX)
        throw std::invalid_argument("a buffer holds at most 2147483647 rows, got " + std::to_string(n_rows));
}

void check_bounds(Index rows_per_level, Index rows_per_query) {
    if (rows_per_level < 1 || rows_per_query < 1)
        throw std::invalid_argument("rows_per_level and rows_per_query must be >= 1");
}

/// (order, winner_begin, winner_end, loser_begin, loser_end, query, n_pairs)
auto add_rows(BoundIndex &self, IntegerArray ids, DoubleArray labels, IntegerArray sizes) {
    const auto index = self.use();
    check_stream_rows(ids, labels, sizes);
    check_n_rows(index->n_used() + Index(ids.shape(0)));
    const std::vector<double> own = without_nan(labels, "a label");
    PairCells cells = unlocked([&] { return index->add(span_of(ids), own, span_of(sizes)); });
    return std::tuple_cat(to_tuple(std::move(cells.order), std::move(cells.winner_begin), std::move(cells.winner_end),
                                   std::move(cells.loser_begin), std::move(cells.loser_end), std::move(cells.query)),
                          std::make_tuple(cells.n_pairs));
}

auto index_state(BoundIndex &self) {
    const auto index = self.use();
    if (index->n_used() != index->n_rows()) throw std::invalid_argument("call compact() first");
    StreamIndex::State state = index->state();
    return std::tuple_cat(to_tuple(std::move(state.ids), std::move(state.labels), std::move(state.sizes),
                                   std::move(state.recency)), std::make_tuple(state.n_forgotten));
}

BoundIndex restored(Index rows_per_level, Index rows_per_query, IntegerArray ids, DoubleArray labels,
                    IntegerArray sizes, IntegerArray recency, Index n_forgotten) {
    check_bounds(rows_per_level, rows_per_query);
    check_stream_rows(ids, labels, sizes);
    check_n_rows(Index(ids.shape(0)));
    const StreamIndex::State state{.ids = own_copy(ids), .sizes = own_copy(sizes), .recency = own_copy(recency),
                                   .labels = without_nan(labels, "a label"), .n_forgotten = n_forgotten};
    return BoundIndex(StreamIndex::restore(rows_per_level, rows_per_query, state), "StreamIndex");
}

void bind_stream(nb::module_ &m) {
    nb::class_<BoundIndex> c(m, "StreamIndex", "Which rows of a stream are kept, and the pairs that new ones make.");
    def(c, "__init__", [](BoundIndex *self, Index rows_per_level, Index rows_per_query) {
        check_bounds(rows_per_level, rows_per_query);
        new (self) BoundIndex(StreamIndex(rows_per_level, rows_per_query), "StreamIndex");
    }, {"rows_per_level", "rows_per_query"});
    def(c, "add", &add_rows, {"ids", "labels", "sizes"},
        "(order, winner_begin, winner_end, loser_begin, loser_end, query, n_pairs): the cells of "
        "the pairs with at least one of the rows.");
    def(c, "reserve", [](BoundIndex &self, Index n_rows) {
        check_n_rows(n_rows);
        self.use()->reserve(n_rows);
    }, {"n_rows"});
    def(c, "touch", [](BoundIndex &self, IntegerArray ids) { self.use()->touch(span_of(ids)); }, {"ids"},
        "Mark queries as seen now.");
    def(c, "evict", [](BoundIndex &self, Index max_rows, Index max_size) {
        self.use()->evict(max_rows, max_size);
    }, {"max_rows", "max_size"}, "Forget the queries seen least recently until the rest is within both bounds.");
    c.def("compact", [](BoundIndex &self) { return to_numpy(self.use()->compact()); },
          "Close the gaps; the old positions of the rows that are left.");
    c.def_prop_ro("n_rows", [](BoundIndex &self) { return self.use()->n_rows(); });
    c.def_prop_ro("n_queries", [](BoundIndex &self) { return self.use()->n_queries(); });
    c.def_prop_ro("size", [](BoundIndex &self) { return self.use()->size(); });
    c.def_prop_ro("n_used", [](BoundIndex &self) { return self.use()->n_used(); }, "Positions in use, gaps included.");
    c.def_prop_ro("n_forgotten", [](BoundIndex &self) { return self.use()->n_forgotten(); });
    c.def("state", &index_state, "(ids, labels, sizes, recency, n_forgotten), without gaps only.");
    c.def_static("restore", &restored, nb::arg("rows_per_level"), nb::arg("rows_per_query"), nb::arg("ids").noconvert(),
                 nb::arg("labels").noconvert(), nb::arg("sizes").noconvert(), nb::arg("recency").noconvert(),
                 nb::arg("n_forgotten"));
}

}  // namespace

void bind_stochastic(nb::module_ &m) {
    bind_samplers(m);
    bind_descent(m);
    bind_stream(m);
}
