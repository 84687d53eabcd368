// Factorized RankSVM by pairs: both ways make the same steps, and β stays the sum that it stands for.
#include "problem.hpp"
#include "published/factor_pairs.hpp"

using namespace linrank;
using namespace linrank::published;
using namespace linrank_test;

namespace {

/// The values of dense rows, some of them zero, and the same matrix in CSR.
template <class Value>
struct Matrix {
    std::vector<Value> dense, values;
    std::vector<std::int32_t> columns;
    std::vector<std::int64_t> offsets{0};
    std::int64_t n_rows, n_columns;

    Matrix(Rng &rng, std::int64_t rows, std::int64_t width) : n_rows(rows), n_columns(width) {
        for (const double x : draw_normal(rng, rows * width)) {
            dense.push_back(draw(rng, 0, 2) == 0 ? Value(0) : Value(x));
            if (dense.back() != Value(0)) {
                values.push_back(dense.back());
                columns.push_back(std::int32_t((std::int64_t(dense.size()) - 1) % width));
            }
            if (std::int64_t(dense.size()) % width == 0) offsets.push_back(std::int64_t(values.size()));
        }
    }
    std::vector<Rows> storages() const {
        return {DenseRows<Value>{dense.data(), n_columns, n_rows, n_columns},
                CsrRows<Value>{values.data(), columns.data(), offsets.data(), n_rows, n_columns}};
    }
};

void check_close(const std::vector<double> &a, const std::vector<double> &b) {
    for (std::size_t i = 0; i < a.size(); ++i) CHECK(close(a[i], b[i], 1e-9));
}

/// V, β and Σα after some epochs.
struct State {
    std::vector<double> V, beta;
    double sum = 0;
};

State after_epochs(const FactorPairs &problem, PairWork work, std::vector<double> V, std::size_t n_columns) {
    State state{std::move(V), std::vector<double>(n_columns)};
    factor_start(problem, state.V, state.beta);
    for (int epoch = 0; epoch < 3; ++epoch)
        state.sum = factor_epoch(problem, work, 1e-3, state.V, state.beta);
    State again = state;
    CHECK(close(again.sum, factor_start(problem, again.V, again.beta), 1e-10));
    check_close(state.beta, again.beta);
    return state;
}

template <class Value>
void ways_and_storages_agree(Rng &rng, std::int64_t n_columns) {
    const Problem owned = draw_problem(rng, false);
    const PairProblem pairs = owned.view();
    const std::int64_t K = draw(rng, 1, 6);
    const std::vector<double> largest(std::size_t(pairs.n_rows()), 0.2);
    std::vector<double> V(std::size_t(pairs.n_rows() * K));
    for (double &v : V) v = 0.01 * double(draw(rng, 0, 20));
    const Matrix<Value> matrix(rng, pairs.n_rows(), n_columns);
    std::vector<State> found;
    for (const Rows &rows : matrix.storages())
        for (const PairWork work : {PairWork::by_pair, PairWork::by_row})
            found.push_back(
                after_epochs({rows, {}, pairs, K, largest}, work, V, std::size_t(n_columns)));
    for (const State &state : found) {
        check_close(state.V, found[0].V);
        check_close(state.beta, found[0].beta);
        for (const double v : state.V) CHECK(v >= 0.0 && v <= 0.2);
    }
}

}  // namespace

int main() {
    Rng rng(11);
    for (const std::int64_t n_columns : {1, 5, 16, 17, 46})
        for (int repeat = 0; repeat < 5; ++repeat) {
            ways_and_storages_agree<float>(rng, n_columns);
            ways_and_storages_agree<double>(rng, n_columns);
        }
}
