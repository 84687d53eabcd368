"""Impressions: which row was shown at which position of which list, and whether it was clicked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from linrank.choices import COLUMN_NAMES
from linrank.data import Array, Dataset, Queries, Words, as_array, as_vector, check_each, first_true
from linrank.errors import DataFormatError, warn
from linrank.io.columns import arrow, columns_of, name_columns, nearest


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
        cls, position: Any, clicked: Any, *, row: Any = None, session: Any = None, count: Any = None
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
        is_click = as_vector(clicked, "clicked", n, like="position")
        must = "it must be 0 or 1; repetitions go to count"
        check_each(is_click, np.isin(is_click, (0.0, 1.0)), "clicked of impression", must)
        is_click = is_click.astype(bool)
        times = np.ones(n) if count is None else as_vector(count, "count", n, like="position")
        is_good = np.isfinite(times) & (times > 0)
        check_each(times, is_good, "count of impression", "it must be finite and > 0")
        rows = None if row is None else _integers(row, "row", n, 0)
        if session is None:
            return cls(ranks, is_click, times, rows)
        if len(session) != n:
            raise ValueError(f"position has {n} rows but session has {len(session)} elements")
        queries = Queries.of(np.zeros(n), session)
        code = queries.query_of_rows()
        order = np.lexsort((ranks, code))
        _check_lists(ranks[order], times[order], code[order], queries.ids)
        columns = ranks[order], is_click[order], times[order], None if rows is None else rows[order]
        return cls(*columns, queries.offsets, queries.ids)

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
        names = {"session": session, "query": query, "document": document}
        numbers = {"position": position, "clicked": clicked, "count": count}
        joined = join_log(log, data, **names, **numbers)
        if joined.n_lost:
            warn(f"{joined.source}: {joined.describe_lost()}")
        return joined.impressions

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

    def lists_needed(self, what: str) -> Array:
        """The offsets of the lists; an error that names ``what`` needs them, if there are none."""
        if self.offsets is None:
            raise ValueError(f"{what} needs to know the lists; pass session")
        return self.offsets


def _integers(values: Any, name: str, n: int | None, least: int) -> Array:
    given = as_array(values, name)
    if given.dtype.kind not in "iu" and given.size:
        raise TypeError(f"{name} must hold integers, got dtype {given.dtype}")
    a = as_vector(given, name, n, like="position").astype(np.int64)
    check_each(a, a >= least, f"{name} of impression", f"it counts from {least}")
    return a


def as_numbers(values: Any, name: str) -> Array:
    """Numbers as a float64 vector, one at least."""
    vector = as_vector(values, name)
    if vector.size == 0:
        raise ValueError(f"{name} is empty; give at least one number")
    return vector


def _check_lists(position: Array, count: Array, code: Array, ids: Array | None) -> None:
    """Within a list positions differ and counts agree."""
    same_list = code[1:] == code[:-1]
    for is_bad, what in (
        (same_list & (position[1:] == position[:-1]), "has position {} twice"),
        (same_list & (count[1:] != count[:-1]), "has different counts, from position {} on"),
    ):
        if (before := first_true(is_bad)) is not None:
            i = before + 1
            name = code[i] if ids is None else ids[code[i] : code[i] + 1].tolist()[0]
            raise ValueError(
                f"list {name!r} {what.format(position[i])}; a session is one list, shown once or "
                "repeatedly with the same clicks"
            )


# ---- logs as tables: records that name queries and documents, joined to the rows of data ---------

# Names, in lower case, by which a column of a log is known.
LOG_COLUMNS: dict[str, tuple[str, ...]] = {
    "session": (
        *("session", "session_id", "sessionid", "sid", "list", "list_id", "impression_id"),
        *("request", "request_id", "search_id", "serp_id", "page_view", "page_view_id"),
    ),
    "query": (*COLUMN_NAMES["qid"], "search_query", "query_text"),
    "document": (*COLUMN_NAMES["docid"], "document", "doc", "item", "product"),
    "position": ("position", "rank", "pos"),
    "clicked": ("clicked", "click", "is_click", "is_clicked", "clicks"),
    "count": ("count", "n_shown", "impressions"),
}
_OPTIONAL = ("session", "count")


@dataclass(frozen=True, eq=False)
class JoinedLog:
    """A log by the rows of a data set, and what was left over.

    Attributes
    ----------
    impressions : Impressions
        The records whose query and document the data have.
    source : str
        The log, for messages.
    columns : dict of str
        The column of each role.
    n_records : int
        Of the log.
    n_other_queries, n_other_documents : int
        Records whose query the data lack; whose query they have, but not with this document.
    """

    impressions: Impressions
    source: str
    columns: dict[str, str]
    n_records: int
    n_other_queries: int
    n_other_documents: int

    @property
    def n_lost(self) -> int:
        """Records without a row in the data."""
        return self.n_other_queries + self.n_other_documents

    def describe_lost(self) -> str:
        """How many records have no row, and why."""
        share = 100.0 * self.n_lost / self.n_records
        return (
            f"{self.n_lost:,} of {self.n_records:,} records ({share:.3g} %) have no row in the "
            f"data and are left out: {self.n_other_queries:,} of a query that it lacks, "
            f"{self.n_other_documents:,} of a document that it lacks for the query"
        )


def join_log(log: Any, data: Dataset, **columns: str | bool | None) -> JoinedLog:
    """The records of a log by the rows of a data set; see `Impressions.from_frame`."""
    rows = _table_of_ids(data)
    source, names, found = _read_log(log, columns)
    from pyarrow import compute as pc

    ids = {role: found[role] for role in ("query", "document")}
    n_records = len(found["position"])
    records = arrow().table(ids | {"record": np.arange(n_records)})
    pairs = records.join(rows, list(ids), join_type="inner")
    record, row = pairs["record"].to_numpy(), pairs["row"].to_numpy()
    order = np.argsort(record, kind="stable")  # a join comes in any order
    record, row = record[order], row[order]
    is_known = pc.is_in(ids["query"], rows["query"].combine_chunks())
    n_other_queries = n_records - int(pc.sum(is_known).as_py())
    n_other_documents = n_records - n_other_queries - len(np.unique(record))
    if len(record) == 0:
        told = [
            f"the {role} is {column[0].as_py()!r} in record 0 (column {names[role]!r}) and "
            f"{rows[role][0].as_py()!r} in row 0 of the data"
            for role, column in ids.items()
        ]
        raise ValueError(
            f"{source}: none of its {n_records:,} records is of a row of {data.source}: "
            f"{n_other_queries:,} are of other queries, {n_other_documents:,} of other documents; "
            f"{'; '.join(told)}. Name the right columns with query= and document=, those of the "
            "data with qid= and docid="
        )
    if (first := first_true(record[1:] == record[:-1])) is not None:
        i = int(record[first])
        query, document = (column[i].as_py() for column in ids.values())
        raise ValueError(
            f"{source}: record {i} shows the document {document!r}, which {data.source} has in "
            f"several rows of the query {query!r}; leave one row of each document in a query"
        )
    impressions = _impressions((source, names, found), record, row, data)
    return JoinedLog(impressions, source, names, n_records, n_other_queries, n_other_documents)


def _table_of_ids(data: Dataset) -> Any:
    """The query and the document of each row of a data set as strings, and its number: a table."""
    if not isinstance(data, Dataset):
        raise TypeError(
            f"data must be a data set with query and document ids, as linrank.load reads them; "
            f"got {type(data).__name__}"
        )
    pa = arrow()
    if data.queries.ids is None or data.comments is None:
        lacking, option = ("query", "qid") if data.queries.ids is None else ("document", "docid")
        raise ValueError(
            f"{data.source} has no {lacking} ids, by which a log is joined to its rows; name their "
            f"column with {option}= when it is loaded"
        )
    queries = pa.array([str(id_) for id_ in data.queries.ids.tolist()], pa.large_string())
    is_of_table = type(data.comments) is Words  # then there is no loop over rows
    documents = _strings(data.comments) if is_of_table else pa.array(data.docids, queries.type)
    of_row = queries.take(pa.array(data.queries.query_of_rows()))
    return pa.table({"query": of_row, "document": documents, "row": np.arange(data.n_rows)})


def _strings(words: Any) -> Any:
    """Texts one after another as an array of Arrow, without a copy."""
    pa = arrow()
    buffers = pa.py_buffer(np.ascontiguousarray(words.offsets, np.int64)), pa.py_buffer(words.text)
    return pa.LargeStringArray.from_buffers(len(words), *buffers)


def _impressions(log: _Log, record: Array, row: Array, data: Dataset) -> Impressions:
    """The records of these numbers, which show these rows."""
    source, names, found = log
    position = found["position"]
    if (i := first_true(position != np.floor(position))) is not None:
        raise DataFormatError(
            f"{source}: the position of record {i} (column {names['position']!r}) is "
            f"{position[i]:g}; positions are whole numbers, from 1"
        )
    count = found["count"][record] if "count" in found else None
    columns = {"row": row, "count": count}
    ranks, clicked = position[record].astype(np.int64), found["clicked"][record]
    if "session" not in found:
        return Impressions.of(ranks, clicked, **columns)
    sessions = found["session"].dictionary_encode()
    n_queries = data.queries.n_queries
    # Within a session there may be several searches: a list is what was shown for one of them.
    code = sessions.indices.to_numpy().astype(np.int64)[record] * n_queries
    code += data.queries.query_of_rows()[row]
    order = np.lexsort((ranks, code))
    again = (np.diff(code[order]) == 0) & (np.diff(ranks[order]) == 0)
    if (first := first_true(again)) is not None:
        i, j = sorted(record[order[first : first + 2]].tolist())
        session, asked = (found[role][j].as_py() for role in ("session", "query"))
        raise ValueError(
            f"{source}: records {i} and {j} both have position {position[j]:g} of the "
            f"session {session!r} and the query {asked!r}; a session is to be one list, shown "
            "once: name a column with an id for each time that results were shown by session="
        )
    found_lists = Impressions.of(ranks, clicked, session=code, **columns)
    assert found_lists.lists is not None
    ids = sessions.dictionary.take(arrow().array(found_lists.lists // n_queries))
    return replace(found_lists, lists=np.array(ids.to_pylist(), dtype=object))


# ---- reading ------------------------------------------------------------------------------------


# The name of a log, the column of each role, and their values.
_Log = tuple[str, dict[str, str], dict[str, Any]]


def _read_log(log: Any, given: Mapping[str, Any]) -> _Log:
    """The name of a log, the column of each role, and ids as strings and numbers as arrays."""
    from linrank.io.columns import as_docids, as_numbers
    from linrank.io.roles import Roles

    pa, table = arrow(), _open(log)
    columns = columns_of(table.schema, table.name)
    names = {role: _find(role, given.get(role), columns, table.name) for role in LOG_COLUMNS}
    used = {role: name for role, name in names.items() if name is not None}
    if len(set(used.values())) < len(used):
        raise ValueError(f"{table.name}: one column cannot have two roles: {used}")
    roles = Roles(used, (), "list", {})  # all columns of a batch together
    batches = [batch for batch, _, _ in table.batches(roles)]
    if sum(batch.num_rows for batch in batches) == 0:
        raise DataFormatError(f"{table.name}: there is no record")
    found: dict[str, Any] = {}
    for role, name in used.items():
        column = pa.chunked_array([batch.column(name) for batch in batches])
        if role in ("session", "query", "document"):
            found[role] = _strings(as_docids(column, name, table.name))
            if (i := first_true(column.is_null().to_numpy())) is not None:
                raise DataFormatError(
                    f"{table.name}: the {role} of record {i} (column {name!r}) is missing, as in "
                    f"{column.null_count:,} records; drop them"
                )
        else:
            found[role] = as_numbers(column, role, name, table.name)
    return table.name, used, found


def _open(log: Any) -> Any:
    from linrank.io.formats import open_rows
    from linrank.io.table_files import open_table

    if isinstance(log, Mapping):
        log = arrow().table({name: np.asarray(column) for name, column in log.items()})
    opened, format = open_rows(log, None)
    if format == "svmlight":
        raise ValueError(
            f"{opened[1]}: a log is a table (Parquet, Arrow, CSV, TSV) with a column for each of "
            f"{', '.join(LOG_COLUMNS)}"
        )
    return open_table(*opened, format, 1)


def _find(role: str, given: Any, columns: Any, source: str) -> str | None:
    """The column of a role: the one given, or the first of its names that the log has."""
    if given is False and role in _OPTIONAL:
        return None
    if given is not None:
        if given not in {column.name for column in columns}:
            told = nearest(str(given), columns)
            raise ValueError(f"{source}: {role}={given!r} names no column{told}")
        return str(given)
    by_name = {column.name.strip().lower(): column.name for column in reversed(columns)}
    for name in LOG_COLUMNS[role]:
        if name in by_name:
            return str(by_name[name])
    if role == "count":
        return None
    without = "; session=False for totals without lists" if role == "session" else ""
    raise ValueError(
        f"{source}: no column is the {role} (by name {', '.join(LOG_COLUMNS[role])}); choose with "
        f"{role}={without}; it has {name_columns(columns)}"
    )
