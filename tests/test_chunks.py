"""Training on chunks, and on rows elsewhere, with paths and folds: the same answer as in memory."""

from __future__ import annotations

import pickle
import re
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from scipy.sparse import csr_array

import linrank
import papers
from dataset_parts import BufferedParts, MemoryParts, PlainGathering, cut, in_parts
from linrank import QueryKFold, make_ranking
from linrank.data.dataset import Dataset, as_sparse
from linrank.data.scaling import Scaling
from linrank.domination.train import train as train_domination
from linrank.errors import NoPairsError
from linrank.io.store.store import Store
from linrank.losses.swaps import LONGEST
from linrank.parts import risk as tasks
from linrank.parts.gathered_rows import GatheredRows, gather_rows
from linrank.parts.parts import GROUP, MemoryChunks, only_queries, tree_sum
from linrank.parts.passes import Passes, plan_passes, sample_capacity
from linrank.parts.recipes import DominationRecipe, RankRecipe, rank_recipe
from linrank.parts.risk import ChunkedProblem, evaluate, sizes_of
from linrank.parts.train import swap_recipe, train_chunks, train_parts
from linrank.parts.validation import folds_of
from linrank.ranksvm.path import as_Cs
from linrank.ranksvm.train import FIRST, SAMPLE_SEED, Problem, swapped_pairs, train
from linrank.search.folds import as_folds
from linrank.system.reading import Plan
from path_searches import path_over, tune
from small_data import small, weighted
from stored_data import dense
from strategies import datasets

PARTS = [1, 2, 5, 17]
TOL = 1e-14


def dataset(seed: int = 0, *, is_sparse: bool = False, weighted: bool = False) -> Dataset:
    made = make_ranking(n_queries=60, n_features=7, random_state=seed)
    X = csr_array(np.where(np.abs(made.X) < 0.5, 0.0, made.X)) if is_sparse else made.X
    rng = np.random.default_rng(seed)
    weight = rng.integers(0, 3, len(made.y)).astype(float) if weighted else None
    return Dataset.of(X, made.y, qid=made.qid, sample_weight=weight)


def memory_chunks(recipe: Any, parts: list[Dataset]) -> MemoryChunks:
    return MemoryChunks([recipe.chunk(part) for part in parts])


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=70))
def test_sums_of_groups_have_the_bits_of_the_tree(values: list[float]) -> None:
    groups = [values[i : i + GROUP] for i in range(0, len(values), GROUP)]
    assert tree_sum(tree_sum(group) for group in groups) == tree_sum(values)
    with pytest.raises(ValueError, match="no part"):
        tree_sum([])


def assert_same(found: Any, expected: Any, tol: float = 1e-9) -> None:
    found, expected = np.asarray(found), np.asarray(expected)
    assert_allclose(found, expected, rtol=0, atol=tol * np.abs(expected).max())


PLAIN = {"query_normalization": None}
BOX = {"scale": np.linspace(0.5, 2.0, 7), "bounds": (np.full(7, -0.1), np.full(7, 0.2))}


FITS = {
    RankRecipe: train,
    DominationRecipe: partial(train_domination, penalty="l2", solver="newton"),
}


@pytest.mark.parametrize("k", PARTS)
@pytest.mark.parametrize(
    ("kind", "data", "own", "given"),
    [
        (RankRecipe, dataset(weighted=True), PLAIN, {"C": 0.1}),
        (RankRecipe, dataset(weighted=True), {**PLAIN, "pairs": "adjacent"}, {"C": 0.1}),
        (RankRecipe, dataset(weighted=True), {**PLAIN, "pair_weighting": "gain_diff"}, {"C": 0.1}),
        (RankRecipe, dataset(3, is_sparse=True), {"query_normalization": "pairs"}, {"C": 5.0}),
        (RankRecipe, dataset(4), {}, {"C": 0.1, **BOX}),
        *(
            (DominationRecipe, dataset(2, weighted=True), {"margin": margin}, {"alpha": 2.0})
            for margin in (None, 1.0, ("linear", 2.0))
        ),
    ],
)
def test_training_on_chunks_is_that_of_the_whole(k: int, kind: Any, data: Dataset, own, given):
    """Some of the chunks are sparse."""
    whole, recipe = FITS[kind](data, tol=TOL, n_jobs=1, **own, **given), kind(**own)
    parts = [
        replace(part, rows=as_sparse(part.rows)) if i % 2 else part
        for i, part in enumerate(in_parts(data, k))
    ]
    found, _ = train_chunks(memory_chunks(recipe, parts), recipe, tol=TOL, **given)
    assert_same(found.w, whole.w)


