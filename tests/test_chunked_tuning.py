"""Paths and cross-validation over parts: the numbers of the same data in memory."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from linrank import QueryKFold
from linrank.data.dataset import Dataset
from linrank.data.synthetic import make_ranking
from linrank.parts.parts import only_queries
from linrank.parts.recipes import RankRecipe
from linrank.parts.risk import evaluate
from linrank.parts.validation import folds_of
from linrank.ranksvm.path import as_Cs
from linrank.search.folds import as_folds
from path_searches import path_over, tune
from plain_gathering import MemoryParts
from small_data import weighted
from strategies import datasets

GRID = as_Cs([1e-3, 0.03, 1.0])


def in_parts(data: Dataset, n_parts: int) -> list[Dataset]:
    """Consecutive whole queries; more parts than queries leave some of them out."""
    queries = np.array_split(np.arange(data.queries.n_queries), n_parts)
    return [only_queries(data, part) for part in queries if len(part)]


def larger(seed: int = 0, **options) -> Dataset:
    return make_ranking(40, (3, 14), 6, noise=1.0, random_state=seed, dtype="float64", **options)


# ---- paths --------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_parts", [1, 3, 12])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"scale": "standard"},
        {"scale": "query"},
        {"positive": True, "scale": "minmax"},
        {"loss": "hinge"},
        {"pairs": "adjacent", "query_normalization": "pairs"},
    ],
    ids=str,
)
def test_a_path_over_parts_is_the_path(n_parts, options):
    data = weighted(larger(1))
    tol = 1e-5 if options.get("loss") == "hinge" else 1e-10
    truth, scaling = path_over(data, GRID, tol=tol, **options)
    found, same = path_over(MemoryParts(in_parts(data, n_parts)), GRID, tol=tol, **options)
    assert found.converged.all()
    if "loss" in options:
        gaps = found.gaps + truth.gaps
        assert (np.abs(found.objectives - truth.objectives) <= gaps).all()
    else:
        assert_allclose(found.coefs, truth.coefs, rtol=1e-8, atol=1e-10)
        assert_allclose(found.objectives, truth.objectives, rtol=1e-12)
    if scaling.factors is not None:
        assert_allclose(same.factors, scaling.factors)


def test_a_model_that_serves_the_next_C_costs_no_pass():
    """Neighboring values of C: the second model is the first, without a task."""
    parts = MemoryParts(in_parts(larger(), 3))
    found, _ = path_over(parts, as_Cs([0.1, 0.1 * (1 + 1e-9)]), tol=1e-6)
    assert found.n_hvp[1] == 0
    assert_array_equal(found.coefs[0], found.coefs[1])


def test_a_callback_ends_the_path():
    parts = MemoryParts(in_parts(larger(), 3))
    seen = []
    found, _ = path_over(parts, GRID, callback=lambda s: seen.append(s["C"]) or s["C"] > 0.01)
    assert len(found) == 2
    assert set(seen) == {1e-3, 0.03}


# ---- chunks of a fold ---------------------------------------------------------------------------


@given(datasets(max_rows=24, weights=True), st.integers(0, 2**32 - 1))
def test_the_chunk_of_a_fold_is_that_of_its_queries_alone(data, seed):
    rng = np.random.default_rng(seed)
    kept = rng.random(data.queries.n_queries) < 0.6
    recipe = RankRecipe(pair_weighting="grade_diff", query_normalization="pairs")
    chunk = recipe.chunk(data, 1, kept)
    assert chunk.rows is data.rows  # not copied
    w = rng.standard_normal(data.n_features)
    found = evaluate(chunk, w, 1.0)
    assert chunk.sizes.n_queries == kept.sum()
    assert chunk.sizes.n_rows == np.diff(data.queries.offsets)[kept].sum()
    if chunk.terms is None:
        assert found.value == 0.0
        return
    alone = recipe.chunk(only_queries(data, np.flatnonzero(kept)))
    truth = evaluate(alone, w, 1.0)
    assert_array_equal(chunk.sizes.n_levels, alone.sizes.n_levels)
    assert chunk.sizes.weight == alone.sizes.weight
    assert found.value == truth.value
    assert_allclose(found.gradient, truth.gradient, rtol=1e-12, atol=1e-12)


# ---- cross-validation ---------------------------------------------------------------------------


@pytest.mark.parametrize("n_parts", [1, 3, 17])
@pytest.mark.parametrize(
    ("scoring", "scale"),
    [
        ("ndcg@10", "none"),
        ("err@5", "standard"),
        ("pairwise_accuracy", "minmax"),
        ("all_pairs_error", "query"),
    ],
)
def test_scores_are_those_in_memory(n_parts, scoring, scale):
    data = larger(2)
    options = {"scoring": scoring, "scale": scale, "tol": 1e-10}
    truth = tune(data, as_folds(4, data, data.X), GRID, n_jobs=1, **options)
    parts = MemoryParts(in_parts(data, n_parts))
    found = tune(parts, folds_of(4, parts), GRID, **options)
    assert_allclose(found.scores, truth.scores, rtol=1e-12)
    assert found.chosen == truth.chosen


def test_queries_in_another_order_than_parts_have_the_same_folds():
    """As after split queries were moved: the numbers of queries are those of the input."""
    data = larger(3)
    order = np.random.default_rng(0).permutation(40)
    chosen = [np.sort(part) for part in np.array_split(order, 5)]
    parts = MemoryParts([only_queries(data, part) for part in chosen])
    parts.query_numbers = chosen
    truth = tune(data, as_folds(3, data, data.X), GRID, n_jobs=1, tol=1e-10)
    found = tune(parts, folds_of(3, parts), GRID, tol=1e-10)
    assert_allclose(found.scores, truth.scores, rtol=1e-12)


@pytest.mark.parametrize(
    "cv",
    [
        QueryKFold(3, shuffle=True, random_state=5),
        "pairs",
        "validation",
    ],
    ids=str,
)
def test_folds_of_other_kinds(cv):
    data, other = larger(4), larger(5)
    if cv == "pairs":
        cv = list(QueryKFold(3).split(data.X, data.y, data.qid))
    elif cv == "validation":
        cv = (other.X, other.y, other.qid)
    parts = MemoryParts(in_parts(data, 3))
    truth = tune(data, as_folds(cv, data, data.X), GRID, n_jobs=1, tol=1e-10)
    found = tune(parts, folds_of(cv, parts), GRID, tol=1e-10)
    assert_allclose(found.scores, truth.scores, rtol=1e-12)


@pytest.mark.parametrize(
    ("cv", "message"),
    [(1, "at least 2 folds"), (41, "40 queries cannot fill 41 folds"), ("5", "cv must be")],
)
def test_folds_that_cannot_be(cv, message):
    parts = MemoryParts(in_parts(larger(), 3))
    with pytest.raises((ValueError, TypeError), match=message):
        folds_of(cv, parts)


def test_a_fold_with_a_part_of_a_query_is_refused():
    data = larger()
    rows = np.arange(data.n_rows)
    with pytest.raises(ValueError, match="some of the rows of a query"):
        folds_of([(rows[1:-30], rows[-1:])], MemoryParts(in_parts(data, 2)))


def test_one_query_cannot_be_dealt_out():
    data = Dataset.of(np.eye(6), np.arange(6))
    with pytest.raises(ValueError, match="without qid all rows of parts are one"):
        folds_of(3, MemoryParts([data]))
