#include "trec.hpp"

#include <functional>

#include "decimal.hpp"
#include "parallel.hpp"

namespace linrank::trec {
namespace {

constexpr std::size_t longest_number = 400;
constexpr std::array<std::size_t, 2> n_columns{4, 6};
constexpr std::array<const char *, 2> form{"'qid iteration docid relevance'",
                                           "'qid Q0 docid rank score tag'"};

bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\v' || c == '\f'; }

/// A word of the text for a message: cut when long, what cannot be printed as \xNN.
std::string quoted(std::string_view word) {
    constexpr std::size_t longest = 40;
    std::string text = "'";
    for (const char c : word.substr(0, longest)) svmlight::append_printable(c, text);
    return text + (word.size() > longest ? "...'" : "'");
}

/// Words of a line, the first `most` of them, and how many there are.
template <std::size_t most>
std::size_t split(std::string_view line, std::array<std::string_view, most> &words) {
    std::size_t n = 0;
    for (std::size_t at = 0;;) {
        while (at < line.size() && is_blank(line[at])) ++at;
        if (at == line.size()) return n;
        const std::size_t begin = at;
        while (at < line.size() && !is_blank(line[at])) ++at;
        if (n < most) words[n] = line.substr(begin, at - begin);
        ++n;
    }
}

/// What is wrong with the number, if something is.
std::optional<std::string> read_value(std::string_view word, const char *what, double &value) {
    // A copy with zeros behind it: the routine looks some characters ahead.
    std::array<char, longest_number + 16> text{};
    auto outcome = decimal::Outcome::not_a_number;
    const char *end = text.data();
    if (word.size() <= longest_number) {
        std::memcpy(text.data(), word.data(), word.size());
        outcome = decimal::read_number(end, value);
    }
    if (outcome == decimal::Outcome::number && end == text.data() + word.size()) return {};
    if (outcome == decimal::Outcome::overflow)
        return std::string("the ") + what + " is out of range: " + quoted(word);
    return std::string("the ") + what + " is " + quoted(word) + "; expected a finite number";
}

std::string wrong_columns(Kind kind, std::size_t n) {
    const auto own = std::size_t(kind), other = 1 - own;
    std::string message = "expected " + std::to_string(n_columns[own]) + " columns " + form[own] +
                          ", got " + std::to_string(n);
    if (n == n_columns[other])
        message += kind == Kind::run ? "; this looks like a file of judgments (qrels)"
                                     : "; this looks like a run";
    return message;
}

std::uint64_t hash_of(Index query, std::string_view word) {
    return mixed_hash(std::hash<std::string_view>{}(word) + mixed_hash(std::uint64_t(query)));
}

}  // namespace

// ---- reading ----------------------------------------------------------------------------------

std::optional<Fault> Reader::read(std::string_view block) {
    for (std::size_t begin = 0; begin < block.size();) {
        const std::size_t end = std::min(block.find('\n', begin), block.size());
        ++n_lines;
        if (auto message = read_line(block.substr(begin, end - begin)))
            return Fault{n_lines, *message};
        begin = end + 1;
    }
    return {};
}

Table Reader::take() {
    for (Index q = 0; q < ids.size(); ++q) table.query_ids.push(ids[q]);
    ids = {};
    n_lines = 0;
    return std::exchange(table, {});
}

std::optional<std::string> Reader::read_line(std::string_view line) {
    std::array<std::string_view, 6> words;
    const std::size_t n = split(line, words);
    if (n == 0) return {};
    if (n != n_columns[int(kind)]) return wrong_columns(kind, n);
    if (std::memchr(line.data(), '\0', line.size()) != nullptr)
        return "NUL byte; expected text";
    double value = 0.0;
    const bool is_run = kind == Kind::run;
    if (auto message = read_value(words[is_run ? 4 : 3], is_run ? "score" : "relevance", value))
        return message;
    // Lines of one query mostly come together.
    const bool is_last = !table.query.empty() && ids[table.query.back()] == words[0];
    table.query.push_back(is_last ? table.query.back() : ids.number(words[0]));
    table.documents.push(words[2]);
    table.value.push_back(value);
    table.line.push_back(n_lines);
    if (is_run && table.line.size() == 1) table.tag = words[5];
    return {};
}

// ---- documents of a query ---------------------------------------------------------------------

DocumentIndex::DocumentIndex(Integers query, Words documents)
    : query(query), documents(documents), hashes(query.size()) {
    for (std::size_t row = 0; row < query.size(); ++row) {
        const std::string_view document = documents[Index(row)];
        hashes[row] = hash_of(query[row], document);
        const Index known = find(query[row], document, hashes[row]);
        if (known >= 0 && repeated < 0) {
            repeated = Index(row);
            earlier = known;
        }
        index.reserve([&](Index r) { return hashes[r]; });
        index.insert(hashes[row]);
    }
}

/// The first of them that was inserted.
Index DocumentIndex::find(Index q, std::string_view document, std::uint64_t hash) const {
    return index.find(hash, [&](Index row) {
        return hashes[row] == hash && query[row] == q && documents[row] == document;
    });
}

Index DocumentIndex::find(Index q, std::string_view document) const {
    return find(q, document, hash_of(q, document));
}

std::vector<Index> id_order(Integers offsets, Integers rows, Words documents, int n_threads) {
    std::vector<Index> places(rows.size());
    for_each_query<std::vector<Index>>(offsets, n_threads, [&](Index q, std::vector<Index> &order) {
        order.resize(offsets[q + 1] - offsets[q]);
        std::iota(order.begin(), order.end(), offsets[q]);
        std::ranges::sort(order, {}, [&](Index t) { return documents[rows[t]]; });
        for (std::size_t i = 0; i < order.size(); ++i) places[order[i]] = Index(i);
    });
    return places;
}

}  // namespace linrank::trec