def test_what_is_kept_changes_no_bit_and_saves_reading() -> None:
    parts = in_parts(dataset(5), 6)
    recipe = RankRecipe()
    in_memory, _ = train_chunks(memory_chunks(recipe, parts), recipe, C=0.1)
    n_reads = []
    for n_buffers, n_states, n_kept in [(2, 0, 0), (2, 3, 0), (3, 6, 2), (2, 6, 6)]:
        source = BufferedParts(parts)
        with Passes(source, recipe, Plan(n_buffers, n_states, n_kept), 2) as passes:
            found, _ = train_chunks(passes, recipe, C=0.1)
            n_bytes = passes.n_read
        np.testing.assert_array_equal(found.w, in_memory.w)
        assert found.history["objective"] == in_memory.history["objective"]
        n_reads.append(source.n_read)
    assert n_bytes == source.nbytes  # where all is kept, it is read once
    # The last pass may leave a chunk that was read ahead, or one that was not begun.
    assert abs(n_reads[0] - n_reads[1]) <= 1
    assert n_reads[1] > n_reads[2] > n_reads[3] == 6


def test_a_kept_state_keeps_no_rows() -> None:
    """Rows scaled by query are a copy of a chunk, which the budget does not have for a state."""
    parts, recipe = in_parts(dataset(6), 4), RankRecipe(by_query=True)
    with Passes(BufferedParts(parts), recipe, Plan(2, 3, 1)) as passes:
        passes.total(tasks.evaluate, np.ones(7), 1.0)
        kept = [passes._reader.here[0], *(passes._states[i] for i in (1, 2))]
    assert kept[0].rows.nbytes == parts[0].rows.nbytes
    for chunk in kept[1:]:
        assert chunk.state is not None
        assert chunk.rows.nbytes == 0
        assert chunk.rows.values.base is None  # no view of what is gone


def test_a_pass_over_some_chunks_reads_no_other() -> None:
    parts = in_parts(dataset(7), 5)
    recipe, source = RankRecipe(), BufferedParts(parts)
    with Passes(source, recipe, Plan(2, 0, 0)) as passes:
        own = [None, (), None, None, ()]
        found = passes.each(tasks.sizes, per_chunk=own)
        assert [None if size is None else size.n_rows for size in found] == [
            None if mine is None else part.n_rows for mine, part in zip(own, parts, strict=True)
        ]
        # What was read ahead for a whole pass is let go for one that begins elsewhere.
        again = passes.each(tasks.sizes, per_chunk=[None, None, (), (), None])
        assert [size is None for size in again] == [True, True, False, False, True]
        assert len(passes.total(tasks.evaluate, np.ones(7), 1.0).gradient) == 7


def test_the_hessian_is_formed_in_the_pass_of_the_gradient() -> None:
    class Counted(MemoryChunks):
        asked: ClassVar[list[str]] = []

        def total(self, task: Any, *args: Any) -> Any:
            self.asked.append(args[2] if task is tasks.curvature else task.__name__)
            return super().total(task, *args)

    recipe = RankRecipe()
    chunks = Counted([recipe.chunk(part) for part in in_parts(dataset(13), 3)])
    found, _ = train_chunks(chunks, recipe, C=0.1)
    assert "hessian_matrix" not in Counted.asked
    # A pass for the start, one for each trial, one for each product: no others.
    assert Counted.asked.count("hessian_product") == found.n_hvp
    assert Counted.asked.count("evaluate") <= 1 + found.n_iter + 2


def test_a_fault_in_reading_is_raised_where_it_is_needed() -> None:
    class Broken(BufferedParts):
        def read(self, i: int, *, into: Any = None) -> Dataset:
            if i == 2:
                raise OSError("no such chunk")
            return super().read(i, into=into)

    recipe = RankRecipe()
    with (
        Passes(Broken(in_parts(dataset(8), 4)), recipe, Plan(2, 0, 0)) as passes,
        pytest.raises(OSError, match="no such chunk"),
    ):
        train_chunks(passes, recipe)


