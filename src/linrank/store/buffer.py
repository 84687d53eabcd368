"""Buffer: memory for the features of one chunk, used again for the next.

New memory is dear: the system clears every page before it hands it out, which takes longer than
reading it from a fast disk. A loop over chunks therefore reads into buffers that stay.
"""

from __future__ import annotations

import mmap
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linrank.memory import describe_bytes

__all__ = ["PAGE", "Buffer", "aligned", "span"]

PAGE = 4096  # reads past the page cache begin and end at multiples of it, in the file and in memory
_LARGE = 4 << 20
# Of this process alone: by default children that are forked would share it, and read into it too.
_PRIVATE: dict[str, int] = (
    {"flags": mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS} if hasattr(mmap, "MAP_PRIVATE") else {}
)


def span(begin: int, n_bytes: int) -> int:
    """Bytes of memory that reading a range of a file in whole pages takes."""
    return max(PAGE, -(-(begin + n_bytes) // PAGE) * PAGE - begin // PAGE * PAGE)


def aligned(n_bytes: int) -> NDArray[np.uint8]:
    """At least so many bytes, in whole pages that begin at a page."""
    n_bytes = max(PAGE, -(-n_bytes // PAGE) * PAGE)
    try:
        # Given back when the last array that looks at it is gone.
        memory = mmap.mmap(-1, n_bytes, **_PRIVATE)
    except (OSError, OverflowError):
        raise MemoryError(f"there is no memory for {describe_bytes(n_bytes)} of a chunk") from None
    advice: Any = getattr(mmap, "MADV_HUGEPAGE", None)
    if advice is not None and n_bytes >= _LARGE:
        memory.madvise(advice)
    return np.frombuffer(memory, np.uint8)


class Buffer:
    """Page-aligned memory by name of array; see ``Store.buffer``.

    A dataset that was read into a buffer looks at this memory: it is gone with the next read into
    the same buffer.
    """

    def __init__(self, sizes: Mapping[str, int]) -> None:
        self._parts = {name: aligned(size) for name, size in sizes.items()}

    @property
    def nbytes(self) -> int:
        return sum(part.nbytes for part in self._parts.values())

    def part(self, name: str, begin: int, n_bytes: int) -> NDArray[np.uint8]:
        """Memory of an array, enough for a range of its file."""
        part, needed = self._parts.get(name), span(begin, n_bytes)
        if part is None or part.nbytes < needed:
            raise ValueError(
                f"the buffer holds {0 if part is None else part.nbytes} bytes of {name}, the chunk "
                f"needs {needed}; make one with the buffer() of the store that is read"
            )
        return part
