"""Duals of low rank in the core: what it cannot trust is refused where it enters."""

from __future__ import annotations

import gc
import threading

import numpy as np
import pytest

from linrank import _core

EMPTY = np.empty(0)


def i32(*values):
    return np.array(values, np.int32)


def i64(*values):
    return np.array(values, np.int64)


def no_rows(n_columns):
    return _core.csr_rows(EMPTY, i32(), i64(0), n_columns)


def descent(**changed):
    """Two queries of two rows, with two factors each."""
    arguments = {
        "rows": _core.dense_rows(np.arange(12.0).reshape(4, 3) % 5),
        "order": None,
        "offsets": i64(0, 2, 4),
        "levels": i32(0, 1, 0, 1),
        "n_levels": i32(2, 2),
        "scale": None,
        "bound": np.ones(4),
        "constraint": "box",
        "n_factors": 2,
        "factors": np.full(8, 0.3),
        "seed": 0,
    }
    return _core.factor_descent(**(arguments | changed))


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"offsets": i64(0, 2, 5)}, "query offsets"),
        ({"offsets": i64(0, 3, 2, 4), "n_levels": i32(2, 2, 2)}, "offsets decrease"),
        ({"levels": i32(0, 1, 0, 2)}, "level is out of range"),
        ({"levels": i32(0, 1, 0)}, "levels has length 3, expected 4"),
        ({"n_levels": i32(2)}, "n_levels has length 1, expected 2"),
        ({"order": i64(0, 1, 2, 4)}, "row that does not exist"),
        ({"order": i64(0, 1, 2, -1)}, "row that does not exist"),
        ({"order": i64(0, 1, 2, 0)}, "order names row 0 twice"),
        ({"scale": np.ones(2)}, "scale has length 2, expected 3"),
        ({"scale": np.array([1.0, np.nan, 1.0])}, "a scale must be finite"),
        ({"bound": np.ones(3)}, "bound has length 3, expected 4"),
        ({"bound": -np.ones(4)}, "a bound must be finite and >= 0"),
        ({"bound": np.full(4, np.inf)}, "a bound must be finite"),
        ({"constraint": "cube"}, "no constraint 'cube'"),
        ({"n_factors": 0, "factors": EMPTY}, "n_factors must lie in"),
        ({"n_factors": -2}, "n_factors must lie in"),
        ({"n_factors": 2**62}, "n_factors must lie in"),
        ({"n_factors": 3}, "factors has length 8, expected 12"),
        ({"factors": np.full(8, np.inf)}, "a factor must be finite"),
        ({"factors": np.full(8, np.nan)}, "a factor must be finite"),
    ],
)
def test_factors_that_do_not_fit(changed, message):
    with pytest.raises(ValueError, match=message):
        descent(**changed)


def test_a_row_of_two_queries_has_no_number_of_its_own_in_each():
    # Columns are counted anew in each query: row 0 would be read with the numbers of the wider one.
    columns = np.concatenate(([1000, 1001], np.arange(1000))).astype(np.int32)
    rows = _core.csr_rows(np.ones(1002), columns, i64(0, 1, 2, 1002), 1002)
    with pytest.raises(ValueError, match="order names row 0 twice"):
        descent(rows=rows, order=i64(0, 1, 2, 0))


def test_columns_beyond_all_memory():
    rows = _core.csr_rows(EMPTY, i32(), i64(0, 0, 0, 0, 0), 2**46)
    with pytest.raises(MemoryError):
        descent(rows=rows)


def test_only_an_epoch_can_be_accepted_and_once():
    factors = descent()
    with pytest.raises(ValueError, match="no epoch to accept"):
        factors.accept()
    start = factors.value()
    factors.epoch(0.0, 1)
    factors.reject()
    with pytest.raises(ValueError, match="no epoch to accept"):
        factors.accept()
    assert factors.value() == start
    reached = factors.epoch(0.0, 1)
    factors.accept()
    with pytest.raises(ValueError, match="no epoch to accept"):
        factors.accept()
    assert factors.value() == reached < start
    assert len(factors.weights()) == 3


@pytest.mark.parametrize("momentum", [np.nan, np.inf])
def test_momentum_without_a_value(momentum):
    with pytest.raises(ValueError, match="momentum is NaN or infinite"):
        descent().epoch(momentum, 1)


