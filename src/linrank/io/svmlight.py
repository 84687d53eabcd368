"""Reading SVMlight/LETOR text: ``label[:weight] [qid:id] index:value ... [# comment]``."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import chain, islice
from types import SimpleNamespace
from typing import Any, TypeVar

import numpy as np

from linrank import _core
from linrank.data import Array, CsrRows, Dataset, DenseRows, Rows, as_dense, join_datasets, resized
from linrank.data.words import Comments
from linrank.errors import DataFormatError, check_one_of
from linrank.io.blocks import Part, Progress, TextBlocks, open_blocks, read_part, standard_input
from linrank.system.resources import check_fits

# The fault of a first line that names columns: a word, or words with commas, for a label.
_HEADER = re.compile(r"expected a number for the label, got '\"?[A-Za-z_][\w ]*[\",'.]")

T = TypeVar("T")
FORM = "label qid:id index:value ..."


@dataclass(frozen=True)
class ReadingOptions:
    """How rows are read, as `linrank.load` takes it, checked; ``has_dtype``: the type was given."""

    dtype: np.dtype[Any]
    storage: str
    n_features: int | None
    zero_based: str | bool
    has_dtype: bool

    @classmethod
    def of(cls, dtype: Any, storage: Any, n_features: Any, zero_based: Any) -> ReadingOptions:
        """The options, or ValueError."""
        kind = np.dtype(np.float32 if dtype is None else dtype)  # that of None is float64
        if kind not in (np.float32, np.float64):
            raise ValueError(f"dtype must be float32 or float64, got {kind}")
        check_one_of("storage", storage, ("auto", "dense", "csr"))
        if n_features is not None and not 1 <= n_features <= 2**31 - 1:
            raise ValueError(f"n_features must be from 1 to 2147483647, got {n_features}")
        if zero_based not in ("auto", True, False):
            raise ValueError(f"zero_based must be 'auto', True or False, got {zero_based!r}")
        return cls(kind, storage, n_features, zero_based, dtype is not None)

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


def survey_pieces(
    blocks: Iterable[tuple[Part, tuple[str, int]]],
    survey: Survey,
    n_threads: int,
    progress: Progress | None,
    size: int | None,
) -> Generator[Any, None, None]:
    """The pieces of blocks, each added to the survey when it is asked for.

    A block comes with the name of its file and the bytes of all files up to its end, of ``size``.
    """
    parser = survey.options.parser()
    for piece, (name, done) in parse_blocks(parser, iter(blocks), n_threads):
        if name != survey.name:
            survey.begin(name)
        survey.add(piece)
        yield piece
        if progress is not None:
            progress(done, size)


def _parse_block(parser: Any, block: Part) -> Any:
    return parser.parse(read_part(block))  # raises in its turn: faults before come first


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
    has_weights, has_comments : bool
        Whether a row has had a weight, a comment.
    """

    def __init__(self, name: str, options: ReadingOptions) -> None:
        self.name, self.options = name, options
        self.n_lines = self.n_rows = self.n_entries = 0
        self.lowest, self.highest = -1, -1
        self.highest_place = ""
        self.has_query: bool | None = None
        self.has_weights = self.has_comments = False

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
        self.has_weights |= piece.has_weight
        self.has_comments |= piece.n_comment_bytes > 0
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

    def shape(self) -> Shape:
        """How the rows so far are stored: as asked, or the smaller of the two."""
        base, n_columns = self.columns()
        storage, dtype = self.options.storage, self.options.dtype
        is_dense = storage == "dense"
        if storage == "auto":
            dense_size = self.n_rows * n_columns * dtype.itemsize
            is_dense = dense_size <= self.n_entries * (dtype.itemsize + 4)
        return Shape(is_dense, dtype, base, n_columns, self.has_weights, self.has_comments)

    def check_rows(self) -> None:
        """Raise DataFormatError where no line had data."""
        if self.n_rows == 0:
            what = "no line with data" if self.n_lines else "empty file"
            raise DataFormatError(f"{self.name}: {what}; expected lines '{FORM}'")


