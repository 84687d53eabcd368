// Any bytes as a TREC file. Whatever comes in, the reader must neither read nor write outside its buffers; a
// text read whole must say the same as the text cut into blocks of lines; and what was read must be found
// again, by a plain search as by the index.
#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fuzzing.hpp"
#include "trec.hpp"

using namespace linrank;
using fuzzing::require;

namespace {

fuzzing::Arena arena;

struct Reading {
    trec::Table table;
    std::string fault;

    bool operator==(const Reading &other) const {
        if (!fault.empty()) return fault == other.fault;  // the rest is of no use then
        const trec::Table &a = table, &b = other.table;
        return other.fault.empty() && a.query == b.query && a.value == b.value && a.line == b.line &&
               a.tag == b.tag && a.query_ids.text == b.query_ids.text &&
               a.query_ids.offsets == b.query_ids.offsets && a.documents.text == b.documents.text &&
               a.documents.offsets == b.documents.offsets;
    }
};

/// Reads blocks of about `block` bytes, each from a buffer of exactly its size, as the loader does.
Reading read(std::string_view text, trec::Kind kind, std::size_t block) {
    trec::Reader reader(kind);
    for (std::size_t start = 0; start < text.size();) {
        std::size_t end = text.find('\n', start + block - 1);
        end = end == text.npos ? text.size() : end + 1;
        const auto exact = arena.take<char>(end - start);
        std::memcpy(exact.data(), text.data() + start, end - start);
        if (const auto fault = reader.read({exact.data(), exact.size()}))
            return {{}, std::to_string(fault->line) + ": " + fault->message};
        start = end;
    }
    return {reader.take(), ""};
}

/// Columns of one length, numbers that are finite, queries that exist.
void check_table(const trec::Table &table) {
    const std::size_t n = table.query.size();
    require(table.value.size() == n && table.line.size() == n && table.documents.offsets.size() == n + 1,
            "columns have one length");
    for (std::size_t i = 0; i < n; ++i) {
        require(std::isfinite(table.value[i]), "numbers are finite");
        require(table.query[i] >= 0 && table.query[i] < table.query_ids.view().size(), "queries exist");
        require(!table.documents.view()[static_cast<std::int64_t>(i)].empty(), "words are not empty");
    }
}

/// The first row with the query and the document of a row.
std::int64_t first_like(const trec::Table &table, std::int64_t row) {
    const trec::Words documents = table.documents.view();
    const auto query = [&](std::int64_t i) { return table.query[static_cast<std::size_t>(i)]; };
    std::int64_t i = 0;
    while (query(i) != query(row) || documents[i] != documents[row]) ++i;
    return i;
}

void check_index(const trec::Table &table) {
    const trec::Words documents = table.documents.view();
    const trec::DocumentIndex index(table.query, documents);
    std::int64_t repeated = -1;
    for (std::int64_t i = 0; i < documents.size(); ++i) {
        const std::int64_t first = first_like(table, i);
        if (first < i && repeated < 0) repeated = i;
        require(index.find(table.query[static_cast<std::size_t>(i)], documents[i]) == first,
                "documents are found");
    }
    require(index.repeated == repeated, "the first repeated document");
    require(repeated < 0 || index.earlier == first_like(table, repeated), "what it repeats");
    require(index.find(-1, "a document of no query") == -1, "others are not found");
}

void check_order(const trec::Table &table) {
    const trec::Words documents = table.documents.view();
    const std::array<std::int64_t, 2> offsets{0, documents.size()};
    std::vector<std::int64_t> all(static_cast<std::size_t>(documents.size()));
    std::iota(all.begin(), all.end(), 0);
    const auto places = trec::id_order(offsets, all, documents, 1);
    std::vector<std::int64_t> by_place(all.size(), -1);
    for (std::size_t i = 0; i < all.size(); ++i) by_place.at(static_cast<std::size_t>(places[i])) = all[i];
    for (std::size_t i = 1; i < all.size(); ++i)
        require(documents[by_place[i - 1]] <= documents[by_place[i]], "ids ascend");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size) {
    constexpr std::array<std::size_t, 3> blocks{1, 40, 100};
    const std::string_view text(reinterpret_cast<const char *>(data), size);
    const std::size_t block = blocks[fuzzing::choose(text, blocks.size())];
    arena.clear();
    for (const trec::Kind kind : {trec::Kind::qrels, trec::Kind::run}) {
        const Reading whole = read(text, kind, text.size() + 1);
        require(read(text, kind, block) == whole, "blocks do not matter");
        if (!whole.fault.empty()) continue;
        check_table(whole.table);
        check_index(whole.table);
        check_order(whole.table);
    }
    return 0;
}
