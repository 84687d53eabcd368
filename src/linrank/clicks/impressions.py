"""Impressions: which row was shown at which position of which list, and whether it was clicked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from linrank.data.dataset import Dataset
from linrank.data.frames import as_array, as_float
from linrank.data.queries import Queries

Array = NDArray[Any]


@dataclass(frozen=True, eq=False)
class Impressions:
    """A log of results shown. Build one with `from_frame` or `of`: both check everything.

    Records of one list stand together, by ascending position.

    Attributes
    ----------
    position : int64 array (n,)
        Rank at which the record was shown, from 1.
    clicked : bool array (n,)
        Whether it was clicked.
    count : float64 array (n,)
        How often this happened: a record of count 3 equals three records.
    row : int64 array (n,) or None
        The row of the feature matrix that was shown: one item for one query.
    offsets : int64 array (n_lists + 1,) or None
        List ``s`` is the records ``offsets[s]:offsets[s+1]``; None if the lists are not known.
    lists : array (n_lists,) or None
        The id of each list.
    """

    position: Array
    clicked: Array
    count: Array
    row: Array | None = None
    offsets: Array | None = None
    lists: Array | None = None

    def __len__(self) -> int:
        """The number of records."""
        return len(self.position)

    @property
    def n_positions(self) -> int:
        """The lowest rank at which anything was shown."""
        return int(self.position.max())

    @classmethod
    def of(
        cls,
        position: Any,
        clicked: Any,
        *,
        row: Any = None,
        session: Any = None,
        count: Any = None,
    ) -> Impressions:
        """Build impressions from columns, one record an element, in any order.

        Parameters
        ----------
        position : integers (n,)
            Rank at which each record was shown, from 1 for the top.
        clicked : array (n,) of 0 and 1
            Whether it was clicked.
        row : integers (n,), optional
            Row of the feature matrix that was shown. All but `click_rates` need it.
        session : array (n,) of any hashable type, optional
            Id of the list that the record belongs to, a new one each time that results are shown.
            Needed to make preferences; estimates of propensities do without, from totals as well.
        count : array (n,), optional
            How often the record occurred, > 0; constant within a list. Ones if None.

        Examples
        --------
        >>> log = Impressions.of([1, 2, 3], [0, 0, 1], row=[4, 7, 5], session=["s", "s", "s"])
        >>> len(log), log.n_positions
        (3, 3)
        """
        ranks = _integers(position, "position", None, 1)
        n = len(ranks)
        if n == 0:
            raise ValueError("there are no impressions")
        is_click = _clicks(clicked, n)
        times = np.ones(n) if count is None else _counts(count, n)
        rows = None if row is None else _integers(row, "row", n, 0)
        if session is None:
            return cls(ranks, is_click, times, rows)
        if len(session) != n:
            raise ValueError(f"position has {n} elements but session has {len(session)}")
        queries = Queries.of(np.zeros(n), session)
        code = queries.scatter(np.repeat(np.arange(queries.n_queries), np.diff(queries.offsets)))
        order = np.lexsort((ranks, code))
        _check_lists(ranks[order], times[order], code[order], queries.ids)
        return cls(
            ranks[order],
            is_click[order],
            times[order],
            None if rows is None else rows[order],
            queries.offsets,
            queries.ids,
        )

    @classmethod
    def from_frame(
        cls,
        log: Any,
        data: Dataset,
        *,
        session: str | Literal[False] | None = None,
        query: str | None = None,
        document: str | None = None,
        position: str | None = None,
        clicked: str | None = None,
        count: str | Literal[False] | None = None,
    ) -> Impressions:
        """Build impressions from a log that names queries and documents, one record per line.

        Each record is joined to the row of `data` that has its query and its document; ids are
        compared as text. Records without such a row are left out, with a warning that counts
        them; if none has one, it is an error.

        Parameters
        ----------
        log : frame, mapping of arrays, path or binary file
            A table of pandas, polars or pyarrow, a dict of columns, or a Parquet, Arrow, CSV or
            TSV file.
        data : Dataset
            With query and document ids, as ``linrank.load(..., qid=, docid=)`` reads them.
        session, query, document, position, clicked : str, optional
            The columns; known by name (as session_id, query, url, rank, click) if None. A session
            is one visit: what it showed for one query, once, is a list. ``session=False`` for
            totals without lists, from which propensities can be estimated, but no preferences.
        count : str or False, optional
            The column that says how often a record occurred; ones without it.

        Examples
        --------
        >>> import linrank
        >>> table = {"query": ["tea", "tea"], "url": ["a", "b"], "bm25": [1.0, 2.0]}
        >>> import pandas
        >>> data = linrank.load(pandas.DataFrame(table), label=False, qid="query", docid="url")
        >>> log = {"session": [7, 7], "query": ["tea"] * 2, "url": ["b", "a"], "rank": [1, 2]}
        >>> Impressions.from_frame(log | {"clicked": [0, 1]}, data).row.tolist()
        [1, 0]
        """
        from linrank.clicks.log import impressions_of  # reads tables, which few need

        names = {"session": session, "query": query, "document": document}
        numbers = {"position": position, "clicked": clicked, "count": count}
        return impressions_of(log, data, **names, **numbers)

    def top(self, n_positions: int) -> Impressions:
        """The records down to a position: below it clicks may be too few to estimate anything."""
        kept = self.position <= n_positions
        if not kept.any():
            raise ValueError(f"nothing was shown at the positions 1 to {n_positions}")
        row = None if self.row is None else self.row[kept]
        columns = self.position[kept], self.clicked[kept], self.count[kept], row
        if self.offsets is None or self.lists is None:
            return Impressions(*columns)
        sizes = np.add.reduceat(kept, self.offsets[:-1], dtype=np.int64)
        offsets = np.concatenate([[0], np.cumsum(sizes[sizes > 0])])
        return Impressions(*columns, offsets, self.lists[sizes > 0])

    def rows_needed(self, what: str) -> Array:
        """The rows; an error that names ``what`` needs them, if there are none."""
        if self.row is None:
            raise ValueError(f"{what} needs the row of each impression; pass row")
        return self.row


def _column(values: Any, name: str, n: int | None) -> Array:
    a = as_array(values, name)
    if a.ndim != 1:
        raise ValueError(f"{name} must be one-dimensional, got shape {a.shape}")
    if n is not None and len(a) != n:
        raise ValueError(f"position has {n} elements but {name} has {len(a)}")
    return a


def _integers(values: Any, name: str, n: int | None, least: int) -> Array:
    a = _column(values, name, n)
    if a.dtype.kind not in "iu" and a.size:
        raise TypeError(f"{name} must hold integers, got dtype {a.dtype}")
    a = a.astype(np.int64)
    check_each(a, a >= least, f"{name} of impression", f"it counts from {least}")
    return a


def check_each(a: Array, is_good: Array, what: str, must: str, first: int = 0) -> None:
    """Raise ValueError about the first number that is not good; ``first`` is what it counts from.

    ``what`` says of what the numbers are, and ``must`` what they must be.
    """
    if not is_good.all():
        i = int(np.argmin(is_good))
        raise ValueError(f"{what} {i + first} is {a[i]:.10g}; {must}")


def _clicks(values: Any, n: int) -> Array:
    a = _column(values, "clicked", n)
    if a.dtype.kind != "b":
        a = as_float(a, "clicked")
        must = "it must be 0 or 1; repetitions go to count"
        check_each(a, (a == 0) | (a == 1), "clicked of impression", must)
    return a.astype(bool)


def _counts(values: Any, n: int) -> Array:
    a = as_float(_column(values, "count", n), "count").astype(np.float64)
    is_good = np.isfinite(a) & (a > 0)
    check_each(a, is_good, "count of impression", "it must be finite and > 0")
    return a


def _check_lists(position: Array, count: Array, code: Array, ids: Array | None) -> None:
    """Within a list positions differ and counts agree."""
    same_list = code[1:] == code[:-1]
    for is_bad, what in (
        (same_list & (position[1:] == position[:-1]), "has position {} twice"),
        (same_list & (count[1:] != count[:-1]), "has different counts, from position {} on"),
    ):
        if is_bad.any():
            i = int(np.argmax(is_bad)) + 1
            name = code[i] if ids is None else ids[code[i] : code[i] + 1].tolist()[0]
            raise ValueError(
                f"list {name!r} {what.format(position[i])}; a session is one list, shown once or "
                "repeatedly with the same clicks"
            )
