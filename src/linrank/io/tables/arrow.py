"""A table, whatever it was stored as, into a dataset."""

from __future__ import annotations

import queue
import re
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from linrank.data.dataset import Dataset
from linrank.data.frames import as_weights, check_apart
from linrank.data.rows import CsrRows, DenseRows, Rows
from linrank.errors import DataFormatError
from linrank.io.comments import Words
from linrank.io.tables import columns
from linrank.io.tables.formats import Roles, TableOptions, assign
from linrank.io.tables.matrix import ColumnRows, ListRows, Matrix, VectorRows, float_for
from linrank.system.resources import check_fits

T = TypeVar("T")


# ---- what an iterator yields, computed one step ahead by a thread -------------------------------


def ahead(items: Iterator[T]) -> Iterator[T]:
    """The same items; the next one is made while the caller works on the last.

    At most two are held here. An exception comes where the item would have come; a caller that
    stops early stops the thread.
    """
    ready: queue.Queue[Callable[[], T] | None] = queue.Queue(1)
    stop = threading.Event()

    def give(item: Callable[[], T] | None) -> None:
        while not stop.is_set():
            try:
                return ready.put(item, timeout=0.1)
            except queue.Full:
                continue

    def work() -> None:
        try:
            for item in items:
                give(lambda item=item: item)  # type: ignore[misc]
                del item  # held by who waits for it, not here
                if stop.is_set():
                    return
        except BaseException as error:  # raised again where the caller waits
            give(_raiser(error))
        give(None)

    thread = threading.Thread(target=work, name="linrank-read", daemon=True)
    thread.start()
    try:
        while (made := ready.get()) is not None:
            item = made()
            del made
            yield item
            del item
    finally:
        stop.set()
        thread.join()


def _raiser(error: BaseException) -> Callable[[], Any]:
    def fail() -> Any:
        raise error

    return fail


Array = NDArray[Any]


def as_csr(rows: Rows) -> CsrRows:
    """The entries that are not zero; NaN is not.

    Examples
    --------
    >>> as_csr(DenseRows(np.array([[0.0, 2.0], [3.0, 0.0]]))).columns.tolist()
    [1, 0]
    """
    if isinstance(rows, CsrRows):
        return rows
    row, column = np.nonzero(rows.values)
    sizes = np.bincount(row, minlength=rows.shape[0])
    offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    return CsrRows(rows.values[row, column], column.astype(np.int32), offsets, rows.shape[1])


def as_dense(rows: Rows) -> DenseRows:
    """All values, zeros where a sparse matrix has none."""
    if isinstance(rows, DenseRows):
        return rows
    n_rows, n_columns = rows.shape
    size = n_rows * n_columns * rows.dtype.itemsize
    check_fits(size, f"{n_rows:,} dense rows of {n_columns:,} columns", "use storage='csr'")
    values = np.zeros(rows.shape, rows.dtype)
    values[np.repeat(np.arange(n_rows), np.diff(rows.offsets)), rows.columns] = rows.values
    return DenseRows(values)


def smaller(rows: CsrRows) -> Rows:
    """The smaller of the two, as `linrank.load` does for text: entries cost 4 bytes more."""
    size, (n_rows, n_columns) = rows.dtype.itemsize, rows.shape
    dense = n_rows * n_columns * size <= len(rows.values) * (size + 4)
    return as_dense(rows) if dense else rows


@dataclass(frozen=True, eq=False)
class Docids:
    """One id per row, in place of the comments of a text; an empty one is none.

    Ids of a table may hold blanks, which those of a comment cannot.

    Examples
    --------
    >>> ids = Docids(Words.of(["a b", "", "c"]))
    >>> [ids.docid(i) for i in range(3)], ids[0], ids.select([2]).docid(0)
    (['a b', None, 'c'], 'docid = a b', 'c')
    """

    words: Words

    def __len__(self) -> int:
        return len(self.words)

    def __getitem__(self, i: int) -> str:
        """The comment that a text would have for row ``i``."""
        docid = self.docid(i)
        return "" if docid is None else f"docid = {docid}"

    def docid(self, i: int) -> str | None:
        """The document of row ``i``, or None."""
        return self.words[i] or None

    def select(self, index: Any) -> Docids:
        """Return the ids of the rows of ``index`` (integers, a boolean mask or a slice)."""
        return Docids(self.words.select(index))


_INTEGER = re.compile(r"0|-?[1-9][0-9]{0,18}")  # as str() writes one
_EXACT = 2.0**53  # integers below are float64 numbers, each by itself


def as_numbers(column: Any, role: str, name: str, source: str) -> Array:
    """The finite float64 numbers of a column that has a role, one per row."""
    if not _is_numeric(column.type):
        first = next((str(v) for v in column if v.is_valid), None)
        told = f"; the first value is {first[:60]!r}" if first is not None else ""
        raise DataFormatError(
            f"{source}: the {role} column {name!r} is {_type_words(column.type)}, not numbers"
            f"{told}; convert it to numbers, or choose another with {role}="
        )
    whole = columns.one_array(column)
    numbers = columns.plain_numbers(whole)[0]
    out = numbers.astype(np.float64)
    out[columns.missing_of(whole)] = np.nan
    finite = np.isfinite(out)
    if not finite.all():
        row = int(np.argmin(finite))
        what = "is missing" if np.isnan(out[row]) else f"is {out[row]}"
        raise DataFormatError(
            f"{source}: the {role} of row {row} (column {name!r}) {what}; every row needs a number"
        )
    if role == "label":
        try:
            check_apart(numbers, f"the label column {name!r}")
        except ValueError as error:
            raise DataFormatError(f"{source}: {error}") from None
    return out


