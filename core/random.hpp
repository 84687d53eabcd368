// Random numbers: one stream a fit, the same on every machine.
#pragma once
#include "basics.hpp"

namespace linrank {

/// xoshiro256++ of Blackman and Vigna: period 2²⁵⁶ - 1, about a nanosecond a number.
class Random {
  public:
    using State = std::array<std::uint64_t, 4>;

    /// The state is filled by splitmix64, which no seed drives to the one forbidden state, all zeros.
    explicit Random(std::uint64_t seed = 0) {
        for (std::uint64_t &word : state_) {
            seed += 0x9e3779b97f4a7c15u;
            std::uint64_t mixed = (seed ^ (seed >> 30)) * 0xbf58476d1ce4e5b9u;
            mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111ebu;
            word = mixed ^ (mixed >> 31);
        }
    }

    std::uint64_t next() {
        const auto rotate = [](std::uint64_t x, int k) { return (x << k) | (x >> (64 - k)); };
        const std::uint64_t out = rotate(state_[0] + state_[3], 23) + state_[0];
        const std::uint64_t shifted = state_[1] << 17;
        state_[2] ^= state_[0];
        state_[3] ^= state_[1];
        state_[1] ^= state_[2];
        state_[0] ^= state_[3];
        state_[2] ^= shifted;
        state_[3] = rotate(state_[3], 45);
        return out;
    }

    const State &state() const { return state_; }
    /// False, and nothing is changed, for the state that the generator never leaves: all zeros.
    bool set_state(const State &state) {
        if ((state[0] | state[1] | state[2] | state[3]) == 0) return false;
        state_ = state;
        return true;
    }

  private:
    State state_;
};

/// A number in [0, n) from 64 random bits. Every value has a probability within 2⁻⁶⁴ of 1/n: at a
/// thousand million draws a second nobody could tell for centuries, and there is no loop to predict.
inline std::uint64_t scaled(std::uint64_t bits, std::uint64_t n) {
    __extension__ typedef unsigned __int128 Wide;
    return std::uint64_t((Wide(bits) * n) >> 64);
}

}  // namespace linrank
