"""The closest pairs, random ones and both, against the list of all pairs that they avoid."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from hypothesis_profiles import examples
from linrank import NoPairsError, TooFewPairsError
from linrank.data.queries import Queries
from linrank.pairs import Cells, Selection, closest, pruned, random, without
from linrank.system import resources as memory
from strategies import scored_queries

Pair = tuple[int, int]


def all_pairs(y, qid) -> dict[Pair, int]:
    """Every pair by its definition, and the difference of the dense ranks of its labels."""
    closeness = {}
    for q in sorted(set(qid)):
        rows = [i for i in range(len(y)) if qid[i] == q]
        rank = {label: r for r, label in enumerate(sorted({y[i] for i in rows}))}
        for i in rows:
            for j in rows:
                if y[i] > y[j]:
                    closeness[i, j] = rank[y[i]] - rank[y[j]]
    return closeness


def listed(preferences) -> list[Pair]:
    """The pairs in order; each is there once, and none has a weight."""
    pairs = [tuple(pair) for pair in preferences.pairs.tolist()]
    assert len(set(pairs)) == len(pairs)
    assert preferences.weight is None
    return pairs


@st.composite
def sized(draw):
    """Labels with ties in several queries, their pairs, and a number of pairs to choose."""
    case = draw(scored_queries(max_rows=14))
    pairs = all_pairs(case.labels, case.qid)
    n = draw(st.integers(1, max(1, len(pairs))))
    return case.labels, case.qid, pairs, n, draw(st.integers(0, 3))


# ---- what is chosen -----------------------------------------------------------------------------


@examples(80)
@given(sized())
def test_closest_takes_pairs_in_order_of_closeness(case):
    y, qid, pairs, n, seed = case
    if not pairs:
        with pytest.raises(NoPairsError):
            closest(y, qid, n)
        return
    found = [pairs[pair] for pair in listed(closest(y, qid, n, seed=seed))]
    assert found == sorted(pairs.values())[:n]
    first = [pair for pair, r in pairs.items() if r == 1]
    assert sorted(listed(closest(y, qid))) == sorted(first)


@examples(80)
@given(sized())
def test_random_pairs_are_pairs_and_none_is_chosen_twice(case):
    y, qid, pairs, n, seed = case
    if not pairs:
        with pytest.raises(NoPairsError):
            random(y, qid, n)
        return
    found = listed(random(y, qid, n, seed=seed))
    assert len(found) == n
    assert set(found) <= pairs.keys()


@examples(80)
@given(sized(), st.integers(1, 40))
def test_pruned_is_the_closest_and_others(case, n_random):
    y, qid, pairs, n, seed = case
    if not pairs:
        with pytest.raises(NoPairsError):
            pruned(y, qid)
        return
    n_random = min(n_random, len(pairs))
    found = listed(pruned(y, qid, n, n_random, seed=seed))
    assert found[:n] == listed(closest(y, qid, n, seed=seed))
    assert len(found) == min(n + n_random, len(pairs))
    assert set(found) <= pairs.keys()
    n_adjacent = sum(r == 1 for r in pairs.values())
    assert len(pruned(y, qid)) == min(2 * n_adjacent, len(pairs))
    assert len(pruned(y, qid, n)) == min(2 * n, len(pairs))
    assert len(random(y, qid)) == n_adjacent


@examples(100)
@given(scored_queries(max_rows=14), st.integers(0, 4))
def test_blocks_number_the_pairs_of_a_difference(case, difference):
    cells = Cells.of(case.queries)
    pairs = all_pairs(case.labels, case.qid)
    wanted = {"beyond": [p for p, r in pairs.items() if r > difference]}
    if difference:
        wanted["at"] = [p for p, r in pairs.items() if r == difference]
    for name, expected in wanted.items():
        blocks = getattr(cells, name)(difference)
        winners, losers = blocks.pairs(np.arange(blocks.n_pairs))
        found = zip(cells.rows[winners].tolist(), cells.rows[losers].tolist(), strict=True)
        assert sorted(found) == sorted(expected)


# ---- how it is drawn ----------------------------------------------------------------------------


def check_uniform(counts: Counter, n_kinds: int) -> None:
    """χ² of equal frequencies, beyond its mean by fewer than five standard deviations."""
    total = counts.total()
    assert len(counts) == n_kinds, f"{n_kinds - len(counts)} sets were never drawn"
    expected = total / n_kinds
    chi2 = sum((count - expected) ** 2 / expected for count in counts.values())
    degrees = n_kinds - 1
    assert chi2 <= degrees + 5 * math.sqrt(2 * degrees)


def draws(n_draws: int, **sizes: Any) -> Iterator[list[Pair]]:
    """What is chosen by one seed after the other."""
    asked = {name: ("n", n) for name, n in sizes.items()}
    selection = Selection.of(Queries.of(LABELS, QUERIES), **asked)
    return (listed(replace(selection, seed=seed).list_pairs()) for seed in range(n_draws))


LABELS, QUERIES = [2, 0, 1, 5, 1, 3], ["a", "b", "a", "b", "a", "a"]  # 5 pairs of a, 1 of b


def test_the_others_are_drawn_uniformly_whatever_was_cut():
    """The two kinds together: every choice of 2 of 4 near ones and of 2 of the 4 that are left."""
    drawn = Counter()
    for found in draws(900, closest=2, drawn=2):
        drawn[frozenset(found[:2]), frozenset(found[2:])] += 1
    check_uniform(drawn, 6 * 6)


@given(st.sets(st.integers(0, 40)), st.integers(1, 40))
def test_the_numbers_that_are_left(taken, n):
    free = [k for k in range(100) if k not in taken][:n]
    found = without(np.array(sorted(taken), dtype=np.int64), np.arange(n))
    assert_array_equal(found, free)


def test_a_set_that_could_not_be_listed_is_drawn_from():
    """10⁵ rows make 5·10⁹ pairs, 80 GB as a list; every row is about as often in the sample."""
    y = np.random.default_rng(0).permutation(100_000)
    found = random(y, n=20_000, seed=1)
    assert (y[found.winners] > y[found.losers]).all()
    # The rank of the winner has the density 2t, that of the loser 2(1 - t).
    assert abs(y[found.winners].mean() / 1e5 - 2 / 3) < 0.01
    assert abs(y[found.losers].mean() / 1e5 - 1 / 3) < 0.01


# ---- what is refused ----------------------------------------------------------------------------


@pytest.mark.parametrize("choose", [closest, random, pruned])
def test_numbers_of_pairs_are_checked(choose):
    y = [0, 1, 2, 3]
    name = "n_closest" if choose is pruned else "n"
    with pytest.raises(TooFewPairsError, match=f"{name} is 7, but the labels make only 6 pairs"):
        choose(y, None, 7)
    with pytest.raises(ValueError, match=f"{name} must be >= 1, got 0"):
        choose(y, None, 0)
    for wrong in (2.0, "all", True, None):
        with pytest.raises(TypeError, match=f"{name} must be an integer or 'auto', got"):
            choose(y, None, wrong)
    with pytest.raises(NoPairsError, match="all 3 rows have the same label"):
        choose([1, 1, 1])
    assert len(choose(y, None, np.int32(6))) == 6


def test_random_pairs_beside_the_closest_are_checked_too():
    with pytest.raises(TooFewPairsError, match="n_random is 7, but the labels make only 6 pairs"):
        pruned([0, 1, 2, 3], n_random=7)
    with pytest.raises(ValueError, match="n_random must be >= 1, got -1"):
        pruned([0, 1, 2, 3], n_random=-1)
    assert len(pruned([0, 1, 2, 3], n_random=6)) == 6


def test_a_list_that_does_not_fit_is_refused_before_it_is_made(monkeypatch):
    y = np.arange(2_000_000) % 2  # 10¹² pairs, all of neighboring labels
    with pytest.raises(MemoryError, match=r"a list of 1000000000000 pairs would take 96\.0 TB"):
        closest(y)
    monkeypatch.setattr(memory, "available", lambda: 1000)
    with pytest.raises(MemoryError, match="pairs='all' or 'adjacent', which list none"):
        random(y, n=100)
