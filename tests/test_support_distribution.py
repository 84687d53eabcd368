"""α by closeness of pairs: against listed pairs, chunk sizes, samples, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given

from dual_values import by_pair, fit, support_of
from explicit_pairs import ExplicitPairs
from linrank import dual_matrix
from linrank import support_distribution as distribution
from linrank.duals import analysis
from linrank.pairs import pruned
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
    found = support_of(case.scores, case.labels, case.qid, C=0.7)
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


@pytest.mark.parametrize("options", [{"loss": "hinge"}, {"pairs": "pruned", "random_state": 3}])
def test_a_kernel_ranker_gives_a_near_optimal_dual_point(options):
    """α of the smoothed hinge is feasible, and its dual value near the optimum."""
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
    if "loss" in options:
        assert (found.alpha <= 10.0).all()
        dual = found.alpha.sum() - 0.5 * beta @ kernel @ beta
        assert -1e-9 <= ranker.objective_ - dual <= 2e-3 * ranker.objective_
        assert 0 < found.n_support.sum() < found.n_pairs.sum()


def test_listed_pairs_are_found_beside_swept_ones():
    rng = np.random.default_rng(1)
    y, scores = rng.integers(0, 12, 40).astype(float), rng.normal(size=40)
    found = support_of(scores, y, C=2.0, pairs="pruned", seed=4)
    expected = pruned(y, seed=4)
    assert sorted(map(tuple, found.rows.tolist())) == sorted(map(tuple, expected.pairs.tolist()))
    slack = np.maximum(0.0, 1.0 - scores[found.rows[:, 0]] + scores[found.rows[:, 1]])
    np.testing.assert_allclose(found.alpha, 4.0 * slack)
    assert found.n_closest == len(expected) // 2


def test_more_pairs_than_are_kept_are_summed(monkeypatch):
    rng = np.random.default_rng(2)
    y, scores = rng.integers(0, 30, 200).astype(float), rng.normal(size=200)
    whole = support_of(scores, y)
    monkeypatch.setattr(analysis, "_LISTED", 1000)
    summed = support_of(scores, y)
    assert (summed.rows, summed.alpha) == (None, None)
    for name in ("difference", "n_pairs", "n_support", "alpha_sum"):
        np.testing.assert_allclose(getattr(summed, name), getattr(whole, name))


def test_shares_and_columns():
    # Two pairs of difference 1 with ξ = 1 and 0, one of difference 2 with ξ = 0.
    found = support_of([0.0, 0.0, 1.0], [0, 1, 2])
    assert found.up_to(1) == {"pairs": 2 / 3, "support": 1.0, "alpha": 1.0}
    assert found.support_share == 1 / 3
    table = found.to_frame()
    np.testing.assert_array_equal(table["difference"], [1, 2])
    np.testing.assert_array_equal(table["support_share"], [0.5, 0.0])
    np.testing.assert_array_equal(table["alpha_mean"], [1.0, 0.0])
    assert "33.3% have α > 0; the 2 1-closest ones are 100.0% of these" in repr(found)


def test_on_rankable_data_only_closest_pairs_carry_a_hard_margin():
    """A pair of difference r has a margin of r at least: α = 0 beyond r = 1."""
    X = np.arange(8.0)[:, np.newaxis]
    ranker = RankSVM(C=1000.0, loss="hinge").fit(X, np.arange(8))
    found = distribution(ranker, X, np.arange(8))
    assert found.up_to(1)["support"] == 1.0
    assert found.alpha_sum[0] == pytest.approx(1.0)


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
    fitted = fit(data, 1.0, "squared_hinge")
    with pytest.raises(ValueError, match=f"trained on {data.n_rows}"):
        distribution(fitted, data.X[:-1], data.y[:-1], data.qid[:-1])
    with pytest.raises(ValueError, match=r"tol must be a number from 0 to below 1, got 1\.0"):
        distribution(fitted, data, tol=1.0)
    closest = fit(data, 1.0, pairs="closest", n_closest=3)
    with pytest.raises(ValueError, match="pairs='closest' is not known for a linear model"):
        distribution(closest, data)
    for training, message in (
        ({"n_preferences": 7}, "7 listed preferences"),
        ({"loss": "log"}, "takes a fitted RankSVM"),
    ):
        with pytest.raises((TypeError, ValueError), match=message):
            support_of([0.0, 1.0], [0, 1], **training)
    nameless = KernelRankSVM(loss="hinge").fit(data.X, data.y, qid=data.qid).model_
    nameless.training.pop("epsilon")
    with pytest.raises(ValueError, match="needs the width within which its training smoothed it"):
        distribution(nameless, data)
