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
PageArray<Wide> shares(std::span<const double> weights) {
    const auto heaviest = std::max_element(weights.begin(), weights.end());
    const double n = double(weights.size()), slots = n / compensated_sum(weights, *heaviest);
    PageArray<Wide> share(weights.size());
    Wide total = 0;
    for (std::size_t i = 0; i < weights.size(); ++i) {
        const double whole = weights[i] / *heaviest * slots;  // in slots
        const auto high = std::uint64_t(whole);
        share[i] = (Wide(high) << 64) + std::uint64_t((whole - double(high)) * 0x1p64);
        total += share[i];
    }
    share[heaviest - weights.begin()] += full * weights.size() - total;  // modulo 2¹²⁸
    return share;
}

}  // namespace

PageArray<AliasSlot> alias_slots(std::span<const double> weights) {
    check_weights(weights);
    PageArray<Wide> share = shares(weights);
    PageArray<AliasSlot> slots(weights.size());
    for (std::size_t i = 0; i < slots.size(); ++i) slots[i] = {0, i};
    // A slot that is not full is filled up by `donor`, which holds more than one slot; a donor that falls
    // below one is next in need. The shares sum to n slots exactly, so as long as one lacks
    // something, another has too much: no case is left over for rounding to decide.
    std::size_t donor = 0;
    for (std::size_t i = 0; i < share.size(); ++i) {
        for (std::size_t needy = i; share[needy] < full;) {
            while (share[donor] <= full) ++donor;
            slots[needy] = {std::uint64_t(share[needy]), donor};
            share[donor] -= full - share[needy];
            share[needy] = full;
            needy = donor;
        }
    }
    return slots;
}

}  // namespace linrank
