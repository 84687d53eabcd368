"""Pieces of the tree that `linrank.parts.chunk.tree_sum` adds by, each summed where its parts are.

The tree of n parts has a node for every aligned run ``[k·2^m, (k+1)·2^m)`` of them. A worker that
has all parts of such a run adds them by itself; joined in order, the pieces give the same bits as
the sum of all parts in one place.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

Piece = tuple[int, int, Any]  # first part, number of parts (a power of two), their sum


def pieces(indices: Sequence[int], values: Iterable[Any]) -> list[Piece]:
    """The largest nodes of the tree whose parts are all among ``indices``, which ascend.

    Values are taken one at a time and added as soon as a node is whole, so that few are kept.

    Examples
    --------
    >>> pieces([1, 2, 3, 4, 5, 6], "bcdefg")
    [(1, 1, 'b'), (2, 2, 'cd'), (4, 2, 'ef'), (6, 1, 'g')]
    """
    stack: list[Piece] = []
    for start, value in zip(indices, values, strict=True):
        _push(stack, (start, 1, value))
    return stack


def joined(found: Iterable[Piece]) -> Any:
    """The sum over all parts, of pieces that cover them.

    Examples
    --------
    >>> joined([(2, 1, "c"), (0, 2, "ab")])
    'abc'
    """
    stack: list[Piece] = []
    end = 0
    for piece in sorted(found, key=lambda piece: piece[0]):
        if piece[0] != end:
            raise ValueError(f"part {end} is missing or doubled in a sum")
        end += piece[1]
        _push(stack, piece)
    if not stack:
        raise ValueError("a sum over no part; there must be at least one")
    total = stack.pop()[2]
    while stack:
        total = stack.pop()[2] + total
    return total


def _push(stack: list[Piece], piece: Piece) -> None:
    """Put a piece on top, and join neighbours as long as they make a node of the tree."""
    start, size, total = piece
    while stack and stack[-1][1] == size and stack[-1][0] == start - size:
        if stack[-1][0] % (2 * size):
            break  # neighbours, but children of two nodes
        start, _, left = stack.pop()
        total = left + total
        size *= 2
    stack.append((start, size, total))