def test_a_sample_of_chunks_is_that_of_the_whole() -> None:
    data = make_ranking(n_queries=40, rows_per_query=(100, 300), n_features=4, random_state=0)
    whole = Problem.of(data, 2.0, n_jobs=1).sample(1500)
    recipe = RankRecipe()
    gathering = memory_chunks(recipe, in_parts(data, 7))
    problem = ChunkedProblem(gathering, recipe, sizes_of(gathering), 2.0)
    part = problem.sample(1500)
    assert isinstance(part, Problem)
    w = np.ones(4)
    assert pytest.approx(whole.C, rel=1e-12) == part.C
    assert part.objective().at(w).value == pytest.approx(whole.objective().at(w).value, rel=1e-12)
    np.testing.assert_array_equal(part.rows.values, whole.rows.values[whole.pairs.queries.order])


def test_chunks_without_pairs_add_nothing() -> None:
    flat = Dataset.of(np.ones((5, 7)), np.zeros(5), qid=["x"] * 5)
    single = Dataset.of(np.ones((1, 7)), [1.0], qid=["y"])
    w = np.linspace(-1, 1, 7)
    for recipe in (RankRecipe(), DominationRecipe()):
        some = memory_chunks(recipe, [dataset(9)])
        more = memory_chunks(recipe, [flat, dataset(9), single])
        for args in ((w, 1.0, True), (w, 1.0)):
            one, other = (chunks.total(tasks.evaluate, *args) for chunks in (some, more))
            assert one.value == other.value
            np.testing.assert_array_equal(one.gradient, other.gradient)
        for what in (("hessian_product", w), ("hessian_matrix",), ("hessian_diagonal",)):
            one, other = (c.total(tasks.curvature, w, 1.0, *what) for c in (some, more))
            np.testing.assert_array_equal(one, other)
        with pytest.raises(NoPairsError, match="none of the 2 queries in 2 chunks"):
            train_chunks(memory_chunks(recipe, [flat, single]), recipe)


def test_a_chunk_that_travels_leaves_its_state_behind() -> None:
    for recipe in (RankRecipe(), RankRecipe(loss="hinge"), DominationRecipe(margin=1.0)):
        chunk = recipe.chunk(dataset(10, weighted=True))
        w = np.ones(7)
        before = tasks.curvature(chunk, w, 1.0, "hessian_product", w)
        assert chunk.state is not None
        travelled = pickle.loads(pickle.dumps(chunk))
        assert travelled.state is None
        np.testing.assert_array_equal(
            tasks.curvature(travelled, w, 1.0, "hessian_product", w), before
        )
        assert pickle.loads(pickle.dumps(recipe)).seed == recipe.seed


def test_state_is_of_its_weights_and_smoothing() -> None:
    chunk = RankRecipe(loss="hinge").chunk(dataset(11))
    w = np.linspace(0, 1, 7)
    first = chunk.at(w, 1.0, 1)
    assert chunk.at(w.copy(), 1.0, 1) is first
    assert chunk.at(w, 0.5, 1) is not first
    w[0] = 3.0  # the state must not follow a vector that its owner changes
    assert chunk.at(w, 1.0, 1).point.value != first.point.value


def test_a_plan_shares_out_what_there_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("linrank.parts.passes.SPARE", 0)  # more than all of these chunks
    source = BufferedParts(in_parts(dataset(12), 8))
    recipe, largest = RankRecipe(), max(chunk.nbytes for chunk in source.chunks)
    with pytest.raises(MemoryError, match=r"is too small: training .* beyond what") as told:
        plan_passes(source, largest, recipe)
    least = re.search(r"allow (\S+), or write the store with smaller chunks", str(told.value))
    assert least is not None
    tight = plan_passes(source, least[1], recipe)
    assert (tight.n_buffers, tight.n_states, tight.n_kept) == (2, 0, 0)
    assert plan_passes(source, 10**9, recipe) == Plan(3, 8, 8)
    assert plan_passes(source, 10**9) == Plan(3, 0, 0)  # data sets are read once
    assert sample_capacity(source) * 28 <= largest < (sample_capacity(source) + 1) * 28


