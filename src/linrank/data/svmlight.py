"""Reading SVMlight/LETOR text: ``label[:weight] [qid:id] index:value ... [# comment]``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import numpy as np
from numpy.typing import DTypeLike, NDArray

from linrank import _core
from linrank.data.blocks import TextBlocks, open_blocks
from linrank.data.comments import Comments
from linrank.data.dataset import Dataset
from linrank.data.rows import CsrRows, DenseRows, Rows
from linrank.data.survey import ReadingOptions, Survey, parse_blocks
from linrank.memory import check_fits
from linrank.threads import resolve

__all__ = ["Comments", "load", "read_comments"]

Array = NDArray[Any]
Progress = Callable[[int, "int | None"], object]


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
    options = ReadingOptions.of(dtype, storage, n_features, zero_based)
    return _read(open_blocks(source), options, resolve(n_jobs), progress)


def _read(
    text: TextBlocks, options: ReadingOptions, n_threads: int, progress: Progress | None = None
) -> Dataset:
    parser, reading = options.parser(), _Reading(Survey(text.name, options))
    for piece, done in parse_blocks(parser, text.parts, n_threads):
        reading.add(piece)
        if progress is not None:
            progress(done, text.size)
    del parser  # its scratch memory
    return reading.dataset(n_threads)


class _Reading:
    """The pieces read so far, and what they have in common."""

    def __init__(self, survey: Survey) -> None:
        self.survey = survey
        self.pieces: list[Any] = []

    def add(self, piece: Any) -> None:
        """Add the next piece; raise the first fault of the file."""
        self.survey.add(piece)
        if piece.n_rows > 0:
            self.pieces.append(piece)

    def dataset(self, n_threads: int) -> Dataset:
        """Lay the pieces out in arrays; they are empty afterwards."""
        self.survey.check_rows()
        base, n_columns = self.survey.columns()
        n_rows = self.survey.n_rows
        qid = _query_ids(self.pieces, n_rows) if self.pieces[0].has_query else None
        comments = read_comments(self.pieces, n_rows)
        labels, weight = np.empty(n_rows), None
        _core.fill_labels(self.pieces, labels)
        if any(piece.has_weight for piece in self.pieces):
            weight = np.empty(n_rows)
            _core.fill_weights(self.pieces, weight)
        rows = self._rows(base, n_columns, n_threads)
        return Dataset(rows, labels, qid, weight, None, comments, self.survey.name, base)

    def _rows(self, base: int, n_columns: int, n_threads: int) -> Rows:
        survey, dtype = self.survey, self.survey.options.dtype
        dense = survey.is_dense(n_columns)
        dense_size = survey.n_rows * n_columns * dtype.itemsize
        csr_size = survey.n_entries * (dtype.itemsize + 4)
        held = sum(piece.n_bytes for piece in self.pieces)  # freed while the matrix is filled
        check_fits(
            (dense_size if dense else csr_size + 8 * survey.n_rows) - held,
            f"{survey.name}: {survey.n_rows} × {n_columns} {dtype} "
            f"as {'dense' if dense else 'CSR'}",
            "read with storage='csr'" if dense else "read part of the file",
        )
        if dense:
            x = np.empty((survey.n_rows, n_columns), dtype)
            _core.fill_dense(self.pieces, x, base, n_threads)
            return DenseRows(x)
        values, columns = np.empty(survey.n_entries, dtype), np.empty(survey.n_entries, np.int32)
        offsets = np.empty(survey.n_rows + 1, np.int64)
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


def read_comments(pieces: list[Any], n_rows: int) -> Comments | None:
    """The comments of pieces, None where there are none."""
    n_bytes = sum(piece.n_comment_bytes for piece in pieces)
    if n_bytes == 0:
        return None
    text, offsets = np.empty(n_bytes, np.uint8), np.empty(n_rows + 1, np.int64)
    _core.fill_comments(pieces, text, offsets)
    return Comments(text, offsets)
