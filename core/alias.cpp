#include "alias.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>

namespace linrank {

namespace {

__extension__ typedef unsigned __int128 Wide;
constexpr Wide full = Wide(1) << 64;  // what one slot holds

void check_weights(std::span<const double> weights) {
    for (std::size_t i = 0; i < weights.size(); ++i)
        if (!(weights[i] >= 0.0 && std::isfinite(weights[i])))
            throw std::invalid_argument("weight " + std::to_string(i) + " must be finite and >= 0, got " +
                                        std::to_string(weights[i]));
    if (std::none_of(weights.begin(), weights.end(), [](double w) { return w > 0.0; }))
        throw std::invalid_argument("none of the " + std::to_string(weights.size()) +
                                    " weights is > 0, so nothing can be drawn");
}

/// Σ w / largest with Neumaier's correction: a plain sum of 10⁷ terms could be off by 10⁻⁹.
double compensated_sum(std::span<const double> weights, double largest) {
    double sum = 0.0, lost = 0.0;
    for (const double weight : weights) {
        const double w = weight / largest, next = sum + w;
        lost += sum >= w ? (sum - next) + w : (w - next) + sum;
        sum = next;
    }
    return sum + lost;
}

/// Integers m_i = 2⁶⁴·n·w_i/Σw that sum to 2⁶⁴·n exactly. The roundings, some 10⁻¹⁶ of the sum, go
/// to the largest: it holds at least a slot, and is the one that they change least.
std::vector<Wide> shares(std::span<const double> weights) {
    const auto heaviest = std::max_element(weights.begin(), weights.end());
    const double n = double(weights.size()), sum = compensated_sum(weights, *heaviest);
    std::vector<Wide> share(weights.size());
    Wide total = 0;
    for (std::size_t i = 0; i < weights.size(); ++i) {
        share[i] = Wide(std::ldexp(weights[i] / *heaviest * (n / sum), 64));
        total += share[i];
    }
    share[std::size_t(heaviest - weights.begin())] += full * weights.size() - total;  // modulo 2¹²⁸
    return share;
}

}  // namespace

AliasTable::AliasTable(std::span<const double> weights) {
    check_weights(weights);
    std::vector<Wide> share = shares(weights);
    entries_.resize(weights.size());
    for (std::size_t i = 0; i < entries_.size(); ++i) entries_[i] = {0, i};
    // A slot that is not full is filled up by `donor`, which holds more than one slot; a donor that falls
    // below one is next in need. The shares sum to n slots exactly, so as long as one lacks
    // something, another has too much: no case is left over for rounding to decide.
    std::size_t donor = 0;
    for (std::size_t i = 0; i < share.size(); ++i) {
        for (std::size_t needy = i; share[needy] < full;) {
            while (share[donor] <= full) ++donor;
            entries_[needy] = {std::uint64_t(share[needy]), donor};
            share[donor] -= full - share[needy];
            share[needy] = full;
            needy = donor;
        }
    }
}

}  // namespace linrank
