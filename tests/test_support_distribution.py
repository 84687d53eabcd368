"""α by closeness of pairs: against listed pairs, chunk sizes, samples, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given

from dual_values import by_pair, fit
from explicit_pairs import ExplicitPairs
from linrank import SupportDistribution, dual_matrix
from linrank import support_distribution as distribution
from linrank.data.dataset import Dataset
from linrank.duals import analysis
from linrank.duals.entries import chunks
from linrank.kernels.functions import Kernel
from linrank.kernels.train import train_kernel
from linrank.pairs import Pairs, pruned
from papers import FactorizedRankSVM, KernelRankSVM, RankSVM
from small_data import small, weighted
from strategies import scored_queries


def ranks(labels: np.ndarray, qid: np.ndarray) -> np.ndarray:
    """Dense ranks of the labels inside each query, by the definition."""
    return np.array(
        [len({b for b, p in zip(labels, qid, strict=True) if p == q and b < a})
         for a, q in zip(labels, qid, strict=True)]
    )  # fmt: skip


@given(case=scored_queries(max_rows=20))
def test_it_is_the_slope_of_every_pair_by_order_difference(case):
    listed = case.pairs()
    assume(listed)
    training = {"C": 0.7, "loss": "squared_hinge"}
    found = distribution(training, scores=case.scores, y=case.labels, qid=case.qid)
    rank = ranks(case.labels, case.qid)
    i, j = np.array(listed).T
    slack = np.maximum(0.0, (1.0 - case.scores[i]) + case.scores[j])
    of_pair = {(a, b): 1.4 * x for a, b, x in zip(i, j, slack, strict=True)}
    assert sorted(map(tuple, found.rows.tolist())) == sorted(of_pair)  # each pair once
    expected = [of_pair[tuple(pair)] for pair in found.rows.tolist()]
    np.testing.assert_allclose(found.alpha, expected, rtol=1e-12, atol=1e-12)
    difference = rank[found.rows[:, 0]] - rank[found.rows[:, 1]]
    assert (np.diff(difference) >= 0).all()  # from closest to farthest
    for r, n, total in zip(found.difference, found.n_pairs, found.alpha_sum, strict=True):
        assert n == (difference == r).sum()
        assert total == pytest.approx(found.alpha[difference == r].sum())
    assert found.n_closest == (difference == 1).sum()
    assert found.n_pairs.sum() == len(listed)


@given(case=scored_queries(max_rows=20))
def test_chunks_hold_every_pair_whatever_their_size(case):
    listed = case.pairs()
    assume(listed)
    for size in (1, 3, 1000):
        parts = list(chunks(Pairs(case.queries), size))
        found = np.concatenate([part.pairs for part in parts])
        assert sorted(map(tuple, found.tolist())) == sorted(listed)
        assert max(map(len, parts)) <= size


@pytest.mark.parametrize("is_adjacent", [False, True])
@pytest.mark.parametrize("loss", ["squared_hinge", "hinge"])
def test_a_linear_model_has_the_duals_of_its_matrix(loss, is_adjacent):
    data = weighted(small(2, n_levels=4), 2)
    weight = {q: 0.5 + k % 3 for k, q in enumerate(np.unique(data.qid).tolist())}
    ranker = fit(data, 0.3, loss, weight, pairs="adjacent" if is_adjacent else "all")
    found = distribution(
        ranker, data.X, data.y, data.qid, sample_weight=data.weight, query_weight=weight
    )
    dual = dual_matrix(
        ranker, data.X, data.y, data.qid, sample_weight=data.weight, query_weight=weight
    )
    listed = ExplicitPairs.of(data, query_weight=weight, adjacent=is_adjacent)
    expected = dict(
        zip(
            zip(listed.winner.tolist(), listed.loser.tolist(), strict=True),
            by_pair(dual, listed, data),
            strict=True,
        )
    )
    assert len(found.alpha) == len(expected) == ranker.n_pairs_
    for pair, alpha in zip(found.rows.tolist(), found.alpha, strict=True):
        assert alpha == pytest.approx(expected[tuple(pair)], abs=1e-9)
    if is_adjacent:
        np.testing.assert_array_equal(found.difference, [1])
    alone = distribution(dual)  # the matrix knows its data
    np.testing.assert_allclose(alone.alpha, found.alpha, atol=1e-9)


def test_kernel_scores_give_a_near_optimal_dual_point():
    """α of the smoothed hinge is feasible, and its dual value near the optimum."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(25, 2))
    y = np.round(X[:, 0] ** 2 + 0.3 * rng.normal(size=25), 1)
    data, C = Dataset.of(X, y), 5.0
    kernel = Kernel.of("rbf", gamma=0.5)
    result = train_kernel(data, kernel=kernel, C=C, loss="hinge", tol=1e-4)
    found = distribution(
        {"C": C, "loss": "hinge"}, scores=result.scores, y=y, epsilon=result.epsilon
    )
    assert (found.alpha <= C).all()
    u = np.zeros(25)
    np.add.at(u, found.rows[:, 0], found.alpha)
    np.subtract.at(u, found.rows[:, 1], found.alpha)
    Q = kernel.matrix(data.rows, data.rows)
    dual = found.alpha.sum() - 0.5 * u @ Q @ u
    assert -1e-9 <= result.value - dual <= 5e-4 * result.value
    assert 0 < found.n_support.sum() < found.n_pairs.sum()


