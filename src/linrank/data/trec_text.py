"""Lines of TREC files, in blocks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["qrels_lines", "run_lines"]

Array = NDArray[Any]
_BLOCK = 1 << 14  # lines formatted at a time


def qrels_lines(qid: Iterable[str], docids: Iterable[str], relevance: Array) -> Iterator[str]:
    """Blocks of ``qid 0 docid relevance``; whole numbers are written without a point."""
    rows = zip(qid, docids, relevance.tolist(), strict=True)
    lines = (f"{q} 0 {d} {int(v) if v.is_integer() else repr(v)}\n" for q, d, v in rows)
    return _blocks(lines)


def run_lines(
    query: Array,
    query_ids: Sequence[Any] | Array,
    docids: Sequence[str],
    scores: Array,
    tag: str,
    topk: int | None = None,
) -> Iterator[str]:
    """Blocks of ``qid Q0 docid rank score tag``: queries by number, each by falling score.

    Of each query the best ``topk`` documents, or all.
    """
    order = np.lexsort((-scores, query))  # stable: equal scores stay in the order of the rows
    ranked = query[order]
    first = np.searchsorted(ranked, np.arange(len(query_ids)))
    ranks = np.arange(1, len(order) + 1) - first[ranked]
    if topk is not None:
        order, ranked, ranks = (a[ranks <= topk] for a in (order, ranked, ranks))
    columns = (ranked, order, ranks, scores[order])
    rows = zip(*(column.tolist() for column in columns), strict=True)
    lines = (
        f"{query_ids[q]} Q0 {docids[row]} {rank} {score!r} {tag}\n" for q, row, rank, score in rows
    )
    return _blocks(lines)


def _blocks(lines: Iterator[str]) -> Iterator[str]:
    while block := "".join(islice(lines, _BLOCK)):
        yield block
