"""Sums in pieces: the tree is that of one place, whoever holds which parts."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linrank.parts.parts import joined, pieces, tree_sum


class Sum:
    """A part that remembers how it was added."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __add__(self, other: Sum) -> Sum:
        return Sum(f"({self.text}+{other.text})")


@given(st.lists(st.integers(0, 4), min_size=1, max_size=70))
def test_pieces_of_any_owners_join_to_the_tree_of_one_place(owners):
    parts = [Sum(str(i)) for i in range(len(owners))]
    held = {k: [i for i, owner in enumerate(owners) if owner == k] for k in set(owners)}
    found = [piece for own in held.values() for piece in pieces((i, parts[i]) for i in own)]
    assert joined(found).text == tree_sum(parts).text


@given(st.integers(1, 200))
def test_one_owner_sends_no_more_pieces_than_a_number_has_ones(n_parts):
    found = pieces(enumerate([1.0] * n_parts))
    assert len(found) == bin(n_parts).count("1")
    assert joined(found) == n_parts


@pytest.mark.parametrize("found", [[(0, 1, 1.0), (2, 1, 1.0)], [(1, 1, 1.0)], [(0, 2, 1.0)] * 2])
def test_a_part_that_is_missing_or_doubled_is_an_error(found):
    with pytest.raises(ValueError, match=r"part . is missing or doubled"):
        joined(found)


def test_a_sum_over_nothing_is_an_error():
    with pytest.raises(ValueError, match="at least one"):
        joined([])
