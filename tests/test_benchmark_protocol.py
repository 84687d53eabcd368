"""Benchmarks: their imports, and the protocol on LETOR folds (choices, pooling, differences)."""

import ast
import importlib.util
import sys
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.stats import ttest_1samp

from linrank.data.dataset import Dataset

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = [str(ROOT), str(ROOT / "benchmarks")]
sys.path += FOLDERS
try:
    from reproduce import paired
    from reproduce.xu import protocol
finally:
    for folder in FOLDERS:
        sys.path.remove(folder)


@pytest.mark.parametrize("path", sorted((ROOT / "benchmarks").glob("*.py")), ids=lambda p: p.stem)
def test_a_benchmark_imports_modules_that_exist(path, monkeypatch):
    monkeypatch.setattr(sys, "path", [*FOLDERS, *sys.path])
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            named = (
                [node.module] if isinstance(node, ast.ImportFrom) else [a.name for a in node.names]
            )
            for name in named:
                assert importlib.util.find_spec(name.partition(".")[0]), name


def outcome(values, chosen="", validation=0.0):
    return protocol.Outcome(chosen, 1, validation, np.array(values, dtype=float))


def test_the_best_on_validation_is_measured_on_the_test_part():
    """Of two directions each part favors another; the test part has no say."""
    X = np.array([[1.0, 0.0], [0.0, 1.0]])
    parts = {
        "vali": Dataset.of(X, [1.0, 0.0], qid=[1, 1]),
        "test": Dataset.of(X, [0.0, 1.0], qid=[1, 1]),
    }
    candidates = [("second", np.array([0.0, 1.0])), ("first", np.array([1.0, 0.0]))]
    found = protocol.choose(parts, candidates)
    assert (found.chosen, found.n_candidates, found.validation) == ("first", 2, 1.0)
    assert found.by_query[0, 0] == 0.5  # average precision of the second place


def test_a_row_pools_queries_and_averages_folds_and_runs():
    """Folds of different size: the mean of folds is not the mean of queries."""
    one = [outcome([[1.0] * 4]), outcome([[0.0] * 4, [0.5] * 4])]
    other = [outcome([[0.0] * 4]), outcome([[0.0] * 4, [0.5] * 4])]
    row = protocol.Row("method", [one, other])
    assert_allclose(row.by_query[:, 0], [0.5, 0.0, 0.5])
    assert_allclose(row.by_fold[:, 0], [0.5, 0.25])
    assert_allclose(row.by_run[:, 0], [0.625, 0.125])


def test_differences_are_paired():
    rng = np.random.default_rng(0)
    base = rng.random((40, 4))
    better = base + 0.1 + 0.01 * rng.random((40, 4))
    rows = [protocol.Row(name, [[outcome(v)]]) for name, v in (("base", base), ("new", better))]
    found = protocol.compare_rows(rows[1], rows[0])
    assert [one.measure for one in found] == list(protocol.MEASURES)
    assert all(0.1 < one.low < one.mean < one.high < 0.11 and one.p < 1e-10 for one in found)
    assert [one.p for one in protocol.compare_rows(rows[0], rows[0])] == [1.0] * 4  # no evidence


@pytest.mark.parametrize(
    "name",
    [pytest.param(n, marks=[pytest.mark.slow] * (k > 0)) for k, n in enumerate(protocol.SETS)],
)
def test_a_query_is_tested_once(name):
    try:
        folds = protocol.SETS[name]()
    except protocol.problems.Absent as absent:
        pytest.skip(str(absent))
    tested = np.concatenate([np.unique(parts["test"].qid) for parts in folds])
    assert len(tested) == len(np.unique(tested))
    for parts in folds:
        seen = [set(np.unique(parts[part].qid).tolist()) for part in protocol.PARTS]
        assert len(set.union(*seen)) == sum(map(len, seen))


differences = st.lists(st.integers(-8, 8), min_size=2, max_size=10).map(np.array)


@given(differences)
def test_signs_of_few_queries_are_flipped_in_every_way(difference):
    """The definition, over all 2^n patterns."""
    signs = np.array(list(product((-1, 1), repeat=len(difference))))
    share = np.mean(abs(signs @ difference) >= abs(difference.sum()))
    assert_allclose(paired.sign_flip(difference / 16), share)


@given(differences)
def test_the_t_test_is_that_of_scipy(difference):
    assume(difference.std() > 0)
    assert_allclose(paired.t_test(difference / 16), ttest_1samp(difference, 0.0).pvalue)


def test_many_queries_have_the_interval_and_p_of_a_normal_mean():
    difference = np.random.default_rng(1).normal(0.02, 0.2, 400)
    error = difference.std(ddof=1) / 20.0
    ends = difference.mean() + 1.966 * error * np.array([-1, 1])
    assert_allclose(paired.interval(difference), ends, atol=0.1 * error)
    assert_allclose(paired.sign_flip(difference), paired.t_test(difference), rtol=0.1)
