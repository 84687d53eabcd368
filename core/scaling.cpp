#include "scaling.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <type_traits>
#include <vector>

#include "parallel.hpp"

namespace linrank {
namespace {

/// The range of every column over the rows of one query; all zero between uses.
class QueryRange {
public:
    explicit QueryRange(std::int64_t n_columns)
        : count(n_columns), minimum(n_columns), maximum(n_columns) {}

    void add(std::int64_t j, double x) {
        minimum[j] = count[j] == 0 ? x : std::min(minimum[j], x);
        maximum[j] = count[j] == 0 ? x : std::max(maximum[j], x);
        ++count[j];
    }

    /// max - min, where a column seen in fewer than n_rows rows is 0 in the others.
    double width(std::int64_t j, std::int64_t n_rows) const {
        const bool gap = count[j] < n_rows;
        const double low = gap ? std::min(minimum[j], 0.0) : minimum[j];
        const double high = gap ? std::max(maximum[j], 0.0) : maximum[j];
        if (std::isinf(high - low))
            throw std::invalid_argument("a feature spans more than the largest number");
        return high - low;
    }

    void forget(std::int64_t j) { count[j] = 0; }

private:
    std::vector<std::int64_t> count;
    std::vector<double> minimum, maximum;
};

template <class View, class Value>
void divide_query(const View &rows, Order members, std::int64_t first, std::int64_t n_rows, QueryRange &range,
                  Value *out) {
    const auto row = [&](std::int64_t t) { return members.empty() ? first + t : members[t]; };
    for (std::int64_t t = 0; t < n_rows; ++t)
        for_each_entry(rows, row(t), [&](std::int64_t j, double x) { range.add(j, x); });
    for (std::int64_t t = 0; t < n_rows; ++t) {
        Value *at = out + first_entry(rows, row(t));
        for_each_entry(rows, row(t), [&](std::int64_t j, double x) {
            const double width = range.width(j, n_rows);
            *at++ = width > 0.0 ? Value(x / width) : Value{0};
        });
    }
    for (std::int64_t t = 0; t < n_rows; ++t)
        for_each_entry(rows, row(t), [&](std::int64_t j, double) { range.forget(j); });
}

}  // namespace

template <class Value>
void divide_by_query_range(const Rows &rows, std::span<const std::int64_t> offsets,
                           std::span<const std::int64_t> order, Value *out, int n_threads) {
    const auto n_queries = std::int64_t(offsets.size()) - 1;
    const std::int64_t n_tasks = std::min<std::int64_t>(n_queries, 4 * std::max(1, n_threads));
    const auto divide = [&](const auto &view) {
        using View = std::decay_t<decltype(view)>;
        if constexpr (std::is_same_v<typename View::value_type, Value>) {
            parallel_for(n_tasks, n_threads, [&](std::int64_t task) {
                QueryRange range(view.n_columns);
                const std::int64_t end = n_queries * (task + 1) / n_tasks;
                for (std::int64_t q = n_queries * task / n_tasks; q < end; ++q) {
                    const std::int64_t size = offsets[q + 1] - offsets[q];
                    const auto members = order.empty() ? order : order.subspan(offsets[q], size);
                    divide_query(view, members, offsets[q], size, range, out);
                }
            });
        } else {
            throw std::invalid_argument("the output must have the type of the rows");
        }
    };
    std::visit(divide, rows);
}

template void divide_by_query_range<float>(const Rows &, std::span<const std::int64_t>,
                                           std::span<const std::int64_t>, float *, int);
template void divide_by_query_range<double>(const Rows &, std::span<const std::int64_t>,
                                            std::span<const std::int64_t>, double *, int);

}  // namespace linrank
