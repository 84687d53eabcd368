// SVMlight/LETOR text to rows: `label[:weight] [qid:token] index:value ... [# comment]`.
//
// A text is cut into blocks of whole lines; each becomes a Piece, independently of the others, and
// the pieces are then laid out one after another in arrays of the caller. Which blocks were cut has
// no influence on the result.
#pragma once
#include <deque>

#include "hash_index.hpp"
#include "pages.hpp"
#include "rows.hpp"

namespace linrank::svmlight {

/// The largest feature index: columns, and their number, must fit in 32 bits.
constexpr Index max_feature = 2147483646;

/// A place in a block; line and column start at 1, the column counts bytes.
struct Place {
    Index line = 0;
    Index column = 0;
};

struct Fault {
    Place place;
    std::string message;
};

/// Words one after the other: word i is text[offsets[i], offsets[i+1]).
struct Words {
    std::string_view text;
    Integers offsets;

    std::string_view operator[](Index i) const {
        return text.substr(offsets[i], offsets[i + 1] - offsets[i]);
    }
    Index size() const { return offsets.empty() ? 0 : std::ssize(offsets) - 1; }
};

struct WordList {
    std::vector<std::uint8_t> text;
    std::vector<Index> offsets{0};

    void push(std::string_view word);
    Words view() const {
        return {{reinterpret_cast<const char *>(text.data()), text.size()}, offsets};
    }
};

/// Adds a byte for a message, what cannot be printed as \xNN.
void append_printable(char c, std::string &text);

/// Strings one after another: string i is text[ends[i-1] .. ends[i]).
struct Strings {
    PageArray<char> text;
    PageArray<Index> ends;

    std::string_view operator[](std::size_t i) const {
        const auto from = std::size_t(i ? ends[i - 1] : 0);
        return {text.data() + from, std::size_t(ends[i]) - from};
    }
};

struct Piece;

/// Query ids numbered by first appearance, over a text of any length.
///
/// The bytes of ids are kept, so equal numbers mean equal ids. Nothing that has been stored moves: growing
/// needs no second copy, and about 40 bytes a query are all that is taken.
class QueryTable {
public:
    /// Rows that follow one another with the same id: `sizes[k]` of query `numbers[k]`.
    struct Runs {
        std::vector<Index> numbers, sizes;
    };

    QueryTable() = default;
    QueryTable(const QueryTable &) = delete;  // the views are of its own text, which a move leaves where it is
    QueryTable(QueryTable &&) = default;
    QueryTable &operator=(QueryTable &&) = default;

    /// The number of an id: that of its first appearance.
    Index number(std::string_view id);
    /// The numbers of the ids of another table.
    std::vector<Index> numbers(const QueryTable &others);
    /// The runs of a piece; without ids, one run of query 0, whose id is empty.
    Runs runs(const Piece &piece);

    Index size() const { return Index(ids.size()); }
    std::string_view operator[](Index number) const {
        return ids[number];
    }
    /// Whether every id is an integer in its shortest form that fits 64 bits.
    bool all_integers() const { return n_others == 0; }
    /// Bytes held.
    Index n_bytes() const;

private:
    static constexpr std::size_t first_block = 1 << 8, block = 1 << 16;  // bytes of text allocated at a time

    std::deque<std::string_view> ids;                 // views of `text`
    std::vector<std::unique_ptr<char[]>> text;
    HashIndex<std::uint32_t> index;
    std::size_t room = 0;                             // bytes left in the last block
    char *next = nullptr;
    Index text_bytes = 0, n_others = 0;

