// The hot loop is Reader::features.
#include "svmlight.hpp"

#include <cstdio>

#include "decimal.hpp"

namespace linrank::svmlight {

namespace {

using decimal::load_word;

// Words are loaded from up to this many bytes behind a line end.
constexpr std::size_t look_ahead = 32;

/// The text ` k:` of a feature index that is likely to come next, to be compared in one word.
struct Expected {
    std::uint64_t text = ~std::uint64_t{0};  // with mask 0: never found
    std::uint64_t mask = 0;
    Index length = 0;
};

constexpr std::int32_t n_expected = 1024;

constexpr std::array<Expected, n_expected + 1> expected_texts() {
    std::array<Expected, n_expected + 1> table{};
    for (int k = 0; k < n_expected; ++k) {
        std::uint64_t text = ':';
        Index length = 1;
        for (int rest = k; length == 1 || rest > 0; rest /= 10, ++length)
            text = text << 8 | std::uint64_t('0' + rest % 10);
        text = text << 8 | ' ';
        ++length;
        table[k] = {text, (std::uint64_t{1} << (8 * length)) - 1, length};
    }
    return table;
}
constexpr auto expected_text = expected_texts();

inline bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r'; }
inline bool ends_data(char c) { return c == '\n' || c == '#'; }
bool ends_token(char c) { return is_blank(c) || ends_data(c); }

inline const char *skip_blanks(const char *p) {
    while (is_blank(*p)) ++p;
    return p;
}

template <class T>
PageArray<T> first(const PageArray<T> &from, std::size_t n) {
    PageArray<T> copy(n);
    std::copy_n(from.data(), n, copy.data());
    return copy;
}

// ---- what is wrong with a line, in words: each looks at the text again --------------------------

/// Thrown inside the parser only; parse() turns it into a Fault with line and column.
struct FaultAt {
    const char *at;
    std::string message;
};

/// Whether `word` starts at p, in any case.
bool starts_with(const char *p, const char *word) {
    for (; *word; ++p, ++word)
        if ((*p | 0x20) != *word) return false;
    return true;
}

[[noreturn]] void fail(const char *at, std::string message) { throw FaultAt{at, std::move(message)}; }

/// The token at p in quotes, cut when long, unprintable bytes as \xNN; or "a blank" or "the end of
/// the line".
std::string quote_token(const char *p) {
    constexpr int longest = 24;
    if (*p == '\n' || (*p == '\r' && p[1] == '\n')) return "the end of the line";
    if (is_blank(*p)) return "a blank";
    std::string text = "'";
    const char *const start = p;
    do {
        append_printable(*p++, text);
    } while (!ends_token(*p) && p - start < longest);
    return text + (ends_token(*p) ? "'" : "...'");
}

/// No number, a number that is not finite, or one out of range at p. `what`: "the label".
[[noreturn]] void fail_number(const char *p, decimal::Outcome outcome, const std::string &what, const char *type) {
    const char *const unsigned_part = p + (*p == '-' || *p == '+');
    if (outcome == decimal::Outcome::overflow)
        fail(p, what + " is out of the range of a " + type + " float: " + quote_token(p));
    if (starts_with(unsigned_part, "inf") || starts_with(unsigned_part, "nan"))
        fail(p, what + " is " + quote_token(p) + "; expected a finite number");
    fail(p, "expected a number for " + what + ", got " + quote_token(p));
}

/// No `index:`, or an index that is too large or not above `last`, at p.
[[noreturn]] void fail_feature(const char *p, Index last) {
    if (std::memcmp(p, "qid:", 4) == 0) fail(p, "the query id must come once, right behind the label");
    const char *end = p + (*p == '-');
    const bool negative = end != p;
    Index index = 0;
    const char *const digits = end;
    for (; decimal::is_digit(*end); ++end)
        if (index <= max_feature) index = index * 10 + (*end - '0');
    if (end == digits) fail(p, "expected a feature as index:value, got " + quote_token(p));
    const std::string name(digits, std::size_t(end - digits < 24 ? end - digits : 24));
    if (*end != ':')
        fail(end, "expected ':' and a value behind feature index " + name + ", got " + quote_token(end));
    if (negative) fail(p, "feature index -" + name + " is negative; indices start at 0 or 1");
    if (index > max_feature)
        fail(p, "feature index " + name + " is too large; the largest is " + std::to_string(max_feature));
    if (index == last)
        fail(p, "feature " + name + " is given twice; indices must increase within a line");
    fail(p, "feature " + name + " follows " + std::to_string(last) +
                "; indices must increase within a line");
}

/// Something right behind the value of feature `last` at p, or behind the query id (`last` < 0).
[[noreturn]] void fail_after_value(const char *p, Index last) {
    fail(p, "unexpected " + quote_token(p) + " right behind " +
                (last < 0 ? std::string("the label or query id")
                          : "the value of feature " + std::to_string(last)) +
                "; expected a blank or the end of the line");
}

/// An index out of `range` among the features that start at p.
[[noreturn]] void fail_range(const char *p, Range range) {
    for (;;) {
        p = skip_blanks(p);
        Index index = 0;
        for (const char *q = p; *q != ':'; ++q) index = index * 10 + (*q - '0');
        if (index < range.lowest || index > range.highest)
            fail(p, "feature index " + std::to_string(index) + " is out of range; expected " +
                        std::to_string(range.lowest) + " to " + std::to_string(range.highest));
        while (!ends_token(*p)) ++p;
    }
}

/// Only some lines have a query id, and this one has (or has not).
std::string mixed_queries(bool has_query) {
    return has_query ? "a query id where the lines before have none; give every line one, or none"
                     : "no query id where the lines before have one; give every line one, or none";
}

// ---- reading ----------------------------------------------------------------------------------

/// Reads lines into a piece, by way of a scratch that has room for all of them.
template <class Value>
class Reader {
public:
    Reader(Piece &piece, Range range, Scratch<Value> &scratch)
        : piece(piece), range(range), scratch(scratch) {}

