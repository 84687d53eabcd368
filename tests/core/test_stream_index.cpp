// The index of a stream against its laws, for memory faults; its definition is tested from Python.
#include "stream_index.hpp"

#include <set>
#include <stdexcept>
#include <utility>

#include "check.hpp"
#include "scarce_memory.hpp"

using namespace linrank;
using linrank_test::Rng;
using Ints = std::vector<std::int64_t>;

namespace {

std::int64_t below(Rng &rng, std::int64_t n) { return std::int64_t(rng() % std::uint64_t(n)); }

/// Cells name rows of the index, winners have the higher label, one row of each pair is new.
void check_cells(const PairCells &cells, const Ints &ids, const std::vector<double> &labels,
                 std::int64_t first_new) {
    std::set<std::pair<std::int64_t, std::int64_t>> pairs;
    for (std::size_t c = 0; c < cells.query.size(); ++c)
        for (std::int64_t i = cells.winner_begin[c]; i < cells.winner_end[c]; ++i)
            for (std::int64_t j = cells.loser_begin[c]; j < cells.loser_end[c]; ++j) {
                const std::int64_t a = cells.order.at(std::size_t(i)), b = cells.order.at(std::size_t(j));
                CHECK(ids.at(std::size_t(a)) == ids.at(std::size_t(b)));
                CHECK(labels[std::size_t(a)] > labels[std::size_t(b)]);
                CHECK(a >= first_new || b >= first_new);
                CHECK(pairs.emplace(a, b).second);
            }
    CHECK(std::int64_t(pairs.size()) == cells.n_pairs);
}

void test_random_streams(Rng &rng) {
    for (int round = 0; round < 200; ++round) {
        const std::int64_t per_level = 1 + below(rng, 5), per_query = 1 + below(rng, 9);
        StreamIndex index(per_level, per_query);
        Ints ids;
        std::vector<double> labels;  // by position
        for (int batch = 0; batch < 30; ++batch) {
            const auto n = std::size_t(below(rng, 12));
            Ints new_ids(n), sizes(n);
            std::vector<double> new_labels(n);
            for (std::size_t i = 0; i < n; ++i) {
                new_ids[i] = below(rng, 6) - 3;
                new_labels[i] = double(below(rng, 3));
                sizes[i] = below(rng, 4);
            }
            const std::int64_t max_rows = below(rng, 30), max_size = below(rng, 60);
            index.touch(new_ids);
            index.evict(max_rows, max_size);
            CHECK(index.n_rows() <= max_rows && index.size() <= max_size);
            if (below(rng, 2) == 0) {
                const Ints kept = index.compact();
                for (std::size_t k = 0; k < kept.size(); ++k) {
                    ids[k] = ids[std::size_t(kept[k])];
                    labels[k] = labels[std::size_t(kept[k])];
                }
                ids.resize(kept.size());
                labels.resize(kept.size());
                CHECK(index.n_used() == index.n_rows());
            }
            const auto first_new = std::int64_t(ids.size());
            ids.insert(ids.end(), new_ids.begin(), new_ids.end());
            labels.insert(labels.end(), new_labels.begin(), new_labels.end());
            check_cells(index.add(new_ids, new_labels, sizes), ids, labels, first_new);
            CHECK(index.n_used() == std::int64_t(ids.size()));
        }
        index.compact();
        const StreamIndex::State state = index.state();
        StreamIndex other(per_level, per_query);
        other.restore(state);
        const StreamIndex::State again = other.state();
        CHECK(state.ids == again.ids && state.labels == again.labels && state.recency == again.recency);
        index.evict(0, 0);
        CHECK(index.n_rows() == 0 && index.n_queries() == 0 && index.size() == 0);
    }
}

/// Wherever memory runs out: what comes after is the right thing, or refused.
void test_scarce_memory(Rng &rng) {
    int n_refused = 0;
    for (long n_allocations = 0; n_allocations < 60; ++n_allocations) {
        StreamIndex index(3, 5);
        bool has_failed = false;
        for (int batch = 0; batch < 20; ++batch) {
            const long left = std::exchange(linrank_test::allocations_left, -1);  // not for the test itself
            const std::size_t n = 1 + std::size_t(below(rng, 12));
            Ints ids(n), sizes(n, 1);
            std::vector<double> labels(n);
            for (std::size_t i = 0; i < n; ++i) {
                ids[i] = below(rng, 40);
                labels[i] = double(below(rng, 3));
            }
            linrank_test::allocations_left = batch == 2 ? n_allocations : left;
            try {
                index.add(ids, labels, sizes);
                index.evict(30, 30);
                CHECK(!has_failed && index.n_rows() <= 30);
            } catch (const std::bad_alloc &) {
                CHECK(!has_failed);
                has_failed = true;
                linrank_test::allocations_left = -1;
            } catch (const std::runtime_error &) {
                CHECK(has_failed);
                ++n_refused;
            }
        }
        linrank_test::allocations_left = -1;
    }
    CHECK(n_refused > 500);
}

}  // namespace

int main() {
    Rng rng(1);
    test_random_streams(rng);
    test_scarce_memory(rng);
}
