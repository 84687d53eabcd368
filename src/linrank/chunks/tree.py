"""Sums in a fixed order, so that the same chunks give the same bits wherever they are added."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeVar

__all__ = ["GROUP", "tree_sum"]

T = TypeVar("T")

GROUP = 8  # parts that a cluster adds in one task; a power of two


def tree_sum(parts: Iterable[T]) -> T:
    """The sum of the parts by a balanced binary tree, one part at a time.

    Of the parts seen so far only the complete subtrees are kept, at most log₂ n of them. A sum of
    sums over consecutive groups of `GROUP` parts has the same tree, hence the same bits.

    Examples
    --------
    >>> tree_sum("abcdefg")
    'abcdefg'
    """
    subtrees: list[tuple[int, Any]] = []
    for part in parts:
        size, total = 1, part
        while subtrees and subtrees[-1][0] == size:
            total = subtrees.pop()[1] + total
            size *= 2
        subtrees.append((size, total))
    if not subtrees:
        raise ValueError("a sum over no chunk; there must be at least one")
    total = subtrees.pop()[1]
    while subtrees:
        total = subtrees.pop()[1] + total
    return total