    /// Reads [p, end), whole lines, with look_ahead readable bytes behind.
    void lines(const char *p, const char *end) {
        limit = end;
        while (p < end) {
            line_start = p;
            p = line(p);
            ++piece.n_lines;
        }
    }
    void finish() {
        const auto rows = std::size_t(piece.n_rows);
        piece.n_entries = Index(n_entries);
        piece.labels = first(scratch.labels, rows);
        if (weighted) piece.weights = first(scratch.weights, rows);
        if (piece.has_query) piece.queries = first(scratch.queries, rows);
        if (n_comment_bytes > 0) {
            piece.comments.text = first(scratch.comments, n_comment_bytes);
            piece.comments.ends = first(scratch.comment_ends, rows);
        }
        const auto width = std::uint64_t(piece.highest - piece.lowest + 1);
        const bool dense = uniform || width * rows * sizeof(Value) <= n_entries * (sizeof(Value) + 4);
        piece.entries = dense && n_entries > 0 ? spread() : sparse();
    }

    /// Says where p is; for faults.
    Place place(const char *p) const { return {piece.n_lines + 1, p - line_start + 1}; }

private:
    Piece &piece;
    Range range;
    Scratch<Value> &scratch;
    const char *line_start = nullptr, *limit = nullptr;
    std::size_t n_entries = 0, n_comment_bytes = 0;
    Index last_query = 0;
    std::int32_t first_feature = 1;  // of the last row that had one: the next row's is likely the same
    bool weighted = false;
    bool uniform = true;             // every row so far has all features lowest .. highest

