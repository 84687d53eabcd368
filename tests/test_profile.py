"""The measurements and findings behind ``linrank inspect``."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array

from linrank.data.dataset import Dataset
from linrank.judging import inspect as profile_module
from linrank.judging.inspect import Profile, findings, sample_pairs
from peaks import peak_of


@st.composite
def small_tables(draw):
    """Few values and few queries: constant columns and repeated rows are common."""
    n_rows, n_columns = draw(st.integers(1, 12)), draw(st.integers(1, 4))
    cells = st.sampled_from([0.0, 0.0, 1.0, -2.5])
    X = np.array(draw(st.lists(cells, min_size=n_rows * n_columns, max_size=n_rows * n_columns)))
    y = draw(st.lists(st.integers(0, 2), min_size=n_rows, max_size=n_rows))
    qid = draw(st.lists(st.integers(0, 3), min_size=n_rows, max_size=n_rows))
    return X.reshape(n_rows, n_columns), np.array(y), np.array(qid)


@given(small_tables(), st.booleans(), st.integers(1, 4))
def test_columns_and_repeats_equal_their_definition(table, sparse, n_first):
    X, y, qid = table
    with pytest.MonkeyPatch.context() as patch:  # many blocks
        patch.setattr("linrank.judging.inspect.BLOCK", 2 * n_first)
        patch.setattr("linrank.data.queries._FIRST_ROWS", n_first)
        patch.setattr("linrank.data.queries._MOST_VALUES", 2)
        check_columns(X, y, qid, sparse)
        check_repeats(X, y, qid, sparse)


def check_columns(X, y, qid, sparse):
    columns = Profile(Dataset.of(csr_array(X) if sparse else X, y, qid=qid)).columns
    np.testing.assert_array_equal(columns.minimum, X.min(axis=0))
    np.testing.assert_array_equal(columns.maximum, X.max(axis=0))
    np.testing.assert_array_equal(columns.n_nonzero, (X != 0).sum(axis=0))
    np.testing.assert_array_equal(columns.constant, (X[:1] == X).all(axis=0))
    for j, varies in enumerate(columns.varies_in_query):
        assert varies == any(len(set(X[qid == q, j])) > 1 for q in set(qid.tolist()))


def check_repeats(X, y, qid, sparse):
    repeats = Profile(Dataset.of(csr_array(X) if sparse else X, y, qid=qid)).repeats
    groups: dict[tuple, list[int]] = {}
    for row, label, q in zip(X.tolist(), y.tolist(), qid.tolist(), strict=True):
        groups.setdefault((q, *row), []).append(label)
    assert repeats.n_rows == sum(len(labels) - 1 for labels in groups.values())
    # Sorted by label, each change of label inside a group is one conflicting row.
    assert repeats.n_conflicts == sum(len(set(labels)) - 1 for labels in groups.values())


@pytest.mark.parametrize("sparse", [False, True])
def test_agreement_finds_the_label_and_its_reverse(sparse):
    rng = np.random.default_rng(2)
    y, qid = rng.integers(0, 4, 400), rng.integers(0, 20, 400)
    X = np.column_stack([rng.random(400), 10.0 ** (1 + y), -y - 1.0, np.ones(400)])
    data = Dataset.of(csr_array(X) if sparse else X, y, qid=qid)
    share, n_pairs = Profile(data).agreement()
    assert n_pairs == data.queries.n_pairs  # all, where they are few
    assert 0.4 < share[0] < 0.6
    assert share[1] == 1.0
    assert share[2] == 0.0
    assert share[3] == 0.5


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize(("n_rows", "most"), [(2, 40), (100, 1000 * 40)])
def test_agreement_of_wide_rows_compares_a_bounded_number_of_values(
    sparse, n_rows, most, monkeypatch
):
    """Of two rows there is one pair; of more, no more are compared than there is time for."""
    compared, blocks = [], profile_module._blocks
    count = lambda n, width: compared.append(n * width) or blocks(n, width)  # noqa: E731
    monkeypatch.setattr(profile_module, "WORK", 20_000)
    monkeypatch.setattr(profile_module, "_blocks", count)
    X, y = np.random.default_rng(5).normal(size=(n_rows, 20)), np.arange(n_rows) % 2
    X[:, 3] = y + 1.0
    share, n_pairs = Profile(Dataset.of(csr_array(X) if sparse else X, y)).agreement()
    assert (share[3], n_pairs) == (1.0, min(1000, n_rows**2 // 4))
    assert sum(compared) <= most


def test_pairs_are_drawn_without_a_list_of_them_all():
    is_relevant = np.arange(100_000) < 1000
    data = Dataset.of(np.zeros((100_000, 1)), is_relevant)
    assert peak_of(lambda: sample_pairs(data.queries, 100)) < data.queries.n_pairs


def _codes(X, y, qid=None) -> set[str]:
    return {finding.code for finding in findings(Profile(Dataset.of(X, y, qid=qid)))}


def _ordinary(n_queries=20, size=10):
    rng = np.random.default_rng(3)
    n_rows = n_queries * size
    y = rng.integers(0, 3, n_rows)
    X = rng.random((n_rows, 4)) + 0.1 * y[:, None]
    return X, y, np.repeat(np.arange(n_queries), size)


def test_each_fault_is_found_and_nothing_else():
    X, y, qid = _ordinary()
    assert _codes(X, y, qid) == set()
    assert _codes(X, y, np.where(qid < 10, 0, qid)) == {"dominant-query"}
    assert _codes(X, y, np.arange(len(y))) == {"no-pairs", "qid-like-row-id", "constant-in-query"}
    assert _codes(X, np.ones_like(y), qid) == {"no-pairs"}
    assert _codes(X, y) == {"no-qid"}
    assert _codes(np.column_stack([X, y]), y, qid) == {"label-like-feature"}
    assert _codes(X * [1, 1, 1, 1e5], y, qid) == {"scales-differ"}
    wide = X + np.array([0, 0, 0, 1e9])
    assert _codes(np.float32(wide), y, qid) == {"huge-values"}
    assert _codes(wide, y, qid) == set()  # float64 tells them apart
    assert _codes(np.column_stack([X, qid]), y, qid) == {"constant-in-query"}
    assert _codes(X, y - 1, qid) == {"negative-label"}
    assert _codes(X, y + 30, qid) == {"large-label"}
    twice = [*range(len(y)), 0]
    assert _codes(X[twice], np.append(y, y[0] + 1), qid[twice]) == {"conflicting-rows"}


def test_a_finding_names_the_features():
    X, y, qid = _ordinary()
    data = Dataset.of(
        np.column_stack([X, qid, qid]), y, qid=qid, feature_names=["a", "b", "c", "d", "e", "f"]
    )
    assert "features e, f:" in findings(Profile(data))[0].message
