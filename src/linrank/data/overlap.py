"""Queries that two datasets share: by id, and by their very rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from linrank.data.profile import Profile

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from linrank.data.dataset import Dataset

__all__ = ["Overlap", "shared_queries"]


@dataclass(frozen=True)
class Overlap:
    """Queries of a dataset that another one has as well.

    Attributes
    ----------
    n_queries : int
        Queries of the dataset.
    n_ids : int
        Those whose id is an id of the other.
    n_rows : int
        Those whose rows, features and labels, are the rows of a query of the other: proof that
        the same query is in both, whatever its id.
    n_both : int
        Those of which both are true.
    example : object
        The id of one of them, one with equal rows where there is one; None if there are none.
    """

    n_queries: int
    n_ids: int
    n_rows: int
    n_both: int
    example: Any

    def __bool__(self) -> bool:
        return bool(self.n_ids or self.n_rows)


def shared_queries(data: Dataset, other: Dataset) -> Overlap:
    """The queries of ``data`` that ``other`` has as well.

    Queries without ids are compared by their rows alone, and so is a query of rows that all look
    the same.

    Examples
    --------
    >>> from linrank.data.dataset import Dataset
    >>> train = Dataset.of([[1.0], [2.0], [3.0], [4.0]], [0, 1, 0, 1], qid=["a", "a", "b", "b"])
    >>> test = Dataset.of([[3.0], [4.0], [5.0], [6.0]], [0, 1, 0, 1], qid=["b", "b", "c", "c"])
    >>> shared_queries(test, train)
    Overlap(n_queries=2, n_ids=1, n_rows=1, n_both=1, example='b')
    """
    by_id = np.zeros(data.queries.n_queries, bool)
    ids, others = data.queries.ids, other.queries.ids
    if ids is not None and others is not None:
        known = set(others.tolist())
        by_id = np.array([one in known for one in ids.tolist()], bool)
    by_rows = np.isin(_contents(data), _contents(other))
    both = by_id & by_rows
    example = None
    for found in (both, by_rows, by_id):
        if example is None and found.any() and ids is not None:
            example = ids.tolist()[int(np.argmax(found))]
    n_ids, n_rows, n_both = (int(np.count_nonzero(found)) for found in (by_id, by_rows, both))
    return Overlap(len(by_id), n_ids, n_rows, n_both, example)


def _contents(data: Dataset) -> NDArray[np.uint64]:
    """A number for the rows of each query, whatever their order; equal rows, equal numbers.

    Row hashes are mixed with the labels and once more before they are summed, modulo 2⁶⁴.
    """
    queries = data.queries
    with np.errstate(over="ignore"):
        # A row of zeros counts as well: one of them is not two.
        hashes = (Profile(data).row_hashes + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
        labels = (data.labels + 0.0).view(np.uint64) * np.uint64(0xBF58476D1CE4E5B9)
        mixed = hashes ^ (labels >> np.uint64(7)) ^ labels
        mixed ^= mixed >> np.uint64(31)
        mixed *= np.uint64(0x94D049BB133111EB)
        mixed ^= mixed >> np.uint64(29)
        sums: NDArray[np.uint64] = np.add.reduceat(
            queries.gather(mixed), queries.offsets[:-1], dtype=np.uint64
        )
        return sums
