// Random numbers and the samplers of pairs.
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/unique_ptr.h>

#include <array>
#include <chrono>

#include "alias.hpp"
#include "arrays.hpp"
#include "cell_sampler.hpp"
#include "module.hpp"
#include "pair_sampler.hpp"
#include "query_samplers.hpp"

namespace {

using Ints = Vector<std::int64_t>;
using Doubles = Vector<double>;

// ---- random numbers ---------------------------------------------------------------------------

auto state_of(const Random &random) {
    return to_numpy(std::vector<std::uint64_t>(random.state().begin(), random.state().end()));
}

void set_state(Random &random, const Vector<std::uint64_t> &words) {
    Random::State state;
    require_length(words.shape(0), std::int64_t(state.size()), "the state of a generator");
    std::copy_n(words.data(), state.size(), state.begin());
    if (!random.set_state(state))
        throw std::invalid_argument("a generator whose state is all zeros would give nothing but zeros");
}

auto numbers(Random &random, std::int64_t n) {
    if (n < 0) throw std::invalid_argument("n must be >= 0, got " + std::to_string(n));
    std::vector<std::uint64_t> out(n);
    for (std::uint64_t &number : out) number = random.next();
    return to_numpy(std::move(out));
}

auto slots_of(const Doubles &weights) {
    const PageArray<AliasSlot> slots = alias_slots(span_of(weights));
    std::vector<std::uint64_t> thresholds, aliases;
    for (const auto &[threshold, alias] : slots.view()) {
        thresholds.push_back(threshold);
        aliases.push_back(alias);
    }
    return std::make_tuple(to_numpy(std::move(thresholds)), to_numpy(std::move(aliases)));
}

// ---- samplers ---------------------------------------------------------------------------------

/// Draws from pair `first` on until all are drawn or 50 ms have passed; returns how many there are then.
std::size_t draw_for_a_while(const PairSampler &sampler, Random &random, std::size_t first,
                             std::span<std::int64_t> winners, std::span<std::int64_t> losers) {
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

auto draw(const PairSampler &sampler, Random &random, std::int64_t n) {
    if (n < 0) throw std::invalid_argument("n must be >= 0, got " + std::to_string(n));
    std::vector<std::int64_t> winners(n), losers(winners.size());
    Random own = random;  // others may draw from it while the GIL is let go
    // By rejection a pair may take a millisecond: Ctrl-C is answered on the way.
    for (std::size_t done = 0; done < winners.size();) {
        done = unlocked([&] { return draw_for_a_while(sampler, own, done, winners, losers); });
        if (PyErr_CheckSignals() != 0) throw nb::python_error();
    }
    random = own;
    return std::make_tuple(to_numpy(std::move(winners)), to_numpy(std::move(losers)));
}

std::unique_ptr<PairSampler> cell_sampler(Ints rows, Ints winner_first, Ints n_winners, Ints loser_first,
                                          Ints n_losers, Doubles weights, std::optional<Doubles> row_weights,
                                          std::optional<Ints> restarts) {
    const auto n_cells = std::int64_t(weights.shape(0));
    require_length(winner_first.shape(0), n_cells, "winner_first");
    require_length(n_winners.shape(0), n_cells, "n_winners");
    require_length(loser_first.shape(0), n_cells, "loser_first");
    require_length(n_losers.shape(0), n_cells, "n_losers");
    if (restarts && !row_weights) throw std::invalid_argument("restarts are of no use without row_weights");
    std::vector<Cell> cells(weights.shape(0));
    for (std::size_t c = 0; c < cells.size(); ++c)
        cells[c] = {winner_first.data()[c], n_winners.data()[c], loser_first.data()[c], n_losers.data()[c]};
    return unlocked([&] {
        const Cells from{span_of(rows), cells, span_of(weights)};
        const std::int64_t start = 0;
        if (!row_weights) return make_cell_sampler(from);
        return make_cell_sampler(from, {span_of(row_weights), restarts ? span_of(*restarts) : std::span(&start, 1)});
    });
}

/// The rows that the positions name may be those of a larger matrix, so only their sign can be checked.
LevelledQueries levelled_queries(const Ints &offsets, const OptionalOrder &order, const Vector<std::int32_t> &levels,
                                const Vector<std::int32_t> &n_levels) {
    check_offsets(span_of(offsets), levels.shape(0));
    check_levels(span_of(levels), span_of(offsets), span_of(n_levels));
    if (order) require_length(order->shape(0), std::int64_t(levels.shape(0)), "order");
    for (const std::int64_t row : span_of(order))
        if (row < 0 || row == INT64_MAX) throw std::invalid_argument("order names a row that does not exist");
    return {span_of(offsets), span_of(order), span_of(levels), span_of(n_levels)};
}

void check_weights(const Doubles &weights, std::int64_t n, const char *name) {
    require_length(weights.shape(0), n, name);
    for (const double weight : span_of(weights))
        if (!(weight >= 0.0 && weight <= std::numeric_limits<double>::max()))
            throw std::invalid_argument(std::string(name) + " must be finite and >= 0, got " +
                                        std::to_string(weight));
}

std::unique_ptr<PairSampler> level_sampler(Ints offsets, OptionalOrder order, Vector<std::int32_t> levels,
                                           Vector<std::int32_t> n_levels, Doubles query_weight,
                                           std::optional<Doubles> row_weight) {
    const LevelledQueries queries = levelled_queries(offsets, order, levels, n_levels);
    check_weights(query_weight, std::int64_t(n_levels.shape(0)), "query_weight");
    if (row_weight) check_weights(*row_weight, std::int64_t(levels.shape(0)), "row_weight");
    return unlocked([&] { return make_level_sampler(queries, span_of(query_weight), span_of(row_weight)); });
}

std::unique_ptr<PairSampler> query_level_sampler(Ints offsets, OptionalOrder order, Vector<std::int32_t> levels,
                                                 Vector<std::int32_t> n_levels, Doubles query_weight) {
    const LevelledQueries queries = levelled_queries(offsets, order, levels, n_levels);
    check_weights(query_weight, std::int64_t(n_levels.shape(0)), "query_weight");
    return unlocked([&] { return make_query_level_sampler(queries, span_of(query_weight)); });
}

std::unique_ptr<PairSampler> rejection_sampler(Ints offsets, OptionalOrder order, Vector<std::int32_t> levels,
                                               Vector<std::int32_t> n_levels, std::optional<Vector<bool>> keep) {
    const LevelledQueries queries = levelled_queries(offsets, order, levels, n_levels);
    if (keep) require_length(keep->shape(0), std::int64_t(n_levels.shape(0)), "keep");
    return unlocked([&] { return make_rejection_sampler(queries, span_of(keep)); });
}

}  // namespace

void bind_samplers(nb::module_ &m) {
    nb::class_<Random>(m, "Random", "xoshiro256++, seeded by splitmix64.")
        .def(nb::init<std::uint64_t>(), nb::arg("seed"))
        .def_prop_rw("state", &state_of, &set_state, nb::for_getter(nb::rv_policy::move),
                     nb::for_setter(nb::arg("state").noconvert()), "Four words, not all zero.")
        .def("numbers", &numbers, nb::arg("n"), "The next n numbers of 64 bits.");
    m.def("alias_slots", &slots_of, nb::arg("weights").noconvert(),
          "(threshold, alias) of each slot: all that a draw by weight looks at.");
    nb::class_<PairSampler>(m, "PairSampler", "A distribution over pairs of rows.")
        .def("draw", &draw, nb::arg("random"), nb::arg("n"), "(winners, losers) of the next n pairs.")
        .def_prop_ro("n_rows", &PairSampler::n_rows, "One more than the largest row that may be drawn.");
    m.def("cell_sampler", &cell_sampler, nb::arg("rows").noconvert(), nb::arg("winner_first").noconvert(),
          nb::arg("n_winners").noconvert(), nb::arg("loser_first").noconvert(), nb::arg("n_losers").noconvert(),
          nb::arg("weights").noconvert(), nb::arg("row_weights").noconvert().none() = nb::none(),
          nb::arg("restarts").noconvert().none() = nb::none(),
          "A cell by weight, its winner and its loser from two ranges of rows.");
    m.def("level_sampler", &level_sampler, nb::arg("offsets").noconvert(), nb::arg("order").noconvert().none(),
          nb::arg("levels").noconvert(), nb::arg("n_levels").noconvert(), nb::arg("query_weight").noconvert(),
          nb::arg("row_weight").noconvert().none(), "P(i, j) proportional to c_q u_i u_j.");
    m.def("query_level_sampler", &query_level_sampler, nb::arg("offsets").noconvert(),
          nb::arg("order").noconvert().none(), nb::arg("levels").noconvert(), nb::arg("n_levels").noconvert(),
          nb::arg("query_weight").noconvert(), "A query by weight, two of its levels, a row of each.");
    m.def("rejection_sampler", &rejection_sampler, nb::arg("offsets").noconvert(),
          nb::arg("order").noconvert().none(), nb::arg("levels").noconvert(), nb::arg("n_levels").noconvert(),
          nb::arg("keep").noconvert().none(), "Two rows until they make a pair.");
}
