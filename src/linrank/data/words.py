"""Words of a file, one per row, kept as one text: a fifth of the memory of Python strings."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Words", "part", "parts_of"]

Array = NDArray[Any]


@dataclass(frozen=True, eq=False)
class Words:
    """Word ``i`` is ``text[offsets[i]:offsets[i+1]]``, in UTF-8.

    Attributes
    ----------
    text : uint8 array
        All words one after another.
    offsets : int64 array (n_words + 1,)
        Where each begins.
    """

    text: Array
    offsets: Array

    @classmethod
    def of(cls, words: Iterable[str]) -> Words:
        """From strings.

        Examples
        --------
        >>> Words.of(["a", "bc"]).tolist()
        ['a', 'bc']
        """
        encoded = [word.encode("utf-8", "surrogateescape") for word in words]
        sizes = np.fromiter(map(len, encoded), np.int64, len(encoded))
        text = np.frombuffer(b"".join(encoded), np.uint8)
        return cls(text, np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64))

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, i: int) -> str:
        """The word of row ``i``; bytes that are no UTF-8 come back as they were when written."""
        return part(self.text, self.offsets, i).decode("utf-8", "surrogateescape")

    def select(self, index: Any) -> Words:
        """Return the words of the rows of ``index`` (integers, a boolean mask or a slice).

        Examples
        --------
        >>> Words.of(["a", "bc", "d"]).select([2, 1]).tolist()
        ['d', 'bc']
        """
        return Words(*parts_of(self.text, self.offsets, index))

    def tolist(self, errors: str = "surrogateescape") -> list[str]:
        """All words; ``errors`` as in ``bytes.decode``."""
        text, ends = self.text.tobytes(), self.offsets.tolist()
        if text.isascii():  # then a place in the bytes is a place in the string
            whole = text.decode("ascii")
            return [whole[a:b] for a, b in pairwise(ends)]
        parts = (text[a:b] for a, b in pairwise(ends))
        return [part.decode("utf-8", errors) for part in parts]


def part(text: Array, offsets: Array, i: int) -> bytes:
    """``text[offsets[i]:offsets[i+1]]``; negative ``i`` count from the end."""
    n_parts = len(offsets) - 1
    if not -n_parts <= i < n_parts:
        raise IndexError(f"row {i} of {n_parts} rows")
    i %= n_parts
    return bytes(text[offsets[i] : offsets[i + 1]].tobytes())


def parts_of(text: Array, offsets: Array, index: Any) -> tuple[Array, Array]:
    """Text and offsets of the parts of ``index`` (integers, a boolean mask or a slice)."""
    rows = np.arange(len(offsets) - 1)[index]
    sizes = np.diff(offsets)[rows]
    starts = np.concatenate([[0], np.cumsum(sizes)])
    # Byte k of the result is byte k - starts[row] + offsets[rows[row]] of the text.
    places = np.arange(starts[-1]) + np.repeat(offsets[rows] - starts[:-1], sizes)
    return text[places], starts
