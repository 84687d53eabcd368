#include "../fenwick.hpp"
#include "point.hpp"
#include "search_tree.hpp"

namespace linrank::published {

namespace {

// ---- a sweep over the scores, with sums by level -------------------------------------------------
// Algorithm 2 of Lee & Lin: sweep the scores, keep the levels of the rows passed in a tree.

/// A Tree holds sums by level: add(level, v), sum_below(level). It costs two additions and two lookups a row. From
/// above, levels are counted down from the top.
template <class Tree>
void sweep_by_score(const SortedQuery &query, Doubles v, std::span<double> above,
                    std::span<double> below) {
    const std::size_t n = query.n_rows();
    const auto down = [&](std::size_t i) { return query.n_levels - 1 - query.level[i]; };
    Tree ascending(query.n_levels), descending(query.n_levels);
    for (std::size_t i = 0, next = 0; i < n; ++i) {
        for (; next < n && query.violates(next, i); ++next) ascending.add(down(next), v[next]);
        above[i] = ascending.sum_below(down(i));
    }
    for (std::size_t i = n, next = n; i-- > 0;) {
        for (; next > 0 && query.violates(i, next - 1); --next) descending.add(query.level[next - 1], v[next - 1]);
        below[i] = descending.sum_below(query.level[i]);
    }
}

// Sums by level: a Fenwick tree (half the memory of a selection tree, the same O(log k)), search trees keyed by
// label, and these two.

/// Direct counting: a sum for each level, O(1) to add and O(k) to look up.
class LevelArray {
public:
    explicit LevelArray(std::int32_t n_levels) : sums_(n_levels) {}
    void add(std::int32_t level, double v) { sums_[level] += v; }
    double sum_below(std::int32_t level) const { return std::accumulate(sums_.begin(), sums_.begin() + level, 0.0); }

private:
    std::vector<double> sums_;
};

/// The selection tree of Lee & Lin's Tree-TRON: a complete binary tree over the levels, O(log k). Leaves
/// base..base+k-1 for the levels, node m the sum of nodes 2m and 2m+1. The root is odd but nobody's right child,
/// so climbing stops there.
class SelectionTree {
public:
    explicit SelectionTree(std::int32_t n_levels) : base_(std::bit_ceil(std::size_t(n_levels))), nodes_(2 * base_) {}
    void add(std::int32_t level, double v) {
        for (std::size_t m = base_ + std::size_t(level); m >= 1; m /= 2) nodes_[m] += v;
    }
    double sum_below(std::int32_t level) const {
        double sum = 0;
        for (std::size_t m = base_ + std::size_t(level); m > 1; m /= 2)
            if (m % 2 == 1) sum += nodes_[m - 1];
        return sum;
    }

private:
    std::size_t base_;
    std::vector<double> nodes_;
};

/// Row i is violated from above by places [0, upto_i) and from below by places [from_i, n), as far as
/// their levels are above or below its own.
struct ViolationWindows {
    std::vector<std::int32_t> upto, from;