@pytest.mark.parametrize("kind", [RankRecipe, DominationRecipe])
def test_queries_of_a_chunk_may_all_have_weight_zero(kind: Any) -> None:
    parts = in_parts(dataset(), 5)
    weight = {id_: float(k != 2) for k, part in enumerate(parts) for id_ in part.queries.ids}
    recipe = kind(query_weight=weight)
    found, _ = train_chunks(memory_chunks(recipe, parts), recipe, tol=TOL)
    others = memory_chunks(kind(), parts[:2] + parts[3:])
    assert_same(found.w, train_chunks(others, kind(), tol=TOL)[0].w)


def giant(n_rows: int = 400, n_features: int = 5, seed: int = 0) -> Dataset:
    """One query: labels of four grades that a linear function explains in part."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n_rows, n_features))
    utility = X @ rng.standard_normal(n_features) + rng.standard_normal(n_rows)
    return Dataset.of(X, np.digitize(utility, [-1.0, 0.5, 2.0]))


def lazily(data: Dataset, n_blocks: int = 3) -> Dataset:
    return gather_rows(PlainGathering(cut(data, n_blocks)))


# ---- the products -------------------------------------------------------------------------------


@given(datasets(max_rows=20), st.integers(1, 5), st.integers(0, 2**32 - 1))
def test_products_are_those_of_the_rows_together(data, n_blocks, seed):
    """Of all rows, and of those that are taken where they are."""
    rng = np.random.default_rng(seed)
    rows = lazily(data, min(n_blocks, data.n_rows)).rows
    assert isinstance(rows, GatheredRows)
    assert rows.shape == data.rows.shape
    index = rng.permutation(data.n_rows)[: rng.integers(1, data.n_rows + 1)]
    coefs = rng.standard_normal((3, data.n_features))
    for found, truth in ((rows, data.rows), (rows.take(index), data.rows.take(index))):
        n_rows = truth.shape[0]
        order = rng.permutation(n_rows)[: rng.integers(1, n_rows + 1)]
        r = rng.standard_normal(len(order))
        for by in (order, None):
            assert_array_equal(found.scores(coefs[0], by, 1), truth.scores(coefs[0], by, 1))
        gradient = truth.gradient(r, order, 1)
        assert_allclose(found.gradient(r, order, 1), gradient, rtol=1e-12, atol=1e-12)
        each = [truth.scores(coef, None, 1) for coef in coefs]
        assert_array_equal(found.score_matrix(coefs, 1), each)
        stored = found.stored(order, 1)
        assert isinstance(stored, type(data.rows))
        assert_array_equal(dense(stored.to_user()), dense(truth.take(order).to_user()))


@pytest.mark.parametrize("kind", ["standard", "minmax"])
def test_scaling_is_that_of_the_rows_together(kind):
    data = weighted(small(3))
    part = np.arange(5, data.n_rows, 2)
    for truth, lazy in [(data, lazily(data)), (data.select(part), lazily(data).select(part))]:
        expected = Scaling.fit(kind, truth.rows, weight=truth.weight).factors
        assert_allclose(Scaling.fit(kind, lazy.rows, weight=lazy.weight).factors, expected)


# ---- training -----------------------------------------------------------------------------------


def wide() -> Dataset:
    """Sparse rows of many features, which need no Hessian."""
    rng = np.random.default_rng(0)
    X = sparse.random_array((60, 5000), density=0.01, rng=rng, format="csr")
    return Dataset.of(X, rng.integers(0, 3, 60))


@pytest.mark.parametrize(
    ("data", "options"), [(giant(), {"scale": "standard"}), (wide(), {})], ids=["giant", "wide"]
)
def test_a_path_is_that_in_memory(data, options):
    Cs = as_Cs([1e-4, 1e-3, 1e-2])
    truth, _ = path_over(data, Cs, tol=1e-10, **options)
    found, _ = path_over(lazily(data), Cs, tol=1e-10, **options)
    assert found.converged.all()
    assert_allclose(found.coefs, truth.coefs, rtol=1e-4, atol=1e-7)


@pytest.mark.parametrize("n_blocks", [1, 2, 7])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"pairs": "adjacent"},
        {"pairs": "pruned", "seed": 3},
        {"pair_weighting": "gain_diff"},
        {"scale": np.linspace(0.5, 2.0, 5)},
        {"bounds": (np.zeros(5), np.full(5, np.inf))},
    ],
    ids=str,
)
def test_a_giant_query_is_learnt_as_in_memory(n_blocks, options):
    data = giant()
    truth = train(data, C=0.01, tol=1e-15, **options)
    found = train(lazily(data, n_blocks), C=0.01, tol=1e-15, **options)
    assert_allclose(found.w, truth.w, rtol=1e-9, atol=1e-11)
    assert_allclose(found.value, truth.value, rtol=1e-12)


@pytest.mark.parametrize("data", [small(1), weighted(small(2))])
def test_queries_that_are_cut_by_blocks_are_whole_again(data):
    rng = np.random.default_rng(0)
    shuffled = data.select(rng.permutation(data.n_rows))
    truth = train(shuffled, C=0.3, tol=1e-13)
    found = train(lazily(shuffled, 5), C=0.3, tol=1e-13)
    assert_allclose(found.w, truth.w, rtol=1e-9)


def test_a_product_costs_a_gather_and_a_scatter():
    gathering = PlainGathering(cut(giant(), 4))
    data = gather_rows(gathering)
    point = Problem.of(data, 1.0).objective().at(np.ones(5))
    _ = point.gradient
    gathering.asked.clear()
    point.hvp(np.ones(5))
    assert gathering.asked == {"block_score_matrix": 1, "block_slopes": 1}


# ---- what cannot be put together ----------------------------------------------------------------


def test_ids_of_blocks_of_several_types_are_not_merged() -> None:
    ids = [np.array([2**53, 2**53 + 1]), np.array([0.0, 2.0**53]), np.array([1, 2], np.uint64)]
    blocks = [Dataset.of(np.eye(2), [0, 1], qid=qid) for qid in ids]
    together = gather_rows(PlainGathering(blocks))
    assert together.queries.ids is not None
    assert together.queries.ids.tolist() == [2**53, 2**53 + 1, 0.0, 1, 2]


# ---- paths and folds over parts ------------------------------------------------------------------

GRID = as_Cs([1e-3, 0.03, 1.0])
UNCERTAIN = pytest.mark.filterwarnings("ignore::linrank.ConvergenceWarning")


def made(n_queries: int = 40, longest: int = 14, seed: int = 0) -> Dataset:
    data = linrank.make_ranking(
        n_queries, (1, longest), 6, noise=1.0, random_state=seed, dtype="float64"
    )
    weight = np.random.default_rng(seed).integers(1, 3, data.n_rows).astype(float)
    return Dataset.of(data.X, data.y, qid=data.qid, sample_weight=weight)


def in_memory(data: Dataset, n_parts: int) -> MemoryParts:
    return MemoryParts(in_parts(data, n_parts))


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
    found, same = path_over(in_memory(data, n_parts), GRID, tol=tol, **options)
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
    found, _ = path_over(in_memory(made(), 3), as_Cs([0.1, 0.1 * (1 + 1e-9)]), tol=1e-6)
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
    check_scores(4, data, in_memory(data, n_parts), scoring=scoring, **options)


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
        check_scores(cv, data, in_memory(data, 3))


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
        folds_of(cv, in_memory(made(), 3))


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
    found, n_pairs = train_parts(in_memory(data, n_parts), recipe, scale, w0=None, **solving)
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
    parts = in_memory(Dataset.of(data.X, labels, qid=data.qid), 3)
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
    parts = in_memory(data, 3)
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
    parts = in_memory(made(), 2)
    parts.opened = None  # a pass would fail
    parts.lengths = [np.array([LONGEST + 1])]
    with pytest.raises(ValueError, match="name a cut-off, as in 'map@100'"):
        swap_recipe(parts, RankRecipe(pair_weighting="map"))


def test_weights_that_are_all_zero_are_an_error() -> None:
    data = made()
    with pytest.raises(linrank.NoPairsError, match="weight zero"):
        train(data, pair_weighting="p(rel=9)@5", C=FIRST, n_jobs=1)
    with pytest.raises(linrank.NoPairsError, match="a weight"):
        path_over(in_memory(data, 2), SWAP_GRID, pair_weighting="p(rel=9)@5")
