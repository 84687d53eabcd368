"""Which chunk comes when: shares of the steps, orders, passes."""

from itertools import islice

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from linrank.stochastic.chunked import share_out, visits
from linrank.system.reading import Plan, Reader

WEIGHTS = st.lists(
    st.one_of(st.just(0.0), st.floats(1e-300, 1e300), st.integers(1, 9)), min_size=1, max_size=12
).filter(lambda w: sum(w) > 0 and np.isfinite(sum(w)))
SHIFTS = st.floats(0, 1, exclude_max=True)


@given(st.integers(0, 10**12), WEIGHTS, SHIFTS)
def test_shares_sum_up_and_are_rounded_proportions(n, weights, shift):
    weights = np.array(weights, dtype=float)
    counts = share_out(n, weights, shift)
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
    mean = np.mean([share_out(n, weights, u) for u in shifts], axis=0)
    assert_allclose(mean, n * weights / weights.sum(), atol=2e-3)


@given(st.integers(1, 500), WEIGHTS, st.integers(1, 5), st.integers(0, 2**63 - 1))
def test_every_pass_takes_its_part_of_the_steps(n_steps, weights, passes, seed):
    weights = np.array(weights, dtype=float)
    plan = list(visits(n_steps, weights, passes, seed))
    assert sum(visit.n_steps for visit in plan) == n_steps
    assert all(visit.n_steps > 0 and weights[visit.chunk] > 0 for visit in plan)
    for chunk in range(len(weights)):
        assert sum(visit.chunk == chunk for visit in plan) <= passes


def test_orders_are_the_same_on_every_machine():
    """They come from raw numbers of PCG64, which NumPy promises not to change."""
    plan = list(visits(10, np.array([1.0, 2.0, 3.0, 4.0]), 1, 7))
    assert plan == [(2, 3), (3, 4), (1, 2), (0, 1)]


# ---- memory -------------------------------------------------------------------------------------


def plan(limit, rooms, n_buffers=1, states=None):
    given = {"n_buffers": n_buffers, "buffer": max(rooms), "kept": rooms, "states": states}
    return Plan.of(limit, "a descent", beside=10, **given)


@pytest.mark.parametrize(
    ("limit", "rooms", "states", "expected"),
    [
        (104, [30, 40, 25], None, Plan(2, 3, 0)),
        (90, [30, 40, 25], None, Plan(2, 3, 0)),
        (89, [30, 40, 25], None, Plan(1, 3, 1)),
        (50, [30, 40, 25], None, Plan(1, 3, 0)),
        # States come before features.
        (125, [30, 40, 25, 40], [5, 5, 5, 5], Plan(2, 4, 0)),
        (145, [30, 40, 25, 40], [5, 5, 5, 5], Plan(2, 4, 1)),
        (102, [30, 40, 25, 40], [5, 5, 5, 5], Plan(2, 2, 0)),
    ],
)
def test_what_stays_leaves_room_for_two_chunks(limit, rooms, states, expected):
    assert plan(limit, rooms, states=states) == expected


@given(
    st.lists(st.integers(1, 1000), min_size=1, max_size=20),
    st.integers(1, 2),
    st.integers(1, 30_000),
)
def test_the_limit_is_kept(rooms, n_buffers, limit):
    try:
        found = plan(limit, rooms, n_buffers)
    except MemoryError:
        assert limit < 10 + n_buffers * max(rooms)
        return
    at_work = 0 if found.n_kept == len(rooms) else max(rooms) * found.n_buffers
    assert 10 + sum(rooms[: found.n_kept]) + at_work <= limit


def test_a_limit_too_small_names_the_least_that_works():
    with pytest.raises(MemoryError, match=r"memory_limit=49, 49 B, is too small: .* allow 50B, or"):
        plan(49, [30, 40, 20])
    assert plan(50, [30, 40, 20]).n_kept == 0


# ---- reading ahead ------------------------------------------------------------------------------


@given(
    st.lists(st.integers(0, 5), max_size=40),
    st.integers(1, 3),
    st.integers(0, 6),
    st.integers(0, 40),
)
def test_a_walk_has_every_chunk_in_its_turn(numbers, n_buffers, n_kept, n_taken):
    """Whatever stays or is read ahead; a buffer is not written to while its chunk is at work."""
    made, n_read = [], [0] * 6

    def load(i, buffer):
        n_read[i] += 1
        buffer = [] if buffer is None else buffer
        buffer[:] = [i]
        return buffer

    def make_buffer():
        made.append([])
        return made[-1]

    with Reader(load, make_buffer, 6, Plan(n_buffers, n_kept, n_kept)) as reader:
        walk, seen = reader.walk(numbers), []
        for i, chunk in islice(walk, n_taken):
            if i < n_kept:
                reader.here[i] = chunk
            seen.append((i, *chunk))
        walk.close()
        assert list(walk) == []
        again = [i for i, _ in reader.walk(numbers)]
    assert seen == [(i, i) for i in numbers[:n_taken]]
    assert again == numbers
    assert len(made) <= n_buffers
    for i in set(numbers[:n_taken]):
        assert i >= n_kept or n_read[i] == 1
