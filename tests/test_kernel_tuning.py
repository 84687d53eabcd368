"""The choice of C and γ: equal to separate fits, one kernel a γ, whatever memory and threads."""

import threading
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from linrank.choices import PAPERS
from linrank.data.dataset import Dataset
from linrank.data.rows import as_rows
from linrank.kernels.functions import Kernel
from linrank.kernels.matrices import BlockedMatrix
from linrank.kernels.train import train_kernel
from linrank.methods import kernel as kernel_tuning
from linrank.methods.base import Task
from linrank.methods.kernel import FoldKernels, Plan, as_gammas, tune_kernel
from linrank.methods.parameters import KernelSearch
from linrank.parts.parts import MemoryParts
from linrank.ranksvm.path import as_Cs
from linrank.search.folds import Fold, deal
from linrank.search.tuning import Judging, Tuning
from papers import KernelRankSVM, KernelRankSVMCV

pytestmark = pytest.mark.filterwarnings("ignore:the best", "ignore:every")

CS, GAMMAS = [0.03, 0.3, 3.0], [0.05, 0.5]
TIGHT = {"tol": 1e-9, "random_state": 0}


def curved(seed, n_queries=9, n_rows=8, n_features=3):
    """Queries whose best rows are in the middle, which no linear model can say."""
    rng = np.random.default_rng(seed)
    n = n_queries * n_rows
    X = rng.normal(size=(n, n_features))
    y = np.digitize(-np.abs(X).sum(axis=1) + 0.3 * rng.normal(size=n), [-3.0, -2.0, -1.5])
    return Dataset.of(X, y, qid=rng.permutation(np.repeat(np.arange(n_queries), n_rows)))


DATA = curved(0)


HELD_OUT = curved(1, n_queries=6)


def search(**params):
    params = {"Cs": CS, "gammas": GAMMAS, "cv": 3, **TIGHT, **params}
    return KernelRankSVMCV(**params).fit(DATA.X, DATA.y, qid=DATA.qid)


@pytest.fixture(scope="module")
def fitted():
    return search()


# ---- one kernel a γ -----------------------------------------------------------------------------


def test_matrices_that_do_not_fit_are_computed_in_blocks(monkeypatch):
    data, valid = curved(4, n_queries=42, n_rows=10), curved(5, n_queries=4)
    blocked, product = [], BlockedMatrix.product
    monkeypatch.setattr(
        BlockedMatrix, "product", lambda self, v: blocked.append(self.n) or product(self, v)
    )
    folds = [Fold(None, valid), Fold(np.arange(410), valid)]
    expected = tuned(data, folds, gammas=[0.5], tol=1e-5)
    assert not blocked
    limit = BlockedMatrix.bytes_needed(data.rows)
    assert limit < 8 * 410**2
    found = tuned(data, folds, gammas=[0.5], tol=1e-5, memory_limit=limit, n_jobs=1)
    assert set(blocked) == {410, 420}
    assert_allclose(found.scores, expected.scores, rtol=1e-3)
    with pytest.raises(MemoryError, match=r"memory_limit=1000, 1\.0 kB, is too small"):
        tuned(data, folds, memory_limit=1000)


@pytest.fixture
def computed(monkeypatch):
    """The shapes of all kernel matrices that are computed."""
    shapes, matrix = [], Kernel.matrix

    def spy(self, A, B, n_threads=1):
        shapes.append((A.shape[0], B.shape[0]))
        return matrix(self, A, B, n_threads)

    monkeypatch.setattr(Kernel, "matrix", spy)
    return shapes


FREE = {name: value for name, value in PAPERS.items() if name != "C"}


def tuned(data, folds=None, gammas=GAMMAS, **options):
    settings = {"Cs": CS, "gammas": gammas, "tol": 1e-9, "kernel": "rbf", **FREE, **options}
    folds = deal(data, 3) if folds is None else folds
    task = Task(MemoryParts(data, 1), KernelSearch(**settings))
    return tune_kernel(task, None, folds, Judging(), seed=0)


