"""Which chunk comes when: shares of the steps, orders, passes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from linrank.stochastic.chunked import check_passes, passes_for, shared_out, visits
from linrank.stochastic.resident import Residence, room_of_chunk

WEIGHTS = st.lists(
    st.one_of(st.just(0.0), st.floats(1e-300, 1e300), st.integers(1, 9)), min_size=1, max_size=12
).filter(lambda w: sum(w) > 0 and np.isfinite(sum(w)))
SHIFTS = st.floats(0, 1, exclude_max=True)


@given(st.integers(0, 10**12), WEIGHTS, SHIFTS)
def test_shares_sum_up_and_are_rounded_proportions(n, weights, shift):
    weights = np.array(weights, dtype=float)
    counts = shared_out(n, weights, shift)
    assert counts.sum() == n
    assert (counts >= 0).all()
    assert (counts[weights == 0] == 0).all()
    exact = n * (weights / weights.sum())
    assert (abs(counts - exact) < 1 + 1e-9 + 1e-12 * n).all()


@pytest.mark.parametrize("n", [1, 7, 100])
def test_shares_are_right_on_average(n):
    """Over shifts at equal distances; a share that were always rounded down would be off."""
    weights = np.array([3.0, 1.0, 0.5, 0.0, 2.2])
    shifts = (np.arange(10_000) + 0.5) / 10_000
    mean = np.mean([shared_out(n, weights, u) for u in shifts], axis=0)
    assert_allclose(mean, n * weights / weights.sum(), atol=2e-3)


@given(st.integers(1, 500), WEIGHTS, st.integers(1, 5), st.integers(0, 2**63 - 1))
def test_every_pass_takes_its_part_of_the_steps(n_steps, weights, passes, seed):
    weights = np.array(weights, dtype=float)
    plan = list(visits(n_steps, weights, passes, seed))
    assert sum(visit.n_steps for visit in plan) == n_steps
    assert all(visit.n_steps > 0 and weights[visit.chunk] > 0 for visit in plan)
    for chunk in range(len(weights)):
        assert sum(visit.chunk == chunk for visit in plan) <= passes


def test_orders_differ_between_passes_and_seeds():
    def orders(seed):
        plan = [visit.chunk for visit in visits(400, np.ones(20), 2, seed)]
        return plan[:20], plan[20:]

    first, second = orders(3)
    assert sorted(first) == sorted(second) == list(range(20))
    assert first != second
    assert first != orders(4)[0]
    assert (first, second) == orders(3)


def test_orders_are_the_same_on_every_machine():
    """They come from raw numbers of PCG64, which NumPy promises not to change."""
    plan = list(visits(10, np.array([1.0, 2.0, 3.0, 4.0]), 1, 7))
    assert plan == [(2, 3), (3, 4), (1, 2), (0, 1)]


def test_every_chunk_comes_first_as_often():
    firsts = [next(visits(100, np.ones(5), 1, seed)).chunk for seed in range(2000)]
    counts = np.bincount(firsts, minlength=5)
    assert ((counts - 400) ** 2 / 400).sum() < 20  # chi-square of 4 degrees, 1 in 2000


def test_passes_make_visits_short():
    assert passes_for(1, 10**9) == 1
    assert passes_for(25, 100) == 1
    assert passes_for(26, 100) == 2
    assert passes_for(1000, 100) == 40


@pytest.mark.parametrize("passes", [0, -1, 1.5, True, "2"])
def test_passes_that_are_none_are_refused(passes):
    with pytest.raises(ValueError, match=r"passes must be None or an integer >= 1, got"):
        check_passes(passes)


# ---- memory -------------------------------------------------------------------------------------


def test_everything_stays_where_it_fits():
    assert Residence.of(100, [30, 40, 20], beside=10) == Residence(frozenset({0, 1, 2}), True)


@pytest.mark.parametrize(
    ("limit", "kept", "reads_ahead"),
    [(104, [], True), (90, [], True), (89, [0], False), (79, [], False), (50, [], False)],
)
def test_what_stays_leaves_room_for_two_chunks(limit, kept, reads_ahead):
    found = Residence.of(limit, [30, 40, 25], beside=10)
    assert found == Residence(frozenset(kept), reads_ahead)


@given(
    st.lists(st.integers(1, 1000), min_size=1, max_size=20),
    st.integers(0, 100),
    st.integers(1, 2),
    st.integers(1, 30_000),
)
def test_the_limit_is_kept(rooms, beside, n_readers, limit):
    try:
        found = Residence.of(limit, rooms, beside=beside, n_readers=n_readers)
    except MemoryError:
        assert limit < beside + n_readers * max(rooms)
        return
    at_work = 0 if len(found.kept) == len(rooms) else max(rooms) * (1 + found.reads_ahead)
    assert beside + sum(rooms[i] for i in found.kept) + n_readers * at_work <= limit


def test_a_limit_too_small_names_the_least_that_works():
    with pytest.raises(MemoryError, match=r"allows 49 B \(49\), .* raise it to 50, or"):
        Residence.of(49, [30, 40, 20], beside=10)
    assert Residence.of(50, [30, 40, 20], beside=10).kept == frozenset()


def test_scaled_rows_count_twice():
    plain = room_of_chunk(1000, 10, 20, is_scaled=False)
    assert room_of_chunk(1000, 10, 20, is_scaled=True) == plain + 1000