def as_query_ids(column: Any, name: str, source: str, is_text: bool = False) -> Array:
    """Query ids: integers as they are, others as an object array, one object per id.

    Of a text, where all is written in one way, ids that are integers are taken for integers.
    """
    types, whole = columns.arrow().types, columns.one_array(_plain_ids(column, name, source))
    if whole.null_count:
        raise _no_id(int(np.argmax(columns.missing_of(whole))), name, source)
    if types.is_integer(whole.type) or types.is_boolean(whole.type):
        return columns.plain_numbers(whole)[0]
    if types.is_floating(whole.type):
        return _whole_numbers(columns.plain_numbers(whole)[0], name, source)
    codes = columns.plain_numbers(whole.indices)[0]
    found = [None if v is None else str(v) for v in whole.dictionary.to_pylist()]
    for code, id_ in enumerate(found):
        if (id_ is None or (is_text and not id_)) and (codes == code).any():
            raise _no_id(int(np.argmax(codes == code)), name, source)
    if is_text and all(map(_is_integer, found)):
        numbers: Array = np.array([int(id_ or "0") for id_ in found], np.int64)
        return numbers[codes]
    names: Array = np.array(found, dtype=object)
    return names[codes]


def _is_integer(id_: str | None) -> bool:
    """Whether an id, where there is one, is an integer of 64 bits."""
    if id_ is None or not id_:
        return True
    return _INTEGER.fullmatch(id_) is not None and -(2**63) <= int(id_) < 2**63


def _plain_ids(column: Any, name: str, source: str) -> Any:
    """Ids as numbers, or as codes of strings: those of all chunks may be more than one array holds.

    Categories of numbers are these numbers; bytes are UTF-8 text.
    """
    pa = columns.arrow()
    types, kind = pa.types, column.type
    try:
        if types.is_dictionary(kind) and not columns.holds_text(kind.value_type):
            column, kind = column.cast(kind.value_type), kind.value_type
        if columns.holds_bytes(kind):
            column, kind = column.cast(pa.large_string()), pa.large_string()
        if types.is_null(kind) or types.is_nested(kind):
            raise pa.ArrowInvalid("no ids")
        if types.is_dictionary(kind) or types.is_boolean(kind) or types.is_integer(kind):
            return column
        return column if types.is_floating(kind) else column.dictionary_encode()
    except pa.ArrowException:
        raise DataFormatError(
            f"{source}: the qid column {name!r} is {column.type}; ids are numbers or strings"
        ) from None


def _whole_numbers(ids: Array, name: str, source: str) -> Array:
    """Float ids as integers where they are: pandas makes floats of integers with gaps."""
    bad = ~np.isfinite(ids)
    if bad.any():
        raise _no_id(int(np.argmax(bad)), name, source)
    whole = bool(np.all((np.abs(ids) < _EXACT) & (ids == np.floor(ids))))
    return ids.astype(np.int64) if whole else ids


def _no_id(row: int, name: str, source: str) -> DataFormatError:
    return DataFormatError(
        f"{source}: the qid of row {row} (column {name!r}) is missing; every row belongs to a query"
    )


def as_docids(column: Any, name: str, source: str) -> Docids:
    """Document ids as text; a missing one is none."""
    pa = columns.arrow()
    try:
        if pa.types.is_dictionary(column.type):
            column = column.cast(column.type.value_type)
        if pa.types.is_floating(column.type):  # integers with gaps, as pandas has them
            is_whole = all(map(_are_whole, column.chunks))
            column = column.cast(pa.int64(), safe=False) if is_whole else column
        # Before the chunks are joined: together they may be longer than a plain string array.
        whole = columns.one_array(column.cast(pa.large_string()))
    except pa.ArrowException:
        raise DataFormatError(
            f"{source}: the docid column {name!r} is {column.type}; ids are numbers or strings"
        ) from None
    if whole.null_count:
        whole = whole.fill_null("")
    _, offsets, text = whole.buffers()
    ends = np.frombuffer(offsets, np.int64, whole.offset + len(whole) + 1)[whole.offset :]
    data = np.frombuffer(text, np.uint8) if text is not None else np.empty(0, np.uint8)
    return Docids(Words(data[ends[0] : ends[-1]], ends - ends[0]))


def _are_whole(numbers: Any) -> bool:
    values = columns.plain_numbers(numbers)[0][~columns.missing_of(numbers)]
    return bool(np.all((np.abs(values) < _EXACT) & (values == np.floor(values))))


def _is_numeric(type: Any) -> bool:
    types = columns.arrow().types
    plain = types.is_integer(type) or types.is_floating(type)
    return bool(plain or types.is_boolean(type) or types.is_decimal(type) or types.is_null(type))


def _type_words(type: Any) -> str:
    types = columns.arrow().types
    has_text = types.is_dictionary(type) or "string" in str(type)
    return f"text ({type})" if has_text else str(type)


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
    roles = assign(columns.columns_of(table.schema, table.name), options, table.name)
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
        column = columns.arrow().chunked_array(chunks)
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

    if storage == "auto":
        return rows if isinstance(rows, DenseRows) else smaller(rows)
    return as_csr(rows) if storage == "csr" else as_dense(rows)