    explicit ViolationWindows(const SortedQuery &query) : upto(query.n_rows()), from(query.n_rows()) {
        const auto score = [&](Index t) { return query.z[t]; };
        find_windows(Index(upto.size()), score, 1.0, upto.data(), from.data());
    }
};

// ---- a prefix table ------------------------------------------------------------------------------
// A table of running sums: O(l k) to fill without a branch that depends on the scores, O(1) a lookup.

void count_by_prefix_table(const SortedQuery &query, Doubles v,
                           std::span<double> above, std::span<double> below) {
    // Line t, column r: Σ v over the first t places and the levels >= r.
    const std::size_t n = query.n_rows(), width = std::size_t(query.n_levels) + 1;
    std::vector<double> table((n + 1) * width);
    for (std::size_t t = 0; t < n; ++t) {
        const double *line = table.data() + t * width;
        double *next = table.data() + (t + 1) * width;
        const std::size_t level = std::size_t(query.level[t]);
        for (std::size_t r = 0; r <= level; ++r) next[r] = line[r] + v[t];
        for (std::size_t r = level + 1; r < width; ++r) next[r] = line[r];
    }
    const ViolationWindows windows(query);
    const double *all = table.data() + n * width;
    for (std::size_t i = 0; i < n; ++i) {
        const std::size_t level = std::size_t(query.level[i]);
        above[i] = table[std::size_t(windows.upto[i]) * width + level + 1];
        const double *before = table.data() + std::size_t(windows.from[i]) * width;
        below[i] = (all[0] - all[level]) - (before[0] - before[level]);
    }
}

// ---- two pointers --------------------------------------------------------------------------------
// PRSVM+ (Chapelle & Keerthi 2010, as Lee & Lin describe it): for each level r the problem of two
// levels {y > r} against {y = r}, by two pointers. Σ_r |{y >= r}| = O(l k) steps.

/// All pairs of `higher` and `equal`, both places in ascending order of score.
void count_two_levels(const SortedQuery &query, std::span<const std::size_t> higher,
                      std::span<const std::size_t> equal, Doubles v,
                      std::span<double> above, std::span<double> below) {
    double sum = 0;
    std::size_t next = 0;
    for (const std::size_t j : equal) {
        for (; next < higher.size() && query.violates(higher[next], j); ++next)
            sum += v[higher[next]];
        above[j] = sum;  // no other level of the outer loop meets j from above
    }
    sum = 0;
    next = equal.size();
    for (std::size_t t = higher.size(); t-- > 0;) {
        for (; next > 0 && query.violates(higher[t], equal[next - 1]); --next)
            sum += v[equal[next - 1]];
        below[higher[t]] += sum;
    }
}

void count_by_two_pointers(const SortedQuery &query, Doubles v,
                           std::span<double> above, std::span<double> below) {
    std::fill(above.begin(), above.end(), 0.0);
    std::fill(below.begin(), below.end(), 0.0);
    std::vector<std::size_t> higher(query.n_rows()), equal;
    std::iota(higher.begin(), higher.end(), std::size_t(0));
    for (std::int32_t r = 0; r + 1 < query.n_levels; ++r) {
        equal.clear();
        std::size_t n_higher = 0;
        for (const std::size_t i : higher)
            if (query.level[i] == r)
                equal.push_back(i);
            else
                higher[n_higher++] = i;
        higher.resize(n_higher);
        count_two_levels(query, higher, equal, v, above, below);
    }
}

// ---- a wavelet matrix ----------------------------------------------------------------------------
// A wavelet matrix over the bits of the levels (Claude, Navarro & Ordóñez 2015): the places are
// partitioned by one bit after the other, the highest first, and running sums answer every row's
// window at each of them. O(l log k), no tree and no search.

/// One bit of the matrix: the places in the order of the bits before, and running counts and sums.
struct Bit {
    std::vector<std::size_t> zeros;  // number of zeros among the first t
    std::vector<double> sums[2];     // Σ v over the first t with that bit

    Bit(std::span<const std::uint32_t> level, Doubles v, int bit)
        : zeros(level.size() + 1), sums{std::vector<double>(level.size() + 1),
                                        std::vector<double>(level.size() + 1)} {
        for (std::size_t t = 0; t < level.size(); ++t) {
            const std::size_t is_one = (level[t] >> bit) & 1;
            zeros[t + 1] = zeros[t] + (1 - is_one);
            sums[is_one][t + 1] = sums[is_one][t] + v[t];
            sums[1 - is_one][t + 1] = sums[1 - is_one][t];
        }
    }
    /// Where the place t of this order lies in the next one, among those whose bit is `is_one`.
    std::size_t next(std::size_t t, std::size_t is_one) const {
        return is_one ? zeros.back() + (t - zeros[t]) : zeros[t];
    }
};

using Window = std::pair<std::size_t, std::size_t>;

/// Adds what differs from `level` in this bit by being `wanted`, and narrows the window to the rest.
void look_up(const Bit &at, int bit, std::uint32_t level, std::size_t wanted, Window &window,
             double &sum) {
    const std::size_t is_one = (level >> bit) & 1;
    if (is_one != wanted) sum += at.sums[wanted][window.second] - at.sums[wanted][window.first];
    window = {at.next(window.first, is_one), at.next(window.second, is_one)};
}

void count_by_wavelet(const SortedQuery &query, Doubles v, std::span<double> above,
                      std::span<double> below) {
    const std::size_t n = query.n_rows();
    std::vector<std::uint32_t> level(query.level.begin(), query.level.end()), next_level(n);
    std::vector<double> value(v.begin(), v.end()), next_value(n);
    const ViolationWindows windows(query);
    std::vector<Window> upper(n), lower(n);
    for (std::size_t i = 0; i < n; ++i) {
        upper[i] = {0, std::size_t(windows.upto[i])};
        lower[i] = {std::size_t(windows.from[i]), n};
        above[i] = below[i] = 0;
    }
    for (int bit = std::bit_width(std::uint32_t(query.n_levels - 1)) - 1; bit >= 0; --bit) {
        const Bit at(level, value, bit);
        for (std::size_t i = 0; i < n; ++i) {
            look_up(at, bit, std::uint32_t(query.level[i]), 1, upper[i], above[i]);
            look_up(at, bit, std::uint32_t(query.level[i]), 0, lower[i], below[i]);
        }
        for (std::size_t t = 0; t < n; ++t) {
            const std::size_t to = at.next(t, (level[t] >> bit) & 1);
            next_level[to] = level[t];
            next_value[to] = value[t];
        }
        level.swap(next_level);
        value.swap(next_value);
    }
}

// ---- a tree over the scores ----------------------------------------------------------------------
// A red-black tree keyed by score (Lee & Lin, end of section 2.3): the sweep goes by label, so the
// tree has O(l) nodes whatever the number of levels. They advise against it: O(l log l) a product.

/// Places in ascending order of level: level r is places[begin[r]] .. places[begin[r + 1] - 1].
struct ByLevel {
    std::vector<std::size_t> places;
    std::vector<Index> begin;