def test_factors_of_queries_without_pairs():
    factors = descent(levels=i32(0, 0, 0, 0), n_levels=i32(1, 1))
    assert factors.linear_decrease(2**31 - 1) == factors.epoch(0.5, -1) == 0.0
    nothing = descent(
        rows=no_rows(3), offsets=i64(0), levels=i32(), n_levels=i32(), bound=EMPTY, factors=EMPTY
    )
    assert nothing.linear_decrease(1) == nothing.epoch(0.0, 1) == 0.0


@pytest.mark.parametrize("constraint", ["box", "ball"])
@pytest.mark.parametrize("size", [0.0, 5e-324, 1e-310, 1e-160, 1e300])
def test_factors_of_extreme_size(constraint, size):
    start = np.zeros(8)
    start[::2] = size
    factors = descent(constraint=constraint, factors=start, bound=np.array([1.0, 0.0, 1.0, 2.0]))
    for _ in range(3):
        assert np.isfinite(factors.epoch(0.0, 1))
        factors.accept()
    assert np.isfinite(factors.factors()).all()
    assert np.isfinite(factors.linear_decrease(1))


def test_factors_outlive_the_names_of_their_arrays():
    def make():
        x = np.arange(12.0).reshape(4, 3) % 5
        levels, bound, offsets = i32(0, 1, 0, 1), np.ones(4), i64(0, 2, 4)
        made = descent(rows=_core.dense_rows(x), levels=levels, bound=bound, offsets=offsets)
        levels[:], bound[:], offsets[:] = 2**30, np.nan, 2**40
        return made

    made, expected = make(), descent()
    gc.collect()
    assert made.epoch(0.0, 1) == expected.epoch(0.0, 1)


def test_a_descent_in_two_threads():
    n = 100_000
    factors = descent(
        rows=_core.dense_rows(np.random.default_rng(0).random((n, 20))),
        offsets=i64(0, n),
        levels=np.arange(n, dtype=np.int32) % 5,
        n_levels=i32(5),
        bound=np.ones(n),
        factors=np.full(2 * n, 0.1),
        scale=None,
    )
    refused, values = [], []

    def work():
        for _ in range(10):
            try:
                values.append(factors.epoch(0.0, 1))
            except RuntimeError as error:
                refused.append(str(error))

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(values) + len(refused) == 30
    assert values
    assert np.isfinite(values).all()
    assert all("in use by another thread" in message for message in refused)


def rectangles(**changed):
    """Two queries: 1 x 1 and 2 x 2."""
    arguments = {
        "offsets": i64(0, 2, 5),
        "levels": i32(0, 1, 0, 1, 2),
        "n_levels": i32(2, 3),
        "chosen": i64(0, 1),
        "row_weight": None,
        "query_weight": None,
        "C": 1.0,
    }
    return _core.rectangles(**(arguments | changed))


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"offsets": i64(0, 2, 6)}, "query offsets"),
        ({"levels": i32(0, 1, 0, 1, 3)}, "level is out of range"),
        ({"n_levels": i32(2, 4)}, "more levels than rows"),
        ({"chosen": i64(0, 2)}, "chosen must increase"),
        ({"chosen": i64(-1)}, "chosen must increase"),
        ({"chosen": i64(1, 0)}, "chosen must increase"),
        ({"chosen": i64(0, 0)}, "chosen must increase"),
        ({"levels": i32(0, 0, 0, 1, 2), "n_levels": i32(1, 3)}, "has no pairs"),
        ({"row_weight": np.ones(4)}, "row_weight has length 4, expected 5"),
        ({"row_weight": np.array([1, 1, np.inf, 1, 1])}, "row_weight must be finite"),
        ({"query_weight": np.array([1, np.nan])}, "query_weight must be finite"),
        ({"query_weight": np.array([1.0, -1.0])}, "query_weight must be finite"),
        ({"C": 0.0}, "C must be finite"),
        ({"C": np.inf}, "C must be finite"),
    ],
)
def test_rectangles_that_do_not_fit(changed, message):
    with pytest.raises(ValueError, match=message):
        rectangles(**changed)


