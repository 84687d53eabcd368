#include "stream_index.hpp"

#include <tuple>

namespace linrank {

void PairCells::append(Index winner, Index winners_end, Index loser, Index losers_end, Index q) {
    const Index n = (winners_end - winner) * (losers_end - loser);
    if (n == 0) return;
    winner_begin.push_back(winner);
    winner_end.push_back(winners_end);
    loser_begin.push_back(loser);
    loser_end.push_back(losers_end);
    query.push_back(q);
    n_pairs += n;
}

StreamIndex::StreamIndex(Index rows_per_level, Index rows_per_query)
    : rows_per_level_(rows_per_level), rows_per_query_(rows_per_query) {}

void StreamIndex::reserve(Index n_rows) {
    labels_.reserve(n_rows);
    sizes_.reserve(n_rows);
    query_.reserve(n_rows);
}

void StreamIndex::check_whole() const {
    if (!is_whole_)
        throw std::runtime_error("memory ran out while this buffer of rows was changed, so that it is of no more "
                                 "use; go on from a checkpoint, or begin anew");
}

// ---- queries, by when they were last seen
// --------------------------------------------------------

StreamIndex::Query &StreamIndex::see(std::int64_t id) {
    const auto [entry, is_new] = by_id_.try_emplace(id);
    if (is_new) entry->second = queries_.insert(queries_.end(), Query{id});
    else queries_.splice(queries_.end(), queries_, entry->second);
    return *entry->second;
}

void StreamIndex::touch(Integers ids) {
    check_whole();
    for (std::size_t i = 0; i < ids.size(); ++i) {
        if (i > 0 && ids[i] == ids[i - 1]) continue;  // rows of a query often come together
        if (by_id_.contains(ids[i])) see(ids[i]);
    }
}

// ---- forgetting
// ----------------------------------------------------------------------------------

void StreamIndex::forget(std::int32_t row) {
    query_[row] = nullptr;
    size_ -= sizes_[row];
    --n_rows_;
    ++n_forgotten_;
}

void StreamIndex::drop(Query &query) {
    for (const std::int32_t row : query.rows) forget(row);
    const auto entry = by_id_.find(query.id);
    queries_.erase(entry->second);
    by_id_.erase(entry);
}

void StreamIndex::evict(Index max_rows, Index max_size) {
    begin_change();
    const auto is_full = [&] { return n_rows_ > max_rows || size_ > max_size; };
    while (queries_.size() > 1 && is_full()) drop(queries_.front());
    if (!queries_.empty() && is_full()) {
        Query &last = queries_.back();
        by_age_ = last.rows;
        std::ranges::sort(by_age_);
        for (std::size_t i = 0; i < by_age_.size() && is_full(); ++i) forget(by_age_[i]);
        std::erase_if(last.rows, [&](std::int32_t row) { return query_[row] == nullptr; });
        if (last.rows.empty()) drop(last);
    }
    end_change();
}

// ---- adding
// --------------------------------------------------------------------------------------

PairCells StreamIndex::add(Integers ids, Doubles labels, Integers sizes) {
    begin_change();
    const std::size_t start = labels_.size(), n = ids.size();
    batch_.resize(n);
    for (std::size_t i = 0; i < n; ++i) {
        Query &query = i > 0 && ids[i] == ids[i - 1] ? *query_.back() : see(ids[i]);
        batch_[i] = std::int32_t(start + i);
        if (query.first_new == none) query.first_new = batch_[i];
        labels_.push_back(labels[i]);
        sizes_.push_back(sizes[i]);
        query_.push_back(&query);
        size_ += sizes[i];
    }
    n_rows_ += Index(n);
    std::sort(batch_.begin(), batch_.end(), [&](std::int32_t a, std::int32_t b) {
        return std::tuple(query_[a]->first_new, labels_[a], a) < std::tuple(query_[b]->first_new,
                                                                            labels_[b], b);
    });
    PairCells cells;
    for (std::size_t begin = 0; begin < n;) {
        Query &query = *query_[batch_[begin]];
        std::size_t end = begin + 1;
        while (end < n && query_[batch_[end]] == &query) ++end;
        add_rows(query, {batch_.data() + begin, end - begin}, cells);
        begin = end;
    }
    end_change();
    return cells;
}

void StreamIndex::add_rows(Query &query, std::span<const std::int32_t> fresh, PairCells &cells) {
    rows_.resize(query.rows.size() + fresh.size());
    // Stable: of equal labels the old come first.
    const auto label = [&](std::int32_t row) { return labels_[row]; };
    std::ranges::merge(query.rows, fresh, rows_.begin(), {}, label, label);
    if (labels_[rows_.front()] != labels_[rows_.back()])
        append_cells(query.first_new, fresh, cells);
    query.first_new = none;
    keep_within_bounds();
    query.rows = rows_;
}

/// The cells of one query: rows_ are all its rows by label and age, `fresh` the new ones in that
/// order.
void StreamIndex::append_cells(std::int32_t first_new, std::span<const std::int32_t> fresh,
                               PairCells &cells) const {
    // Two stretches of `order`: all rows of the query, then the new ones. Of a level the old rows
    // come before the new ones in the first, being older.
    const Index number = cells.query.empty() ? 0 : cells.query.back() + 1;
    const auto all = Index(cells.order.size()), n = Index(rows_.size());
    const Index added = all + n;
    cells.order.insert(cells.order.end(), rows_.begin(), rows_.end());
    cells.order.insert(cells.order.end(), fresh.begin(), fresh.end());
    for (Index begin = 0, new_begin = 0; begin < n;) {
        const auto label = [&](Index t) { return labels_[rows_[t]]; };
        const auto in_level = [&](Index t) { return t < n && label(t) == label(begin); };
        Index middle = begin;
        while (in_level(middle) && rows_[middle] < first_new) ++middle;
        Index end = middle;
        while (in_level(end)) ++end;
        const Index new_end = new_begin + (end - middle);
        cells.append(added + new_begin, added + new_end, all, all + begin, number);
        cells.append(all + begin, all + middle, added, added + new_begin, number);
        begin = end;
        new_begin = new_end;
    }
}

/// Forgets the oldest rows of rows_ beyond the bounds.
void StreamIndex::keep_within_bounds() {
    std::size_t kept = 0;
    for (std::size_t begin = 0; begin < rows_.size();) {
        std::size_t end = begin + 1;
        while (end < rows_.size() && labels_[rows_[end]] == labels_[rows_[begin]]) ++end;
        while (Index(end - begin) > rows_per_level_) forget(rows_[begin++]);
        while (begin < end) rows_[kept++] = rows_[begin++];
    }
    rows_.resize(kept);
    const Index n_surplus = std::ssize(rows_) - rows_per_query_;
    if (n_surplus <= 0) return;
    by_age_ = rows_;
    std::ranges::nth_element(by_age_, by_age_.begin() + n_surplus);
    std::erase_if(rows_, [&, first_kept = by_age_[n_surplus]](std::int32_t row) {
        if (row < first_kept) forget(row);
        return row < first_kept;
    });
}

// ---- gaps, and the state without them
// ------------------------------------------------------------

std::vector<Index> StreamIndex::compact() {
    check_whole();
    std::vector<Index> kept;
    kept.reserve(n_rows_);
    std::vector<std::int32_t> place(labels_.size(), none);
    for (std::size_t i = 0; i < labels_.size(); ++i) {
        if (query_[i] == nullptr) continue;
        const std::size_t to = kept.size();
        place[i] = std::int32_t(to);
        kept.push_back(Index(i));
        labels_[to] = labels_[i];
        sizes_[to] = sizes_[i];
        query_[to] = query_[i];
    }
    query_.resize(kept.size());
    labels_.resize(kept.size());
    sizes_.resize(kept.size());
    for (Query &query : queries_)
        for (std::int32_t &row : query.rows) row = place[row];
    return kept;
}

StreamIndex::State StreamIndex::state() {
    check_whole();
    State out{.labels = labels_, .sizes = sizes_, .n_forgotten = n_forgotten_};
    for (const Query *query : query_) out.ids.push_back(query->id);
    for (const Query &query : queries_) out.recency.push_back(query.id);
    return out;
}

void StreamIndex::restore(const State &state) {
    add(state.ids, state.labels, state.sizes);
    touch(state.recency);
    require(n_forgotten_ == 0 && n_queries() == std::ssize(state.recency),
            "the rows and queries of the buffer do not fit together");
    n_forgotten_ = state.n_forgotten;
}

}  // namespace linrank
