// Which rows of a query are to dominate which others, by how much and how heavily.
#pragma once
#include <cstdint>
#include <vector>

#include "partition.hpp"

namespace linrank {

/// The domination loss of scores z, with m = z - shift and D(i) the rows of lower layers in i's query:
///
///   L(z) = Σ_q c_q Σ_{i in q} u_i log(1 + Σ_{j in D(i)} u_j e^{m_j - m_i + Δ(i, j)}).
///
/// Δ depends on the layers of i and j alone; margins that are differences s(i) - s(j) are in `shift`.
/// Empty vectors stand for zeros (shift, table) and ones (weights).
struct Layering {
    std::vector<std::int64_t> offsets;     // query q is positions offsets[q] .. offsets[q+1)
    std::vector<std::int32_t> levels;      // layer of each position, from 0, the lowest of its query
    std::vector<std::int32_t> n_levels;    // of each query
    std::vector<std::int64_t> first_cell;  // cell of layer k of query q: first_cell[q] + k
    std::vector<double> shift;             // s, by position
    std::vector<double> row_weight;        // u, by position
    std::vector<double> query_weight;      // c, by query
    std::vector<double> table;             // Δ, n_grades × n_grades, row: the dominating layer
    std::int64_t n_grades = 0;
    std::vector<std::int32_t> grades;      // by cell: its row and column of the table

    std::int64_t n_rows() const { return std::int64_t(levels.size()); }
    std::vector<QueryChunk> chunks(std::int64_t n_target) const {
        return chunk_queries(offsets, n_levels, n_target);
    }
    std::int64_t n_queries() const { return std::int64_t(n_levels.size()); }
    std::int64_t n_cells() const { return first_cell.back(); }
    double s(std::int64_t t) const { return shift.empty() ? 0.0 : shift[t]; }
    double u(std::int64_t t) const { return row_weight.empty() ? 1.0 : row_weight[t]; }
    double c(std::int64_t q) const { return query_weight.empty() ? 1.0 : query_weight[q]; }
    /// Δ between two layers of a query, given by their cells; only where there is a table.
    double margin(std::int64_t above, std::int64_t below) const {
        return table[grades[above] * n_grades + grades[below]];
    }
};

}  // namespace linrank
