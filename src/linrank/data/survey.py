"""What reading a text into memory and converting it share: options, pieces, and what is known."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, islice
from typing import Any, TypeVar

import numpy as np

from linrank import _core
from linrank.data.blocks import Part, Stretch
from linrank.errors import DataFormatError

__all__ = ["ReadingOptions", "Survey", "parse_blocks"]

# The fault of a first line that names columns: a word, or words with commas, for a label.
_HEADER = re.compile(r"expected a number for the label, got '\"?[A-Za-z_][\w ]*[\",'.]")

T = TypeVar("T")
FORM = "label qid:id index:value ..."


@dataclass(frozen=True)
class ReadingOptions:
    """How a text is read, as `linrank.load` takes it, checked."""

    dtype: np.dtype[Any]
    storage: str
    n_features: int | None
    zero_based: str | bool

    @classmethod
    def of(cls, dtype: Any, storage: Any, n_features: Any, zero_based: Any) -> ReadingOptions:
        """The options, or ValueError."""
        kind = np.dtype(np.float32 if dtype is None else dtype)  # that of None is float64
        if kind not in (np.float32, np.float64):
            raise ValueError(f"dtype must be float32 or float64, got {kind}")
        if storage not in ("auto", "dense", "csr"):
            raise ValueError(f"storage must be 'auto', 'dense' or 'csr', got {storage!r}")
        if n_features is not None and not 1 <= n_features <= 2**31 - 1:
            raise ValueError(f"n_features must be from 1 to 2147483647, got {n_features}")
        if zero_based not in ("auto", True, False):
            raise ValueError(f"zero_based must be 'auto', True or False, got {zero_based!r}")
        return cls(kind, storage, n_features, zero_based)

    def parser(self) -> Any:
        """A parser that takes the indices that a line may have, as far as they are known."""
        lowest = 1 if self.zero_based is False else 0
        highest = int(_core.MAX_FEATURE)
        if self.n_features is not None:
            highest = min(highest, self.n_features - (self.zero_based is True))
        kind = _core.TextParser32 if self.dtype == np.float32 else _core.TextParser64
        return kind(lowest, highest)


def parse_blocks(
    parser: Any, blocks: Iterator[tuple[Part, T]], n_threads: int
) -> Iterator[tuple[Any, T]]:
    """Pieces in the order of their blocks; a few blocks are under way at any time."""
    head = list(islice(blocks, 3))
    blocks = chain(head, blocks)
    if n_threads == 1 or len(head) < 3:  # a few milliseconds: less than the pool costs
        for block, tag in blocks:
            yield _parse_block(parser, block), tag
        return
    from concurrent.futures import ThreadPoolExecutor

    pending: deque[tuple[Any, T]] = deque()
    with ThreadPoolExecutor(n_threads) as pool:
        try:
            for block, tag in blocks:
                pending.append((pool.submit(_parse_block, parser, block), tag))
                if len(pending) > n_threads + 1:
                    future, tag = pending.popleft()
                    yield future.result(), tag
            while pending:
                future, tag = pending.popleft()
                yield future.result(), tag
        finally:
            for future, _ in pending:
                future.cancel()


def _parse_block(parser: Any, block: Part) -> Any:
    if isinstance(block, DataFormatError):  # raised in its turn: faults before it come first
        raise block
    return parser.parse(block.read() if isinstance(block, Stretch) else block)


class Survey:
    """What the pieces read so far have in common; finds the first fault of the text.

    Attributes
    ----------
    name : str
        The file at hand, in messages.
    n_lines : int
        Lines of that file so far.
    n_rows, n_entries : int
        Of all files so far.
    lowest, highest : int
        Feature indices as written; -1 before the first entry.
    has_query : bool or None
        Whether rows have a query id; None before the first row.
    """

    def __init__(self, name: str, options: ReadingOptions) -> None:
        self.name, self.options = name, options
        self.n_lines = self.n_rows = self.n_entries = 0
        self.lowest, self.highest = -1, -1
        self.highest_place = ""
        self.has_query: bool | None = None

    def begin(self, name: str) -> None:
        """Go on with the lines of another file."""
        self.name, self.n_lines = name, 0

    def add(self, piece: Any) -> None:
        """Add the next piece; raise the first fault of the file."""
        mixed = None if self.has_query is None else piece.query_fault(self.has_query)
        fault = mixed or piece.fault
        if fault is not None:
            line, column, message = fault
            if self.n_lines + line == 1 and _HEADER.match(message):
                message += "; if these are names of columns, say format='csv' or 'tsv'"
            raise DataFormatError(f"{self.name}:{self.n_lines + line}:{column}: {message}")
        if piece.n_entries > 0 and (self.lowest < 0 or piece.lowest < self.lowest):
            self.lowest = piece.lowest
        if piece.highest > self.highest:
            line, column = piece.highest_place
            self.highest = piece.highest
            self.highest_place = f"{self.name}:{self.n_lines + line}:{column}"
        self.n_lines += piece.n_lines
        self.n_rows += piece.n_rows
        self.n_entries += piece.n_entries
        if piece.n_rows > 0:
            self.has_query = piece.has_query

    def columns(self) -> tuple[int, int]:
        """(the index of the first column, number of columns)."""
        base, n_features = int(self.lowest != 0), self.options.n_features
        if self.options.zero_based != "auto":
            base = int(not self.options.zero_based)
        if n_features is None:
            if self.n_entries == 0:
                raise DataFormatError(
                    f"{self.name}: none of the {self.n_rows} rows has a feature; "
                    f"expected lines '{FORM}'"
                )
            return base, self.highest - base + 1
        if self.highest - base >= n_features:
            # Only now is it known that indices start at 0: n_features itself is one too many.
            raise DataFormatError(
                f"{self.highest_place}: feature index {self.highest} is out of range; "
                f"expected 0 to {n_features - 1}, as the file has a feature 0"
            )
        return base, n_features

    def is_dense(self, n_columns: int) -> bool:
        """Whether rows are stored as a full matrix: as asked, or where that is smaller."""
        if self.options.storage != "auto":
            return self.options.storage == "dense"
        itemsize = self.options.dtype.itemsize
        return self.n_rows * n_columns * itemsize <= self.n_entries * (itemsize + 4)

    def check_rows(self) -> None:
        """Raise DataFormatError where no line had data."""
        if self.n_rows == 0:
            what = "no line with data" if self.n_lines else "empty file"
            raise DataFormatError(f"{self.name}: {what}; expected lines '{FORM}'")