@pytest.mark.parametrize("options", [{"loss": "hinge"}, {"pairs": "pruned", "random_state": 3}])
def test_a_kernel_ranker_tells_its_own_settings(options):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 2))
    y = np.round(X[:, 0] ** 2 + X[:, 1], 1)
    ranker = KernelRankSVM(C=10.0, **options).fit(X, y)
    found = distribution(ranker, X, y)
    assert int(found.n_pairs.sum()) == ranker.n_pairs_
    beta = np.zeros(30)  # at the optimum A'α
    np.add.at(beta, found.rows[:, 0], found.alpha)
    np.subtract.at(beta, found.rows[:, 1], found.alpha)
    kernel = np.exp(-ranker.gamma_ * np.square(X[:, np.newaxis] - X).sum(axis=2))
    scores = ranker.predict(X)
    np.testing.assert_allclose(kernel @ beta, scores, atol=0.05 * np.abs(scores).max())


def test_listed_pairs_are_found_beside_swept_ones():
    rng = np.random.default_rng(1)
    y, scores = rng.integers(0, 12, 40).astype(float), rng.normal(size=40)
    training = {"C": 2.0, "loss": "squared_hinge", "pairs": "pruned", "seed": 4}
    found = distribution(training, scores=scores, y=y)
    expected = pruned(y, seed=4)
    assert sorted(map(tuple, found.rows.tolist())) == sorted(map(tuple, expected.pairs.tolist()))
    slack = np.maximum(0.0, 1.0 - scores[found.rows[:, 0]] + scores[found.rows[:, 1]])
    np.testing.assert_allclose(found.alpha, 4.0 * slack)
    assert found.n_closest == len(expected) // 2


def test_more_pairs_than_are_kept_are_summed(monkeypatch):
    rng = np.random.default_rng(2)
    y, scores = rng.integers(0, 30, 200).astype(float), rng.normal(size=200)
    training = {"C": 1.0, "loss": "squared_hinge"}
    whole = distribution(training, scores=scores, y=y)
    monkeypatch.setattr(analysis, "_LISTED", 1000)
    summed = distribution(training, scores=scores, y=y)
    assert (summed.rows, summed.alpha) == (None, None)
    for name in ("difference", "n_pairs", "n_support", "alpha_sum"):
        np.testing.assert_allclose(getattr(summed, name), getattr(whole, name))


def test_shares_and_columns():
    # Two pairs of difference 1 with ξ = 1 and 0, one of difference 2 with ξ = 0.
    found = distribution({"C": 1.0, "loss": "hinge"}, scores=[0, 0, 1], y=[0, 1, 2], epsilon=0.5)
    assert found.up_to(1) == {"pairs": 2 / 3, "support": 1.0, "alpha": 1.0}
    assert found.support_share == 1 / 3
    table = found.to_frame()
    np.testing.assert_array_equal(table["difference"], [1, 2])
    np.testing.assert_array_equal(table["support_share"], [0.5, 0.0])
    np.testing.assert_array_equal(table["alpha_mean"], [0.5, 0.0])
    assert "33.3% have α > 0; the 2 1-closest ones are 100.0% of these" in repr(found)


def test_on_rankable_data_only_closest_pairs_carry_a_hard_margin():
    """A pair of difference r has a margin of r at least: α = 0 beyond r = 1."""
    X = np.arange(8.0)[:, np.newaxis]
    ranker = RankSVM(C=1000.0, loss="hinge").fit(X, np.arange(8))
    found = distribution(ranker, X, np.arange(8))
    assert found.up_to(1)["support"] == 1.0
    assert found.alpha_sum[0] == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"model": {"C": 0.0}}, "C must be a finite number > 0, got 0.0"),
        ({"model": {"C": 1.0, "loss": "log"}}, "loss"),
        ({"model": {"C": 1.0, "loss": "hinge"}}, "pass epsilon="),
        ({"model": {"C": 1.0, "loss": "hinge"}, "epsilon": -1.0}, "epsilon must be"),
        ({"tol": 1.0}, "tol must be a number from 0 to below 1, got 1.0"),
        ({"scores": [[1.0], [2.0]]}, "scores must be 1-D"),
        ({"model": {"C": 1.0, "n_preferences": 7}}, "7 listed preferences"),
    ],
)
def test_what_cannot_be_is_refused(arguments, message):
    given = {"model": {"C": 1.0}, "scores": [0.0, 1.0, 0.5], "y": [0, 1, 2], **arguments}
    with pytest.raises(ValueError, match=message):
        distribution(**given)


def test_other_models_are_refused():
    data = small(1)
    ranker = FactorizedRankSVM(2, 0.1, random_state=0, keep_factors=True)
    ranker.fit(data.X, data.y, qid=data.qid)
    with pytest.raises(TypeError, match="factorized model are no function of single pairs"):
        distribution(dual_matrix(ranker, data.X, data.y, data.qid))
    with pytest.raises(TypeError, match="takes a fitted RankSVM or KernelRankSVM"):
        distribution(object(), data.X, data.y, data.qid)
    with pytest.raises(TypeError, match="give the training data beside a RankSVM"):
        distribution(RankSVM())
    with pytest.raises(TypeError, match="with scores, model is a mapping"):
        distribution(RankSVM(), scores=[1.0, 2.0], y=[0, 1])
    fitted = fit(data, 1.0, "squared_hinge")
    with pytest.raises(ValueError, match=f"trained on {data.n_rows}"):
        distribution(fitted, data.X[:-1], data.y[:-1], data.qid[:-1])


def test_the_type_is_public():
    found = distribution({"C": 1.0}, scores=[0.0, 1.0], y=[0, 1])
    assert isinstance(found, SupportDistribution)
