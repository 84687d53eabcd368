"""What the core cannot trust is refused where it enters: no array or number ends the process."""

from __future__ import annotations

import numpy as np
import pytest

from linrank import _core

EMPTY = np.empty(0)
TEXT = np.frombuffer(b"1 qid:1 1:2 2:3\n2 qid:1 1:3 2:1\n", dtype=np.uint8)


def i32(*values):
    return np.array(values, np.int32)


def i64(*values):
    return np.array(values, np.int64)


def problem(levels, n_levels):
    return _core.pair_problem(i64(0, len(levels)), levels, n_levels, None, None, None, False)


def no_rows(n_columns):
    return _core.csr_rows(EMPTY, i32(), i64(0), n_columns)


def points_of_nothing():
    pairs = _core.pair_problem(i64(0), i32(), i32(), None, None, None, False)
    preferences = _core.preference_list(i64(), i64(), None, 0)
    return (
        _core.pair_point(pairs, "huber", 0.5, EMPTY, None, 1),
        _core.preference_point(preferences, "huber", 0.5, EMPTY, 1),
    )


@pytest.mark.parametrize("n", [-1, 2**32, 2**62])
def test_side_of_a_square_whose_size_overflows(n):
    with pytest.raises(ValueError, match="n must lie in"):
        _core.cholesky_factor(EMPTY, n)
    with pytest.raises(ValueError, match="n must lie in"):
        _core.cholesky_solve(EMPTY, n, EMPTY)


@pytest.mark.parametrize("n_columns", [2**32, 2**40])
def test_full_hessian_of_too_many_columns(n_columns):
    pair, preference = points_of_nothing()
    with pytest.raises(MemoryError):
        _core.hessian_matrix(no_rows(n_columns), None, pair, 1)
    with pytest.raises(MemoryError):
        _core.preference_hessian_matrix(no_rows(n_columns), None, preference, 1)


@pytest.mark.parametrize("n_columns", [-1, 2**61])
def test_number_of_columns_without_a_size(n_columns):
    with pytest.raises(ValueError, match="n_columns must lie in"):
        no_rows(n_columns)


def test_levels_written_after_the_check():
    levels = i32(0, 1, 0, 1)
    pairs = problem(levels, i32(2))
    levels[:] = 2**30
    with pytest.raises(ValueError, match="level is out of range"):
        _core.pair_point(pairs, "hinge", 1.0, np.zeros(4), None, 1)
    with pytest.raises(ValueError, match="level is out of range"):
        _core.published_point(pairs, np.zeros(4), "direct")


def test_offsets_and_counts_written_after_the_check_do_nothing():
    offsets, n_levels, z = i64(0, 4), i32(2), np.array([0.5, 0.0, 2.0, 1.0])
    pairs = _core.pair_problem(offsets, i32(0, 1, 0, 1), n_levels, None, None, None, False)
    before = _core.pair_point(pairs, "hinge", 1.0, z, None, 1).value
    offsets[:] = 2**40
    n_levels[:] = 2**30
    assert _core.pair_point(pairs, "hinge", 1.0, z, None, 1).value == before > 0


@pytest.mark.parametrize(
    ("n_levels", "message"), [(3, "more levels than rows"), (-5, "levels is negative")]
)
def test_numbers_of_levels(n_levels, message):
    with pytest.raises(ValueError, match=message):
        problem(i32(0, 0)[: 2 if n_levels > 0 else 0], i32(n_levels))
    with pytest.raises(ValueError, match=message):
        _core.count_pairs(i32(), i64(0, 0), i32(n_levels))


@pytest.mark.parametrize("epsilon", [0.0, 1e-20, 1.5, np.nan])
def test_epsilon_whose_band_is_rounding(epsilon):
    with pytest.raises(ValueError, match="epsilon must lie in"):
        _core.pair_point(problem(i32(0, 1), i32(2)), "huber", epsilon, np.zeros(2), None, 1)


def test_labels_without_an_order():
    labels = np.where(np.arange(100) % 3 == 0, np.nan, np.arange(100.0))
    with pytest.raises(ValueError, match="a label is NaN"):
        _core.rank_levels(labels, i64(0, 100), None, 1)


def test_more_threads_than_there_are():
    labels = np.arange(70_000.0) % 997
    many, _ = _core.rank_levels(labels, i64(0, len(labels)), None, 2**31 - 1)
    np.testing.assert_array_equal(many, labels)


def test_pieces_that_are_none_twice_or_out_of_range():
    parser = _core.TextParser64(0, _core.MAX_FEATURE)
    piece, x = parser.parse(TEXT), np.empty((2, 2))
    with pytest.raises(ValueError, match="piece is None"):
        _core.fill_labels([None], EMPTY)
    with pytest.raises(ValueError, match="listed twice"):
        _core.fill_dense([piece, piece], np.empty((4, 2)), 1, 2)
    with pytest.raises(ValueError, match="base must be"):
        _core.fill_dense([piece], x, -(2**63), 1)
    _core.fill_dense([piece], x, 1, 1)
    np.testing.assert_array_equal(x, [[2, 3], [3, 1]])
    _core.fill_dense([piece], x, 1, 1)  # its entries are gone
    np.testing.assert_array_equal(x, np.zeros((2, 2)))