@dataclass(frozen=True)
class Shape:
    """How the rows of a text are stored.

    Attributes
    ----------
    is_dense : bool
        A full matrix, or CSR.
    dtype : float32 or float64
        Of the values.
    base, n_columns : int
        The index of the first column; the number of columns.
    has_weights, has_comments : bool
        What rows have.
    """

    is_dense: bool
    dtype: np.dtype[Any]
    base: int
    n_columns: int
    has_weights: bool
    has_comments: bool

    def admits(self, survey: Survey) -> bool:
        """Whether all rows of a survey can be stored like this; CSR may become wider."""
        base, n_columns = survey.columns()
        return (
            base == self.base
            and (n_columns <= self.n_columns or not self.is_dense)
            and survey.has_weights <= self.has_weights
            and survey.has_comments <= self.has_comments
        )

    def row_bytes(self) -> int:
        """Bytes of the features of a row: all of a dense one, at least of a sparse one."""
        return self.n_columns * self.dtype.itemsize if self.is_dense else 8


def read_pieces(
    pieces: list[Any], shape: Shape, qid: Array | None, source: str, n_threads: int
) -> Dataset:
    """The rows of parsed pieces, which are empty afterwards."""
    n_rows = sum(piece.n_rows for piece in pieces)
    labels, weight, comments = np.empty(n_rows), None, None
    _core.fill_labels(pieces, labels)
    if shape.has_weights:
        weight = np.empty(n_rows)
        _core.fill_weights(pieces, weight)
    if shape.has_comments:
        text = np.empty(sum(piece.n_comment_bytes for piece in pieces), np.uint8)
        comments = Comments(text, np.empty(n_rows + 1, np.int64))
        _core.fill_comments(pieces, text, comments.offsets)
    rows = read_rows(pieces, n_rows, shape, n_threads)
    return Dataset(rows, labels, qid, weight, None, comments, source, shape.base)


def read_rows(pieces: list[Any], n_rows: int, shape: Shape, n_threads: int) -> Rows:
    if shape.is_dense:
        x = np.empty((n_rows, shape.n_columns), shape.dtype)
        _core.fill_dense(pieces, x, shape.base, n_threads)
        return DenseRows(x)
    n_entries = sum(piece.n_entries for piece in pieces)
    values, columns = np.empty(n_entries, shape.dtype), np.empty(n_entries, np.int32)
    offsets = np.empty(n_rows + 1, np.int64)
    _core.fill_csr(pieces, values, columns, offsets, shape.n_columns, shape.base, n_threads)
    return CsrRows(values, columns, offsets, shape.n_columns)


def read_blocks(
    text: TextBlocks, options: ReadingOptions, n_threads: int, progress: Progress | None = None
) -> Dataset:
    """All rows of the blocks of a text."""
    survey = Survey(text.name, options)
    blocks = ((part, (text.name, done)) for part, done in text.parts)
    surveyed = survey_pieces(blocks, survey, n_threads, progress, text.size)
    pieces = [piece for piece in surveyed if piece.n_rows > 0]
    survey.check_rows()
    shape = survey.shape()
    qid = _query_ids(pieces, survey.n_rows) if survey.has_query else None
    _check_fits(survey, shape, sum(piece.n_bytes for piece in pieces))
    return read_pieces(pieces, shape, qid, survey.name, n_threads)


def _check_fits(survey: Survey, shape: Shape, n_held: int) -> None:
    """Raise MemoryError for a matrix that is too large, less what is freed while it is filled."""
    n_rows, itemsize = survey.n_rows, shape.dtype.itemsize
    size = n_rows * shape.n_columns * itemsize
    if not shape.is_dense:
        size = survey.n_entries * (itemsize + 4) + 8 * n_rows
    check_fits(
        size - n_held,
        f"{survey.name}: {n_rows} × {shape.n_columns} {shape.dtype} "
        f"as {'dense' if shape.is_dense else 'CSR'}",
        "read with storage='csr'" if shape.is_dense else "read part of the file",
    )


def _query_ids(pieces: list[Any], n_rows: int) -> Array:
    """Ids as int64 if all are integers, else as an object array of strings, one object per id."""
    ids = np.empty(n_rows, np.int64)
    if _core.fill_integer_queries(pieces, ids):
        return ids
    tokens = _core.fill_query_codes(pieces, ids)
    names = np.array([token.decode("utf-8", "backslashreplace") for token in tokens], dtype=object)
    return names[ids]


# ---- text of any length, block by block as it arrives -------------------------------------------


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
        if source == "-":  # what is there: read() of a buffer waits until it is full
            buffer = standard_input()
            source = SimpleNamespace(name="<stdin>", read=getattr(buffer, "read1", buffer.read))
        self._text = open_blocks(source, BLOCK_SIZE)
        self.name = self._text.name
        self._survey = Survey(self.name, self._options)
        self._base: int | None = None if zero_based == "auto" else int(not zero_based)
        self.beyond: tuple[str, int] | None = None
        self.ids = _core.QueryTable()
        self._grouped = grouped

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
