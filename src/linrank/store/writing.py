"""A dataset in memory into a store."""

from __future__ import annotations

import os
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from linrank.data.comments import Comments
from linrank.data.dataset import Dataset
from linrank.data.rows import DenseRows
from linrank.data.words import Words
from linrank.store.writer import StoreWriter

__all__ = ["write_dataset"]


def write_dataset(
    path: str | os.PathLike[str],
    data: Dataset,
    docids: Sequence[str | None] | None,
    chunk_bytes: int,
    overwrite: bool,
    n_jobs: int | None,
) -> None:
    """Write all queries; rows that do not lie together are gathered a chunk at a time."""
    queries, order = data.queries, data.queries.order
    comments: Any = data.comments if docids is None else _comments(docids, data.n_rows)
    with StoreWriter(
        path,
        storage="dense" if isinstance(data.rows, DenseRows) else "csr",
        dtype=data.rows.dtype,
        n_features=data.n_features,
        has_ids=queries.ids is not None,
        has_weights=data.weight is not None,
        has_comments=comments is not None,
        feature_names=data.feature_names,
        index_base=data.index_base,
        chunk_bytes=chunk_bytes,
        overwrite=overwrite,
        n_jobs=n_jobs,
    ) as writer:
        for first, last in _parts(data, chunk_bytes):
            begin, end = queries.offsets[first], queries.offsets[last]
            rows: Any = slice(begin, end) if order is None else order[begin:end]
            writer.append(
                data.rows.take(rows),
                data.labels[rows],
                None if data.weight is None else data.weight[rows],
                np.diff(queries.offsets[first : last + 1]),
                None if queries.ids is None else queries.ids[first:last],
                None if comments is None else _plain(comments.select(rows)),
            )
        writer.finish()


def _parts(data: Dataset, chunk_bytes: int) -> list[tuple[int, int]]:
    """Ranges of queries of about a chunk each: what is gathered is a copy."""
    queries = data.queries
    n_rows = max(1, chunk_bytes * data.n_rows // max(1, data.rows.nbytes))
    cuts = [0]
    while cuts[-1] < queries.n_queries:
        wanted = queries.offsets[cuts[-1]] + n_rows
        cuts.append(max(cuts[-1] + 1, int(np.searchsorted(queries.offsets, wanted, "right")) - 1))
    return list(pairwise(cuts))


def _comments(docids: Sequence[str | None], n_rows: int) -> Comments:
    """Comments that name the documents, as LETOR files do."""
    if isinstance(docids, str) or len(docids) != n_rows:
        raise ValueError(f"docids must hold one id for each of the {n_rows} rows")
    for i, docid in enumerate(docids):
        if docid is not None and (not isinstance(docid, str) or len(docid.split()) != 1):
            raise ValueError(f"docids[{i}] is {docid!r}; an id is a string without blanks, or None")
    words = Words.of("" if docid is None else f"docid = {docid}" for docid in docids)
    return Comments(words.text, words.offsets)


def _plain(comments: Any) -> Comments:
    """Comments as one text, whatever class held them."""
    if isinstance(comments, Comments):
        return comments
    words = Words.of(comments[i] for i in range(len(comments)))
    return Comments(words.text, words.offsets)
