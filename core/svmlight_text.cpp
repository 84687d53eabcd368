#include "svmlight_text.hpp"

#include <charconv>

#include "parallel.hpp"

namespace linrank::svmlight {

namespace {

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
