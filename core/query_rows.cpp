#include "query_rows.hpp"

namespace linrank {

QueryRows::QueryRows(const Rows &rows, std::vector<Index> order, std::vector<Index> offsets,
                     std::vector<double> scale)
    : n_columns_(linrank::n_columns(rows)), order_(std::move(order)), offsets_(std::move(offsets)),
      scale_(std::move(scale)) {
    std::visit([&](const auto &storage) {
        if constexpr (requires { storage.columns; }) renumber(storage);
        else rows_ = storage;
    }, rows);
}

template <class Value>
void QueryRows::renumber(const CsrRows<Value> &rows) {
    local_.resize(n_entries(rows));
    first_column_.assign(1, 0);
    std::vector<std::int32_t> number(rows.n_columns, -1);
    for (Index q = 0; q < n_queries(); ++q) {
        const auto begin = columns_.size();
        for (Index t = first(q); t < first(q + 1); ++t) {
            Index e = rows.offsets[row_at(order_, t)];
            for_each_entry(rows, row_at(order_, t), [&](Index column, Value) {
                std::int32_t &known = number[column];
                if (known < 0) {
                    require(columns_.size() - begin <= INT32_MAX,
                            "a query has entries in more than 2^31 columns");
                    known = std::int32_t(columns_.size() - begin);
                    columns_.push_back(column);
                }
                local_[e++] = known;
            });
        }
        for (auto c = begin; c < columns_.size(); ++c) number[columns_[c]] = -1;
        first_column_.push_back(Index(columns_.size()));
    }
    rows_ = CsrRows<Value>{rows.values, local_.data(), rows.offsets, rows.n_rows, rows.n_columns};
}

Index QueryRows::width(Index q) const {
    if (is_dense()) return n_columns_;
    return first_column_[q + 1] - first_column_[q];
}

Index QueryRows::bytes(Index q) const {
    // Of sparse rows without a look at each of them: the columns of a query are no more than its entries.
    return is_dense() ? 4 * n_rows(q) * n_columns_ : 8 * (width(q) + n_rows(q));
}

template <class Visit>
void QueryRows::each_column(Index q, const Visit &visit) const {
    const auto n = std::size_t(width(q));
    if (is_dense()) {
        for (std::size_t c = 0; c < n; ++c) visit(c, c);
        return;
    }
    const Index *column = columns(q);
    for (std::size_t c = 0; c < n; ++c) visit(c, std::size_t(column[c]));
}

void QueryRows::scores(Index q, const std::vector<double> &w, std::vector<double> &scratch,
                       std::vector<double> &out) const {
    const double *local = w.data();
    if (!is_dense() || !scale_.empty()) {
        scratch.resize(width(q));
        each_column(q, [&](std::size_t c, std::size_t column) {
            scratch[c] = scale_.empty() ? w[column] : w[column] * scale_[column];
        });
        local = scratch.data();
    }
    out.resize(n_rows(q));
    std::visit([&]<class Storage>(const Storage &rows) {
        RowRange<Storage>(rows, order_, first(q), n_rows(q)).dot(local, out.data());
    }, rows_);
}

void QueryRows::combine(Index q, const std::vector<double> &a, std::vector<double> &out) const {
    out.assign(width(q), 0.0);
    std::visit([&]<class Storage>(const Storage &rows) {
        RowRange<Storage>(rows, order_, first(q), n_rows(q)).add(a.data(), out.data());
    }, rows_);
    if (!scale_.empty()) each_column(q, [&](std::size_t c, std::size_t column) { out[c] *= scale_[column]; });
}

std::pair<double, double> QueryRows::inner(Index q, const std::vector<double> &a,
                                           const std::vector<double> &b,
                                           const std::vector<double> &global) const {
    double with_a = 0, with_b = 0;
    each_column(q, [&](std::size_t c, std::size_t column) {
        with_a += a[c] * global[column];
        with_b += b[c] * global[column];
    });
    return {with_a, with_b};
}

void QueryRows::scatter(Index q, double s, const std::vector<double> &a, double t,
                        const std::vector<double> &b, std::vector<double> &global) const {
    each_column(q, [&](std::size_t c, std::size_t column) { global[column] += s * a[c] + t * b[c]; });
}

void QueryRows::scatter(Index q, const std::vector<double> &a, std::vector<double> &global) const {
    each_column(q, [&](std::size_t c, std::size_t column) { global[column] += a[c]; });
}

}  // namespace linrank
