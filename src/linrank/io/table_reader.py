"""A table, whatever it was stored as, into a dataset: as a whole, or batch by batch."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any, TypeVar, cast

import numpy as np

from linrank import _core
from linrank.data import Array, Dataset, as_dense, as_sparse, as_weights, first_true, warn_of_leaks
from linrank.data.rows import CsrRows, DenseRows, Rows, first_place
from linrank.errors import DataFormatError
from linrank.io.blocks import Progress
from linrank.io.columns import (
    arrow,
    as_docids,
    as_numbers,
    as_query_ids,
    columns_of,
    list_sizes,
    missing_of,
    plain_numbers,
)
from linrank.io.roles import Roles, TableOptions, assign, note_roles
from linrank.io.svmlight import ReadingOptions
from linrank.system.resources import check_fits

T = TypeVar("T")
PART_BYTES = 16 << 20  # of batches that become one dataset; there are about six copies of it


def read_ahead(items: Iterator[T]) -> Iterator[T]:
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


class Table(ABC):
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
    n_rows: int | None = None
    size: int | None = None
    is_text = False

    @abstractmethod
    def batches(self, roles: Roles) -> Iterator[tuple[Any, int, int]]:
        """(batch, its first row, the bytes of the source gone through with it).

        Each batch has all columns of `roles`, or some that lie side by side among the features;
        each column comes from its first row to its last.
        """


@dataclass(frozen=True)
class TableReader:
    """How the rows of a table are read.

    Attributes
    ----------
    table : Table
    options : TableOptions
        Which column is what.
    form : ReadingOptions
        Types are those of the columns where it tells none.
    missing : str
        As in `linrank.load`.
    n_threads : int
    progress : callable or None
    note : callable or None
        Called with the role of each column; without it there are no warnings either.
    """

    table: Table
    options: TableOptions
    form: ReadingOptions
    missing: str
    n_threads: int
    progress: Progress | None
    note: Note | None

    def dataset(self) -> Dataset:
        """Return all rows, read batch by batch while the next one is decoded."""
        roles = self._assign()
        data = self._read(roles)
        if self.note is not None and "label" in roles.fields:
            warn_of_leaks(data)
        return data

    def parts(self) -> Iterator[Dataset]:
        """The rows some at a time and in order, as datasets that are alike.

        As `dataset`, but for vectors of Spark, which stay sparse unless ``form.storage`` says
        otherwise: which storage is smaller is known at the end only. Query ids of a text may be
        integers in one and strings in the next, where only a later one shows it.
        """
        table, roles, form = self.table, self._assign(), self.form
        if roles.layout == "vector" and form.storage == "auto":
            form = replace(form, storage="csr")
        n_rows = 0
        for batches, done in _gather(table, roles):
            held = ArrowBatches(table.name, arrow().Table.from_batches(batches), table.is_text)
            try:
                part = replace(self, table=held, form=form, progress=None)._read(roles)
            except DataFormatError as error:
                where = f"; rows are counted from row {n_rows} of the table" if n_rows else ""
                raise DataFormatError(f"{error}{where}") from None
            n_rows += part.n_rows
            del held, batches  # what is held while the next part is read
            yield part
            del part
            if self.progress is not None:
                self.progress(done, table.size)
        if n_rows == 0:
            raise DataFormatError(f"{table.name}: no rows")

    def _assign(self) -> Roles:
        table = self.table
        roles = assign(columns_of(table.schema, table.name), self.options, table.name)
        if self.note is not None:
            note_roles(roles, self.options, self.note)
        return roles

    def _read(self, roles: Roles) -> Dataset:
        table, form = self.table, self.form
        reader, fields = self._rows_reader(roles), _Fields(table, roles)
        n_rows = 0
        for batch, begin, done in read_ahead(table.batches(roles)):
            fields.add(batch)
            reader.add(batch, begin)
            n_rows = begin + batch.num_rows
            if self.progress is not None:
                self.progress(done, table.size)
        if n_rows == 0:
            raise DataFormatError(f"{table.name}: no rows")
        rows = reader.finish()
        if form.n_features not in (None, rows.shape[1]):
            raise ValueError(
                f"{table.name}: {rows.shape[1]} features, n_features={form.n_features} are wanted"
            )
        names = roles.features if roles.layout == "columns" else None
        if reader.has_missing and self.missing == "error":
            row, column = first_place(rows, np.isnan) or (0, 0)
            where = f"column {names[column]!r}" if names else f"feature {column}"
            raise DataFormatError(
                f"{table.name}: the value of row {row}, {where} is missing; say what stands in for "
                "missing values with missing='zero', 'mean' or 'indicator'"
            )
        return fields.dataset(_store_as(rows, form.storage), names)

    def _rows_reader(self, roles: Roles) -> DenseReader | VectorReader:
        table, form = self.table, self.form
        types = [table.schema.field(name).type for name in roles.features]
        told = form.dtype if form.has_dtype or table.is_text else None  # a text has no types
        if roles.layout == "vector":
            return VectorReader(table.name, roles.features[0], told or np.dtype(np.float64))
        is_list = roles.layout == "list"
        dtype = told or float_for([types[0].value_type] if is_list else types)
        return DenseReader(table, roles.features, is_list, dtype, self.n_threads)


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
            name = f"{source}: the weight column {self._roles.fields['weight']!r}"
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
        except UnicodeDecodeError:  # Parquet claims UTF-8, and has not checked it
            raise DataFormatError(
                f"{source}: the {role} column {name!r} holds text that is not UTF-8"
            ) from None


def _store_as(rows: Rows, storage: str) -> Rows:
    """The rows as wanted; what the table holds for each row and feature stays dense."""
    if storage == "auto" and not isinstance(rows, DenseRows):
        # The smaller of the two, as `linrank.load` does for text: entries cost 4 bytes more.
        size, (n_rows, n_columns) = rows.dtype.itemsize, rows.shape
        is_dense = n_rows * n_columns * size <= len(rows.values) * (size + 4)
        return as_dense(rows) if is_dense else rows
    return as_sparse(rows) if storage == "csr" else as_dense(rows)


def _gather(table: Table, roles: Roles) -> Iterator[tuple[list[Any], int]]:
    """Batches that together hold some ten megabytes, and the bytes gone through with them."""
    batches: list[Any] = []
    done = 0
    # Else batches of Parquet may hold some columns of many rows.
    for batch, _, done in read_ahead(table.batches(replace(roles, layout="list"))):
        if batch.num_rows > 0:
            batches.append(batch)
        if sum(held.nbytes for held in batches) >= PART_BYTES:
            whole, batches = batches, []
            yield whole, done
            del whole
    if batches:
        yield batches, done


_MOST_ROWS = 65_536  # of a batch


class ArrowBatches(Table):
    """A table in memory; its columns are looked at where they are, if their types allow."""

    def __init__(self, name: str, table: Any, is_text: bool = False) -> None:
        self.name, self.schema, self.is_text = name, table.schema, is_text
        self._table, self.n_rows = table, table.num_rows

    def batches(self, roles: Roles) -> Iterator[tuple[Any, int, int]]:
        """The batches of the table, long ones in parts."""
        begin = 0
        for batch in self._table.select(roles.used).to_batches(max_chunksize=_MOST_ROWS):
            yield batch, begin, 0
            begin += batch.num_rows


# ---- rows from the columns of record batches, written where they stay ----------------------------


_FIRST_BYTES = 1 << 24  # of a matrix that grows
_GROWTH = 1.4


def float_for(types: Sequence[Any]) -> np.dtype[Any]:
    """The type of a matrix of such columns: float32 if all of them fit, else float64."""
    known = arrow().types
    narrow = (known.is_float32, known.is_float16, known.is_boolean, known.is_null)
    fits = all(any(is_kind(type) for is_kind in narrow) for type in types)
    some = any(known.is_floating(type) for type in types)
    return np.dtype(np.float32 if fits and some else np.float64)


class DenseReader:
    """A row-major matrix that is written by parts, and grows if need be.

    Parameters
    ----------
    table : Table
        Where the rows come from; their number, where it announces one.
    names : sequence of str
        The columns that are the features, or the one that holds a list of all in each row.
    is_list : bool
        Which of the two.
    dtype : dtype
        float32 or float64.
    n_threads : int
    """

    def __init__(
        self, table: Table, names: Sequence[str], is_list: bool, dtype: Any, n_threads: int
    ) -> None:
        self.source, self.n_announced = table.name, table.n_rows
        self.names, self.is_list, self.dtype, self.n_threads = names, is_list, dtype, n_threads
        self.n_rows, self.n_columns, self.has_missing = 0, 0, False
        self._values, self._n_written = np.empty((0, 0), dtype), 0

    def add(self, batch: Any, begin: int) -> None:
        """Write the rows of a record batch, of all features or of some that lie side by side."""
        if self.is_list:
            self._add_lists(batch.column(self.names[0]), begin)
            return
        held = set(batch.schema.names)
        places = [j for j, name in enumerate(self.names) if name in held]
        if not places:
            return
        if self.n_columns == 0:
            self._start(len(self.names))
        columns = [batch.column(self.names[j]) for j in places]
        out = self._rows(begin, batch.num_rows)[:, places[0] : places[-1] + 1]
        self._write(columns, out, out, begin, lambda k: self.names[places[0] + k])

    def _add_lists(self, lists: Any, begin: int) -> None:
        if len(lists) == 0:
            return
        name = self.names[0]
        if lists.null_count:
            row = int(np.argmax(missing_of(lists)))
            raise DataFormatError(
                f"{self.source}: row {begin + row} has no list in the column {name!r}; every "
                "row needs its features"
            )
        sizes = list_sizes(lists)
        if self.n_columns == 0:
            if sizes[0] < 1:
                raise DataFormatError(f"{self.source}: the list of row {begin} is empty")
            self._start(int(sizes[0]))
        if (k := first_true(sizes != self.n_columns)) is not None:
            raise DataFormatError(
                f"{self.source}: the list of row {begin + k} in the column {name!r} has "
                f"{sizes[k]} values, those before have {self.n_columns}; all rows have the same "
                "features"
            )
        out = self._rows(begin, len(lists))
        flat = [lists.flatten()]
        self._write(flat, out.reshape(-1, 1), out, begin, lambda k: f"{name}[{k}]")

    def _start(self, n_columns: int) -> None:
        self.n_columns, n_rows = n_columns, self.n_announced
        self._check(n_rows or 0)
        if n_rows is None:
            n_rows = max(1, _FIRST_BYTES // max(1, n_columns * self.dtype.itemsize))
        self._values = np.empty((n_rows, n_columns), self.dtype)

    def _rows(self, begin: int, n_rows: int) -> Array:
        """These rows, to be written; no earlier view may be in use any more."""
        end = begin + n_rows
        if end > len(self._values):
            if self.n_announced is not None:
                raise DataFormatError(
                    f"{self.source}: more rows than the {len(self._values):,} that it announces; "
                    "the file is damaged"
                )
            wanted = max(end, int(_GROWTH * len(self._values)))
            self._check(wanted)
            # In place where the system can move pages: no second copy of what is there.
            self._values.resize((wanted, self.n_columns), refcheck=False)
        self.n_rows = max(self.n_rows, end)
        return self._values[begin:end]

    def _write(
        self, columns: list[Any], out: Array, place: Array, begin: int, name: Callable[[int], str]
    ) -> None:
        """Write columns of numbers to ``out``, which is ``place``, rows from ``begin`` on, in the
        shape of the columns; ``name`` is that of a column of ``place``."""
        self._n_written += place.size
        values, bits, first = ([*part] for part in zip(*map(plain_numbers, columns), strict=True))
        missing, infinite = _core.interleave_columns(
            values, bits, np.array(first, np.int64), out, self.n_threads
        )
        self.has_missing |= missing
        if infinite:
            row, column = (int(found[0]) for found in np.nonzero(np.isinf(place)))
            narrow = self.dtype == np.float32
            hint = ", or too large for it: read with dtype='float64'" if narrow else ""
            raise DataFormatError(
                f"{self.source}: the value of row {begin + row}, column {name(column)!r} is "
                f"infinite as {self.dtype}{hint}; features must be finite"
            )

    def finish(self) -> DenseRows:
        """Return all rows."""
        n_rows = len(self._values)
        if self.n_announced is not None and self.n_rows < n_rows:
            raise DataFormatError(
                f"{self.source}: {self.n_rows:,} rows where it announces {n_rows:,}; "
                "the file is damaged"
            )
        if self.n_rows < n_rows:
            self._values.resize((self.n_rows, self.n_columns), refcheck=False)
        if self._n_written != self._values.size:  # columns of Parquet that are shorter than others
            raise DataFormatError(
                f"{self.source}: {self._n_written:,} values of features for "
                f"{self.n_rows:,} × {self.n_columns:,}; the file is damaged"
            )
        return DenseRows(self._values)

    def _check(self, n_rows: int) -> None:
        check_fits(
            n_rows * self.n_columns * self.dtype.itemsize - self._values.nbytes,
            f"{self.source}: {n_rows:,} × {self.n_columns:,} {self.dtype}",
            "read fewer columns with features=, or as float32 with dtype='float32'",
        )


_SPARSE, _DENSE = 0, 1  # the types of a vector


class VectorReader:
    """Rows from one column of structs ``{type, size, indices, values}``.

    A vector of type 0 has ``values[k]`` at ``indices[k]``, ascending, of ``size`` features; one of
    type 1 has all of its values.
    """

    def __init__(self, source: str, name: str, dtype: np.dtype[Any]) -> None:
        self.source, self.name, self.dtype = source, name, dtype
        self.n_rows, self.n_columns = 0, 0
        self.has_missing = False
        self._values: list[Array] = []
        self._columns: list[Array] = []
        self._sizes: list[Array] = []

    def add(self, batch: Any, begin: int) -> None:
        """Append the rows of a record batch."""
        if batch.num_rows == 0:
            return
        column = batch.column(self.name)
        fields = dict(zip([f.name for f in column.type], column.flatten(), strict=True))
        kinds = _integers(fields["type"])
        self._refuse(missing_of(column), lambda i: "is missing")
        self._refuse(
            (kinds != _SPARSE) & (kinds != _DENSE),
            lambda i: f"is of type {kinds[i]}; known are 0, sparse, and 1, dense",
        )
        is_sparse = kinds == _SPARSE
        n_values, values = self._lists(fields["values"], np.ones(len(kinds), bool), "values")
        n_indices, indices = self._lists(fields["indices"], is_sparse, "indices")
        self._refuse(
            is_sparse & (n_values != n_indices),
            lambda i: f"has {n_values[i]} values for {n_indices[i]} indices",
        )
        lengths = np.where(is_sparse, _integers(fields["size"]), n_values)
        if self.n_rows == 0:
            self.n_columns = n_columns = int(lengths[0])
            has_size = 1 <= n_columns <= np.iinfo(np.int32).max
            self._refuse(
                ~np.array([has_size]), lambda i: f"has {n_columns} features; at least one is needed"
            )
        self._refuse(
            lengths != self.n_columns,
            lambda i: f"has {lengths[i]} features, those before {self.n_columns}",
        )
        # Feature k of a dense vector is value k; sparse ones name theirs.
        starts = np.concatenate([[0], np.cumsum(n_values)])
        columns = np.arange(starts[-1]) - np.repeat(starts[:-1], n_values)
        columns[np.repeat(is_sparse, n_values)] = indices
        follows = np.diff(columns, prepend=-1) > 0
        follows[starts[:-1][n_values > 0]] = True  # what begins a row follows nothing
        self._refuse(
            ~follows | (columns < 0) | (columns >= self.n_columns),
            lambda k: (
                f"has the index {columns[k]}; indices increase and lie in [0, {self.n_columns})"
            ),
            starts,
        )
        self._refuse(
            np.isinf(values), lambda k: f"has a value that is infinite as {self.dtype}", starts
        )
        self.has_missing |= bool(np.isnan(values).any())
        self._values.append(values)
        self._columns.append(columns.astype(np.int32))
        self._sizes.append(n_values)
        self.n_rows += len(kinds)

    def finish(self) -> CsrRows:
        """Return the rows."""
        sizes = np.concatenate([np.zeros(1, np.int64), *self._sizes])
        return CsrRows(
            np.concatenate([np.empty(0, self.dtype), *self._values]),
            np.concatenate([np.empty(0, np.int32), *self._columns]),
            np.cumsum(sizes).astype(np.int64),
            self.n_columns,
        )

    def _lists(self, lists: Any, needed: Array, what: str) -> tuple[Array, Array]:
        """The lengths of the lists that are needed, and their elements one after the other."""
        self._refuse(needed & missing_of(lists), lambda i: f"has no {what}")
        flat = lists.filter(arrow().array(needed)).flatten()
        is_index = what == "indices"
        with np.errstate(over="ignore"):  # infinite, and refused as such
            numbers = plain_numbers(flat)[0].astype(np.int64 if is_index else self.dtype)
        numbers[missing_of(flat)] = -1 if is_index else np.nan
        return np.where(needed, list_sizes(lists), 0), numbers

    def _refuse(self, bad: Array, what: Callable[[int], str], starts: Array | None = None) -> None:
        """Raise for the first that is bad of the rows, or of the entries of rows at ``starts``."""
        if (i := first_true(bad)) is not None:
            row = i if starts is None else int(np.searchsorted(starts, i, "right")) - 1
            raise DataFormatError(
                f"{self.source}: the vector of row {self.n_rows + row} in the column "
                f"{self.name!r} {what(i)}"
            )


def _integers(column: Any) -> Array:
    """Integers, -1 where there is none."""
    integers = plain_numbers(column)[0].astype(np.int64)
    integers[missing_of(column)] = -1
    return integers
