"""Which chunks stay in memory, and whether one can be read while another is stepped on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from linrank.memory import allowed, describe_bytes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Array = NDArray[Any]

__all__ = ["Residence", "room_of_chunk"]

# Beside the features: label, level, weight and id of a row, and the tables of a sampler while they
# are built, where a weighted row is twice, with running sums, and a level of a query is a cell.
_BYTES_A_ROW = 120
_BYTES_A_LEVEL = 200


def room_of_chunk(nbytes: int, n_rows: int, n_levels: int, *, is_scaled: bool) -> int:
    """Bytes that a chunk takes while it is stepped on; scaled rows are a copy."""
    return nbytes * (2 if is_scaled else 1) + _BYTES_A_ROW * n_rows + _BYTES_A_LEVEL * n_levels


@dataclass(frozen=True)
class Residence:
    """What the memory allows.

    Attributes
    ----------
    kept : frozenset of int
        Chunks that stay once they were read. A fixed set: in passes of random order, what was used
        last is no likelier to be needed next.
    reads_ahead : bool
        Whether there is room for a second chunk while one is at work.
    """

    kept: frozenset[int]
    reads_ahead: bool

    @classmethod
    def of(
        cls, memory_limit: Any, rooms: Sequence[int], *, beside: int, n_readers: int = 1
    ) -> Residence:
        """The residence of chunks that take so many bytes each.

        Parameters
        ----------
        memory_limit : int, float, str or None
            See :func:`linrank.memory.allowed`; where that is not known, everything stays.
        rooms : sequence of int
            Bytes of each chunk at work.
        beside : int
            Bytes of everything else.
        n_readers : int
            How many walk over the chunks at a time, each with a chunk of its own.

        Raises
        ------
        MemoryError
            With the least limit that works.
        """
        limit = allowed(memory_limit)
        if limit is None or sum(rooms) + beside <= limit:
            return cls(frozenset(range(len(rooms))), reads_ahead=True)
        largest = max(rooms)
        least = beside + n_readers * largest
        if limit < least:
            told = "half of the free memory" if memory_limit is None else f"{memory_limit!r}"
            raise MemoryError(
                f"memory_limit allows {describe_bytes(limit)} ({told}), but a descent over chunks "
                f"of up to {describe_bytes(largest)} (features, labels and tables of pairs) takes "
                f"{describe_bytes(least)}, {describe_bytes(beside)} of them for the process "
                f"itself; raise it to {least}, or write the store with smaller chunks"
            )
        reads_ahead = limit >= beside + 2 * n_readers * largest
        rest = limit - beside - (2 if reads_ahead else 1) * n_readers * largest
        n_kept = int(np.searchsorted(np.cumsum(rooms), rest, side="right"))
        return cls(frozenset(range(n_kept)), reads_ahead)
