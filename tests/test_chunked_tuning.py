"""Paths and cross-validation over parts: the numbers of the same data in memory."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

import linrank
import papers
from dataset_parts import in_parts
from linrank import QueryKFold
from linrank.data.dataset import Dataset
from linrank.data.scaling import Scaling
from linrank.io.store.store import Store
from linrank.losses.swaps import LONGEST
from linrank.parts.parts import only_queries
from linrank.parts.recipes import RankRecipe, rank_recipe
from linrank.parts.risk import ChunkedProblem, evaluate, sizes_of
from linrank.parts.train import swap_recipe, train_parts
from linrank.parts.validation import folds_of
from linrank.ranksvm.path import as_Cs
from linrank.ranksvm.train import FIRST, SAMPLE_SEED, Problem, swapped_pairs, train
from linrank.search.folds import as_folds
from linrank.system.reading import Plan
from path_searches import path_over, tune
from plain_gathering import MemoryParts
from strategies import datasets

GRID = as_Cs([1e-3, 0.03, 1.0])
UNCERTAIN = pytest.mark.filterwarnings("ignore::linrank.ConvergenceWarning")


def made(n_queries: int = 40, longest: int = 14, seed: int = 0) -> Dataset:
    data = linrank.make_ranking(
        n_queries, (1, longest), 6, noise=1.0, random_state=seed, dtype="float64"
    )
    weight = np.random.default_rng(seed).integers(1, 3, data.n_rows).astype(float)
    return Dataset.of(data.X, data.y, qid=data.qid, sample_weight=weight)


def cut(data: Dataset, n_parts: int) -> MemoryParts:
    return MemoryParts(in_parts(data, n_parts))


def assert_same(found: Any, expected: Any, tol: float = 1e-9) -> None:
    found, expected = np.asarray(found), np.asarray(expected)
    assert_allclose(found, expected, rtol=0, atol=tol * np.abs(expected).max())


# ---- paths --------------------------------------------------------------------------------------


@UNCERTAIN
@pytest.mark.parametrize("n_parts", [1, 3, 12])
@pytest.mark.parametrize(
    "options",
    [
        {},
        *({"scale": "standard", "pair_weighting": name} for name in ("uniform", "ndcg@5", "err@4")),
        {"scale": "query"},
        {"positive": True, "scale": "minmax"},
        {"loss": "hinge"},
        {"pairs": "adjacent", "query_normalization": "pairs"},
    ],
    ids=str,
)
def test_a_path_over_parts_is_the_path(n_parts, options):
    data = made(seed=1)
    tol = 1e-5 if options.get("loss") == "hinge" else 1e-10
    truth, scaling = path_over(data, GRID, tol=tol, **options)
    found, same = path_over(cut(data, n_parts), GRID, tol=tol, **options)
    assert found.converged.all()
    if "loss" in options:
        gaps = found.gaps + truth.gaps
        assert (np.abs(found.objectives - truth.objectives) <= gaps).all()
    else:
        assert_same(found.coefs, truth.coefs)
        assert_allclose(found.objectives, truth.objectives, rtol=1e-12)
    if scaling.factors is not None:
        assert_allclose(same.factors, scaling.factors)


def test_a_model_that_serves_the_next_C_costs_no_pass():
    """Neighboring values of C: the second model is the first, without a task."""
    found, _ = path_over(cut(made(), 3), as_Cs([0.1, 0.1 * (1 + 1e-9)]), tol=1e-6)
    assert found.n_hvp[1] == 0
    assert_array_equal(found.coefs[0], found.coefs[1])


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


def check_scores(cv, data, parts, **options):
    options = {"tol": 1e-10, **options}
    truth = tune(data, as_folds(cv, data, data.X), GRID, n_jobs=1, **options)
    found = tune(parts, folds_of(cv, parts), GRID, **options)
    assert_allclose(found.scores, truth.scores, rtol=1e-12)
    assert found.chosen == truth.chosen


@UNCERTAIN
@pytest.mark.parametrize("n_parts", [1, 3, 17])
@pytest.mark.parametrize(
    ("scale", "weighting", "scoring"),
    [
        ("none", "uniform", "ndcg@10"),
        ("standard", "ndcg@5", "err@5"),
        ("minmax", "err@4", "pairwise_accuracy"),
        ("query", "uniform", "all_pairs_error"),
    ],
)
def test_scores_are_those_in_memory(n_parts, scale, weighting, scoring):
    data, options = made(seed=2), {"pair_weighting": weighting, "scale": scale}
    check_scores(4, data, cut(data, n_parts), scoring=scoring, **options)


def test_queries_in_another_order_than_parts_have_the_same_folds():
    """As after split queries were moved: the numbers of queries are those of the input."""
    data = made(seed=3)
    order = np.random.default_rng(0).permutation(40)
    chosen = [np.sort(part) for part in np.array_split(order, 5)]
    parts = MemoryParts([only_queries(data, part) for part in chosen])
    parts.query_numbers = chosen
    check_scores(3, data, parts)


def test_folds_of_other_kinds():
    data, other = made(seed=4), made(seed=5)
    shuffled = QueryKFold(3, shuffle=True, random_state=5)
    splits = list(QueryKFold(3).split(data.X, data.y, data.qid))
    for cv in (shuffled, splits, (other.X, other.y, other.qid)):
        check_scores(cv, data, cut(data, 3))


ROWS = np.arange(made().n_rows)


@pytest.mark.parametrize(
    ("cv", "message"),
    [
        (1, "at least 2 folds"),
        (41, "40 queries cannot fill 41 folds"),
        ("5", "cv must be"),
        ([(ROWS[1:-30], ROWS[-1:])], "some of the rows of a query"),
    ],
    ids=lambda cv: str(cv)[:9],
)
def test_folds_that_cannot_be(cv, message):
    with pytest.raises((ValueError, TypeError), match=message):
        folds_of(cv, cut(made(), 3))


def test_one_query_cannot_be_dealt_out():
    data = Dataset.of(np.eye(6), np.arange(6))
    with pytest.raises(ValueError, match="without qid all rows of parts are one"):
        folds_of(3, MemoryParts([data]))


# ---- pairs weighted by a measure ----------------------------------------------------------------

SWAP_GRID = as_Cs([1e-2, 0.3])


@UNCERTAIN
@pytest.mark.parametrize("n_parts", [1, 4])
@pytest.mark.parametrize(
    "options",
    [
        {"pair_weighting": "ndcg@5"},
        {"pair_weighting": "ndcg@5", "C": 0.3, "n_rounds": 3},
        {"pair_weighting": "map", "query_normalization": "pairs"},
        {"pair_weighting": "err@4", "C": 2.0},
        {"pair_weighting": "uniform"},
        {"pair_weighting": "p@3", "bounds": (np.full(6, -0.05), np.full(6, 0.3))},
    ],
    ids=lambda options: "-".join(map(str, list(options.values())[:2])),
)
def test_parts_find_what_memory_finds(n_parts: int, options: dict[str, Any]) -> None:
    data = made()
    query_weight = {q: 0.5 + q % 3 for q in data.queries.ids.tolist()}
    scale = Scaling.fit("standard", data.rows, weight=data.weight, n_jobs=1)
    solving = {"C": options.pop("C", FIRST), "bounds": options.pop("bounds", None), "tol": 1e-14}
    weights = np.array(list(query_weight.values()))
    own = {**options, "query_weight": weights, "scale": scale.factors, "n_jobs": 1}
    whole = train(data, **own, **solving)
    recipe = rank_recipe("parts", query_weight, **options)
    found, n_pairs = train_parts(cut(data, n_parts), recipe, scale, w0=None, **solving)
    assert_same(found.w, whole.w)
    assert_allclose([found.C, found.value], [whole.C, whole.value], rtol=1e-12)
    assert n_pairs == data.queries.n_pairs


@UNCERTAIN
@pytest.mark.parametrize("scale", ["standard", "query"])
def test_passes_over_a_store_find_what_memory_finds(
    scale: str, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = made(200)
    store = Store.of(tmp_path / "store", data, chunk_bytes=10_000)
    assert store.n_chunks > 4
    ranker = papers.RankSVM(C="auto", pair_weighting="ndcg@10", tol=1e-14, scale=scale)
    whole = ranker.fit(data.X, data.y, qid=data.qid, sample_weight=data.weight)
    expected, training, n_pairs = whole.coef_, whole.model_.training, whole.n_pairs_
    for plan in (None, Plan(n_buffers=2, n_states=1, n_kept=0)):
        if plan is not None:  # next to nothing is kept from pass to pass
            monkeypatch.setattr(Plan, "of", lambda *_, plan=plan, **sizes: plan)
        passes = ranker.set_params(memory_limit="64GB").fit(store)
        assert_same(passes.coef_, expected)
        assert_allclose(passes.model_.training["C"], training["C"])
        assert passes.n_pairs_ == n_pairs
    assert passes.model_.training["pair_weighting"] == "ndcg@10"


def test_the_highest_label_of_err_is_that_of_all_parts() -> None:
    """A part without the highest label weighs as the whole does, and a fold as its queries."""
    data = made()
    labels = np.minimum(data.labels, 2.0)
    labels[-3:] = 4.0  # of the last query
    parts = cut(Dataset.of(data.X, labels, qid=data.qid), 3)
    recipe, _, _ = swap_recipe(parts, RankRecipe(pair_weighting="err@4"))
    assert recipe.measure.y_max == 4.0
    kept = [np.ones(len(part), dtype=bool) for part in parts.lengths]
    kept[-1][:] = False
    recipe, _, _ = swap_recipe(parts.select(kept), RankRecipe(pair_weighting="err@4"))
    assert recipe.measure.y_max == 2.0


def test_samples_of_long_queries_keep_their_first_rows() -> None:
    """The sample over parts is that in memory, rows of the cut-off included."""
    data = made(8, longest=700)
    swaps, _ = swapped_pairs(data, "ndcg@20", n_jobs=1)
    truth = Problem(data.rows, swaps, 1.0, None, 1).sample(900)
    parts = cut(data, 3)
    recipe, _, _ = swap_recipe(parts, RankRecipe(pair_weighting="ndcg@20"))
    with parts.opened(recipe) as chunks:
        whole = ChunkedProblem(chunks, recipe, sizes_of(chunks), 1.0)
        found = whole.sample(900)
        assert recipe.seed == SAMPLE_SEED
        assert_allclose(whole.weight, swaps.total_weight())
    w = np.random.default_rng(0).normal(size=data.n_features)
    ours, theirs = found.objective().at(w), truth.objective().at(w)
    assert found.n_rows == truth.n_rows < data.n_rows
    assert_allclose(ours.value, theirs.value, rtol=1e-10)
    assert_same(ours.gradient, theirs.gradient)


def test_what_cannot_be_served_is_refused_before_a_pass() -> None:
    for options, message in (
        ({"pair_weighting": "auc"}, "ndcg, map"),
        ({"pair_weighting": "ndcg@5", "solver": "bundle"}, "use solver='newton'"),
        ({"pair_weighting": "ndcg@5", "n_rounds": 0}, "n_rounds"),
    ):
        with pytest.raises(ValueError, match=message):
            rank_recipe("parts", **options)
    parts = cut(made(), 2)
    parts.opened = None  # a pass would fail
    parts.lengths = [np.array([LONGEST + 1])]
    with pytest.raises(ValueError, match="name a cut-off, as in 'map@100'"):
        swap_recipe(parts, RankRecipe(pair_weighting="map"))


def test_weights_that_are_all_zero_are_an_error() -> None:
    data = made()
    with pytest.raises(linrank.NoPairsError, match="weight zero"):
        train(data, pair_weighting="p(rel=9)@5", C=FIRST, n_jobs=1)
    with pytest.raises(linrank.NoPairsError, match="a weight"):
        path_over(cut(data, 2), SWAP_GRID, pair_weighting="p(rel=9)@5")
