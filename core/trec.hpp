// TREC files: judgments `qid iteration docid relevance` and runs `qid Q0 docid rank score tag`.
#pragma once

#include "svmlight.hpp"

namespace linrank::trec {

using svmlight::Words, svmlight::WordList;

enum class Kind { qrels, run };

struct Fault {
    Index line;  // from 1
    std::string message;
};

/// What the lines say, by row; a row is a line that is not blank.
struct Table {
    std::vector<Index> query;  // number of the query, by first appearance
    WordList query_ids;
    WordList documents;
    std::vector<double> value;       // relevance or score
    std::vector<Index> line;  // where the row stands, for messages
    std::string tag;                 // last word of the first line of a run
};

/// Reads blocks of whole lines one after the other.
class Reader {
public:
    explicit Reader(Kind kind) : kind(kind) {}

    /// The first fault, if there is one: nothing is to be read after it.
    std::optional<Fault> read(std::string_view block);
    /// What was read since the last call; the next block is the first of another file.
    Table take();

private:
    Kind kind;
    Table table;
    Index n_lines = 0;
    svmlight::QueryTable ids;

    std::optional<std::string> read_line(std::string_view line);
};

/// The rows of a file by (query, document).
class DocumentIndex {
public:
    DocumentIndex(Integers query, Words documents);

    /// Row of the document in the query, -1 if there is none.
    Index find(Index query, std::string_view document) const;

    /// A row that names the same query and document as an earlier one, and that one; -1 if none.
    Index repeated = -1, earlier = -1;

private:
    Integers query;
    Words documents;
    std::vector<std::uint64_t> hashes;  // by row
    HashIndex<std::uint64_t> index;

    Index find(Index query, std::string_view document, std::uint64_t hash) const;
};

/// Of the documents rows[offsets[q]..offsets[q+1]) of each query, the place of each in the order of
/// their ids, byte by byte.
std::vector<Index> id_order(Integers offsets, Integers rows, Words documents, int n_threads);

}  // namespace linrank::trec
