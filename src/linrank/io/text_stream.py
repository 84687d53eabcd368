"""TextStream: SVMlight/LETOR text of any length, block by block as it arrives."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from linrank import _core
from linrank.data.dataset import Dataset, as_dense
from linrank.data.rows import resized
from linrank.errors import DataFormatError
from linrank.io.blocks import open_blocks, standard_input
from linrank.io.comments import join_datasets
from linrank.io.svmlight import ReadingOptions, Shape, Survey, read_pieces

BLOCK_SIZE = 1 << 18  # bytes asked for at a time; a pipe gives what it has
MOST_DENSE = 256  # features: rows of more are CSR. A block of the shortest lines stays below 256 MB


class TextStream:
    """The lines of a text as data sets of a fixed number of features, each as soon as it is read.

    Each data set holds the whole lines that came with one read, so what is written to a pipe can be
    answered before more is. Nothing of it is kept. How a row is stored depends on ``n_features``
    alone and not on the lines that come with it: neither then do the bits of its score.

    Parameters
    ----------
    source : path, "-" or binary file object
        As for ``linrank.load``.
    n_features : int
        Columns of every data set. A feature beyond is left out, and seen in `beyond`.
    dtype : {"float32", "float64"}
        Type of the values.
    zero_based : {"auto", True, False}
        Whether feature 0 is the first column. ``"auto"``: if the first lines have it; later it is
        an error, for rows have been read already.
    grouped : bool
        Whether the query ids are wanted: all are remembered then, some ten bytes each.

    Attributes
    ----------
    name : str
        The input in messages.
    n_rows : int
        Rows so far.
    beyond : (str, int) or None
        Place and number of the first feature that was left out.
    ids : QueryTable
        The query ids; ``qid`` of the data sets are numbers in it, by first appearance.

    Examples
    --------
    >>> import io
    >>> stream = TextStream(io.BytesIO(b"1 qid:a 1:2\\n0 qid:b 2:3\\n"), 2)
    >>> [data.X.tolist() for data in stream], stream.id_of(1)
    ([[[2.0, 0.0], [0.0, 3.0]]], 'b')
    """

    def __init__(
        self,
        source: Any,
        n_features: int,
        *,
        dtype: Any = None,
        zero_based: Any = "auto",
        grouped: bool = True,
    ) -> None:
        self.n_features = n_features
        self._options = ReadingOptions.of(dtype, "auto", None, zero_based)
        self._text = open_blocks(_Eager(standard_input()) if source == "-" else source, BLOCK_SIZE)
        self._survey = Survey(self._text.name, self._options)
        self._base: int | None = None if zero_based == "auto" else int(not zero_based)
        self.beyond: tuple[str, int] | None = None
        self.ids = _core.QueryTable()
        self._grouped = grouped

    @property
    def name(self) -> str:
        return self._text.name

    @property
    def n_rows(self) -> int:
        return self._survey.n_rows

    @property
    def n_lines(self) -> int:
        """Lines so far."""
        return self._survey.n_lines

    def id_of(self, query: int) -> str:
        """The id of a query, as written."""
        token: bytes = self.ids.tokens(query, query + 1)[0]
        return token.decode("utf-8", "backslashreplace")

    def __iter__(self) -> Iterator[Dataset]:
        parser, survey = self._options.parser(), self._survey
        for block, _ in self._text.blocks:
            if isinstance(block, DataFormatError):
                raise block
            piece = parser.parse(block)
            before = survey.n_lines
            survey.add(piece)
            if piece.n_rows > 0:
                yield self._dataset(piece, self._base_of(piece, before), before)
        survey.check_rows()

    def _base_of(self, piece: Any, n_lines: int) -> int:
        """The number of the first column; decided by the first lines that have a feature."""
        if piece.n_entries == 0:
            return 1 if self._base is None else self._base
        if self._base is None:
            self._base = int(piece.lowest != 0)
        elif piece.lowest < self._base:
            raise DataFormatError(
                f"{self.name}: there is a feature 0 behind line {n_lines}, and the lines before "
                "were read with 1 as the first feature; say that it is 0 (--index-base 0)"
            )
        return self._base

    def _dataset(self, piece: Any, base: int, n_lines: int) -> Dataset:
        if piece.highest - base >= self.n_features and self.beyond is None:
            line, column = piece.highest_place
            self.beyond = f"{self.name}:{n_lines + line}:{column}", piece.highest
        qid = None
        if piece.has_query and self._grouped:
            query, sizes = self.ids.runs(piece)
            qid = np.repeat(query, sizes)
        is_dense = self.n_features <= MOST_DENSE
        n_columns = max(piece.highest - base + 1, self.n_features)
        has_comments = piece.n_comment_bytes > 0
        fits = is_dense and n_columns == self.n_features
        shape = Shape(fits, self._options.dtype, base, n_columns, False, has_comments)
        data = read_pieces([piece], shape, qid, self.name, 1)
        rows = resized(data.rows, self.n_features)
        return replace(data, rows=as_dense(rows) if is_dense else rows)


def whole_queries(stream: TextStream) -> Iterator[Dataset]:
    """The data sets of a stream cut where queries end; one that comes back is a DataFormatError."""

    def comes_back(query: int) -> DataFormatError:
        return DataFormatError(
            f"{stream.name}: query {stream.id_of(query)} comes back after other queries, at or "
            f"before line {stream.n_lines}, and has been scored as whole; put the rows of each "
            "query together, or read everything first (--no-stream)"
        )

    return complete_queries(stream, comes_back)


def complete_queries(
    parts: Iterable[Dataset],
    apart: Callable[[int], Exception],
    check: Callable[[list[Dataset]], object] = len,
) -> Iterator[Dataset]:
    """Data sets cut where queries end: one is whole when the next one begins.

    Rows without query ids are one query, which ends with the parts. What is held back is the last
    query.

    Parameters
    ----------
    parts : iterable of Dataset
        Their ``qid`` are numbers by first appearance.
    apart : callable
        Makes the error for the number of a query that comes back after others: it has been passed
        on as whole.
    check : callable
        Is shown what is held back whenever it has become more.
    """
    held: list[Dataset] = []
    last = -1  # the query that is held back
    for part in parts:
        qid, begin = part.qid, 0
        if qid is None:
            held.append(part)
            check(held)
            continue
        # Numbers that ascend are rows that come together.
        back = np.flatnonzero(np.diff(qid, prepend=max(last, 0)) < 0)
        if back.size:
            raise apart(int(qid[back[0]]))
        if held:
            begin = int(np.searchsorted(qid, last, side="right"))
            held += [part.select(slice(0, begin))] if begin else []
            if begin == part.n_rows:
                check(held)
                continue
            yield join_datasets(held)
        last = int(qid[-1])
        end = int(np.searchsorted(qid, last))
        if end > begin:
            yield part.select(slice(begin, end))
        held = [part.select(np.arange(end, part.n_rows))]  # a copy: the part need not stay
    if held:
        yield join_datasets(held)


class _Eager:
    """Standard input that gives what is there: read() of a buffer waits until it is full."""

    name = "<stdin>"

    def __init__(self, buffer: Any) -> None:
        self._read = getattr(buffer, "read1", buffer.read)

    def read(self, size: int = -1) -> bytes:
        data: bytes = self._read(size)
        return data