def test_one_kernel_is_computed_for_each_gamma(computed, fitted):
    n = DATA.n_rows
    assert_allclose(tuned(DATA).scores, fitted.scores_, rtol=1e-12)
    assert computed == [(n, n)] * len(GAMMAS)


def test_folds_compute_their_own_where_scaling_or_memory_keep_them_apart(computed):
    parts = [(len(fold.train), len(fold.valid)) for fold in deal(DATA, 3)]
    both = [shape for t, v in parts for shape in ((t, t), (v, t))]
    tuned(DATA, scale="standard", n_jobs=1)
    assert computed == both * len(GAMMAS)
    computed.clear()
    tuned(DATA, memory_limit=8 * 48**2, n_jobs=1)
    assert computed == both * len(GAMMAS)


def test_the_plan_is_what_fits():
    folds = deal(DATA, 3)
    n, t = DATA.n_rows, 48
    assert [len(fold.train) for fold in folds] == [t] * 3

    def plan(limit, data=DATA, kernel="rbf", scale="none", folds=folds):
        found = Plan.of(Kernel(kernel), data, folds, scale, limit)
        return found.shares, found.n_folds

    whole, own = 8 * n * n, 8 * t * t
    assert plan(whole + own) == (True, 1)
    assert plan(whole + 3 * own) == (True, 3)
    assert plan(whole + own - 1) == (False, 3)
    assert plan(2 * own) == (False, 2)
    assert plan(own) == plan(1) == (False, 1)
    assert plan(10 * whole, scale="standard") == (False, 3)
    assert plan(10 * whole, scale="query")[0]
    assert not plan(10 * whole, replace(DATA, qid=None), scale="query")[0]
    valid = [Fold(None, DATA)]
    assert plan(whole, folds=valid) == (True, 1)
    assert plan(whole - 1, folds=valid) == (False, 1)
    assert plan(2 * own, kernel="precomputed") == (True, 2)
    with pytest.raises(
        MemoryError,
        match=r"too small: the part of the kernel matrix that a fold trains on takes 18.4 kB",
    ):
        plan(own - 1, kernel="precomputed")


def test_tiles_of_validation_rows_change_nothing(monkeypatch):
    folds = [*deal(DATA, 2), Fold(np.arange(60), HELD_OUT)]
    expected = tuned(DATA, folds).scores
    monkeypatch.setattr("linrank.methods.kernel._TILE_BYTES", 5000)
    assert_allclose(tuned(DATA, folds).scores, expected, rtol=1e-12)


def test_models_start_from_the_one_before(monkeypatch):
    starts = []

    def spy(part, *, C, beta0, **options):
        result = train_kernel(part, C=C, beta0=beta0, **options)
        starts.append((C, beta0, result.w))
        return result

    monkeypatch.setattr(kernel_tuning, "train_kernel", spy)
    tuned(DATA, n_jobs=1)
    assert [C for C, _, _ in starts] == CS * 6
    for (C, start, _), (_, _, before) in zip(starts[1:], starts, strict=False):
        assert start is (None if CS[0] == C else before)


# ---- kernels without γ --------------------------------------------------------------------------


def test_a_precomputed_kernel(fitted):
    kernel = Kernel("rbf", gamma=GAMMAS[1])
    K = kernel.matrix(DATA.rows, DATA.rows)
    given_ = KernelRankSVMCV("precomputed", Cs=CS, cv=3, **TIGHT).fit(K, DATA.y, qid=DATA.qid)
    assert_allclose(given_.scores_[:, 0], fitted.scores_[:, 1], rtol=1e-9)
    assert given_.gammas_.shape == (1,)
    valid = (kernel.matrix(HELD_OUT.rows, DATA.rows), HELD_OUT.y, HELD_OUT.qid)
    apart = KernelRankSVMCV("precomputed", Cs=CS, cv=valid, **TIGHT).fit(K, DATA.y, qid=DATA.qid)
    rows = (HELD_OUT.X, HELD_OUT.y, HELD_OUT.qid)
    assert_allclose(apart.scores_[:, 0], search(cv=rows).scores_[:, 1], rtol=1e-9)
    assert_allclose(apart.predict(valid[0]), valid[0][:, apart.support_] @ apart.dual_coef_)


