// The reader of TREC files on random and damaged text, and documents found by query.
#include <map>
#include <string>
#include <utility>

#include "check.hpp"
#include "trec.hpp"

using namespace linrank::trec;
using namespace linrank_test;

namespace {

/// Read from memory of its own size: the sanitizer sees a step beyond it.
std::optional<Fault> read(Reader &reader, const std::string &text) {
    const std::vector<char> copy(text.begin(), text.end());
    return reader.read({copy.data(), copy.size()});
}

void columns_of_a_run() {
    Reader reader(Kind::run);
    CHECK(!read(reader, "b Q0 d1 1 2.5 tag\n\n a\tQ0 d2 1 -1e3 other\r\n"));
    CHECK(!read(reader, "b Q0 d2 2 .5 tag"));
    const auto fault = read(reader, "\nb Q0 d3 1 x tag\n");
    CHECK(fault && fault->line == 6 && fault->message.find("'x'") != std::string::npos);
    const Table t = reader.take();
    CHECK((t.query == std::vector<std::int64_t>{0, 1, 0}));
    CHECK((t.value == std::vector<double>{2.5, -1000.0, 0.5}));
    CHECK((t.line == std::vector<std::int64_t>{1, 3, 4}));
    CHECK(t.tag == "tag");
    CHECK(t.query_ids.view()[1] == "a" && t.documents.view()[2] == "d2");
}

void many_queries_keep_their_numbers() {
    Reader reader(Kind::qrels);
    for (const int file : {0, 1}) {  // what was taken leaves nothing behind
        for (const int pass : {0, 1})
            for (int q = 0; q < 1000; ++q)
                CHECK(!read(reader, std::to_string(q * 7919 + file) + " 0 d" + std::to_string(pass) + " 1\n"));
        const Table t = reader.take();
        CHECK(t.query.size() == 2000 && t.line.front() == 1 && t.line.back() == 2000);
        for (std::size_t row = 0; row < 2000; ++row)
            CHECK(t.query[row] == static_cast<std::int64_t>(row % 1000));
        CHECK(t.query_ids.view().size() == 1000);
    }
}

void documents_are_found_by_query() {
    Rng rng(2);
    for (int round = 0; round < 50; ++round) {
        std::vector<std::int64_t> query;
        WordList documents;
        std::map<std::pair<std::int64_t, std::string>, std::int64_t> truth;
        std::int64_t repeated = -1;
        const std::int64_t n = draw(rng, 0, 200);
        for (std::int64_t row = 0; row < n; ++row) {
            query.push_back(draw(rng, 0, 5));
            const std::string word = "d" + std::to_string(draw(rng, 0, round < 25 ? 40 : 100000));
            documents.push(word);
            if (!truth.emplace(std::pair{query.back(), word}, row).second && repeated < 0)
                repeated = row;
        }
        const DocumentIndex index(query, documents.view());
        CHECK(index.repeated == repeated);
        for (const auto &[key, row] : truth) CHECK(index.find(key.first, key.second) == row);
        CHECK(index.find(6, "d1") == -1 && index.find(0, "") == -1);
    }
}

void ids_are_ordered_by_query() {
    WordList documents;
    for (const char *word : {"b", "a", "ab", "\xc3\xa9", "B", "10", "9"}) documents.push(word);
    const std::vector<std::int64_t> offsets{0, 4, 4, 7}, rows{0, 1, 2, 3, 6, 5, 4};
    const auto places = id_order(offsets, rows, documents.view(), 2);
    CHECK((places == std::vector<std::int64_t>{2, 0, 1, 3, 1, 0, 2}));
}

/// Nothing but a fault or rows comes of any bytes.
void damaged_text_is_read_or_refused() {
    Rng rng(3);
    const std::string good = "q1 Q0 doc-1 1 1.25 t\nq1 Q0 doc-2 2 -7e-3 t\nq2 Q0 x 1 0 t\n";
    const std::string bytes("\0\n\r\t 019.eE+-x\xff", 16);
    int n_refused = 0;
    for (int round = 0; round < 3000; ++round) {
        std::string text = good.substr(0, static_cast<std::size_t>(draw(rng, 1, 62)));
        for (std::int64_t change = draw(rng, 0, 3); change > 0; --change)
            text[static_cast<std::size_t>(draw(rng, 0, std::int64_t(text.size()) - 1))] =
                bytes[static_cast<std::size_t>(draw(rng, 0, 15))];
        Reader reader(Kind::run);
        n_refused += read(reader, text).has_value();
        const Table t = reader.take();
        CHECK(t.query.size() == t.value.size());
        CHECK(t.documents.offsets.size() == t.query.size() + 1);
    }
    CHECK(n_refused > 100 && n_refused < 3000);
}

}  // namespace

int main() {
    columns_of_a_run();
    many_queries_keep_their_numbers();
    documents_are_found_by_query();
    ids_are_ordered_by_query();
    damaged_text_is_read_or_refused();
    return 0;
}