    explicit ByLevel(const SortedQuery &query) : places(query.n_rows()) {
        begin = counting_sort(Index(places.size()), query.n_levels,
                              [&](Index i) { return query.level[i]; },
                              [&](Index i, Index place) { places[place] = i; });
    }
    std::span<const std::size_t> at(std::size_t level) const {
        return std::span(places).subspan(begin[level], begin[level + 1] - begin[level]);
    }
};

void count_by_score_tree(const SortedQuery &query, Doubles v,
                         std::span<double> above, std::span<double> below) {
    const ByLevel by_level(query);
    const std::size_t n_levels = std::size_t(query.n_levels);
    SearchTree<RedBlack> lower, higher;
    lower.reserve(Index(query.n_rows()));
    higher.reserve(Index(query.n_rows()));
    for (std::size_t r = 0; r < n_levels; ++r) {
        for (const std::size_t i : by_level.at(r))
            below[i] = lower.sum(right, [&](double z) { return (1.0 - query.z[i]) + z > 0.0; });
        for (const std::size_t i : by_level.at(r)) lower.insert(query.z[i], v[i]);
    }
    for (std::size_t r = n_levels; r-- > 0;) {
        for (const std::size_t i : by_level.at(r))
            above[i] = higher.sum(left, [&](double z) { return (1.0 - z) + query.z[i] > 0.0; });
        for (const std::size_t i : by_level.at(r)) higher.insert(query.z[i], v[i]);
    }
}

}  // namespace

// ---- by name --------------------------------------------------------------------------------

Count counting(std::string_view name) {
    static constexpr std::array<std::pair<std::string_view, Count>, 10> ways = {{
        {"direct", &sweep_by_score<LevelArray>},
        {"selection-tree", &sweep_by_score<SelectionTree>},
        {"fenwick", &sweep_by_score<FenwickTree<double>>},
        {"red-black", &sweep_by_score<LabelTree<RedBlack>>},
        {"avl", &sweep_by_score<LabelTree<Avl>>}, {"aa", &sweep_by_score<LabelTree<Aa>>},
        {"red-black-score", &count_by_score_tree}, {"prefix-table", &count_by_prefix_table},
        {"wavelet", &count_by_wavelet}, {"two-pointers", &count_by_two_pointers},
    }};
    for (const auto &[known, way] : ways)
        if (known == name) return way;
    refuse("unknown way of counting '", name, "'");
}

// ---- either hinge loss ------------------------------------------------------------------------

PublishedPoint::PublishedPoint(const PairProblem &problem, Doubles z, Count count)
    : LossPoint(z.size()), hinge_gradient(z.size()), problem_(problem), count_(count),
      order_(z.size()), z_(z.size()), degree_(z.size()), level_(z.size()) {
    Scratch scratch;
    std::fill_n(gradient.data(), z.size(), 0.0);
    for (Index q = 0; q < problem_.n_queries(); ++q) {
        if (!problem_.has_pairs(q)) continue;
        sort(q, z);
        evaluate(q, scratch);
    }
    value = std::max(0.0, value);  // a sum of squares, which rounding may take below 0
}

void PublishedPoint::sort(Index q, Doubles z) {
    const Index begin = problem_.begin(q), end = problem_.begin(q + 1);
    // Centered scores: Σ ω ξ² is computed by expansion, which cancels when scores have an offset.
    const double mean = std::accumulate(z.begin() + begin, z.begin() + end, 0.0) / double(end - begin);
    std::vector<double> s(z.begin() + begin, z.begin() + end);
    for (double &score : s) score -= mean;
    std::iota(order_.begin() + begin, order_.begin() + end, begin);
    const auto score = [&](Index i) { return s[i - begin]; };
    std::sort(order_.begin() + begin, order_.begin() + end,
              [&](Index i, Index j) { return score(i) < score(j); });
    for (std::size_t t = std::size_t(begin); t < std::size_t(end); ++t) {
        z_[t] = score(order_[t]);
        level_[t] = problem_.levels[order_[t]];
    }
}

template <class Value>
void PublishedPoint::count(Index q, const Value &v, Scratch &scratch) const {
    const std::size_t begin = std::size_t(problem_.begin(q)), n = std::size_t(problem_.length(q));
    scratch.v.resize(n);
    scratch.above.resize(n);
    scratch.below.resize(n);
    for (std::size_t t = 0; t < n; ++t)
        scratch.v[t] = problem_.u(order_[begin + t]) * v(begin + t);
    const SortedQuery query{{z_.data() + begin, n}, {level_.data() + begin, n}, problem_.n_levels[q]};
    count_(query, scratch.v, scratch.above, scratch.below);
}

void PublishedPoint::evaluate(Index q, Scratch &scratch) {
    const std::size_t begin = std::size_t(problem_.begin(q)), n = std::size_t(problem_.length(q));
    const auto weight = [&](std::size_t t) { return problem_.c(q) * problem_.u(order_[t]); };
    count(q, [](std::size_t) { return 1.0; }, scratch);
    for (std::size_t t = begin; t < begin + n; ++t) {
        const double above = weight(t) * scratch.above[t - begin];
        const double below = weight(t) * scratch.below[t - begin];
        degree_[t] = above + below;
        hinge_gradient[order_[t]] = above - below;
        n_violations += above;
        sum_of_slacks += above + (above - below) * z_[t];
        value += above;
    }
    count(q, [&](std::size_t t) { return z_[t]; }, scratch);
    for (std::size_t t = begin; t < begin + n; ++t) {
        const double sums = scratch.above[t - begin] + scratch.below[t - begin];
        const double laplacian = degree_[t] * z_[t] - weight(t) * sums;
        const double slope = hinge_gradient[order_[t]];
        gradient[order_[t]] = 2.0 * (laplacian + slope);
        value += (laplacian + 2.0 * slope) * z_[t];
    }
}

void PublishedPoint::multiply(Doubles v, std::span<double> out) const {
    std::fill(out.begin(), out.end(), 0.0);
    const auto value = [&](std::size_t t) { return v[order_[t]]; };
    Scratch scratch;
    for (Index q = 0; q < problem_.n_queries(); ++q) {
        if (!problem_.has_pairs(q)) continue;
        count(q, value, scratch);
        const std::size_t begin = std::size_t(problem_.begin(q));
        for (std::size_t t = 0; t < scratch.v.size(); ++t) {
            const double weight = problem_.c(q) * problem_.u(order_[begin + t]);
            out[order_[begin + t]] =
                2.0 * (degree_[begin + t] * value(begin + t) -
                       weight * (scratch.above[t] + scratch.below[t]));
        }
    }
}

PreferenceList explicit_pairs(const PairProblem &p) {
    std::vector<Index> winners, losers;
    std::vector<double> weights;
    for (Index q = 0; q < p.n_queries(); ++q)
        for (Index i = p.begin(q); i < p.begin(q + 1); ++i)
            for (Index j = p.begin(q); j < p.begin(q + 1); ++j) {
                if (p.levels[i] <= p.levels[j]) continue;
                winners.push_back(i);
                losers.push_back(j);
                if (!p.row_weight.empty() || !p.query_weight.empty()) weights.push_back(p.c(q) * p.u(i) * p.u(j));
            }
    return PreferenceList(winners, losers, weights, p.n_rows());
}

}  // namespace linrank::published
