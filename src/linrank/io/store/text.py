"""SVMlight/LETOR text of any size becomes a store, within a memory limit."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linrank import _core
from linrank.data.dataset import Dataset, as_dense
from linrank.errors import DataFormatError
from linrank.io.blocks import LongLineError, Part, Progress, name_of, open_blocks
from linrank.io.store.files import check_target
from linrank.io.store.grouping import Budget, ReadAgain, TemporaryFiles, write_store
from linrank.io.store.store import Store
from linrank.io.svmlight import (
    ReadingOptions,
    Shape,
    Survey,
    parse_blocks,
    read_pieces,
)

Array = NDArray[Any]
_HEAD_ROWS, _HEAD_BYTES = 1000, 4 << 20  # that storage and columns are decided on, at least


def convert_text(
    source: Any,
    path: str | os.PathLike[str],
    options: ReadingOptions,
    budget: Budget,
    n_threads: int = 1,
    overwrite: bool = False,
    progress: Progress | None = None,
) -> Store:
    """Convert text to a store, without having all of it in memory.

    The store holds what `linrank.load` would return for the text, its rows grouped by query:
    queries in the order of their first rows, rows of a query in the order of the text. A text
    whose queries come together is read once. Rows in any other order are sorted by way of
    temporary files beside the store, which take as much room as the store and are always removed.
    So is everything else after a fault, Ctrl-C or on a full disk: there is a whole store or none.

    Parameters
    ----------
    source : path, binary file object, or a list of them
        As `linrank.load` reads it, compressed or not; several are read as if they were one file. A
        stream is kept in a temporary file, as it may have to be read again.
    path : path
        Folder of the store.
    options : ReadingOptions
        ``storage="auto"`` takes the smaller of the two for the first lines of the text. Where a
        later line has a larger index than these, or a feature 0, a dense store is begun again.
    budget : Budget
        What the memory is for.
    n_threads : int
    overwrite : bool
        Whether to replace a store that is there.
    progress : callable, optional
        Called as ``progress(bytes_done, bytes_total or None)`` after each block of text.
    """
    with TemporaryFiles(check_target(path, overwrite)) as files:
        longest = max(1 << 20, budget.limit // 64)
        with closing(Sources(source, files.new_file, budget.block, longest)) as sources:
            text = _Text(sources, options, budget, n_threads, progress)
            return write_store(text.read, files, budget, n_threads, overwrite)


@dataclass
class _Text:
    """A text that is read until all decisions hold: three times at most, with `write_store`.

    ``shape`` is what an earlier pass has found.
    """

    sources: Sources
    options: ReadingOptions
    budget: Budget
    n_threads: int
    progress: Progress | None
    shape: Shape | None = None

    def read(self, table: _core.QueryTable) -> Generator[Dataset, None, None]:
        """Batches of rows, whose queries are numbered by the table.

        A pass that finds columns beyond those of its first lines goes on without rows, so that the
        next knows all of them.
        """
        survey = Survey(self.sources.first_name, self.options)
        held: list[Any] = []
        numbers: list[Array] = []
        n_held = 0
        with closing(self._pieces(survey)) as pieces:
            head = self._head(survey, pieces)
            survey.check_rows()
            shape = self.shape or survey.shape()
            for piece in chain(head, pieces, [None]):
                if not shape.admits(survey):
                    deque(pieces, maxlen=0)  # the rest of the text, to know all columns
                    self.shape = survey.shape()
                    raise ReadAgain
                if not shape.is_dense:
                    shape = replace(shape, n_columns=survey.columns()[1])
                row_bytes = shape.row_bytes()
                self.budget.check_columns(shape.n_columns, row_bytes)
                is_large = piece is not None and piece.n_rows * row_bytes > 4 * self.budget.batch
                if held and (piece is None or is_large or n_held >= self.budget.batch):
                    yield self._rows(held, numbers, shape)
                    held, numbers, n_held = [], [], 0
                if piece is None or piece.n_rows == 0:
                    continue
                if piece.has_query:
                    numbers.append(np.repeat(*table.runs(piece)))
                    self.budget.check_ids(table)
                if is_large:
                    yield from self._cut(piece, numbers, shape)
                    numbers = []
                    continue
                held.append(piece)
                n_held += max(piece.n_rows * row_bytes, piece.n_bytes)

    def _rows(self, pieces: list[Any], numbers: list[Array], shape: Shape) -> Dataset:
        qid = np.concatenate(numbers) if numbers else None
        return read_pieces(pieces, shape, qid, self.sources.first_name, self.n_threads)

    def _cut(self, piece: Any, numbers: list[Array], shape: Shape) -> Iterator[Dataset]:
        """Dense rows of a piece whose lines are short: far larger than the text, part by part."""
        sparse = self._rows([piece], numbers, replace(shape, is_dense=False))
        step = max(1, self.budget.batch // shape.row_bytes())
        for begin in range(0, sparse.n_rows, step):
            part = sparse.select(slice(begin, begin + step))
            yield replace(part, rows=as_dense(part.rows))

    def _head(self, survey: Survey, pieces: Iterator[Any]) -> list[Any]:
        """The first pieces, enough to decide on the shape."""
        head: list[Any] = []
        for piece in pieces:
            head.append(piece)
            n_bytes = sum(piece.n_bytes for piece in head)
            enough = n_bytes >= min(_HEAD_BYTES, self.budget.batch)
            if enough and survey.n_rows >= _HEAD_ROWS and survey.n_entries > 0:
                break
        return head

    def _pieces(self, survey: Survey) -> Generator[Any, None, None]:
        """The pieces of the text, each added to the survey when it is asked for."""
        blocks = parse_blocks(self.options.parser(), self.sources.blocks(), self.n_threads)
        for piece, (name, done) in blocks:
            if name != survey.name:
                survey.begin(name)
            survey.add(piece)
            yield piece
            if self.progress is not None:
                self.progress(done, self.sources.size)


class Sources:
    """One or several texts that are read from the beginning time and again.

    Parameters
    ----------
    source : path, binary file object, or a list of them
        Read in this order, as if they were one file. What is read of a file object is kept in a
        temporary file: compressed, if it is.
    spool : callable
        Returns the path of a new temporary file.
    block_size, longest_line : int
        Bytes.

    Attributes
    ----------
    size : int or None
        Bytes of all texts, where they are known.
    """

    def __init__(
        self, source: Any, spool: Callable[[], str], block_size: int, longest_line: int
    ) -> None:
        self._sources: list[Any] = []
        self._block_size, self._longest = block_size, longest_line
        for one in source if isinstance(source, list) else [source]:
            self._sources.append(_Spooled(one, spool()) if hasattr(one, "read") else one)
        is_known = not any(isinstance(one, _Spooled) for one in self._sources)
        self.size = sum(map(os.path.getsize, self._sources)) if is_known else None

    @property
    def first_name(self) -> str:
        """The first text in messages."""
        first = self._sources[0]
        return str(first.name) if isinstance(first, _Spooled) else os.fsdecode(first)

    def blocks(self) -> Iterator[tuple[Part, tuple[str, int]]]:
        """All blocks, from the beginning, every time that it is called.

        With each comes the name of its text, and the bytes of all texts up to its end.
        """
        before = 0
        for source in self._sources:
            if isinstance(source, _Spooled):
                source.rewind()
            text, done = open_blocks(source, self._block_size, longest_line=self._longest), 0
            for block, done in text.parts:
                if isinstance(block, LongLineError):
                    block = DataFormatError(
                        f"{text.name}: {block.what}, the most that memory_limit allows; give a "
                        "larger one, or check that the file is text with line ends"
                    )
                yield block, (text.name, before + done)
            before += done

    def close(self) -> None:
        """Close what was opened here."""
        for source in self._sources:
            if isinstance(source, _Spooled):
                source.close()


class _Spooled:
    """A stream of which all that was read is kept in a file."""

    def __init__(self, raw: Any, path: str) -> None:
        self.name, self._raw = name_of(raw), raw
        self._kept, self._is_back = open(path, "w+b"), False  # noqa: SIM115  (until close)

    def read(self, size: int) -> bytes:
        if self._is_back:
            if kept := self._kept.read(size):
                return kept
            self._is_back = False
        data: bytes = self._raw.read(size)
        if isinstance(data, bytes):  # else refused by who asked
            self._kept.write(data)
        return data

    def rewind(self) -> None:
        self._kept.seek(0)
        self._is_back = True

    def close(self) -> None:
        self._kept.close()