def test_buffers_of_rectangles_have_their_lengths():
    at, z, y, rho = rectangles(), np.zeros(5), np.zeros(5), np.ones(2)
    short, bad = np.zeros(4), np.array([1.0, np.nan])
    calls = [
        (at.loss, ([z, short], [y, short], [rho, rho[:1], bad, np.array([1.0, np.inf])], [1])),
        (at.curvature, ([z, short], [y, short], [rho, bad], [z, short], [1])),
        (at.point, ([z, short], [y, short], [rho, bad], [y, short], [1])),
        (at.coefficients, ([y, short], [1])),
        (at.squared_norms, ([y, short], [1])),
        (at.relax, ([y, short], [y, short], [y.copy(), short], [1.0], [1])),
        (at.sums, ([z, short], [y, short], [y, short], [y, short], [rho, bad], [1])),
        (
            at.settle,
            ([0, -1, 2, 2**40], [np.zeros(1), short], *[[0.0]] * 4, [y, short], [y, short]),
        ),
    ]
    for call, choices in calls:
        right = [options[0] for options in choices]
        call(*right)
        for place, options in enumerate(choices):
            for wrong in options[1:]:
                with pytest.raises(ValueError, match=r"has length|rho must be|no such rectangle"):
                    call(*right[:place], wrong, *right[place + 1 :])


def test_buffers_of_rectangles_that_cannot_be_written_to():
    at, fixed = rectangles(), np.zeros(5)
    fixed.flags.writeable = False
    with pytest.raises(TypeError):
        at.point(np.zeros(5), np.zeros(5), np.ones(2), fixed, 1)
    with pytest.raises(TypeError):
        at.relax(fixed, fixed, fixed, 1.0, 1)


def test_the_layout_of_rectangles_is_seen_but_not_changed():
    upper = rectangles().upper  # of rectangles that nobody else holds
    gc.collect()
    np.testing.assert_array_equal(upper, [1, 3, 4])
    with pytest.raises(ValueError, match="read-only"):
        upper[0] = 2**40


def test_rectangles_of_no_query_and_of_a_level_that_has_no_rows():
    none = rectangles(chosen=i64())
    assert none.loss(np.zeros(5), EMPTY, EMPTY, 4)[0] == 0.0
    flat = rectangles(levels=i32(0, 0, 0, 1, 2))  # two levels by count, one by rows
    np.testing.assert_array_equal(flat.offsets, [0, 0, 4])
    value, _, gradient = flat.loss(np.zeros(5), np.zeros(4), np.ones(2), 2)
    assert value == 1.5  # three pairs at their bound, 1 - 1/2 each
    np.testing.assert_array_equal(gradient, [0, 0, 2, 0, -2])


@pytest.mark.filterwarnings("ignore:nanobind")
def test_objects_without_a_value():
    for kind, method in [(_core.Rectangles, "coefficients"), (_core.FactorDescent, "epoch")]:
        with pytest.raises(TypeError):
            kind()
        empty = kind.__new__(kind)
        with pytest.raises((TypeError, RuntimeError)):
            getattr(empty, method)(*([0.0, 1] if method == "epoch" else [EMPTY, 1]))


@pytest.mark.parametrize("work", ["by_pair", "by_row"])
def test_published_factors_that_do_not_fit(work):
    pairs, rows = (
        _core.pair_problem(i64(0, 2), i32(0, 1), i32(2), None, None, None, False),
        _core.dense_rows(np.eye(2)),
    )
    right = [rows, None, pairs, np.ones(2), np.full((2, 3), 0.1), np.zeros(2), work, 0.1]
    wrong = [
        (1, i64(0, 2), "row that does not exist"),
        (0, _core.dense_rows(np.eye(3)), "rows has length 3, expected 2"),
        (3, np.ones(1), "largest has length 1, expected 2"),
        (3, np.array([1.0, -1.0]), "negative or NaN"),
        (3, np.array([1.0, np.nan]), "negative or NaN"),
        (4, np.ones((3, 3)), "V has length 3, expected 2"),
        (5, np.zeros(3), "beta has length 3, expected 2"),
        (6, "by_hand", "no work 'by_hand'"),
    ]
    for place, value, message in wrong:
        with pytest.raises(ValueError, match=message):
            _core.factor_epoch(*right[:place], value, *right[place + 1 :])
    right[4] = np.ones((2, 0))  # no factors, no duals
    assert _core.factor_epoch(*right) == 0.0
