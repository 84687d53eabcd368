#include "counting.hpp"

#include <array>
#include <stdexcept>
#include <string>
#include <utility>

#include "search_tree.hpp"
#include "fenwick_tree.hpp"
#include "label_sweep.hpp"
#include "level_array.hpp"
#include "selection_tree.hpp"

namespace linrank::published {

ViolationWindows violation_windows(const SortedQuery &query) {
    const std::size_t n = query.n_rows();
    ViolationWindows windows{std::vector<std::size_t>(n), std::vector<std::size_t>(n)};
    for (std::size_t i = 0, next = 0; i < n; ++i) {
        while (next < n && query.violates(next, i)) ++next;
        windows.upto[i] = next;
    }
    for (std::size_t i = n, next = n; i-- > 0;) {
        while (next > 0 && query.violates(i, next - 1)) --next;
        windows.from[i] = next;
    }
    return windows;
}

Count counting(std::string_view name) {
    static constexpr std::array<std::pair<std::string_view, Count>, 10> ways = {{
        {"direct", &sweep_by_score<LevelArray>},
        {"selection-tree", &sweep_by_score<SelectionTree>},
        {"fenwick", &sweep_by_score<LevelFenwick>},
        {"red-black", &sweep_by_score<LabelTree<RedBlack>>},
        {"avl", &sweep_by_score<LabelTree<Avl>>}, {"aa", &sweep_by_score<LabelTree<Aa>>},
        {"red-black-score", &count_by_score_tree}, {"prefix-table", &count_by_prefix_table},
        {"wavelet", &count_by_wavelet}, {"two-pointers", &count_by_two_pointers},
    }};
    for (const auto &[known, way] : ways)
        if (known == name) return way;
    throw std::invalid_argument("unknown way of counting '" + std::string(name) + "'");
}

}  // namespace linrank::published