def test_the_grid_of_gamma_lies_around_that_of_the_rows():
    scale = KernelRankSVM().fit(DATA.X, DATA.y, qid=DATA.qid).gamma_
    assert_allclose(as_gammas("auto", "rbf", DATA), scale * 4.0 ** np.arange(-3, 4))
    standard = KernelRankSVM(scale="standard").fit(DATA.X * 9, DATA.y, qid=DATA.qid).gamma_
    wide = replace(DATA, rows=as_rows(DATA.X * 9))
    assert as_gammas("auto", "rbf", wide, "standard")[3] == pytest.approx(standard)
    assert_array_equal(as_gammas([2.0, 0.5, 2.0], "poly", DATA), [0.5, 2.0])
    assert as_Cs("auto", lambda: 3.0, step=2).tolist() == [3 * 4.0**k for k in range(-5, 8)]


# ---- threads, interrupts, progress --------------------------------------------------------------


def test_folds_run_side_by_side_as_memory_allows(monkeypatch):
    seen, part = [], FoldKernels.part
    gate = threading.Barrier(2, timeout=120)

    def spy(self, k, n_threads):
        seen.append(n_threads)
        if len(seen) <= 2:
            gate.wait()  # passes only when two folds are under way at once
        return part(self, k, n_threads)

    monkeypatch.setattr(FoldKernels, "part", spy)
    tuned(DATA, n_jobs=2, gammas=[0.5])
    assert seen == [1, 1, 1]
    seen.clear()
    gate = threading.Barrier(1)
    tuned(DATA, n_jobs=4, gammas=[0.5], memory_limit=8 * (DATA.n_rows**2 + 48**2))
    assert seen == [4, 4, 4]


# ---- the rule of choice -------------------------------------------------------------------------


def choice(scores, selection="best", converged=True):
    scores = np.array(scores, dtype=float)
    _, n_gammas, n_Cs = scores.shape
    known = np.broadcast_to(converged, scores.shape)
    gammas, Cs = 10.0 ** np.arange(n_gammas), 2.0 ** np.arange(n_Cs)
    return Tuning({"gamma": gammas, "C": Cs}, scores, selection, {"converged": known})


def test_ties_go_to_the_smallest_C_and_then_gamma():
    assert choice([[[0.1, 0.5], [0.5, 0.5], [0.5, 0.1]]]).chosen == (1, 0)
    assert choice([[[0.1, 0.5], [0.1, 0.5]]]).chosen == (0, 1)
    # The means are 0.4, but for what the sums round to.
    thirds = [[[0.1, 0.7, 0.3]], [[0.3, 0.1, 0.5]], [[0.2, 0.4, 0.4]]]
    assert choice(thirds).chosen == (0, 1)


SPREAD = np.array([-0.1, -0.1, 0.1, 0.1])[:, None, None]  # a standard error of about 0.058


