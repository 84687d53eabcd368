"""Ranks, dimensions and energies of dual matrices."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.figure import Figure

from explicit_pairs import ExplicitPairs
from linrank import DualMatrix, RankProfile, RankProfileDisplay, dual_matrix, rank_profile
from linrank.data.dataset import Dataset
from linrank.duals.entries import Cells
from linrank.ranksvm.train import Problem
from papers import FactorizedRankSVM, RankSVM
from small_data import small


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