    const char *line_end(const char *p) const {
        return static_cast<const char *>(std::memchr(p, '\n', std::size_t(limit - p)));
    }
    const char *line(const char *p) {
        p = skip_blanks(p);
        if (ends_data(*p)) return line_end(p) + 1;
        const char *const data = query(label(p));
        const std::size_t first_entry = n_entries;
        p = features(data);
        end_row(first_entry, skip_blanks(data), p);
        return comment(p);
    }
    const char *label(const char *p) {
        const auto row = std::size_t(piece.n_rows);
        const auto number = [&](const char *from, const char *what) {
            double value = 0.0;
            const char *end = from;
            const auto outcome = decimal::read_number(end, value);
            if (outcome != decimal::Outcome::number) fail_number(from, outcome, what, "64-bit");
            p = end;
            return value;
        };
        scratch.labels[row] = number(p, "the label");
        if (*p == ':') {
            if (!weighted) std::fill_n(scratch.weights.data(), row, 1.0);
            weighted = true;
            const char *const from = p + 1;
            const double weight = number(from, "the weight");
            if (weight < 0.0) fail(from, "the weight is negative: " + quote_token(from));
            scratch.weights[row] = weight;
        } else if (weighted) {
            scratch.weights[row] = 1.0;
        }
        if (!is_blank(*p) && !ends_data(*p)) fail(p, "unexpected " + quote_token(p) + " after the label");
        return p;
    }
    const char *query(const char *p) {
        const char *q = skip_blanks(p);
        const bool found = std::memcmp(q, "qid:", 4) == 0;
        if (piece.n_rows == 0) {
            piece.has_query = found;
            piece.query_place = place(q);
        }
        if (found != piece.has_query) fail(q, mixed_queries(found));
        if (!found) return p;
        const char *const token = q += 4;
        while (!is_blank(*q) && !ends_data(*q)) {
            if (*q == '\0') fail(q, "NUL byte in the query id; expected text");
            ++q;
        }
        if (q == token) fail(q, "expected a query id after 'qid:'");
        const std::string_view id(token, std::size_t(q - token));
        QueryTable &ids = piece.query_ids;
        if (ids.size() == 0 || id != ids[last_query]) last_query = ids.number(id);  // rows of a query come together
        scratch.queries[piece.n_rows] = std::int32_t(last_query);
        return q;
    }
    /// Reads ` index:value` until the line or its data end; the hot loop.
    const char *features(const char *p) {
        Value *const values = scratch.values.data();
        std::int32_t *const columns = scratch.features.data();
        std::size_t n = n_entries;
        Index last = -1;
        std::int32_t next = first_feature;
        for (;;) {
            const Expected &expected = expected_text[next];
            std::int32_t feature = next;
            if ((load_word(p) & expected.mask) == expected.text) {
                p += expected.length;
            } else {
                p = next_feature(p, last, feature);
                if (feature < 0) break;
            }
            const bool negative = *p == '-';
            double value;
            const char *const end = decimal::read_short(p + negative, value);
            if (end != nullptr && (*end | 0x20) != 'e') [[likely]] {
                // ±: signs are as good as random, so no branch.
                const auto sign = std::uint64_t(negative) << 63;
                values[n] = Value(std::bit_cast<double>(std::bit_cast<std::uint64_t>(value) ^ sign));
                p = end;
            } else {
                p = long_value(p, feature, values[n]);
            }
            columns[n++] = feature;
            last = feature;
            next = std::min(feature + 1, n_expected);
        }
        n_entries = n;
        return p;
    }
    /// Reads ` index:` at p; feature is -1 at the end of the data of the line.
    const char *next_feature(const char *p, Index last, std::int32_t &feature) {
        const char *const start = skip_blanks(p);
        feature = -1;
        if (ends_data(*start)) return start;
        if (start == p) fail_after_value(p, last);
        const std::uint64_t word = load_word(start);
        const int n_digits = decimal::leading_digits(word);
        Index index;
        const char *end;
        if (n_digits > 0 && n_digits < 8) {
            index = Index(decimal::digits_to_integer(word, n_digits));
            end = start + n_digits;
        } else {
            index = 0;
            for (end = start; decimal::is_digit(*end); ++end)
                if (index <= max_feature) index = index * 10 + (*end - '0');
        }
        if (end == start || *end != ':' || index > max_feature || index <= last) [[unlikely]]
            fail_feature(start, last);
        feature = std::int32_t(index);
        return end + 1;
    }
    /// A value of any form and length.
    const char *long_value(const char *p, std::int32_t feature, Value &value) {
        double number = 0.0;
        const char *end = p;
        auto outcome = decimal::read_number(end, number);
        value = Value(number);
        if (std::isinf(value)) outcome = decimal::Outcome::overflow;
        if (outcome != decimal::Outcome::number) {
            const std::string what = "the value of feature " + std::to_string(feature);
            fail_number(p, outcome, what, sizeof(Value) == 4 ? "32-bit" : "64-bit");
        }
        return end;
    }
    /// Keeps the comment without the blanks around it; returns the start of the next line.
    const char *comment(const char *p) {
        const char *end = p;
        if (*p == '#') {
            end = line_end(p);
            const char *const from = skip_blanks(p + 1);
            const char *to = end;
            while (to > from && is_blank(to[-1])) --to;
            std::memcpy(scratch.comments.data() + n_comment_bytes, from, std::size_t(to - from));
            n_comment_bytes += std::size_t(to - from);
        }
        scratch.comment_ends[piece.n_rows - 1] = Index(n_comment_bytes);
        return end + 1;
    }
    /// Takes stock of a row whose entries are the text [from, to).
    void end_row(std::size_t first_entry, const char *from, const char *to) {
        const std::size_t count = n_entries - first_entry;
        scratch.ends[piece.n_rows] = Index(n_entries);
        if (count == 0) {
            uniform = false;
            ++piece.n_rows;
            return;
        }
        const std::int32_t low = scratch.features[first_entry], high = scratch.features[n_entries - 1];
        first_feature = std::min(low, n_expected);
        // Indices increase, so the row has all from low to high exactly when it has that many.
        const bool same = piece.n_rows == 0 || (low == piece.lowest && high == piece.highest);
        uniform = uniform && same && count == std::size_t(high - low) + 1;
        if (low < range.lowest || high > range.highest) fail_range(from, range);
        if (piece.lowest < 0 || low < piece.lowest) piece.lowest = low;
        if (high > piece.highest) {
            piece.highest = high;
            while (is_blank(to[-1])) --to;
            while (!is_blank(to[-1])) --to;
            piece.highest_place = place(to);
        }
        ++piece.n_rows;
    }
    Entries<Value> sparse() const {
        Entries<Value> entries;
        entries.values = first(scratch.values, n_entries);
        entries.features = first(scratch.features, n_entries);
        entries.ends = first(scratch.ends, std::size_t(piece.n_rows));
        return entries;
    }
    /// The entries in full rows, with a bit for each that was given.
    Entries<Value> spread() const {
        Entries<Value> entries;
        entries.width = piece.highest - piece.lowest + 1;
        if (uniform) {
            entries.values = first(scratch.values, n_entries);
            return entries;
        }
        const auto width = std::size_t(entries.width);
        const auto size = width * std::size_t(piece.n_rows);
        entries.values = PageArray<Value>(size);
        entries.present = PageArray<std::uint64_t>((size + 63) / 64);
        std::fill_n(entries.values.data(), size, Value{0});
        std::fill_n(entries.present.data(), entries.present.size(), std::uint64_t{0});
        std::size_t k = 0;
        for (std::size_t row = 0; row < std::size_t(piece.n_rows); ++row)
            for (; k < std::size_t(scratch.ends[row]); ++k) {
                const std::size_t at = row * width + std::size_t(scratch.features[k] - piece.lowest);
                entries.values[at] = scratch.values[k];
                entries.present[at / 64] |= std::uint64_t{1} << (at % 64);
            }
        return entries;
    }
};

}  // namespace

void append_printable(char c, std::string &text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 && byte < 0x7F) {
        text += c;
    } else {
        char escape[5];
        std::snprintf(escape, sizeof escape, "\\x%02x", static_cast<unsigned>(byte));
        text += escape;
    }
}