@pytest.mark.parametrize(
    ("means", "expected"),
    [
        # The best is at (1, 1): what lies beyond it in either direction is not looked at.
        ([[0.5, 0.5, 0.5], [0.5, 0.7, 0.5], [0.5, 0.5, 0.5]], (1, 1)),
        ([[0.5, 0.5, 0.5], [0.5, 0.7, 0.69], [0.69, 0.69, 0.69]], (1, 1)),
        ([[0.5, 0.66, 0.5], [0.5, 0.7, 0.5], [0.5, 0.5, 0.5]], (0, 1)),  # a smaller γ
        ([[0.5, 0.66, 0.5], [0.65, 0.7, 0.5], [0.5, 0.5, 0.5]], (1, 0)),  # a smaller C goes first
        ([[0.65, 0.66, 0.5], [0.65, 0.7, 0.5], [0.5, 0.5, 0.5]], (0, 0)),  # both
        ([[0.63, 0.64, 0.5], [0.64, 0.7, 0.5], [0.5, 0.5, 0.5]], (1, 1)),  # too far
    ],
)
def test_one_standard_error(means, expected):
    scores = np.array(means) + SPREAD
    assert choice(scores).chosen == (1, 1)
    assert choice(scores, "one_se").chosen == expected


@given(st.integers(0, 10_000))
def test_one_standard_error_never_gives_the_larger_model(seed):
    rng = np.random.default_rng(seed)
    scores = rng.random((3, *rng.integers(1, 5, 2)))
    best, simple = choice(scores), choice(scores, "one_se")
    assert simple.C <= best.C
    assert simple.gamma <= best.gamma
    assert simple.best == best.chosen
    error = scores[(slice(None), *best.best)].std(ddof=1) / np.sqrt(3)
    assert best.score - error - 1e-12 <= simple.score <= best.score + 1e-12


def test_models_that_did_not_converge_are_counted():
    assert choice([[[0.5, 0.6]]]).open is None
    told = choice([[[0.5, 0.6]]], converged=[[[True, False]]]).open
    assert told.startswith("1 of 2 models on the folds did not reach the tolerance, C = 2 with")


def test_edges_of_both_grids_are_told():
    assert choice([[[0, 0, 0], [0, 1, 0], [0, 0, 0]]]).edge is None
    by_C = choice([[[0, 0, 0], [1, 0, 0], [0, 0, 0]]])
    assert by_C.edge == "the best C, 1, is the smallest of the grid; try smaller values too"
    by_gamma = choice([[[0, 0, 0], [0, 0, 0], [0, 1, 0]]])
    assert by_gamma.edge == "the best gamma, 100, is the largest of the grid; try larger values too"
    corner = choice([[[0, 0, 1], [0, 0, 0]]])
    assert [told.split(",")[0] for told in corner.edges] == ["the best C", "the best gamma"]
    assert choice([[[0.5]]]).edge is None
    nothing = Tuning({"C": np.array([0.1, 1.0])}, np.array([[0.5, 0.5]]))
    assert nothing.chosen == 0
    assert nothing.edge.startswith("every C of the grid scores 0.5, ")


# ---- errors -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"kernel": "linear"}, r"kernel='linear' has no gamma, got gammas=\[0.05, 0"),
        ({"kernel": "gauss"}, "kernel must be 'rbf', .* got 'gauss'"),
        ({"kernel": "precomputed", "gammas": "auto"}, "square matrix.* 72 × 3"),
        ({"kernel": "precomputed", "scale": "minmax", "gammas": "auto"}, "has none"),
        ({"kernel": "sigmoid", "gammas": [50.0]}, r"'sigmoid' \(gamma=50"),
    ],
)
def test_wrong_parameters(options, message):
    with pytest.raises(ValueError, match=message):
        search(**options)


# ---- the estimator ------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [KernelRankSVM, KernelRankSVMCV])
def test_a_matrix_of_kernel_values_is_pairwise(kind):
    tags = [kind(name).__sklearn_tags__().input_tags for name in ("precomputed", "rbf")]
    assert [(each.pairwise, each.sparse) for each in tags] == [(True, False), (False, True)]


def test_functions_and_products_have_no_gamma():
    linear = search(kernel="linear", gammas="auto")
    own = search(kernel=lambda A, B: A @ B.T, gammas="auto")
    assert_allclose(own.scores_, linear.scores_, rtol=1e-9)
    assert linear.scores_.shape == (3, 1, 3)
