// Pieces laid out one after another. The big arrays are copied by piece, in parallel, and each piece
// gives its memory back when it is copied: pieces and result together never exceed the data by more
// than the pieces being copied.
#include <charconv>
#include <functional>

#include "parallel.hpp"
#include "svmlight.hpp"

namespace linrank::svmlight {

namespace {

template <class Value>
Entries<Value> take_entries(Piece &piece) {
    auto *entries = std::get_if<Entries<Value>>(&piece.entries);
    require(entries != nullptr, "a piece has values of another type");
    return std::exchange(*entries, {});  // its width, too: what is left has no entries
}

/// Calls body(piece, its entries, which it gives away, its first row, its first entry) for all pieces.
template <class Value, class Body>
void for_each_piece(Pieces pieces, int n_threads, const Body &body) {
    std::vector<Index> rows{0}, entries{0};
    for (const Piece *piece : pieces) {
        rows.push_back(rows.back() + piece->n_rows);
        entries.push_back(entries.back() + piece->n_entries);
    }
    parallel_for(Index(pieces.size()), n_threads, [&](Index k) {
        const Entries<Value> taken = take_entries<Value>(*pieces[k]);
        body(*pieces[k], taken, rows[k], entries[k]);
    });
}

/// Calls entry(row, feature, value) for every entry of a piece, in order.
template <class Value, class Function>
void for_each_parsed(const Piece &piece, const Entries<Value> &entries, const Function &entry) {
    std::size_t k = 0;
    const auto width = std::size_t(entries.width);
    for (Index row = 0; row < piece.n_rows; ++row) {
        if (width == 0) {
            const auto end = entries.ends.size() ? entries.ends[row] : 0;
            for (; k < std::size_t(end); ++k) entry(row, entries.features[k], entries.values[k]);
            continue;
        }
        for (std::size_t j = 0; j < width; ++j, ++k)
            if (entries.present.size() == 0 || (entries.present[k / 64] >> (k % 64) & 1))
                entry(row, piece.lowest + Index(j), entries.values[k]);
    }
}

void free_queries(Pieces pieces) {
    for (Piece *piece : pieces) {
        piece->queries.free();
        piece->query_ids = {};
    }
}

// ---- rows to text -----------------------------------------------------------------------------

constexpr Index task_entries = 1 << 15;  // about half a megabyte of text

/// Text that grows; the longest number takes 24 characters.
class Text {
public:
    void put(char c) { bytes.push_back(std::uint8_t(c)); }
    void put(std::string_view word) { bytes.insert(bytes.end(), word.begin(), word.end()); }
    template <class Number>
    void put_number(Number value) {
        char digits[32];
        const char *const end = std::to_chars(digits, digits + sizeof digits, value).ptr;
        put(std::string_view(digits, std::size_t(end - digits)));
    }
    template <class Value>
    void put_entry(Index index, Value value) {
        // In one buffer, so that the text grows once an entry.
        char entry[64];
        entry[0] = ' ';
        char *end = std::to_chars(entry + 1, entry + sizeof entry, index).ptr;
        *end++ = ':';
        end = put_value(end, entry + sizeof entry, value);
        put(std::string_view(entry, std::size_t(end - entry)));
    }