void WordList::push(std::string_view word) {
    text.insert(text.end(), word.begin(), word.end());
    offsets.push_back(Index(text.size()));
}

std::optional<Fault> Piece::query_fault(bool before) const {
    if (query_place.line == 0 || has_query == before) return std::nullopt;
    return Fault{query_place, mixed_queries(has_query)};
}

template <class Value>
void Scratch<Value>::reserve(std::size_t n) {
    if (n <= n_bytes) return;
    *this = Scratch();
    // A row takes at least two bytes (`0` and the line end), an entry four (` 1:2`).
    const std::size_t max_rows = n / 2 + 1, max_entries = n / 4 + 1;
    values = PageArray<Value>(max_entries);
    features = PageArray<std::int32_t>(max_entries);
    ends = PageArray<Index>(max_rows);
    labels = PageArray<double>(max_rows);
    weights = PageArray<double>(max_rows);
    queries = PageArray<std::int32_t>(max_rows);
    comments = PageArray<char>(n);
    comment_ends = PageArray<Index>(max_rows);
    n_bytes = n;
}

template <class Value>
Piece parse(std::string_view text, Range range, Scratch<Value> &scratch) {
    Piece piece;
    // The last lines are read from a copy with room behind it, and with a line end if it lacks one.
    const std::size_t before = text.size() > look_ahead ? text.size() - look_ahead : 0;
    const std::size_t cut = text.substr(0, before).rfind('\n') + 1;  // npos + 1 = 0
    std::string tail;
    tail.reserve(text.size() - cut + 1 + look_ahead);
    tail = text.substr(cut);
    if (!tail.empty() && tail.back() != '\n') tail += '\n';
    const std::size_t tail_size = tail.size();
    tail.append(look_ahead, '\0');
    scratch.reserve(cut + tail_size);
    Reader<Value> reader(piece, range, scratch);
    try {
        reader.lines(text.data(), text.data() + cut);
        reader.lines(tail.data(), tail.data() + tail_size);
    } catch (FaultAt &fault) {
        piece.fault = Fault{reader.place(fault.at), std::move(fault.message)};
    }
    reader.finish();
    return piece;
}

template Piece parse(std::string_view, Range, Scratch<float> &);
template Piece parse(std::string_view, Range, Scratch<double> &);

}  // namespace linrank::svmlight
