"""Where blocks of rows go: a sink for each format, on a binary file."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import IO, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from linrank import _core
from linrank.data.dataset import Dataset, as_sparse
from linrank.data.rows import CsrRows, DenseRows, Rows
from linrank.io.comments import Comments, Words, naming_documents
from linrank.io.trec import Qrels, qrels_lines

Array = NDArray[Any]
ROLES = ("label", "qid", "docid", "weight", "position")


@dataclass(frozen=True)
class Outline:
    """How rows are written.

    Attributes
    ----------
    n_features : int
    dtype : float32 or float64
        Of the values.
    is_sparse : bool
        Whether only entries are written, or all values.
    names : tuple of str or None
        Of the features.
    base : int
        The number of the first feature where it has no name, 0 or 1.
    id_type : dtype or None
        Integers, floats, or object for strings; None without query ids.
    has_weight, has_docids : bool
    position_type : dtype or None
    """

    n_features: int
    dtype: np.dtype[Any]
    is_sparse: bool
    names: tuple[str, ...] | None
    base: int
    id_type: np.dtype[Any] | None
    has_weight: bool
    has_docids: bool
    position_type: np.dtype[Any] | None

    @classmethod
    def of(cls, data: Dataset, storage: str = "auto") -> Outline:
        """The outline of a dataset; ``storage`` "dense" or "csr" overrides how it is stored."""
        if storage not in ("auto", "dense", "csr"):
            raise ValueError(f"storage must be 'auto', 'dense' or 'csr', got {storage!r}")
        position = getattr(data, "position", None)
        return cls(
            data.n_features,
            data.rows.dtype,
            data.rows.is_sparse if storage == "auto" else storage == "csr",
            data.feature_names,
            _base(data),
            None if data.qid is None else ids_of(data.qid).dtype,
            data.weight is not None,
            data.comments is not None,
            None if position is None else position.dtype,
        )

    def check(self, data: Dataset) -> None:
        """Raise ValueError where another part is not like the first."""
        own = replace(Outline.of(data), is_sparse=self.is_sparse, base=self.base)
        if own != self:
            for name, value in vars(self).items():
                if getattr(own, name) != value:
                    raise ValueError(
                        f"{data.source}: {name} is {getattr(own, name)}, but {value} in the parts "
                        "before; all parts must be alike"
                    )

    def column_names(self) -> list[str]:
        """A name for each feature, none twice, none that another column has."""
        if self.names is None:
            return [f"f{j}" for j in range(self.base, self.base + self.n_features)]
        seen: set[str] = set()
        for name in self.names:
            if name in seen:
                raise ValueError(
                    f"two features are called {name!r}; the columns of a table need different "
                    "names: rename one, or write SVMlight text, which has numbers only"
                )
            if name in ROLES:
                raise ValueError(
                    f"a feature is called {name!r}, as the column of that name will be; rename it"
                )
            seen.add(name)
        return list(self.names)


def _base(data: Dataset) -> int:
    """The number of the first feature: that of the file, or by names that are numbers; else 1."""
    if data.index_base is not None:
        return data.index_base
    names = data.feature_names
    if names is None or any(name != f"f{j}" for j, name in enumerate(names)):
        return 1
    return 0


def ids_of(qid: Array) -> Array:
    """Query ids as integers, floats or an object array of strings; TypeError for others.

    Examples
    --------
    >>> ids_of(np.array(["a", "b"])).dtype, ids_of(np.array([3, 4], dtype=object)).dtype
    (dtype('O'), dtype('int64'))
    """
    if qid.dtype.kind in "b":
        return qid.astype(np.int64)
    if qid.dtype.kind in "iuf":
        return qid
    if qid.dtype.kind == "U":
        return qid.astype(object)
    kinds = {type(item) for item in qid.tolist()}
    if kinds <= {str}:
        return qid.astype(object)
    if kinds <= {int} or kinds <= {int, bool}:
        return np.array(qid.tolist(), np.int64)
    names = ", ".join(sorted(kind.__name__ for kind in kinds))
    raise TypeError(
        f"query ids are of type {names}; files hold all strings or all numbers: convert them, as "
        "in qid.astype(str)"
    )


VECTOR = "features"  # the column of sparse rows


def require_pyarrow(what: str) -> Any:
    """The package, or an error that says how to get it."""
    try:
        import pyarrow
    except ImportError:
        raise ImportError(
            f"{what} needs pyarrow, which is not installed; install it with "
            "pip install linrank[arrow]"
        ) from None
    return pyarrow


def schema_of(outline: Outline) -> Any:
    """The columns: label, qid, docid, weight and position where there are any, then features.

    Sparse rows are one column of vectors as Spark ML stores them, ``{type, size, indices,
    values}`` with type 0.
    """
    pa = require_pyarrow("writing a table")
    fields = [pa.field("label", pa.float64())]
    if outline.id_type is not None:
        is_text = outline.id_type.kind == "O"
        kind = pa.string() if is_text else pa.from_numpy_dtype(outline.id_type)
        fields.append(pa.field("qid", kind))
    if outline.has_docids:
        fields.append(pa.field("docid", pa.string()))
    if outline.has_weight:
        fields.append(pa.field("weight", pa.float64()))
    if outline.position_type is not None:
        fields.append(pa.field("position", pa.from_numpy_dtype(outline.position_type)))
    value = pa.from_numpy_dtype(outline.dtype)
    if outline.is_sparse:
        fields.append(pa.field(VECTOR, _vector_type(pa, value)))
    else:
        fields += [pa.field(name, value) for name in outline.column_names()]
    return pa.schema(fields)


def _vector_type(pa: Any, value: Any) -> Any:
    return pa.struct(
        [
            ("type", pa.int8()),
            ("size", pa.int32()),
            ("indices", pa.list_(pa.int32())),
            ("values", pa.list_(value)),
        ]
    )


def batch_of(data: Dataset, outline: Outline, schema: Any) -> Any:
    """A block of rows as a record batch; missing values are null."""
    pa = require_pyarrow("writing a table")
    columns: list[Any] = [pa.array(data.labels)]
    if data.qid is not None:
        columns.append(pa.array(ids_of(data.qid), schema.field("qid").type))
    if outline.has_docids:
        columns.append(pa.array(data.docids, pa.string()))
    if data.weight is not None:
        columns.append(pa.array(data.weight))
    position = getattr(data, "position", None)
    if position is not None:
        columns.append(pa.array(position))
    if outline.is_sparse:
        columns.append(_vectors(pa, sparse(data.rows), schema.field(VECTOR).type))
    else:
        by_column = np.ascontiguousarray(dense(data.rows).values.T)
        has_missing = bool(np.isnan(by_column).any())
        columns += [pa.array(column, from_pandas=has_missing) for column in by_column]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _vectors(pa: Any, rows: CsrRows, kind: Any) -> Any:
    """Sparse rows as a struct of lists, whose offsets are those of the rows."""
    n_rows, n_columns = rows.shape
    offsets = pa.array(rows.offsets.astype(np.int32))
    indices = pa.ListArray.from_arrays(offsets, pa.array(rows.columns.astype(np.int32, copy=False)))
    values = pa.ListArray.from_arrays(offsets, pa.array(rows.values))
    parts = [
        pa.array(np.zeros(n_rows, np.int8)),
        pa.array(np.full(n_rows, n_columns, np.int32)),
        indices,
        values,
    ]
    return pa.StructArray.from_arrays(parts, fields=list(kind))


def dense(rows: Rows) -> DenseRows:
    """The rows as a full matrix."""
    if isinstance(rows, DenseRows):
        return rows
    values = np.zeros(rows.shape, rows.dtype)
    values[np.repeat(np.arange(rows.shape[0]), np.diff(rows.offsets)), rows.columns] = rows.values
    return DenseRows(values)


def sparse(rows: Rows) -> CsrRows:
    """The rows as entries."""
    return rows if isinstance(rows, CsrRows) else as_sparse(rows)


def lines_of(data: Dataset, outline: Outline, first_row: int, n_threads: int) -> Array:
    """The lines of a block of rows, as bytes.

    Numbers are the shortest that read back to the same bits. Dense rows name all features, zeros
    too; sparse ones their entries. The first line of a file names the last feature in any case,
    and feature 0 where counting begins there, so that a reader finds the same columns.

    Parameters
    ----------
    data : Dataset
        The block.
    outline : Outline
        Of the whole.
    first_row : int
        The number of its first row, 0 at the beginning of a file; rows in messages count from it.
    n_threads : int
    """
    rows = sparse(data.rows) if outline.is_sparse else dense(data.rows)
    ids = None if data.qid is None else _ids(data.qid, first_row)
    comments = None if data.comments is None else _comments(data, first_row)
    place = _core.first_non_finite(rows.core, n_threads)
    if place is not None:
        raise ValueError(
            f"row {first_row + place[0]}, feature {outline.base + place[1]} is missing, which "
            "SVMlight text cannot say: fill it in (missing='zero', 'mean' or 'indicator'), or "
            "write a table"
        )
    text: Array = _core.svmlight_text(
        rows.core,
        data.labels,
        data.weight,
        None if ids is None else ids.text,
        None if ids is None else ids.offsets,
        None if comments is None else comments.text,
        None if comments is None else comments.offsets,
        outline.base,
        first_row == 0,
        n_threads,
    )
    return text


def _ids(qid: Array, first_row: int) -> Words:
    ids = ids_of(qid)
    words = ids.tolist() if ids.dtype.kind == "O" else list(map(str, ids.tolist()))
    for i in _first_of_runs(ids):
        word = words[i]
        if word.split() != [word] or "#" in word:
            raise ValueError(
                f"the query id of row {first_row + i} is {word!r}; in SVMlight text an id is one "
                "word without blanks and '#': rename it, or write a table"
            )
    return Words.of(words)


def _first_of_runs(ids: Array) -> list[int]:
    """Rows whose id differs from that of the row before."""
    changes: Array = np.concatenate([[True], np.asarray(ids[1:] != ids[:-1], bool)])[: len(ids)]
    found: list[int] = np.flatnonzero(changes).tolist()
    return found


def _comments(data: Dataset, first_row: int) -> Comments:
    """The comments of a text as they were; documents of a table as ``docid = ...``."""
    comments: Any = data.comments
    if not isinstance(comments, Comments):
        comments = comments.select(slice(None))  # those of a store become a text
    if isinstance(comments, Comments):
        return comments
    return naming_documents(data.docids or (), first_row, "SVMlight text")


class Sink(Protocol):
    """Takes blocks of rows in order; `close` completes the file."""

    def add(self, data: Dataset) -> None: ...
    def close(self) -> None: ...


class _Table:
    """Record batches into a writer of pyarrow."""

    def __init__(self, outline: Outline, open_writer: Callable[[Any], Any]) -> None:
        self._outline, self._schema = outline, schema_of(outline)
        self._writer = open_writer(self._schema)

    def add(self, data: Dataset) -> None:
        self._writer.write(batch_of(data, self._outline, self._schema))

    def close(self) -> None:
        self._writer.close()


class _ParquetWriter:
    """A row group a block."""

    def __init__(self, file: IO[bytes], schema: Any) -> None:
        from pyarrow import parquet

        self._writer = parquet.ParquetWriter(file, schema)

    def write(self, batch: Any) -> None:
        self._writer.write_batch(batch)

    def close(self) -> None:
        self._writer.close()


def _parquet(file: IO[bytes], outline: Outline, n_threads: int, is_stream: bool) -> Sink:
    require_pyarrow("writing Parquet")
    return _Table(outline, lambda schema: _ParquetWriter(file, schema))


def _arrow(file: IO[bytes], outline: Outline, n_threads: int, is_stream: bool) -> Sink:
    """An Arrow file, whose batches can be looked up; into a pipe, a stream."""
    ipc = require_pyarrow("writing Arrow").ipc
    return _Table(
        outline, lambda schema: (ipc.new_stream if is_stream else ipc.new_file)(file, schema)
    )


class _Decimals:
    """Text with separators; the shortest decimals that read back to the same bits.

    Readers take a decimal for a double first. Where that lands on the middle between two floats the
    second rounding may go the other way; then the digits are those of the float as a double.
    """

    def __init__(self, csv: Any, file: IO[bytes], schema: Any, options: Any) -> None:
        self._pa = require_pyarrow("writing CSV")
        single, double = self._pa.float32(), self._pa.float64()
        fields = [f.with_type(double) if f.type == single else f for f in schema]
        self._schema = self._pa.schema(fields)
        self._writer = csv.CSVWriter(file, self._schema, write_options=options)

    def write(self, batch: Any) -> None:
        columns = [self._doubles(column) for column in batch.columns]
        self._writer.write(self._pa.RecordBatch.from_arrays(columns, schema=self._schema))

    def _doubles(self, column: Any) -> Any:
        pa = self._pa
        if column.type != pa.float32():
            return column
        import pyarrow.compute as pc

        read = column.cast(pa.string()).cast(pa.float64())
        differs = pc.not_equal(read.cast(pa.float32(), safe=False), column)
        return pc.if_else(differs, column.cast(pa.float64()), read)

    def close(self) -> None:
        self._writer.close()


def _separated(delimiter: str) -> Callable[..., Sink]:
    def sink(file: IO[bytes], outline: Outline, n_threads: int, is_stream: bool) -> Sink:
        name = "CSV" if delimiter == "," else "TSV"
        require_pyarrow(f"writing {name}")
        if outline.is_sparse:
            raise ValueError(
                f"{name} has no place for sparse rows: write all values (storage='dense'), or "
                "another format"
            )
        from pyarrow import csv

        options = csv.WriteOptions(delimiter=delimiter)
        return _Table(outline, lambda schema: _Decimals(csv, file, schema, options))

    return sink


class _Svmlight:
    """Lines of text."""

    def __init__(self, file: IO[bytes], outline: Outline, n_threads: int, is_stream: bool) -> None:
        self._file, self._outline, self._n_threads = file, outline, n_threads
        self._n_rows = 0

    def add(self, data: Dataset) -> None:
        text = lines_of(data, self._outline, self._n_rows, self._n_threads)
        self._file.write(text.data)
        self._n_rows += data.n_rows

    def close(self) -> None:
        """Nothing is held back."""


class _Qrels:
    """Labels as judgements ``qid 0 docid label``; held until the end, to find documents twice."""

    def __init__(self, file: IO[bytes], outline: Outline, n_threads: int, is_stream: bool) -> None:
        for has, what in ((outline.id_type is not None, "query"), (outline.has_docids, "document")):
            if not has:
                raise ValueError(
                    f"the rows have no {what} ids, which judgements (qrels) need; read them from "
                    "data that has them"
                )
        self._file = file
        self._columns: tuple[list[Any], list[Any], list[float]] = ([], [], [])

    def add(self, data: Dataset) -> None:
        qid, docids, labels = self._columns
        found = data.docids or []
        for i, docid in enumerate(found):
            if docid is None:
                raise ValueError(
                    f"row {len(docids) + i} has no document id, which judgements (qrels) need"
                )
        docids += found
        qid += [] if data.qid is None else ids_of(data.qid).tolist()
        labels += data.labels.tolist()

    def close(self) -> None:
        qrels = Qrels.of(*self._columns)
        for block in qrels_lines(qrels.qid, qrels.docids.tolist(), qrels.relevance):
            self._file.write(block.encode("utf-8", "surrogateescape"))


SINKS: dict[str, Callable[[IO[bytes], Outline, int, bool], Sink]] = {
    "parquet": _parquet,
    "arrow": _arrow,
    "csv": _separated(","),
    "tsv": _separated("\t"),
    "svmlight": _Svmlight,
    "qrels": _Qrels,
}
