"""A table, whatever it was stored as, into a dataset: as a whole, or batch by batch."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any, Protocol, TypeVar, cast

import numpy as np

from linrank.data.dataset import Dataset, as_dense, as_sparse, warn_of_leaks
from linrank.data.frames import as_weights
from linrank.data.rows import DenseRows, Rows
from linrank.errors import DataFormatError
from linrank.io.blocks import Progress
from linrank.io.svmlight import ReadingOptions
from linrank.io.tables.columns import arrow, as_docids, as_numbers, as_query_ids, columns_of
from linrank.io.tables.roles import Roles, TableOptions, assign, tell
from linrank.io.tables.rows import ColumnRows, ListRows, Matrix, VectorRows, float_for

T = TypeVar("T")
PART_BYTES = 16 << 20  # of batches that become one dataset; there are about six copies of it


def ahead(items: Iterator[T]) -> Iterator[T]:
    """The same items; a thread makes the next one while the caller works on the last.

    At most two are held. An exception comes where the item would have come.
    """
    end = cast(T, object())
    with ThreadPoolExecutor(1, "linrank-read") as thread:
        coming = thread.submit(next, items, end)
        while (item := coming.result()) is not end:
            coming = thread.submit(next, items, end)
            yield item
            del item  # held by who asked for it, not here


Note = Callable[[str], object]


class Table(Protocol):
    """A source of record batches.

    Attributes
    ----------
    name : str
        The table in messages.
    schema : pyarrow.Schema
        All of its columns.
    n_rows : int or None
        Rows, where the source announces them.
    size : int or None
        Bytes of the source, for progress.
    is_text : bool
        Whether ids are written like numbers.
    """

    name: str
    schema: Any
    n_rows: int | None
    size: int | None
    is_text: bool

    def batches(self, roles: Roles) -> Iterator[tuple[Any, int, int]]:
        """(batch, its first row, the bytes of the source gone through with it).

        Each batch has all columns of `roles`, or some that lie side by side among the features;
        each column comes from its first row to its last.
        """
        ...


@dataclass(frozen=True)
class Form:
    """What the rows are to be like.

    Attributes
    ----------
    dtype : dtype or None
        Type of the matrix; None for that of the columns.
    storage : {"auto", "dense", "csr"}
        How the matrix is stored.
    n_features : int or None
        The number of features that the table must have.
    keeps_missing : bool
        Whether missing values may be there, as NaN.
    """

    dtype: np.dtype[Any] | None = None
    storage: str = "auto"
    n_features: int | None = None
    keeps_missing: bool = False

    @classmethod
    def of(cls, format: str, missing: str, dtype: Any, storage: Any, n_features: Any) -> Form:
        """The form that options of `linrank.load` ask for; text has no types of its own."""
        checked = ReadingOptions.of(dtype, storage, n_features, "auto")
        by_column = dtype is None and format not in ("csv", "tsv")
        return cls(None if by_column else checked.dtype, storage, n_features, missing != "error")


class _RowsReader(Protocol):
    has_missing: bool

    def add(self, batch: Any, begin: int) -> None: ...
    def finish(self) -> Rows: ...


def read_table(
    table: Table,
    options: TableOptions,
    form: Form,
    n_threads: int,
    progress: Progress | None,
    note: Note | None,
) -> Dataset:
    """Read all rows of a table, batch by batch while the next one is decoded.

    ``note`` is told which column is what; without it nobody is warned of any either.
    """
    roles = assign(columns_of(table.schema, table.name), options, table.name)
    if note is not None:
        tell(roles, options, note)
    reader, fields = _rows_reader(table, roles, form, n_threads), _Fields(table, roles)
    n_rows = 0
    for batch, begin, done in ahead(table.batches(roles)):
        fields.add(batch)
        reader.add(batch, begin)
        n_rows = begin + batch.num_rows
        if progress is not None:
            progress(done, table.size)
    if n_rows == 0:
        raise DataFormatError(f"{table.name}: no rows")
    rows = reader.finish()
    if form.n_features not in (None, rows.shape[1]):
        raise ValueError(
            f"{table.name}: {rows.shape[1]} features, n_features={form.n_features} are wanted"
        )
    names = roles.features if roles.layout == "columns" else None
    if reader.has_missing and not form.keeps_missing:
        _refuse_missing(rows, names, table.name)
    data = fields.dataset(_stored(rows, form.storage), names)
    if note is not None and roles.label is not None:
        warn_of_leaks(data.rows, names, data.labels, data.qid)
    return data


def _rows_reader(table: Table, roles: Roles, form: Form, n_threads: int) -> _RowsReader:
    types = [table.schema.field(name).type for name in roles.features]
    if roles.layout == "vector":
        return VectorRows(table.name, roles.features[0], form.dtype or np.dtype(np.float64))
    if roles.layout == "list":
        dtype = form.dtype or float_for([types[0].value_type])
        return ListRows(table.name, roles.features[0], dtype, table.n_rows, n_threads)
    matrix = Matrix(table.name, len(types), form.dtype or float_for(types), table.n_rows)
    return ColumnRows(matrix, roles.features, n_threads)


class _Fields:
    """The columns that are no features, collected and checked."""

    def __init__(self, table: Table, roles: Roles) -> None:
        self._table, self._roles = table, roles
        self._parts: dict[str, list[Any]] = {role: [] for role in roles.fields}
        self._is_checked = False

    def add(self, batch: Any) -> None:
        """Take what a batch has of them; what is no label at all shows with the first one."""
        held = set(batch.schema.names)
        for role, name in self._roles.fields.items():
            if name in held:
                self._parts[role].append(batch.column(name))
        if not self._is_checked and batch.num_rows > 0:
            for role, chunks in self._parts.items():
                self._read(role, chunks[:1])
            self._is_checked = True

    def dataset(self, rows: Rows, names: tuple[str, ...] | None) -> Dataset:
        """The data of all columns."""
        n_rows, source = rows.shape[0], self._table.name
        found = {role: self._read(role, chunks) for role, chunks in self._parts.items()}
        if "weight" in found:
            name = f"{source}: the weight column {self._roles.weight!r}"
            found["weight"] = as_weights(found["weight"], n_rows, name)
        return Dataset(
            rows,
            found.get("label", np.zeros(n_rows)),
            found.get("qid"),
            found.get("weight"),
            names,
            found.get("docid"),
            source,
            position=found.get("position"),
        )

    def _read(self, role: str, chunks: list[Any]) -> Any:
        name, source = self._roles.fields[role], self._table.name
        column = arrow().chunked_array(chunks)
        try:
            if role == "qid":
                return as_query_ids(column, name, source, self._table.is_text)
            if role == "docid":
                return as_docids(column, name, source)
            return as_numbers(column, role, name, source)
        except UnicodeDecodeError:  # Parquet says that it is, and nobody has looked
            raise DataFormatError(
                f"{source}: the {role} column {name!r} holds text that is not UTF-8"
            ) from None


def _refuse_missing(rows: Rows, names: tuple[str, ...] | None, source: str) -> None:
    if isinstance(rows, DenseRows):
        row, column = (int(place[0]) for place in np.nonzero(np.isnan(rows.values)))
    else:
        entry = int(np.argmax(np.isnan(rows.values)))
        row = int(np.searchsorted(rows.offsets, entry, "right")) - 1
        column = int(rows.columns[entry])
    where = f"column {names[column]!r}" if names else f"feature {column}"
    raise DataFormatError(
        f"{source}: the value of row {row}, {where} is missing; say what stands in for missing "
        "values with missing='zero', 'mean' or 'indicator'"
    )


def _stored(rows: Rows, storage: str) -> Rows:
    """The rows as wanted; what the table holds for each row and feature stays dense."""
    if storage == "auto" and not isinstance(rows, DenseRows):
        # The smaller of the two, as `linrank.load` does for text: entries cost 4 bytes more.
        size, (n_rows, n_columns) = rows.dtype.itemsize, rows.shape
        is_dense = n_rows * n_columns * size <= len(rows.values) * (size + 4)
        return as_dense(rows) if is_dense else rows
    return as_sparse(rows) if storage == "csr" else as_dense(rows)


def table_parts(
    table: Table,
    options: TableOptions,
    form: Form,
    n_threads: int,
    progress: Progress | None,
    note: Note | None,
) -> Iterator[Dataset]:
    """The rows of a table, some at a time and in order, as datasets that are alike.

    As `read_table`, but for vectors of Spark, which stay sparse unless
    ``form.storage`` says otherwise: which storage is smaller is known at the end only. Query ids
    of a text may be integers in one and strings in the next, where only a later one shows it.
    """
    roles = assign(columns_of(table.schema, table.name), options, table.name)
    if note is not None:  # nobody is told again where the table is read again
        tell(roles, options, note)
    if roles.layout == "vector" and form.storage == "auto":
        form = replace(form, storage="csr")
    n_rows = 0
    for batches, done in _gathered(table, roles):
        one = _Batches(table.name, table.schema, batches, table.is_text)
        try:
            part = read_table(one, options, form, n_threads, None, None)
        except DataFormatError as error:
            where = f"; rows are counted from row {n_rows} of the table" if n_rows else ""
            raise DataFormatError(f"{error}{where}") from None
        n_rows += part.n_rows
        del one, batches  # what is held while the next part is read
        yield part
        del part
        if progress is not None:
            progress(done, table.size)
    if n_rows == 0:
        raise DataFormatError(f"{table.name}: no rows")


def _gathered(table: Table, roles: Roles) -> Iterator[tuple[list[Any], int]]:
    """Batches that together hold some ten megabytes, and the bytes gone through with them."""
    batches: list[Any] = []
    # Of Parquet, batches may hold some columns of many rows.
    source = getattr(table, "row_batches", table.batches)
    done = 0
    for batch, _, done in ahead(source(roles)):
        if batch.num_rows > 0:
            batches.append(batch)
        if sum(held.nbytes for held in batches) >= PART_BYTES:
            whole, batches = batches, []
            yield whole, done
            del whole
    if batches:
        yield batches, done


class _Batches:
    """Some batches of a table, as a table."""

    size: int | None = None

    def __init__(self, name: str, schema: Any, batches: list[Any], is_text: bool) -> None:
        self.name, self.schema, self.is_text = name, schema, is_text
        self._batches = batches
        self.n_rows: int | None = sum(batch.num_rows for batch in batches)

    def batches(self, roles: Roles) -> Iterator[tuple[Any, int, int]]:
        begin = 0
        for batch in self._batches:
            yield batch, begin, 0
            begin += batch.num_rows
