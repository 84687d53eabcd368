"""Click logs as tables: records that name queries and documents, joined to the rows of data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linrank.clicks.impressions import Impressions
from linrank.data.dataset import Dataset
from linrank.data.words import Words
from linrank.errors import DataFormatError, warn
from linrank.io.columns import arrow, columns_of, name_columns, nearest
from linrank.options import COLUMN_NAMES

Array = NDArray[Any]

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
    known_queries, known_documents = _names_of(data)
    source, names, found = _read(log, columns)
    from pyarrow import compute as pc

    query = pc.index_in(found["query"], known_queries).fill_null(-1).to_numpy()
    distinct = known_documents.dictionary_encode()
    document = pc.index_in(found["document"], distinct.dictionary).fill_null(-1).to_numpy()
    row, is_repeated = _rows(data, distinct, query, document)
    kept = row >= 0
    n_queries, n_all = int(np.count_nonzero(query < 0)), len(row)
    n_documents = int(np.count_nonzero(~kept)) - n_queries
    if not kept.any():
        ids: Any = data.queries.ids
        own = {"query": str(ids[0]), "document": (data.docids or [None])[0]}
        told = [
            f"the {role} is {found[role][0].as_py()!r} in record 0 (column {names[role]!r}) and "
            f"{id_!r} in row 0 of the data"
            for role, id_ in own.items()
        ]
        raise ValueError(
            f"{source}: none of its {n_all:,} records is of a row of {data.source}: "
            f"{n_queries:,} are of other queries, {n_documents:,} of other documents; "
            f"{'; '.join(told)}. Name the right columns with query= and document=, those of the "
            "data with qid= and docid="
        )
    if (is_repeated & kept).any():
        i = int(np.argmax(is_repeated & kept))
        raise ValueError(
            f"{source}: record {i} shows the document {found['document'][i].as_py()!r}, which "
            f"{data.source} has in several rows of the query {found['query'][i].as_py()!r}; "
            "leave one row of each document in a query"
        )
    impressions = _impressions(source, names, found, query.astype(np.int64), row, kept)
    return JoinedLog(impressions, source, names, n_all, n_queries, n_documents)


def impressions_of(log: Any, data: Dataset, **columns: str | bool | None) -> Impressions:
    """`join_log` with a warning where records are left out."""
    joined = join_log(log, data, **columns)
    if joined.n_lost:
        warn(f"{joined.source}: {joined.describe_lost()}")
    return joined.impressions


def _names_of(data: Dataset) -> tuple[Any, Any]:
    """The ids of the queries of a data set, and of the document of each row, as strings."""
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
    if type(data.comments) is Words:  # of a table: no loop over rows
        return queries, _strings(data.comments)
    return queries, pa.array(data.docids, pa.large_string())


def _strings(words: Any) -> Any:
    """Texts one after another as an array of Arrow, without a copy."""
    pa = arrow()
    buffers = pa.py_buffer(np.ascontiguousarray(words.offsets, np.int64)), pa.py_buffer(words.text)
    return pa.LargeStringArray.from_buffers(len(words), *buffers)


def _rows(data: Dataset, documents: Any, query: Array, document: Array) -> tuple[Array, Array]:
    """The row of each (query, document), -1 where there is none; and whether there are several."""
    queries = data.queries
    of_row = queries.scatter(np.repeat(np.arange(queries.n_queries), np.diff(queries.offsets)))
    n_documents = max(1, len(documents.dictionary))
    code = documents.indices.fill_null(-1).to_numpy().astype(np.int64)
    named = np.flatnonzero(code >= 0)
    own = of_row[named] * n_documents + code[named]
    order = np.argsort(own, kind="stable")
    own, named = own[order], named[order]
    wanted = np.where((query >= 0) & (document >= 0), query * np.int64(n_documents) + document, -1)
    first = np.searchsorted(own, wanted)
    place = np.minimum(first, max(0, len(own) - 1))
    if len(own) == 0:
        return np.full(len(wanted), -1), np.zeros(len(wanted), bool)
    is_there = own[place] == wanted
    is_repeated = np.searchsorted(own, wanted, side="right") - first > 1
    return np.where(is_there, named[place], -1), is_repeated


def _impressions(
    source: str, names: dict[str, str], found: dict[str, Any], query: Array, row: Array, kept: Array
) -> Impressions:
    position = found["position"]
    if (position != np.floor(position)).any():
        i = int(np.argmax(position != np.floor(position)))
        raise DataFormatError(
            f"{source}: the position of record {i} (column {names['position']!r}) is "
            f"{position[i]:g}; positions are whole numbers, from 1"
        )
    count = found["count"][kept] if "count" in found else None
    columns = {"row": row[kept], "count": count}
    ranks, clicked = position[kept].astype(np.int64), found["clicked"][kept]
    if "session" not in found:
        return Impressions.of(ranks, clicked, **columns)
    sessions = found["session"].dictionary_encode()
    n_queries = int(query.max()) + 1
    # Within a session there may be several searches: a list is what was shown for one of them.
    code = sessions.indices.to_numpy().astype(np.int64)[kept] * n_queries + query[kept]
    order = np.lexsort((ranks, code))
    again = (np.diff(code[order]) == 0) & (np.diff(ranks[order]) == 0)
    if again.any():
        first = int(np.argmax(again))
        i, j = sorted(np.flatnonzero(kept)[order[first : first + 2]].tolist())
        session, asked = (found[role][j].as_py() for role in ("session", "query"))
        raise ValueError(
            f"{source}: records {i} and {j} both have position {found['position'][j]:g} of the "
            f"session {session!r} and the query {asked!r}; a session is to be one list, shown "
            "once: name a column with an id for each time that results were shown by session="
        )
    made = Impressions.of(ranks, clicked, session=code, **columns)
    assert made.lists is not None
    ids = sessions.dictionary.take(arrow().array(made.lists // n_queries))
    return replace(made, lists=np.array(ids.to_pylist(), dtype=object))


# ---- reading ------------------------------------------------------------------------------------


def _read(log: Any, given: Mapping[str, Any]) -> tuple[str, dict[str, str], dict[str, Any]]:
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
            if column.null_count:
                i = int(np.argmax(column.is_null().to_numpy()))
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
