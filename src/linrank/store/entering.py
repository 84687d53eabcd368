"""What is appended to a store, checked once, before any of it is written."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from linrank import _core
from linrank.data.comments import Comments
from linrank.data.frames import as_array
from linrank.data.queries import as_sizes
from linrank.data.rows import DenseRows, Rows
from linrank.data.vectors import as_labels
from linrank.data.words import Words
from linrank.store.block import Block
from linrank.store.layout import Layout

__all__ = ["checked_block"]

Array = NDArray[Any]


def checked_block(
    layout: Layout,
    rows: Rows,
    labels: Any,
    weight: Any,
    sizes: Any,
    ids: Any,
    comments: Comments | None,
    n_threads: int,
) -> Block:
    """A block of whole queries that fits the store, or an error that says what does not."""
    _check_rows(layout, rows, n_threads)
    n_rows = rows.shape[0]
    labels = as_labels(labels, n_rows)
    sizes = as_sizes(sizes, n_rows)
    _check_given("weights", weight is not None, layout.has_weights)
    _check_given("comments", comments is not None, layout.has_comments)
    _check_given("ids", ids is not None, layout.ids is not None)
    if weight is not None:
        # as_weights refuses zeros everywhere; a block among others may have them.
        weight = np.ascontiguousarray(weight, np.float64)
        if weight.shape != (n_rows,) or not (np.isfinite(weight) & (weight >= 0.0)).all():
            raise ValueError(f"weight must hold a finite number >= 0 for each of the {n_rows} rows")
    if comments is not None and len(comments) != n_rows:
        raise ValueError(f"there are {n_rows} rows but {len(comments)} comments")
    return Block(rows, labels, weight, sizes, _as_ids(ids, len(sizes)), comments)


def _check_rows(layout: Layout, rows: Rows, n_threads: int) -> None:
    storage = "dense" if isinstance(rows, DenseRows) else "csr"
    found = (storage, rows.dtype.name, rows.shape[1])
    expected = (layout.storage, layout.dtype.name, layout.n_features)
    if found != expected:
        raise ValueError(
            f"rows are {found[0]} {found[1]} of {found[2]} columns, the store is {expected[0]} "
            f"{expected[1]} of {expected[2]}"
        )
    if not _core.columns_increase(rows.core, n_threads):
        raise ValueError("the columns of a row must increase; see CsrRows")
    place = _core.first_non_finite(rows.core, n_threads)
    if place is not None:
        raise ValueError(f"row {place[0]} of the block, column {place[1]} is NaN or infinite")


def _check_given(name: str, given: bool, wanted: bool) -> None:
    if given != wanted:
        verb = "needs" if wanted else "takes no"
        raise ValueError(f"this store {verb} {name}: it was opened with has_{name}={wanted}")


def _as_ids(ids: Any, n_queries: int) -> Array | Words | None:
    """Ids as int64 where all are integers, else as text."""
    if ids is None:
        return None
    if not isinstance(ids, Words):
        array = as_array(ids, "ids")
        if array.ndim != 1:
            raise ValueError(f"ids must be 1-D, one per query; got shape {array.shape}")
        ids = _integers_or_words(array)
    if len(ids) != n_queries:
        raise ValueError(f"there are {n_queries} queries but {len(ids)} ids")
    return ids  # type: ignore[no-any-return]


def _integers_or_words(array: Array) -> Array | Words:
    if array.dtype.kind in "bi" or (array.dtype.kind == "u" and array.dtype.itemsize < 8):
        return array.astype(np.int64, copy=False)
    items = array.tolist()
    if all(isinstance(item, str) for item in items):
        return Words.of(items)
    for item in items:
        if not isinstance(item, int) or not -(2**63) <= item < 2**63:
            raise TypeError(
                f"query id {item!r} is a {type(item).__name__}; ids in a store are all strings or "
                "all integers of 64 bits: convert them, as in qid.astype(str)"
            )
    return np.array(items, np.int64)
