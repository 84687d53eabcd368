"""Reading SVMlight/LETOR text: ``label[:weight] [qid:id] index:value ... [# comment]``."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain, islice
from typing import Any, Literal

import numpy as np
from numpy.typing import DTypeLike, NDArray

from linrank import _core
from linrank.data.blocks import Block, TextBlocks, open_blocks
from linrank.data.comments import Comments
from linrank.data.dataset import Dataset
from linrank.data.rows import CsrRows, DenseRows, Rows
from linrank.errors import DataFormatError
from linrank.memory import check_fits
from linrank.threads import resolve

__all__ = ["Comments", "load"]

Array = NDArray[Any]
Progress = Callable[[int, "int | None"], object]
_FORM = "label qid:id index:value ..."


def load(
    source: Any,
    *,
    dtype: DTypeLike = "float32",
    storage: Literal["auto", "dense", "csr"] = "auto",
    n_features: int | None = None,
    zero_based: Literal["auto"] | bool = "auto",
    n_jobs: int | None = None,
    progress: Progress | None = None,
) -> Dataset:
    """Read a data set from SVMlight/LETOR text.

    Each line is ``label qid:id index:value ... # comment``. Labels are real numbers;
    ``label:weight`` gives a row a weight (1 where it is missing); ids are any tokens, in any order
    of rows; without ids all rows are one query. Indices increase within a line; what is not given
    is 0. Numbers are rounded as by Python's ``float``, then to ``dtype``.

    Parameters
    ----------
    source : path, "-" or binary file object
        ``"-"`` is standard input. gzip, bzip2, xz and Zstandard are told by their first bytes.
    dtype : {"float32", "float64"}, default="float32"
        Type of the feature values; labels and weights are float64.
    storage : {"auto", "dense", "csr"}, default="auto"
        ``"auto"`` takes the smaller of the two: dense if
        ``n_rows·n_features·itemsize <= n_entries·(itemsize + 4)``. ``rows.describe()`` tells which.
    n_features : int, optional
        Number of columns; by default as many as the largest index asks for. An index beyond it is
        an error. Give it for test data that may lack the last features.
    zero_based : {"auto", True, False}, default="auto"
        Whether feature 0 is the first column, or feature 1. ``"auto"``: 0 if the file has it.
    n_jobs : int, optional
        Threads; None uses all cores.
    progress : callable, optional
        Called as ``progress(bytes_done, bytes_total or None)`` after each block.

    Returns
    -------
    Dataset
        With ``comments`` (and so ``docids``) if the file has any.

    Raises
    ------
    DataFormatError
        The text is not as described; the message names file, line and column of the first fault.
    MemoryError
        The matrix would not fit; it is not allocated then.

    Examples
    --------
    >>> import io
    >>> data = load(io.BytesIO(b"2 qid:7 1:0.5 3:1 # docid = a\\n0 qid:7 2:2 3:4 # docid = b\\n"))
    >>> print(data.rows.describe(), data.qid, data.docids)
    dense float32, 2 × 3 [7 7] ['a', 'b']
    """
    options = _Options.of(dtype, storage, n_features, zero_based)
    return _read(open_blocks(source), options, resolve(n_jobs), progress)


@dataclass(frozen=True)
class _Options:
    dtype: np.dtype[Any]
    storage: str
    n_features: int | None
    zero_based: str | bool

    @classmethod
    def of(cls, dtype: Any, storage: Any, n_features: Any, zero_based: Any) -> _Options:
        kind = np.dtype(dtype)
        if kind not in (np.float32, np.float64):
            raise ValueError(f"dtype must be float32 or float64, got {kind}")
        if storage not in ("auto", "dense", "csr"):
            raise ValueError(f"storage must be 'auto', 'dense' or 'csr', got {storage!r}")
        if n_features is not None and not 1 <= n_features <= 2**31 - 1:
            raise ValueError(f"n_features must be from 1 to 2147483647, got {n_features}")
        if zero_based not in ("auto", True, False):
            raise ValueError(f"zero_based must be 'auto', True or False, got {zero_based!r}")
        return cls(kind, storage, n_features, zero_based)

    def feature_range(self) -> tuple[int, int]:
        """The indices that a line may have, as far as that is known beforehand."""
        lowest = 1 if self.zero_based is False else 0
        highest = int(_core.MAX_FEATURE)
        if self.n_features is not None:
            highest = min(highest, self.n_features - (self.zero_based is True))
        return lowest, highest


def _read(
    text: TextBlocks, options: _Options, n_threads: int, progress: Progress | None = None
) -> Dataset:
    lowest, highest = options.feature_range()
    parser = (_core.TextParser32 if options.dtype == np.float32 else _core.TextParser64)(
        lowest, highest
    )
    survey = _Survey(text.name, options)
    for piece, done in _parse(parser, text.blocks, n_threads):
        survey.add(piece)
        if progress is not None:
            progress(done, text.size)
    del parser  # its scratch memory
    return survey.dataset(n_threads)


def _parse(
    parser: Any, blocks: Iterator[tuple[Block, int]], n_threads: int
) -> Iterator[tuple[Any, int]]:
    """Pieces in the order of their blocks; a few blocks are under way at any time."""
    head = list(islice(blocks, 3))
    blocks = chain(head, blocks)
    if n_threads == 1 or len(head) < 3:  # a few milliseconds: less than the pool costs
        for block, done in blocks:
            yield _parse_block(parser, block), done
        return
    from concurrent.futures import ThreadPoolExecutor

    pending: deque[tuple[Any, int]] = deque()
    with ThreadPoolExecutor(n_threads) as pool:
        try:
            for block, done in blocks:
                pending.append((pool.submit(_parse_block, parser, block), done))
                if len(pending) > n_threads + 1:
                    future, done = pending.popleft()
                    yield future.result(), done
            while pending:
                future, done = pending.popleft()
                yield future.result(), done
        finally:
            for future, _ in pending:
                future.cancel()


def _parse_block(parser: Any, block: Block) -> Any:
    if isinstance(block, DataFormatError):  # raised in its turn: faults before it come first
        raise block
    return parser.parse(block)


class _Survey:
    """The pieces read so far, and what they have in common."""

    def __init__(self, name: str, options: _Options) -> None:
        self.name, self.options = name, options
        self.pieces: list[Any] = []
        self.n_lines = self.n_rows = self.n_entries = 0
        self.lowest, self.highest = -1, -1
        self.highest_place = (0, 0)

    def add(self, piece: Any) -> None:
        """Add the next piece; raise the first fault of the file."""
        mixed = piece.query_fault(self.pieces[0].has_query) if self.pieces else None
        fault = mixed or piece.fault
        if fault is not None:
            raise self._error(*fault)
        if piece.n_entries > 0 and (self.lowest < 0 or piece.lowest < self.lowest):
            self.lowest = piece.lowest
        if piece.highest > self.highest:
            line, column = piece.highest_place
            self.highest, self.highest_place = piece.highest, (self.n_lines + line, column)
        self.n_lines += piece.n_lines
        self.n_rows += piece.n_rows
        self.n_entries += piece.n_entries
        if piece.n_rows > 0:
            self.pieces.append(piece)

    def _error(self, line: int, column: int, message: str) -> DataFormatError:
        return DataFormatError(f"{self.name}:{self.n_lines + line}:{column}: {message}")

    def dataset(self, n_threads: int) -> Dataset:
        """Lay the pieces out in arrays; they are empty afterwards."""
        if self.n_rows == 0:
            what = "no line with data" if self.n_lines else "empty file"
            raise DataFormatError(f"{self.name}: {what}; expected lines '{_FORM}'")
        base, n_columns = self._columns()
        qid = _query_ids(self.pieces, self.n_rows) if self.pieces[0].has_query else None
        comments = _comments(self.pieces, self.n_rows)
        labels, weight = np.empty(self.n_rows), None
        _core.fill_labels(self.pieces, labels)
        if any(piece.has_weight for piece in self.pieces):
            weight = np.empty(self.n_rows)
            _core.fill_weights(self.pieces, weight)
        rows = self._rows(base, n_columns, n_threads)
        return Dataset(rows, labels, qid, weight, None, comments, self.name, base)

    def _columns(self) -> tuple[int, int]:
        """(the index of the first column, number of columns)."""
        base, n_features = int(self.lowest != 0), self.options.n_features
        if self.options.zero_based != "auto":
            base = int(not self.options.zero_based)
        if n_features is None:
            if self.n_entries == 0:
                raise DataFormatError(
                    f"{self.name}: none of the {self.n_rows} rows has a feature; "
                    f"expected lines '{_FORM}'"
                )
            return base, self.highest - base + 1
        if self.highest - base >= n_features:
            # Only now is it known that indices start at 0: n_features itself is one too many.
            line, column = self.highest_place
            raise DataFormatError(
                f"{self.name}:{line}:{column}: feature index {self.highest} is out of range; "
                f"expected 0 to {n_features - 1}, as the file has a feature 0"
            )
        return base, n_features

    def _rows(self, base: int, n_columns: int, n_threads: int) -> Rows:
        dtype, storage = self.options.dtype, self.options.storage
        dense_size = self.n_rows * n_columns * dtype.itemsize
        csr_size = self.n_entries * (dtype.itemsize + 4)
        dense = dense_size <= csr_size if storage == "auto" else storage == "dense"
        held = sum(piece.n_bytes for piece in self.pieces)  # freed while the matrix is filled
        check_fits(
            (dense_size if dense else csr_size + 8 * self.n_rows) - held,
            f"{self.name}: {self.n_rows} × {n_columns} {dtype} as {'dense' if dense else 'CSR'}",
            "read with storage='csr'" if dense else "read part of the file",
        )
        if dense:
            x = np.empty((self.n_rows, n_columns), dtype)
            _core.fill_dense(self.pieces, x, base, n_threads)
            return DenseRows(x)
        values, columns = np.empty(self.n_entries, dtype), np.empty(self.n_entries, np.int32)
        offsets = np.empty(self.n_rows + 1, np.int64)
        _core.fill_csr(self.pieces, values, columns, offsets, n_columns, base, n_threads)
        return CsrRows(values, columns, offsets, n_columns)


def _query_ids(pieces: list[Any], n_rows: int) -> Array:
    """Ids as int64 if all are integers, else as an object array of strings, one object per id."""
    ids = np.empty(n_rows, np.int64)
    if _core.fill_integer_queries(pieces, ids):
        return ids
    tokens = _core.fill_query_codes(pieces, ids)
    names = np.array([token.decode("utf-8", "backslashreplace") for token in tokens], dtype=object)
    return names[ids]


def _comments(pieces: list[Any], n_rows: int) -> Comments | None:
    n_bytes = sum(piece.n_comment_bytes for piece in pieces)
    if n_bytes == 0:
        return None
    text, offsets = np.empty(n_bytes, np.uint8), np.empty(n_rows + 1, np.int64)
    _core.fill_comments(pieces, text, offsets)
    return Comments(text, offsets)
