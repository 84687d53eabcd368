"""The lines that ``linrank predict`` writes: scores, or a TREC run."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from linrank.data.dataset import Dataset

BLOCK = 1 << 16  # lines formatted at a time


def score_lines(scores: NDArray[np.float64]) -> Iterator[str]:
    """Blocks of one score a line."""
    # repr of a float is the shortest decimal that reads back as the same float64.
    for start in range(0, len(scores), BLOCK):
        yield "\n".join(map(repr, scores[start : start + BLOCK].tolist())) + "\n"


def run_lines_of(
    data: Dataset,
    scores: NDArray[np.float64],
    ids: Sequence[Any] | NDArray[Any],
    args: argparse.Namespace,
    n_before: int = 0,
) -> Iterator[str]:
    """`qid Q0 docid rank score tag`, ties in input order; a row without docid gets its number.

    ``ids`` are those of the queries of `data`; ``n_before`` rows came before it.
    """
    import numpy as np

    from linrank.io.trec import run_lines

    queries, docids = data.queries, data.docids or [None] * data.n_rows
    query = queries.scatter(np.repeat(np.arange(queries.n_queries), np.diff(queries.offsets)))
    names = [docid or str(row) for row, docid in enumerate(docids, n_before + 1)]
    return run_lines(query, ids, names, scores, args.tag, args.topk)
