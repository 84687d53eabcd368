// Each way to sum over the pairs of a query, and the sweep in pieces, against the sums themselves.
#include "pair_sweep.hpp"

#include "problem.hpp"

using namespace linrank;
using namespace linrank_test;

namespace {

/// Sums of v over the windows or bands of each row by running totals of the levels: O(n k), no tree.
void window_sums(const Windows &q, const double *v, std::vector<double> &above,
                 std::vector<double> &below) {
    std::vector<double> totals(std::size_t(q.n_levels));
    const auto sum = [&](std::int32_t first, std::int32_t last) {
        double total = 0;
        for (std::int32_t r = first; r < last; ++r) total += totals[std::size_t(r)];
        return total;
    };
    const auto move = [&](std::int32_t &place, std::int32_t end, double sign) {
        for (; place < end; ++place) totals[std::size_t(q.level[place])] += sign * v[q.order[place]];
        while (place > end) {
            --place;
            totals[std::size_t(q.level[place])] += sign * v[q.order[place]];
        }
    };
    for (std::int32_t t = 0, inserted = 0, removed = 0; t < q.n; ++t) {
        const std::int32_t next = q.level[t] + 1;
        move(inserted, q.upto[t], 1.0);
        if (q.upto_inner) move(removed, q.upto_inner[t], -1.0);
        above[std::size_t(q.order[t])] =
            sum(next, q.adjacent ? std::min(next + 1, q.n_levels) : q.n_levels);
    }
    totals.assign(totals.size(), 0.0);
    for (std::int32_t t = q.n, inserted = q.n, removed = q.n; t-- > 0;) {
        move(inserted, q.from[t], 1.0);
        if (q.from_inner) move(removed, q.from_inner[t], -1.0);
        below[std::size_t(q.order[t])] =
            sum(q.adjacent ? std::max(q.level[t] - 1, 0) : 0, q.level[t]);
    }
}

void compare(const std::vector<double> &got, const std::vector<double> &expected) {
    for (std::size_t i = 0; i < expected.size(); ++i) CHECK(close(got[i], expected[i], 1e-10));
}

void every_way_gives_the_sums(Rng &rng, std::int64_t n, std::int64_t n_labels, double spread,
                              PairLoss loss = {}, bool adjacent = false) {
    Problem problem;
    problem.add_query(draw_labels(rng, n, n_labels));
    problem.adjacent = adjacent;
    problem.finish();
    const PairProblem p = problem.view();
    if (!p.has_pairs(0)) return;
    const PairPoint point(p, loss, draw_normal(rng, n, spread), nullptr, 1);
    const Windows q = point.windows(0);
    const std::vector<double> v = draw_normal(rng, n);
    const std::size_t size = v.size();
    std::vector<double> up(size), down(size), above(size), below(size);
    window_sums(q, v.data(), up, down);
    SweepScratch scratch;
    level_sums(q, 1, v.data(), above.data(), below.data(), scratch);
    compare(above, up);
    compare(below, down);
    std::vector<double> in(size), a(size), b(size), both(size);  // by place
    for (std::size_t t = 0; t < size; ++t) in[t] = v[std::size_t(q.order[t])];
    add_level_sums(q, in.data(), a.data(), 1.0, b.data(), 1);
    for (const int n_threads : {3, 20}) {  // any number of threads, in one array or two
        std::vector<double> other_a(size), other_b(size);
        add_level_sums(q, in.data(), other_a.data(), 1.0, other_b.data(), n_threads);
        CHECK(other_a == a && other_b == b);
        std::fill(both.begin(), both.end(), 0.0);
        add_level_sums(q, in.data(), both.data(), -1.0, both.data(), n_threads);
        for (std::size_t t = 0; t < size; ++t) CHECK(both[t] == a[t] - b[t]);
    }
    for (std::size_t t = 0; t < size; ++t) {
        above[std::size_t(q.order[t])] = a[t];
        below[std::size_t(q.order[t])] = b[t];
    }
    compare(above, up);
    compare(below, down);
}

}  // namespace

int main() {
    Rng rng(7);
    // 4 n / levels pieces, from 16 down to 4; fewer rows than pieces; windows of all rows and of few.
    for (const double spread : {0.01, 1.0, 30.0})
        for (const std::int64_t n : {2, 3, 15, 17, 256, 1000, 3000})
            for (const std::int64_t n_labels : {2, 8, 9, 16, 17, 257, 1000000})
                for (const PairLoss loss : {losses[0], losses[2]})  // windows, bands
                    for (const bool adjacent : {false, true})
                        every_way_gives_the_sums(rng, n, n_labels, spread, loss, adjacent);
    every_way_gives_the_sums(rng, 5000, 8, 1.0);   // a table too long for the cache: a tree of one node
    every_way_gives_the_sums(rng, 33000, 40, 1.0);  // too many rows to rank them
}
