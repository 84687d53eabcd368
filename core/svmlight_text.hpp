// Rows to SVMlight/LETOR text, the inverse of the reader: `label[:weight] [qid:token] index:value ... [# comment]`.
#pragma once

#include "rows.hpp"
#include "trec.hpp"

namespace linrank::svmlight {

/// What the lines say. Ids and comments are written as they are: that they hold no blanks and no line ends is
/// checked by who has the rows and can name the one at fault.
struct Lines {
    Rows rows;
    Doubles labels;
    Doubles weights;  // empty: without weights
    trec::Words ids;                  // one a row; no words: without ids
    trec::Words comments;             // one a row, "" for none; no words: without comments
    Index base = 1;            // the number of the first column
    /// Whether the first line names the last column, and column 0 where counting begins there, even if they
    /// are no entries of it: a reader tells the number of columns, and where they begin, by what it meets.
    bool names_ends = false;
};

/// The text of all lines. Every number reads back to the same bits: it is the shortest that does.
std::vector<std::uint8_t> text_of(const Lines &lines, int n_threads);

}  // namespace linrank::svmlight
