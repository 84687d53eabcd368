"""Training on chunks, and on rows that lie elsewhere: the same answer as in memory."""

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

from dataset_parts import BufferedParts, in_parts
from linrank import make_ranking
from linrank.data.dataset import Dataset, as_sparse
from linrank.data.scaling import Scaling
from linrank.domination.train import train as train_domination
from linrank.errors import NoPairsError
from linrank.parts import risk as tasks
from linrank.parts.gathered_rows import GatheredRows, gather_rows
from linrank.parts.parts import GROUP, MemoryChunks, tree_sum
from linrank.parts.passes import Passes, plan_passes, sample_capacity
from linrank.parts.recipes import DominationRecipe, RankRecipe
from linrank.parts.risk import ChunkedProblem, sizes_of
from linrank.parts.train import train_chunks
from linrank.ranksvm.path import as_Cs
from linrank.ranksvm.train import Problem, train
from linrank.system.reading import Plan
from path_searches import path_over
from plain_gathering import PlainGathering, cut
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


def assert_near(found: Any, expected: Any) -> None:
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-10 * np.abs(expected).max())


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
    assert_near(found.w, whole.w)


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
    assert n_reads[0] >= n_reads[1] > n_reads[2] > n_reads[3] == 6


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
    assert_near(found.w, train_chunks(others, kind(), tol=TOL)[0].w)


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
