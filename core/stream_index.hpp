// Which rows of a stream are kept, and which pairs a batch of new rows makes with them.
#pragma once
#include <list>
#include <unordered_map>

#include "basics.hpp"

namespace linrank {

/// Pairs as products of ranges: cell c holds the pairs of every row order[winner_begin[c] ..
/// winner_end[c]) above every row order[loser_begin[c] .. loser_end[c]).
struct PairCells {
    std::vector<Index> order;
    std::vector<Index> winner_begin, winner_end, loser_begin, loser_end;
    std::vector<Index> query;  // of each cell, numbered from 0 in the order of the cells
    Index n_pairs = 0;

    void append(Index winner, Index winners_end, Index loser, Index losers_end, Index q);
};

/// The index of a bounded buffer. It knows positions, labels and queries; the features lie in
/// arrays of the caller, at the same positions.
///
/// Rows are appended, so a larger position is a younger row; compact() closes the gaps and keeps
/// that order. What is kept depends on the rows that came, never on when the gaps were closed: a
/// buffer that was saved and loaded goes on as if nothing had happened. Where memory runs out in
/// the middle of a change, every later one, and state(), is a std::runtime_error.
class StreamIndex {
  public:
    /// At most so many rows, the youngest, of a label of a query, and of a query.
    StreamIndex(Index rows_per_level, Index rows_per_query);

    /// Takes the memory for so many rows at once.
    void reserve(Index n_rows);

    /// Appends rows and returns the pairs that have at least one of them.
    ///
    /// A pair of the stream belongs to the batch in which its later row arrives. For the rows O_l
    /// that were there and the new rows N_l of level l, these are N_l × (O ∪ N)_{<l} and O_l ×
    /// N_{<l}: two cells a level. Rows beyond the bounds are forgotten now but stay in place until
    /// compact(), so that the pairs may still be drawn.
    /// `sizes`: the room that each row takes in the caller's arrays, in units of the caller.
    PairCells add(Integers ids, Doubles labels, Integers sizes);

    /// Marks the queries that are known as seen now, in the order given.
    void touch(Integers ids);

    /// Forgets queries, the least recently seen first, until there are at most `max_rows` rows of
    /// together at most `max_size`. Of the last query, the one seen last, the oldest rows go.
    void evict(Index max_rows, Index max_size);

    /// Closes the gaps; returns the old positions of the rows that are left, which increase.
    std::vector<Index> compact();

    Index n_rows() const { return n_rows_; }
    Index n_queries() const { return Index(queries_.size()); }
    Index size() const { return size_; }
    /// Positions in use, rows that were forgotten included.
    Index n_used() const { return Index(labels_.size()); }
    Index n_forgotten() const { return n_forgotten_; }

    /// The rows by position (there must be no gap) and the queries from least to most recently
    /// seen.
    struct State {
        std::vector<Index> ids = {};
        std::vector<double> labels = {};
        std::vector<Index> sizes = {}, recency = {};
        Index n_forgotten = 0;
    };
    State state();
    /// An index without rows goes on from that state; std::invalid_argument if there is none.
    void restore(const State &state);

  private:
    static constexpr std::int32_t none = -1;
    struct Query {
        std::int64_t id = 0;
        std::vector<std::int32_t> rows = {};  // by label and then by age
        std::int32_t first_new = none;        // the first row of the batch that is being added
    };
    using Queries = std::list<Query>;

    Index rows_per_level_, rows_per_query_;
    Index n_rows_ = 0, size_ = 0, n_forgotten_ = 0;
    std::vector<double> labels_;
    std::vector<Index> sizes_;
    std::vector<Query *> query_;  // by position; null: a gap
    Queries queries_;             // from least to most recently seen
    std::unordered_map<std::int64_t, Queries::iterator> by_id_;
    // Room for add(), kept: a batch of one row must not pay for allocations.
    std::vector<std::int32_t> batch_, rows_, by_age_;

    // A call that ends half-way, for want of memory, leaves what does not fit together: then no
    // other may begin.
    bool is_whole_ = true;
    void check_whole() const;
    void begin_change() { check_whole(); is_whole_ = false; }
    void end_change() { is_whole_ = true; }

    /// The query of an id, now the one seen last.
    Query &see(std::int64_t id);
    void forget(std::int32_t row);
    void drop(Query &query);
    void add_rows(Query &query, std::span<const std::int32_t> fresh, PairCells &cells);
    void append_cells(std::int32_t first_new, std::span<const std::int32_t> fresh,
                      PairCells &cells) const;
    void keep_within_bounds();
};

}  // namespace linrank
