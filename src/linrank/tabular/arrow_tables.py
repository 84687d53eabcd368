"""A table, whatever it was stored as, into a dataset."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from linrank.data.dataset import Dataset
from linrank.data.rows import DenseRows, Rows
from linrank.data.vectors import as_weights
from linrank.errors import DataFormatError
from linrank.tabular.columns import arrow, columns_of
from linrank.tabular.matrix import ColumnRows, ListRows, Matrix, float_for
from linrank.tabular.prefetch import ahead
from linrank.tabular.roles import Roles, TableOptions, assign
from linrank.tabular.values import as_docids, as_numbers, as_query_ids
from linrank.tabular.vectors import VectorRows

__all__ = ["Form", "Table", "read_table"]

Note = Callable[[str], object]
Progress = Callable[[int, "int | None"], object]


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
    note: Note,
) -> Dataset:
    """Read all rows of a table, batch by batch while the next one is decoded."""
    roles = assign(columns_of(table.schema, table.name), options, table.name)
    for text in roles.notes:
        note(text)
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
    return fields.dataset(_stored(rows, form.storage), names)


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
    from linrank.tabular.storing import as_csr, as_dense, smaller

    if storage == "auto":
        return rows if isinstance(rows, DenseRows) else smaller(rows)
    return as_csr(rows) if storage == "csr" else as_dense(rows)
