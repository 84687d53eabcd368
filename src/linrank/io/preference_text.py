"""Preferences as text: a winner and a loser a line, by row number, and perhaps a weight."""

from __future__ import annotations

import math
import re
from array import array
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linrank.data.preferences import Preferences
from linrank.errors import DataFormatError
from linrank.io.blocks import open_blocks

Array = NDArray[Any]
_NUMBER = re.compile(rb"\+?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?")
_MOST_DIGITS = 18  # of a row number: fits 64 bits


def load_preferences(source: Any, *, n_rows: int | None = None) -> Preferences:
    """Read preferences from text, plain or compressed.

    Every line is ``winner loser`` or ``winner loser weight``: row numbers from 0 of the data that
    the preferences speak of, and a weight >= 0, 1 if left out. What follows a ``#`` is a comment;
    lines without anything else are skipped. It is the format of CatBoost's pairs.

    Parameters
    ----------
    source : path, "-" for standard input, or binary file
        Where to read.
    n_rows : int, optional
        Rows of the data; a row beyond is an error.

    Returns
    -------
    Preferences
        With the line of each pair, for messages.

    Raises
    ------
    DataFormatError
        With file and line of the first fault.

    Examples
    --------
    >>> import io
    >>> found = load_preferences(io.BytesIO(b"4 0  # a comment\\n3 1 0.5\\n"))
    >>> found.pairs.tolist(), found.weight.tolist()
    ([[4, 0], [3, 1]], [1.0, 0.5])
    """
    text = open_blocks(source)
    reader = _Reader(text.name, n_rows)
    for block, _ in text.blocks:
        if isinstance(block, DataFormatError):
            raise block
        reader.read(bytes(block))
    return reader.preferences()


class _Reader:
    """Collects the pairs of one text, line by line."""

    def __init__(self, name: str, n_rows: int | None) -> None:
        self.name = name
        self.n_rows = n_rows
        self.n_lines = 0
        self.rows, self.weights, self.lines = array("q"), array("d"), array("q")

    def read(self, block: bytes) -> None:
        """The lines of a block of whole lines."""
        lines = block.split(b"\n")
        if not lines[-1]:
            lines.pop()
        for line in lines:
            self.n_lines += 1
            fields = line.partition(b"#")[0].split()
            if fields:
                self._add(fields)

    def _add(self, fields: list[bytes]) -> None:
        if not 2 <= len(fields) <= 3:
            raise self._error(
                f"expected 'winner loser [weight]', got {len(fields)} "
                f"column{'s' if len(fields) > 1 else ''}"
            )
        winner, loser = self._row(fields[0], "winner"), self._row(fields[1], "loser")
        if winner == loser:
            raise self._error(f"row {winner} is compared with itself")
        self.rows.extend((winner, loser))
        self.weights.append(1.0 if len(fields) == 2 else self._weight(fields[2]))
        self.lines.append(self.n_lines)

    def _row(self, field: bytes, what: str) -> int:
        if not field.isdigit():
            raise self._error(f"the {what} is {_shown(field)}, not a row number (0, 1, 2, ...)")
        row = int(field) if len(field) <= _MOST_DIGITS else 10**_MOST_DIGITS
        if row >= (10**_MOST_DIGITS if self.n_rows is None else self.n_rows):
            limit = "" if self.n_rows is None else f"; the data have rows 0 to {self.n_rows - 1}"
            raise self._error(f"there is no row {_shown(field)} for the {what}{limit}")
        return row

    def _weight(self, field: bytes) -> float:
        weight = float(field) if _NUMBER.fullmatch(field) else math.nan
        if not math.isfinite(weight):
            raise self._error(f"the weight is {_shown(field)}; weights are finite numbers >= 0")
        return weight

    def _error(self, message: str) -> DataFormatError:
        return DataFormatError(f"{self.name}:{self.n_lines}: {message}")

    def preferences(self) -> Preferences:
        """All that was read."""
        if not self.lines:
            raise DataFormatError(
                f"{self.name}: no preferences; expected lines 'winner loser [weight]'"
            )
        rows: Array = np.array(self.rows, dtype=np.int64).reshape(-1, 2)
        weight: Array = np.array(self.weights)
        if not weight.any():
            raise DataFormatError(f"{self.name}: all weights are zero; at least one must be > 0")
        return Preferences(
            np.ascontiguousarray(rows[:, 0]),
            np.ascontiguousarray(rows[:, 1]),
            None if (weight == 1.0).all() else weight,
            lines=np.array(self.lines),
            source=self.name,
        )


def _shown(field: bytes) -> str:
    """A field of the text for a message, cut if it is long."""
    return repr(field[:40].decode("utf-8", "replace") + ("..." if len(field) > 40 else ""))