    std::vector<std::uint8_t> bytes;

private:
    template <class Value>
    static char *put_value(char *begin, char *end, Value value) {
        char *const last = std::to_chars(begin, end, value).ptr;
        if constexpr (std::is_same_v<Value, float>) {
            // Readers take a decimal for a double first. Where that lands on the middle between two floats, the
            // second rounding may go the other way; the digits of the double itself never do.
            double read = 0.0;
            std::from_chars(begin, last, read);
            if (float(read) != value && value == value)
                return std::to_chars(begin, end, double(value)).ptr;
        }
        return last;
    }
};

template <class AnyRows>
void put_entries(Text &text, const AnyRows &x, const Lines &lines, Index i) {
    using Value = typename AnyRows::value_type;
    const bool names_ends = lines.names_ends && i == 0;
    const bool names_first = names_ends && lines.base == 0;
    Index named = -1;  // the last column that was written
    const auto put = [&](Index column, Value value) {
        text.put_entry(lines.base + column, value);
        named = column;
    };
    for_each_entry(x, i, [&](Index column, Value value) {
        if (names_first && named < 0 && column > 0) put(0, Value(0));
        put(column, value);
    });
    if (names_first && named < 0) put(0, Value(0));
    if (names_ends && named < x.n_columns - 1) put(x.n_columns - 1, Value(0));
}

template <class AnyRows>
void put_line(Text &text, const AnyRows &x, const Lines &lines, Index i) {
    text.put_number(lines.labels[i]);
    if (!lines.weights.empty()) {
        text.put(':');
        text.put_number(lines.weights[i]);
    }
    if (lines.ids.size() > 0) {
        text.put(" qid:");
        text.put(lines.ids[i]);
    }
    put_entries(text, x, lines, i);
    if (lines.comments.size() > 0 && !lines.comments[i].empty()) {
        text.put(" # ");
        text.put(lines.comments[i]);
    }
    text.put('\n');
}

}  // namespace

bool parse_integer(std::string_view text, std::int64_t &value) {
    const bool negative = text.starts_with('-');
    const std::string_view digits = text.substr(negative);
    // Shortest form only: 007 and 7, or 0 and -0, are different tokens and stay different ids.
    if (digits.empty() || (digits[0] == '0' && text != "0")) return false;
    const auto result = std::from_chars(text.data(), text.data() + text.size(), value);
    return result.ec == std::errc() && result.ptr == text.data() + text.size();
}

Index Piece::n_bytes() const {
    const auto bytes = [](const auto &array) {
        return Index(array.size() * sizeof(array[0]));
    };
    return std::visit([&](const auto &e) {
               return bytes(e.values) + bytes(e.features) + bytes(e.ends) + bytes(e.present);
           }, entries) +
           bytes(labels) + bytes(weights) + bytes(queries) + query_ids.n_bytes() +
           bytes(comments.text) + bytes(comments.ends);
}

template <class Value>
void fill_dense(Pieces pieces, Value *x, Index n_columns, Index base, int n_threads) {
    for_each_piece<Value>(pieces, n_threads, [&](const Piece &piece, const Entries<Value> &entries,
                                                 Index first_row, Index) {
        Value *const first = x + first_row * n_columns;
        if (entries.width > 0) {  // absent entries are stored as zeros: rows can be copied whole
            const Index left = piece.lowest - base, right = left + entries.width;
            for (Index row = 0; row < piece.n_rows; ++row) {
                Value *const to = first + row * n_columns;
                std::fill(to, to + left, Value{0});
                std::copy_n(entries.values.data() + row * entries.width, entries.width, to + left);
                std::fill(to + right, to + n_columns, Value{0});
            }
            return;
        }
        std::fill_n(first, piece.n_rows * n_columns, Value{0});
        for_each_parsed(piece, entries, [&](Index row, Index feature, Value value) {
            first[row * n_columns + feature - base] = value;
        });
    });
}

template <class Value>
void fill_csr(Pieces pieces, Value *values, std::int32_t *columns, Index *offsets,
              Index base, int n_threads) {
    offsets[0] = 0;
    for_each_piece<Value>(pieces, n_threads, [&](const Piece &piece, const Entries<Value> &entries,
                                                 Index first_row, Index k) {
        Index *const ends = offsets + first_row + 1;
        Index row_done = 0;
        for_each_parsed(piece, entries, [&](Index row, Index feature, Value value) {
            for (; row_done < row; ++row_done) ends[row_done] = k;
            values[k] = value;
            columns[k++] = std::int32_t(feature - base);
        });
        for (; row_done < piece.n_rows; ++row_done) ends[row_done] = k;
    });
}

template void fill_dense(Pieces, float *, Index, Index, int);
template void fill_dense(Pieces, double *, Index, Index, int);
template void fill_csr(Pieces, float *, std::int32_t *, Index *, Index, int);
template void fill_csr(Pieces, double *, std::int32_t *, Index *, Index, int);

void fill_labels(Pieces pieces, double *labels) {
    for (Piece *piece : pieces) {
        labels = std::copy_n(piece->labels.data(), piece->labels.size(), labels);
        piece->labels.free();
    }
}

void fill_weights(Pieces pieces, double *weights) {
    for (Piece *piece : pieces) {
        if (piece->weights.size()) std::copy_n(piece->weights.data(), piece->weights.size(), weights);
        else std::fill_n(weights, piece->n_rows, 1.0);
        weights += piece->n_rows;
        piece->weights.free();
    }
}

bool fill_integer_queries(Pieces pieces, Index *ids) {
    std::vector<Index> numbers;
    for (const Piece *piece : pieces) {
        numbers.resize(piece->query_ids.size());
        for (std::size_t q = 0; q < numbers.size(); ++q)
            if (!parse_integer(piece->query_ids[Index(q)], numbers[q])) return false;
        for (const std::int32_t q : piece->queries.view()) *ids++ = numbers[q];
    }
    free_queries(pieces);
    return true;
}

QueryTable fill_query_codes(Pieces pieces, Index *codes) {
    QueryTable distinct;
    for (const Piece *piece : pieces) {
        const std::vector<Index> numbers = distinct.numbers(piece->query_ids);
        for (const std::int32_t q : piece->queries.view()) *codes++ = numbers[q];
    }
    free_queries(pieces);
    return distinct;
}

Index comment_bytes(Pieces pieces) {
    Index n_bytes = 0;
    for (const Piece *piece : pieces) n_bytes += Index(piece->comments.text.size());
    return n_bytes;
}

void fill_comments(Pieces pieces, char *text, Index *offsets) {
    Index done = 0;
    *offsets++ = 0;
    for (Piece *piece : pieces) {
        const auto &comments = piece->comments;
        for (Index row = 0; row < piece->n_rows; ++row)
            *offsets++ = done + (comments.ends.size() ? comments.ends[row] : 0);
        std::copy_n(comments.text.data(), comments.text.size(), text + done);
        done += Index(comments.text.size());
        piece->comments = {};
    }
}

Index QueryTable::number(std::string_view id) {
    const std::hash<std::string_view> hash;
    const Index known = index.find(hash(id), [&](Index q) { return ids[q] == id; });
    if (known >= 0) return known;
    if (ids.size() >= std::numeric_limits<std::uint32_t>::max() - 1)
        throw std::length_error("more than 4,294,967,293 queries");
    // What needs memory comes first: where it runs out, the table is as it was.
    index.reserve([&](Index q) { return hash(ids[q]); });
    ids.push_back(keep(id));
    index.insert(hash(id));
    std::int64_t value;
    n_others += !parse_integer(id, value);
    return size() - 1;
}

std::vector<Index> QueryTable::numbers(const QueryTable &others) {
    std::vector<Index> found;
    for (const std::string_view id : others.ids) found.push_back(number(id));
    return found;
}

QueryTable::Runs QueryTable::runs(const Piece &piece) {
    if (piece.n_rows == 0) return {};
    if (!piece.has_query) return {{number({})}, {piece.n_rows}};
    // Ids of a piece are in the order of their first rows, so numbers are given in that order.
    const std::vector<Index> of_piece = numbers(piece.query_ids);
    Runs found;
    const auto codes = piece.queries.view();
    for (std::size_t row = 0; row < codes.size();) {
        std::size_t end = row + 1;
        while (end < codes.size() && codes[end] == codes[row]) ++end;
        found.numbers.push_back(of_piece[codes[row]]);
        found.sizes.push_back(Index(end - row));
        row = end;
    }
    return found;
}

Index QueryTable::n_bytes() const {
    return text_bytes + Index(index.n_bytes() + ids.size() * sizeof(ids[0]));
}

std::string_view QueryTable::keep(std::string_view id) {
    if (id.size() > room) {
        // As much again as there is: a table of few ids takes few bytes.
        const std::size_t usual = std::clamp(std::size_t(text_bytes), first_block, block);
        const std::size_t size = std::max(usual, id.size());
        text.push_back(std::make_unique_for_overwrite<char[]>(size));
        next = text.back().get();
        room = size;
        text_bytes += Index(room);
    }
    const std::string_view kept(next, id.size());
    if (!id.empty()) std::memcpy(next, id.data(), id.size());
    next += id.size();
    room -= id.size();
    return kept;
}

std::vector<std::uint8_t> text_of(const Lines &lines, int n_threads) {
    const Index n = n_rows(lines.rows);
    std::vector<Text> parts(n ? 1 + (n_entries(lines.rows) + n) / task_entries : 0);
    std::visit([&](const auto &x) {
        for_parts(n, std::ssize(parts), n_threads, [&](Index task, Index first, Index last) {
            for (Index i = first; i < last; ++i) put_line(parts[task], x, lines, i);
        });
    }, lines.rows);
    std::size_t size = 0;
    for (const Text &part : parts) size += part.bytes.size();
    std::vector<std::uint8_t> whole;
    whole.reserve(size);
    for (const Text &part : parts) whole.insert(whole.end(), part.bytes.begin(), part.bytes.end());
    return whole;
}

}  // namespace linrank::svmlight
