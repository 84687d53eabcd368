// Spans of different lengths in an order: one element at a time, empty ones, one twice, parts of an array.
#include "rows.hpp"

#include <vector>

#include "check.hpp"

using namespace linrank;
using linrank_test::check;
using linrank_test::draw;

namespace {

void test_any_order(linrank_test::Rng &rng) {
    const auto width = static_cast<std::size_t>(draw(rng, 1, 9));
    std::vector<std::int64_t> offsets{draw(rng, 0, 3)};  // it may begin within the array
    for (std::int64_t n = draw(rng, 0, 8); n > 0; --n) offsets.push_back(offsets.back() + draw(rng, 0, 3));
    const auto n_spans = static_cast<std::int64_t>(offsets.size()) - 1;
    std::vector<std::uint8_t> from(static_cast<std::size_t>(offsets.back()) * width);
    for (std::uint8_t &b : from) b = static_cast<std::uint8_t>(draw(rng, 0, 255));
    std::vector<std::int64_t> order;
    for (std::int64_t n = n_spans > 0 ? draw(rng, 0, 12) : 0; n > 0; --n) order.push_back(draw(rng, 0, n_spans - 1));
    std::vector<std::uint8_t> expected;
    for (const std::int64_t i : order) {
        const auto row = static_cast<std::size_t>(i);
        for (auto k = static_cast<std::size_t>(offsets[row]) * width;
             k < static_cast<std::size_t>(offsets[row + 1]) * width; ++k)
            expected.push_back(from[k]);
    }
    std::vector<std::uint8_t> to(expected.size());  // of exactly the size: the sanitizer sees a byte too many
    gather_spans(from.data(), width, offsets, order, to.data());
    check(to == expected, "spans one after the other");
}

}  // namespace

int main() {
    linrank_test::Rng rng(5);
    for (int i = 0; i < 500; ++i) test_any_order(rng);
}
