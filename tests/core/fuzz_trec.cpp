// Random damage to valid TREC files. Whatever comes in, the reader must neither read nor write outside its
// buffers; a text read whole must say the same as the text cut into blocks of lines; and what was read must
// be found again, by a plain map as by the index.
//
//   fuzz_trec [seconds] [seed]      a mutation fuzzer of its own, reproducible by its seed
//   -DLINRANK_LIBFUZZER             the same test as a libFuzzer target
#include <cmath>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
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
        const auto exact = std::make_unique<char[]>(end - start);
        std::memcpy(exact.get(), text.data() + start, end - start);
        if (const auto fault = reader.read({exact.get(), end - start}))
            return {{}, std::to_string(fault->line) + ": " + fault->message};
        start = end;
    }
    return {reader.take(), ""};
}

/// Columns of one length, numbers that are finite, queries that exist.
void check_table(const trec::Table &table, std::string_view text) {
    const std::size_t n = table.query.size();
    require(table.value.size() == n && table.line.size() == n &&
                table.documents.offsets.size() == n + 1, "columns have one length", text);
    for (std::size_t i = 0; i < n; ++i) {
        require(std::isfinite(table.value[i]), "numbers are finite", text);
        require(table.query[i] >= 0 && table.query[i] < table.query_ids.view().size(),
                "queries exist", text);
        require(!table.documents.view()[static_cast<std::int64_t>(i)].empty(), "words are not empty",
                text);
    }
}

/// The index against a map, and the order of the ids.
void check_documents(const trec::Table &table, std::string_view text) {
    const trec::Words documents = table.documents.view();
    const trec::DocumentIndex index(table.query, documents);
    std::map<std::pair<std::int64_t, std::string_view>, std::int64_t> rows;
    std::int64_t repeated = -1;
    for (std::int64_t i = 0; i < documents.size(); ++i) {
        const bool is_new = rows.emplace(std::pair(table.query[static_cast<std::size_t>(i)], documents[i]), i).second;
        if (!is_new && repeated < 0) repeated = i;
    }
    require(index.repeated == repeated, "the first repeated document", text);
    for (const auto &[key, row] : rows)
        require(index.find(key.first, key.second) == row, "documents are found", text);
    require(index.find(-1, "a document of no query") == -1, "others are not", text);

    const std::vector<std::int64_t> offsets{0, documents.size()};
    std::vector<std::int64_t> all(static_cast<std::size_t>(documents.size()));
    std::iota(all.begin(), all.end(), 0);
    const auto places = trec::id_order(offsets, all, documents, 2);
    std::vector<std::int64_t> by_place(all.size(), -1);
    for (std::size_t i = 0; i < all.size(); ++i) by_place.at(static_cast<std::size_t>(places[i])) = all[i];
    for (std::size_t i = 1; i < all.size(); ++i)
        require(documents[by_place[i - 1]] <= documents[by_place[i]], "ids ascend", text);
}

/// Whether the text is valid.
bool test_one(std::string_view text) {
    bool is_valid = false;
    for (const trec::Kind kind : {trec::Kind::qrels, trec::Kind::run}) {
        const Reading whole = read(text, kind, text.size() + 1);
        for (const std::size_t block : {std::size_t{1}, std::size_t{40}, std::size_t{100}})
            require(read(text, kind, block) == whole, "blocks do not matter", text);
        if (!whole.fault.empty()) continue;
        check_table(whole.table, text);
        check_documents(whole.table, text);
        is_valid = true;
    }
    return is_valid;
}

}  // namespace

#if defined(LINRANK_LIBFUZZER)

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size) {
    test_one({reinterpret_cast<const char *>(data), size});
    return 0;
}

#else

namespace {

// Lines of judgements, then as many of runs: a text is made of one sort.
const std::vector<std::string> corpus{
    "301 0 FBIS3-10082 1\n", "301 0 FBIS3-10169 0\r\n", "302\t0\tFR940126-2-00106\t2.5\n",
    "q-\xc3\xa9 Q0 \xff\xfe -1\n", " 7  0  d  1e-3 \n", "\n",
    "301 Q0 FR940202-2-00150 104 2.129133 STANDARD\n", "301 Q0 FBIS3-10082 0 -1.5E+2 mine\r\n",
    "302\tQ0\tdoc\t1\t4.9e-324\ttag\n", "q-\xc3\xa9 Q0 \xff\xfe 3 1.7976931348623157e308 \xff\n",
    " 7  0  d  1  +.5  t \n", " \t \n",
};
const char *const pieces_of_text[] = {" ", "\n", "\t", "\r", "\v", "\f", "-", "+", ".", "e", "0", "nan",
                                      "inf", "0x1p3", "1e999", "1e-999", "99999999999999999999", "Q0",
                                      "\xef\xbb\xbf", "\xc2\xa0"};

}  // namespace

int main(int argc, char **argv) {
    return fuzzing::run("fuzz_trec", argc, argv, corpus, pieces_of_text, 2, test_one);
}

#endif
