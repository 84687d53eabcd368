"""Datasets as lines of SVMlight/LETOR text."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from linrank import _core
from linrank.data.comments import Comments, naming_documents
from linrank.data.dataset import Dataset
from linrank.data.words import Words
from linrank.writing.arrow import dense, sparse
from linrank.writing.outline import Outline, ids_of

__all__ = ["lines_of"]

Array = NDArray[Any]


def lines_of(data: Dataset, outline: Outline, first_row: int, n_threads: int) -> Array:
    """The lines of a block of rows, as bytes.

    Numbers are the shortest that read back to the same bits. Dense rows name all features, zeros
    too; sparse ones their entries. The first line of a file names the last feature in any case,
    and feature 0 where counting begins there, so that a reader finds the same columns.

    Parameters
    ----------
    data : Dataset
        The block.
    outline : Outline
        Of the whole.
    first_row : int
        The number of its first row, 0 at the beginning of a file; rows in messages count from it.
    n_threads : int
    """
    rows = sparse(data.rows) if outline.is_sparse else dense(data.rows)
    ids = None if data.qid is None else _ids(data.qid, first_row)
    comments = None if data.comments is None else _comments(data, first_row)
    place = _core.first_non_finite(rows.core, n_threads)
    if place is not None:
        raise ValueError(
            f"row {first_row + place[0]}, feature {outline.base + place[1]} is missing, which "
            "SVMlight text cannot say: fill it in (missing='zero', 'mean' or 'indicator'), or "
            "write a table"
        )
    text: Array = _core.svmlight_text(
        rows.core,
        data.labels,
        data.weight,
        None if ids is None else ids.text,
        None if ids is None else ids.offsets,
        None if comments is None else comments.text,
        None if comments is None else comments.offsets,
        outline.base,
        first_row == 0,
        n_threads,
    )
    return text


def _ids(qid: Array, first_row: int) -> Words:
    ids = ids_of(qid)
    words = ids.tolist() if ids.dtype.kind == "O" else list(map(str, ids.tolist()))
    for i in _first_of_runs(ids):
        word = words[i]
        if word.split() != [word] or "#" in word:
            raise ValueError(
                f"the query id of row {first_row + i} is {word!r}; in SVMlight text an id is one "
                "word without blanks and '#': rename it, or write a table"
            )
    return Words.of(words)


def _first_of_runs(ids: Array) -> list[int]:
    """Rows whose id differs from that of the row before."""
    changes: Array = np.concatenate([[True], np.asarray(ids[1:] != ids[:-1], bool)])[: len(ids)]
    found: list[int] = np.flatnonzero(changes).tolist()
    return found


def _comments(data: Dataset, first_row: int) -> Comments:
    """The comments of a text as they were; documents of a table as ``docid = ...``."""
    comments: Any = data.comments
    if not isinstance(comments, Comments):
        comments = comments.select(slice(None))  # those of a store become a text
    if isinstance(comments, Comments):
        return comments
    return naming_documents(data.docids or (), first_row, "SVMlight text")
