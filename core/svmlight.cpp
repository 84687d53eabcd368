#include "svmlight.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "svmlight_reader.hpp"

namespace linrank::svmlight {

namespace {

template <class T>
PageArray<T> first(const PageArray<T> &from, std::size_t n) {
    PageArray<T> copy(n);
    std::copy_n(from.data(), n, copy.data());
    return copy;
}

}  // namespace

template <class Value>
void Reader<Value>::finish() {
    const auto rows = static_cast<std::size_t>(piece.n_rows);
    piece.n_entries = static_cast<std::int64_t>(n_entries);
    piece.labels = first(scratch.labels, rows);
    if (weighted) piece.weights = first(scratch.weights, rows);
    if (piece.has_query) {
        piece.queries = first(scratch.queries, rows);
        piece.query_ids = queries.strings();
    }
    if (n_comment_bytes > 0) {
        piece.comments.text = first(scratch.comments, n_comment_bytes);
        piece.comments.ends = first(scratch.comment_ends, rows);
    }
    const auto width = static_cast<std::uint64_t>(piece.highest - piece.lowest + 1);
    const bool dense = uniform || width * rows * sizeof(Value) <= n_entries * (sizeof(Value) + 4);
    piece.entries = dense && n_entries > 0 ? spread() : sparse();
}

template <class Value>
Entries<Value> Reader<Value>::sparse() const {
    Entries<Value> entries;
    entries.values = first(scratch.values, n_entries);
    entries.features = first(scratch.features, n_entries);
    entries.ends = first(scratch.ends, static_cast<std::size_t>(piece.n_rows));
    return entries;
}

/// The entries in full rows, with a bit for each that was given.
template <class Value>
Entries<Value> Reader<Value>::spread() const {
    Entries<Value> entries;
    entries.width = piece.highest - piece.lowest + 1;
    if (uniform) {
        entries.values = first(scratch.values, n_entries);
        return entries;
    }
    const auto width = static_cast<std::size_t>(entries.width);
    const auto size = width * static_cast<std::size_t>(piece.n_rows);
    entries.values = PageArray<Value>(size);
    entries.present = PageArray<std::uint64_t>((size + 63) / 64);
    std::fill_n(entries.values.data(), size, Value{0});
    std::fill_n(entries.present.data(), entries.present.size(), std::uint64_t{0});
    std::size_t k = 0;
    for (std::size_t row = 0; row < static_cast<std::size_t>(piece.n_rows); ++row)
        for (; k < static_cast<std::size_t>(scratch.ends[row]); ++k) {
            const std::size_t at = row * width + static_cast<std::size_t>(scratch.features[k] - piece.lowest);
            entries.values[at] = scratch.values[k];
            entries.present[at / 64] |= std::uint64_t{1} << (at % 64);
        }
    return entries;
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
    ends = PageArray<std::int64_t>(max_rows);
    labels = PageArray<double>(max_rows);
    weights = PageArray<double>(max_rows);
    queries = PageArray<std::int32_t>(max_rows);
    comments = PageArray<char>(n);
    comment_ends = PageArray<std::int64_t>(max_rows);
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
