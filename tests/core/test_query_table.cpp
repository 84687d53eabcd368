// Query ids numbered by first appearance, against a map.
#include <map>
#include <string>
#include <vector>

#include "check.hpp"
#include "svmlight.hpp"
#include "scarce_memory.hpp"

using namespace linrank::svmlight;

namespace {

void test_numbers_equal_those_of_a_map() {
    QueryTable table;
    std::map<std::string, std::int64_t> expected;
    std::vector<std::string> in_order;
    std::uint64_t state = 1;
    for (int k = 0; k < 20000; ++k) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        std::string id = std::to_string(state >> 51);
        if (k % 7 == 0) id = std::string((state >> 33) % 40, 'x') + id;
        if (k == 500) id = std::string(100000, 'y');  // longer than a block of text
        const auto [place, is_new] = expected.try_emplace(id, std::int64_t(expected.size()));
        if (is_new) in_order.push_back(id);
        CHECK(table.number(id) == place->second);
    }
    CHECK(table.size() == std::int64_t(expected.size()));
    for (std::size_t q = 0; q < in_order.size(); ++q) CHECK(table[std::int64_t(q)] == in_order[q]);
    CHECK(!table.all_integers());
}

void test_runs_of_pieces() {
    QueryTable table;
    Scratch<float> scratch;
    const auto runs = [&](const char *text) { return table.runs(parse<float>(text, Range(), scratch)); };
    const auto first = runs("1 qid:5 1:1\n0 qid:5 1:2\n1 qid:3 1:1\n");
    CHECK((first.numbers == std::vector<std::int64_t>{0, 1}));
    CHECK((first.sizes == std::vector<std::int64_t>{2, 1}));
    const auto second = runs("1 qid:3 1:1\n0 qid:9 1:2\n1 qid:5 1:1\n");
    CHECK((second.numbers == std::vector<std::int64_t>{1, 2, 0}));
    CHECK(table.all_integers());
    CHECK(runs("\n# nothing\n").numbers.empty());
}

void test_rows_without_ids_are_one_query() {
    QueryTable table;
    Scratch<double> scratch;
    const auto runs = table.runs(parse<double>("1 1:1\n0 1:2\n", Range(), scratch));
    CHECK((runs.numbers == std::vector<std::int64_t>{0}));
    CHECK((runs.sizes == std::vector<std::int64_t>{2}));
    CHECK(table[0].empty());
}

/// Where memory runs out, the id is as unknown as before, and the table goes on when there is some again.
void test_scarce_memory_changes_nothing() {
    int n_failures = 0;
    for (long n_allocations = 0; n_allocations < 12; ++n_allocations) {
        QueryTable table;
        std::vector<std::string> ids;
        for (int q = 0; q < 1000; ++q) ids.push_back(std::to_string(q) + std::string(200, 'z'));
        linrank_test::allocations_left = n_allocations;
        for (std::size_t q = 0; q < ids.size(); ++q) {
            std::int64_t number = -1;
            while (number < 0) {
                try {
                    number = table.number(ids[q]);
                } catch (const std::bad_alloc &) {
                    ++n_failures;
                    CHECK(table.size() == std::int64_t(q));
                    linrank_test::allocations_left = -1;  // there is some again, until the next ids
                }
            }
            CHECK(number == std::int64_t(q));
            if (q % 100 == 99) linrank_test::allocations_left = n_allocations;
        }
        linrank_test::allocations_left = -1;
        for (std::size_t q = 0; q < ids.size(); ++q) CHECK(table.number(ids[q]) == std::int64_t(q));
    }
    CHECK(n_failures > 20);
}

}  // namespace

int main() {
    test_numbers_equal_those_of_a_map();
    test_runs_of_pieces();
    test_rows_without_ids_are_one_query();
    test_scarce_memory_changes_nothing();
    std::printf("query table: all passed\n");
    return 0;
}