    std::string_view keep(std::string_view id);
};

/// The entries of the rows of a piece, in the smaller of two forms.
///
/// Dense (`width` > 0): row i has the features lowest .. lowest + width - 1, `present` has one bit
/// for each, or is empty when all were given. A zero that was written is thus told from one that was
/// not, and the final matrix does not depend on the form that a piece chose.
/// Sparse (`width` = 0): entries ends[i-1] .. ends[i], with their features.
template <class Value>
struct Entries {
    PageArray<Value> values;
    PageArray<std::int32_t> features;
    PageArray<Index> ends;
    PageArray<std::uint64_t> present;
    Index width = 0;
};

struct Piece {
    Index n_rows = 0;
    Index n_entries = 0;
    Index n_lines = 0;
    std::variant<Entries<float>, Entries<double>> entries;
    PageArray<double> labels;
    PageArray<double> weights;                 // empty when no line has one
    PageArray<std::int32_t> queries;           // per row, a number into query_ids; empty without qid
    QueryTable query_ids;
    Strings comments;                          // per row; empty when there is none
    bool has_query = false;
    Place query_place;                         // of the first row's query id, or where it would be;
                                               // set as soon as that is known, n_rows may be 0 then
    Index lowest = -1, highest = -1;    // feature indices as written; -1 without entries
    Place highest_place;                       // where the largest was first met
    std::optional<Fault> fault;                // the first; what is behind it was not read

    /// What is wrong if the rows before the piece have query ids and its first has not, or vice versa.
    std::optional<Fault> query_fault(bool before) const;

    /// Bytes held.
    Index n_bytes() const;
};

/// Room for the most that a block can hold. Kept from block to block, as memory that was used before
/// is several times faster than new memory; one for each thread.
template <class Value>
struct Scratch {
    std::size_t n_bytes = 0;  // of text that there is room for
    PageArray<Value> values;
    PageArray<std::int32_t> features;
    PageArray<Index> ends;
    PageArray<double> labels, weights;
    PageArray<std::int32_t> queries;
    PageArray<char> comments;
    PageArray<Index> comment_ends;

    void reserve(std::size_t n);
};

/// The feature indices that are allowed.
struct Range {
    Index lowest = 0;
    Index highest = max_feature;
};

/// Reads a block of whole lines (the last may lack its line end). A fault is returned in the piece.
template <class Value>
Piece parse(std::string_view text, Range range, Scratch<Value> &scratch);

// ---- laying out: column = feature index - base; each frees what it has copied ----------------

using Pieces = std::span<Piece *const>;

/// x: row-major, n_columns wide, as many rows as the pieces have together.
template <class Value>
void fill_dense(Pieces pieces, Value *x, Index n_columns, Index base, int n_threads);

/// offsets: one more than there are rows.
template <class Value>
void fill_csr(Pieces pieces, Value *values, std::int32_t *columns, Index *offsets,
              Index base, int n_threads);

void fill_labels(Pieces pieces, double *labels);
/// Rows without a weight get 1.
void fill_weights(Pieces pieces, double *weights);
/// Fills ids and returns true when every id is an integer in its shortest form that fits 64 bits.
bool fill_integer_queries(Pieces pieces, Index *ids);
/// Numbers the distinct ids over all pieces by first appearance; returns them.
QueryTable fill_query_codes(Pieces pieces, Index *codes);
/// text: as many bytes as comment_bytes(); offsets: one more than there are rows.
Index comment_bytes(Pieces pieces);
void fill_comments(Pieces pieces, char *text, Index *offsets);

/// The integer that a text is the shortest form of; false if it is none of 64 bits.
bool parse_integer(std::string_view text, std::int64_t &value);

// ---- rows to text, the inverse of the reader ---------------------------------------------------

/// What the lines say. Ids and comments are written as they are: that they hold no blanks and no line ends is
/// checked by who has the rows and can name the one at fault.
struct Lines {
    Rows rows;
    Doubles labels;
    Doubles weights;  // empty: without weights
    Words ids;                  // one a row; no words: without ids
    Words comments;             // one a row, "" for none; no words: without comments
    Index base = 1;            // the number of the first column
    /// Whether the first line names the last column, and column 0 where counting begins there, even if they
    /// are no entries of it: a reader tells the number of columns, and where they begin, by what it meets.
    bool names_ends = false;
};

/// The text of all lines. Every number reads back to the same bits: it is the shortest that does.
std::vector<std::uint8_t> text_of(const Lines &lines, int n_threads);

}  // namespace linrank::svmlight
