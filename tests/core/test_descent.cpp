// Steps on dense and sparse rows agree, alone and side by side; nothing outside the rows is touched.
#include "descent.hpp"

#include <cmath>
#include <memory>
#include <vector>

#include "check.hpp"

using namespace linrank;

namespace {

/// Rows in memory of exactly their size, so that the sanitizer sees a read beyond the last one.
template <class Value>
struct Problem {
    std::int64_t n_rows, n_columns;
    std::unique_ptr<Value[]> dense;
    std::vector<Value> values;
    std::vector<std::int32_t> columns;
    std::vector<std::int64_t> offsets{0};

    Problem(std::int64_t rows, std::int64_t width, Random &random)
        : n_rows(rows), n_columns(width), dense(new Value[std::size_t(rows * width)]()) {
        for (std::int64_t i = 0; i < rows; ++i) {
            for (std::int64_t c = 0; c < width; ++c) {
                if (scaled(random.next(), 3) == 0) continue;
                const Value x = Value(double(scaled(random.next(), 2001)) / 1000 - 1);
                dense[std::size_t(i * width + c)] = x;
                values.push_back(x);
                columns.push_back(std::int32_t(c));
            }
            offsets.push_back(std::int64_t(values.size()));
        }
    }
    Rows as_dense() const { return DenseRows<Value>{dense.get(), n_columns, n_rows, n_columns}; }
    Rows as_sparse() const {
        return CsrRows<Value>{values.data(), columns.data(), offsets.data(), n_rows,
                                            n_columns};
    }
};

Learner learner(Algorithm algorithm) {
    Learner m;
    m.algorithm = algorithm;
    m.strength = 0.05;
    return m;
}

std::vector<double> weights_after(const Rows &rows, std::span<const RowPair> pairs,
                                  std::span<const Learner> learners, Average average,
                                  std::int64_t model) {
    Descent descent(n_columns(rows), learners, average);
    descent.step(rows, pairs, 2);
    return descent.weights(model);
}

void check_close(const std::vector<double> &a, const std::vector<double> &b) {
    double scale = 1e-300;
    for (const double x : a) scale = std::max(scale, std::abs(x));
    for (std::size_t c = 0; c < a.size(); ++c) CHECK(std::abs(a[c] - b[c]) <= 1e-9 * scale);
}

template <class Value>
void test_all(std::int64_t width, Average average) {
    Random random(std::uint64_t(width) + 17);
    const Problem<Value> problem(9, width, random);
    std::vector<RowPair> pairs;
    for (int k = 0; k < 40; ++k)
        // Few steps of a rule that would otherwise diverge, for these pairs contradict each other.
        pairs.push_back({std::int64_t(scaled(random.next(), 9)), std::int64_t(scaled(random.next(), 9))});
    std::vector<Learner> all;
    for (int a = 0; a < 5; ++a) all.push_back(learner(Algorithm(a)));
    for (int k = 0; k < 6; ++k) all.push_back(learner(Algorithm::pegasos));
    for (std::size_t m = 0; m < 5; ++m) {
        const std::span<const RowPair> some(pairs.data(), all[m].algorithm == Algorithm::romma ? 6 : 40);
        const std::span<const Learner> alone(&all[m], 1);
        const auto expected = weights_after(problem.as_dense(), some, alone, average, 0);
        check_close(expected, weights_after(problem.as_dense(), some, all, average, std::int64_t(m)));
        // Differences of float rows are rounded where they are formed, and only there.
        if (sizeof(Value) == 8) {
            check_close(expected, weights_after(problem.as_sparse(), some, alone, average, 0));
            check_close(expected,
                        weights_after(problem.as_sparse(), some, all, average, std::int64_t(m)));
        }
    }
}

void test_growing_and_becoming() {
    Random random(1);
    const Problem<float> problem(5, 11, random);
    const std::vector<Learner> learners{learner(Algorithm::passive_aggressive)};
    Descent descent(3, learners, Average::weighted);
    descent.grow(11);
    const std::vector<RowPair> pairs{{0, 1}, {2, 3}, {4, 0}};
    descent.step(problem.as_dense(), pairs, 1);
    const std::vector<double> w = descent.weights(0);
    Learner next = learner(Algorithm::pegasos);
    next.t = 100;
    descent.become(0, next, w);
    check_close(w, descent.weights(0));
    descent.step(problem.as_sparse(), pairs, 1);
    CHECK(descent.n_steps() == 6);
}

/// A descent through the point where ‖v‖² is measured afresh, and pairs of equal sparse rows: narrow rows of a
/// wide descent, lanes that are not all in use.
void test_measured_norms() {
    Random random(5);
    const Problem<double> problem(6, 13, random);
    std::vector<RowPair> pairs;
    for (int k = 0; k < (1 << 14) + 30; ++k)
        pairs.push_back({std::int64_t(scaled(random.next(), 6)), std::int64_t(scaled(random.next(), 6))});
    for (const std::size_t n_models : {1u, 3u, 9u}) {
        const std::vector<Learner> learners(n_models, learner(Algorithm::pegasos));
        for (const Rows &rows : {problem.as_dense(), problem.as_sparse()}) {
            Descent descent(20, learners, Average::weighted);
            descent.step(rows, pairs, 2);
            for (std::int64_t m = 0; m < descent.n_models(); ++m) {
                double square = 0;
                for (const double v : descent.vectors(m).v) square += v * v;
                CHECK(std::abs(descent.learner(m).square - square) <= 1e-12 * square);
            }
        }
    }
}

}  // namespace

int main() {
    for (const Average average : {Average::none, Average::uniform, Average::weighted})
        for (const std::int64_t width : {1, 2, 7, 8, 9, 15, 16, 17, 33}) {
            test_all<float>(width, average);
            test_all<double>(width, average);
        }
    test_growing_and_becoming();
    test_measured_norms();
    return 0;
}
