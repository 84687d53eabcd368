// A wavelet matrix over the bits of the levels (Claude, Navarro & Ordóñez 2015): the places are
// partitioned by one bit after the other, the highest first, and running sums answer every row's
// window at each of them. O(l log k), no tree and no search.
#include <bit>
#include <utility>

#include "counting.hpp"

namespace linrank::published {
namespace {

/// One bit of the matrix: the places in the order of the bits before, and running counts and sums.
struct Bit {
    std::vector<std::size_t> zeros;  // number of zeros among the first t
    std::vector<double> sums[2];     // Σ v over the first t with that bit

    Bit(std::span<const std::uint32_t> level, std::span<const double> v, int bit)
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

}  // namespace

void count_by_wavelet(const SortedQuery &query, std::span<const double> v, std::span<double> above,
                      std::span<double> below) {
    const std::size_t n = query.n_rows();
    std::vector<std::uint32_t> level(query.level.begin(), query.level.end()), next_level(n);
    std::vector<double> value(v.begin(), v.end()), next_value(n);
    const ViolationWindows windows = violation_windows(query);
    std::vector<Window> upper(n), lower(n);
    for (std::size_t i = 0; i < n; ++i) {
        upper[i] = {0, windows.upto[i]};
        lower[i] = {windows.from[i], n};
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

}  // namespace linrank::published
