"""What dual variables tell: the ranks of their matrices, and α by the closeness of pairs."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from matplotlib.figure import Figure

from dual_values import by_pair, fit, support_of
from explicit_pairs import ExplicitPairs
from linrank import DualMatrix, RankProfile, RankProfileDisplay, dual_matrix, rank_profile
from linrank import support_distribution as distribution
from linrank.data.dataset import Dataset
from linrank.duals import analysis
from linrank.duals.entries import Cells
from linrank.pairs import pruned
from linrank.ranksvm.train import Problem
from papers import FactorizedRankSVM, KernelRankSVM, RankSVM
from small_data import small, weighted
from strategies import scored_queries


def of_matrix(A: np.ndarray) -> DualMatrix:
    """The dual matrix of one query of two levels whose block is A (rows above × rows below)."""
    m, n = A.shape
    y = np.repeat([1, 0], [m, n])
    data = Dataset.of(np.arange(m + n, dtype=np.float64)[:, None], y)

    def entries(cells: Cells) -> np.ndarray:
        return A[cells.top[:, None], cells.bottom - m]

    return DualMatrix(Problem.of(data, 1.0, loss="hinge"), np.zeros(1), entries)


def with_spectrum(singular, m=6, n=8):
    rng = np.random.default_rng(0)
    U, V = (np.linalg.qr(rng.normal(size=(k, k)))[0] for k in (m, n))
    return U[:, : len(singular)] * singular @ V[:, : len(singular)].T


def test_known_spectra():
    # Energies 16, 4, 1, 1: of 22 in all.
    dual = of_matrix(with_spectrum([4.0, 2.0, 1.0, 1.0]))
    energy = (0.5, 16 / 22, 0.74, 20 / 22, 0.95, 0.96, 1.0)
    profile = rank_profile(dual, energy=energy)
    assert profile.dimensions.tolist() == [[1, 1, 2, 2, 3, 4, 4]]
    assert (profile.ranks, profile.possible, profile.n_rows) == ([4], [6], [14])
    np.testing.assert_allclose(profile.ratios()[0], np.array([1, 1, 2, 2, 3, 4, 4]) / 14)
    np.testing.assert_allclose(profile.ratios("possible")[0], np.array([1, 1, 2, 2, 3, 4, 4]) / 6)
    # Values below the tolerance are zeros.
    dual = of_matrix(with_spectrum([1.0, 1e-3, 1e-7]))
    assert (dual.block().rank(), dual.block().rank(1e-8)) == (2, 3)
    assert rank_profile(dual).dimensions.tolist() == [[1, 2]]
    assert rank_profile(dual, tol=1e-8).dimensions.tolist() == [[1, 3]]
    assert rank_profile(dual, tol=0.1, energy=1.0).ranks.tolist() == [1]


def test_rank_one_and_zero():
    assert rank_profile(of_matrix(np.outer([1, 2, 3], [1, 0, 2, 5]))).dimensions.tolist() == [
        [1, 1]
    ]
    nothing = rank_profile(of_matrix(np.zeros((3, 4))), baseline="shuffled")
    assert nothing.dimensions.tolist() == nothing.baseline.dimensions.tolist() == [[0, 0]]
    assert nothing.distribution()[:, 0].tolist() == [1, 1]


@given(st.integers(0, 10**6), st.integers(1, 8), st.integers(1, 8))
def test_dimensions_by_their_definition(seed, m, n):
    A = np.random.default_rng(seed).uniform(0, 1, (m, n))
    shares = (0.3, 0.9, 0.99)
    found = rank_profile(of_matrix(A), energy=shares, tol=0.0).dimensions[0]
    square = np.linalg.svd(A, compute_uv=False) ** 2
    for share, k in zip(shares, found, strict=True):
        assert square[:k].sum() >= share * square.sum() * (1 - 1e-12)
        assert square[: k - 1].sum() < share * square.sum()


def test_of_three_levels_the_symmetric_rank_is_that_of_the_square():
    data = small(3, n_levels=3)
    dual = dual_matrix(RankSVM(0.3, loss="hinge").fit(data.X, data.y, qid=data.qid), data)
    profile = rank_profile(dual, symmetric=True)
    for rank, possible, query in zip(
        profile.ranks, profile.possible, profile.query_ids, strict=True
    ):
        square = dual.full(query)
        largest = np.linalg.norm(square + square.T, 2)
        assert rank == np.linalg.matrix_rank(square + square.T, tol=1e-6 * largest)
        assert rank <= possible <= len(square)


def test_shuffling_keeps_values_and_pairs():
    """A matrix of ones stays what it is, and a rank-one matrix of many values does not."""
    rng = np.random.default_rng(0)
    ones = rank_profile(of_matrix(np.ones((5, 7))), baseline="shuffled")
    assert ones.baseline.dimensions.tolist() == ones.dimensions.tolist() == [[1, 1]]
    product = of_matrix(np.outer(rng.uniform(0, 1, 5), rng.uniform(0, 1, 7)))
    profile = rank_profile(product, baseline="shuffled", random_state=1)
    assert (profile.ranks, profile.baseline.ranks) == ([1], [5])
    again = rank_profile(product, baseline="shuffled", random_state=1).baseline
    np.testing.assert_array_equal(again.dimensions, profile.baseline.dimensions)


def test_shuffling_of_a_staircase_stays_on_its_pairs():
    data = small(1, n_levels=4)
    model = FactorizedRankSVM(1, 0.1, keep_factors=True, random_state=0)
    model.fit(data.X, data.y, qid=data.qid)
    from linrank.duals.analysis import _shuffle

    for block in dual_matrix(model, data):
        other = _shuffle(block, 3)
        assert not other.values[~block.is_pair].any()
        np.testing.assert_array_equal(
            np.sort(other.values[block.is_pair]), np.sort(block.values[block.is_pair])
        )


def profile_of(dimensions, n_rows, possible, **options) -> RankProfile:
    dimensions, n = np.atleast_2d(dimensions), np.asarray(n_rows)
    energy = tuple(np.linspace(0.9, 1.0, dimensions.shape[1]).tolist())
    ids = list(range(len(n)))
    return RankProfile(
        ids, n, n * 3, np.asarray(possible), dimensions[:, -1], energy, dimensions, 1e-6, **options
    )


def test_distribution_by_tenths():
    profile = profile_of([[1, 3], [1, 10], [2, 4], [3, 9]], [10, 10, 10, 10], [5, 10, 4, 9])
    assert profile.distribution().tolist() == [
        [2, 1, 1, 0, 0, 0, 0, 0, 0, 0],
        [0, 0, 1, 1, 0, 0, 0, 0, 1, 1],
    ]
    assert profile.distribution("possible").tolist() == [
        [1, 1, 0, 1, 1, 0, 0, 0, 0, 0],
        [0, 0, 0, 0, 0, 1, 0, 0, 0, 3],
    ]
    with pytest.raises(ValueError, match="relative_to must be 'size' or 'possible', got 'rows'"):
        profile.distribution("rows")
    for n in (10, 20, 70, 130):  # k/10 is in the range that ends with it, whatever its rounding
        profile = profile_of(np.arange(n // 10, n + 1, n // 10)[:, None], [n] * 10, [n] * 10)
        assert profile.distribution().tolist() == [[1] * 10]


def test_words_and_columns():
    null = profile_of([[2, 4], [3, 5]], [10, 20], [4, 5])
    profile = profile_of([[1, 4], [2, 5]], [10, 20], [4, 5], baseline=null)
    assert profile.to_frame().iloc[1].to_dict() == {
        **{"query": 1, "rows": 20, "pairs": 60, "possible": 5, "rank": 5, "k_90%": 2, "k_100%": 5},
        **{"k_90% shuffled": 3, "k_100% shuffled": 5},
    }
    words = repr(profile)
    assert "2 queries" in words
    assert "90% of the energy in 1.5 dimensions, 10% of the size, 32% of the largest" in words
    assert "shuffled 2.5" in words


def test_from_a_model_or_from_its_dual_matrix():
    data = small(5, n_levels=3)
    ranker = RankSVM(0.3, loss="squared_hinge").fit(data.X, data.y, qid=data.qid)
    profile = rank_profile(ranker, data.X, data.y, data.qid)
    same = rank_profile(dual_matrix(ranker, data))
    np.testing.assert_array_equal(profile.dimensions, same.dimensions)
    np.testing.assert_array_equal(profile.ranks, profile.dimensions[:, 1])
    listed = ExplicitPairs.of(data)
    counts = [(data.qid[listed.winner] == query).sum() for query in profile.query_ids]
    assert profile.n_pairs.tolist() == counts
    assert (profile.ranks <= profile.possible).all()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"energy": 0.0}, "energy must be shares above 0 and up to 1"),
        ({"energy": (0.9, 1.5)}, "energy must be shares above 0 and up to 1"),
        ({"energy": ("all",)}, "energy must be shares above 0 and up to 1"),
        ({"energy": ()}, "energy is empty"),
        ({"tol": 1.0}, r"tol must be a number from 0 to below 1, got 1\.0"),
        ({"baseline": "random"}, "baseline must be None or 'shuffled', got 'random'"),
        ({"y": [1], "thresholded": True}, "knows its data; leave y, thresholded out"),
        ({"model": RankSVM()}, "needs its training data"),
    ],
)
def test_what_is_refused(options, message):
    with pytest.raises(ValueError, match=message):
        rank_profile(**{"model": of_matrix(np.ones((2, 2))), **options})


# ---- the picture --------------------------------------------------------------------------------


@pytest.mark.parametrize("relative_to", ["size", "possible"])
def test_the_picture_shows_the_distribution(relative_to):
    null = profile_of([[2, 4], [3, 5]], [10, 20], [4, 5])
    profile = profile_of([[1, 4], [2, 5]], [10, 20], [4, 5], baseline=null)
    axes = RankProfileDisplay(profile, relative_to).plot(Figure().subplots(1, 2)).axes_
    for k, ax in enumerate(axes):
        heights = [bar.get_height() for bar in ax.patches]
        assert heights == profile.distribution(relative_to)[k].tolist()
        shuffled, _median = ax.get_lines()
        assert shuffled.get_ydata().tolist() == null.distribution(relative_to)[k].tolist()
    assert axes[0].get_title().startswith("90% of the energy: median")
    assert len(RankProfileDisplay(null, relative_to).to_figure().axes) == 2


# ---- α by closeness of pairs --------------------------------------------------------------------


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


def test_of_very_many_pairs_a_sample_is_looked_at(monkeypatch):
    scores, labels = np.random.default_rng(0).normal(size=300), np.arange(300) % 3
    whole = support_of(scores, labels)
    assert whole.n_total == len(whole.alpha) == 30_000
    monkeypatch.setattr(analysis, "_LOOKED_AT", 29_999)
    monkeypatch.setattr(analysis, "_SAMPLE", 3000)
    some = support_of(scores, labels)
    assert some.n_total == 30_000
    assert some.n_pairs.sum() == len({tuple(pair) for pair in some.rows.tolist()}) == 3000
    alpha = dict(zip(map(tuple, whole.rows.tolist()), whole.alpha.tolist(), strict=True))
    assert [alpha[i, j] for i, j in some.rows.tolist()] == some.alpha.tolist()
    assert some.support_share == pytest.approx(whole.support_share, abs=0.05)
    assert "of 3,000 of 30,000 pairs" in repr(some)


@pytest.mark.parametrize("is_adjacent", [False, True])
@pytest.mark.parametrize("loss", ["squared_hinge", "hinge"])
def test_a_linear_model_has_the_duals_of_its_matrix(loss, is_adjacent):
    data = weighted(small(2, n_levels=4), 2)
    weight = {q: 0.5 + k % 3 for k, q in enumerate(np.unique(data.qid).tolist())}
    ranker = fit(data, 0.3, loss, weight, pairs="adjacent" if is_adjacent else "all")
    found = distribution(ranker, data, query_weight=weight)
    dual = dual_matrix(ranker, data, query_weight=weight)
    listed = ExplicitPairs.of(data, query_weight=weight, adjacent=is_adjacent)
    assert len(found.alpha) == len(listed.winner) == ranker.n_pairs_
    own, theirs = np.lexsort(found.rows.T), np.lexsort((listed.winner, listed.loser))
    expected = by_pair(dual, listed, data)
    np.testing.assert_array_equal(found.rows[own, 0], listed.winner[theirs])
    np.testing.assert_allclose(found.alpha[own], expected[theirs], atol=1e-9)
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
