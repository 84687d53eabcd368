"""What the client knows of a partition without having it: sizes, names and query ids."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linrank.data.dataset import Dataset, join_ids
from linrank.data.queries import Queries

Array = NDArray[Any]
_CLASSES = {"b": "numbers", "i": "numbers", "u": "numbers", "f": "numbers", "U": "strings"}


@dataclass(frozen=True, eq=False)
class Summary:
    """A partition in a few numbers, and for each of its queries an id and 12 bytes.

    Attributes
    ----------
    number : int
        The partition, counted from 0 as the user gave them.
    n_rows, n_features, n_pairs, nbytes : int
        Sizes; pairs are those of queries as far as they are in this partition.
    feature_names : tuple of str or None
        Names of the columns, if they have any.
    ids : array (n_queries,) or None
        The queries in the order in which they first appear; None if the rows have no ids.
    lengths, n_levels : integer array (n_queries,)
        Rows and different labels of each query.
    low, high : float
        Least and largest label.
    weight : float or None
        Sum of the weights of the rows; None if they have none.
    """

    number: int
    n_rows: int
    n_features: int
    n_pairs: int
    nbytes: int
    feature_names: tuple[str, ...] | None
    ids: Array | None
    lengths: Array
    n_levels: Array
    low: float
    high: float
    weight: float | None

    @property
    def n_queries(self) -> int:
        return len(self.lengths)


def summary_of(number: int, data: Dataset) -> Summary:
    """Return the summary of partition `number`; it runs where the data are."""
    queries = data.queries
    return Summary(
        number,
        data.n_rows,
        data.n_features,
        queries.n_pairs,
        data.rows.nbytes,
        data.feature_names,
        None if data.qid is None else queries.ids,
        np.diff(queries.offsets),
        queries.n_levels,
        float(data.labels.min(initial=np.inf)),
        float(data.labels.max(initial=-np.inf)),
        None if data.weight is None else float(data.weight.sum()),
    )


def check_alike(summaries: Sequence[Summary]) -> None:
    """Refuse partitions that are no parts of one dataset, naming two that differ."""
    first = summaries[0]
    for other in summaries[1:]:
        both = f"partition {first.number} has {{}} but partition {other.number} has {{}}"
        if first.n_features != other.n_features:
            counts = both.format(f"{first.n_features} features", other.n_features)
            raise ValueError(f"{counts}; all partitions need the same columns")
        _check_names(first, other, both)
        for what, one, two in (
            ("qid", first.ids, other.ids),
            ("sample_weight", first.weight, other.weight),
        ):
            if (one is None) != (two is None):
                found = [f"no {what}" if v is None else what for v in (one, two)]
                raise ValueError(f"{both.format(*found)}; give {what} with all or with none")
        if first.ids is not None and other.ids is not None:
            kinds = [_CLASSES.get(a.dtype.kind, a.dtype.kind) for a in (first.ids, other.ids)]
            if kinds[0] != kinds[1] and "O" not in kinds:
                found = [f"qid of {a.dtype}" for a in (first.ids, other.ids)]
                raise ValueError(f"{both.format(*found)}; convert them to one type")


def _check_names(first: Summary, other: Summary, both: str) -> None:
    one, two = first.feature_names, other.feature_names
    if one == two:
        return
    if one is None or two is None:
        found = ["no column names" if names is None else "column names" for names in (one, two)]
        raise ValueError(f"{both.format(*found)}; give all of them as tables, or none")
    j = next(j for j, (a, b) in enumerate(zip(one, two, strict=True)) if a != b)
    raise ValueError(
        f"{both.format(f'the column {one[j]!r} at {j}', f'{two[j]!r} there')}; "
        "select the same columns in the same order in all partitions"
    )


@dataclass(frozen=True, eq=False)
class Census:
    """The queries of all partitions, numbered by first appearance.

    They are the numbers that the queries have in memory, the partitions one after the other.

    Attributes
    ----------
    ids : array (n_queries,)
        The id of each query.
    numbers : tuple of int64 arrays
        For every partition, the numbers of its queries, in their order there.
    """

    ids: Array
    numbers: tuple[Array, ...]

    @classmethod
    def of(cls, parts: Sequence[Array]) -> Census:
        """Number the queries of partitions, given the distinct ids of each.

        Examples
        --------
        >>> Census.of([np.array([7, 3]), np.array([3, 9])]).numbers
        (array([0, 1]), array([1, 2]))
        """
        every = join_ids(parts)
        found = Queries.of(np.zeros(len(every)), every, n_jobs=1)
        by_position = np.repeat(np.arange(found.n_queries), np.diff(found.offsets))
        ends = np.cumsum([len(a) for a in parts])[:-1]
        ids = every[:0] if found.ids is None else found.ids
        return cls(ids, tuple(np.split(found.scatter(by_position), ends)))

    def renumbered(self, parts: Sequence[Array]) -> Census:
        """The same numbers for queries that lie in other partitions now, in another order."""
        return Census(self.ids, Census.of([self.ids, *parts]).numbers[1:])
