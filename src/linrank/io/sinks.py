"""Where blocks of rows go: a sink for each format, on a binary file."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import IO, Any, Protocol, cast

import numpy as np
from numpy.typing import NDArray

from linrank import _core
from linrank.data.dataset import Dataset, as_dense, as_sparse
from linrank.data.rows import CsrRows
from linrank.io.comments import Comments, Words, naming_documents
from linrank.io.tables.columns import arrow
from linrank.io.trec import Qrels, qrels_lines

Array = NDArray[Any]
_ROLES = ("label", "qid", "docid", "sample_weight", "position")  # columns of what is no feature


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
        return cls(
            data.n_features,
            data.rows.dtype,
            data.rows.is_sparse if storage == "auto" else storage == "csr",
            data.feature_names,
            _base(data),
            None if data.qid is None else ids_of(data.qid).dtype,
            data.weight is not None,
            data.comments is not None,
            None if data.position is None else data.position.dtype,
        )

    def check(self, data: Dataset) -> None:
        """Raise ValueError where another part is not like the first."""
        own = replace(Outline.of(data), is_sparse=self.is_sparse, base=self.base)
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
            if name in _ROLES:
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
    if qid.dtype.kind in "iuf":
        return qid
    if qid.dtype.kind in "bU":
        return qid.astype(np.int64 if qid.dtype.kind == "b" else object)
    kinds = {type(item) for item in qid.tolist()}
    if kinds <= {str}:
        return qid.astype(object)
    if kinds <= {int, bool}:
        return np.array(qid.tolist(), np.int64)
    names = ", ".join(sorted(kind.__name__ for kind in kinds))
    raise TypeError(
        f"query ids are of type {names}; files hold all strings or all numbers: convert them, as "
        "in qid.astype(str)"
    )


class Sink(Protocol):
    """Takes blocks of rows in order; `close` completes the file."""

    def add(self, data: Dataset) -> None: ...
    def close(self) -> None: ...


# ---- tables -------------------------------------------------------------------------------------


def record_batch(data: Dataset, outline: Outline) -> Any:
    """A block of rows as a record batch; missing values are null.

    Columns are label, qid, docid, sample_weight and position where there are any, then features.
    Sparse rows are one column of vectors as Spark ML stores them, ``{type, size, indices, values}``
    with type 0.
    """
    pa = arrow("writing a table")
    columns: dict[str, Any] = {"label": pa.array(data.labels)}
    if data.qid is not None:
        ids = ids_of(data.qid)
        columns["qid"] = pa.array(ids, pa.string() if ids.dtype.kind == "O" else None)
    if outline.has_docids:
        columns["docid"] = pa.array(data.docids, pa.string())
    if data.weight is not None:
        columns["sample_weight"] = pa.array(data.weight)
    if data.position is not None:
        columns["position"] = pa.array(data.position)
    if outline.is_sparse:
        columns["features"] = _vectors(pa, as_sparse(data.rows))
    else:
        by_column = np.ascontiguousarray(as_dense(data.rows).values.T)
        has_missing = bool(np.isnan(by_column).any())
        arrays = (pa.array(column, from_pandas=has_missing) for column in by_column)
        columns |= zip(outline.column_names(), arrays, strict=True)
    return pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns))


def _vectors(pa: Any, rows: CsrRows) -> Any:
    """Sparse rows as a struct of lists, whose offsets are those of the rows."""
    n_rows, n_columns = rows.shape
    offsets = pa.array(rows.offsets.astype(np.int32))
    columns = rows.columns.astype(np.int32, copy=False)
    lists = (pa.ListArray.from_arrays(offsets, pa.array(a)) for a in (columns, rows.values))
    sizes = np.zeros(n_rows, np.int8), np.full(n_rows, n_columns, np.int32)
    parts = [*map(pa.array, sizes), *lists]
    return pa.StructArray.from_arrays(parts, names=["type", "size", "indices", "values"])


def table_writer(format: str, file: IO[bytes], schema: Any, is_stream: bool) -> Any:
    """What takes record batches by ``write``, until ``close``; ``is_stream`` is for Arrow alone.

    A batch is a row group of Parquet. An Arrow file has an index of its batches, a stream has none.
    """
    pa = arrow(f"writing {format}")
    if format == "parquet":
        from pyarrow import parquet

        return parquet.ParquetWriter(file, schema)
    if format == "arrow":
        return (pa.ipc.new_stream if is_stream else pa.ipc.new_file)(file, schema)
    return _Decimals(pa, "," if format == "csv" else "\t", file, schema)


class _Decimals:
    """Text with separators; the shortest decimals that read back to the same bits.

    Readers take a decimal for a double first. Where that lands on the middle between two floats the
    second rounding may go the other way; then the digits are those of the float as a double.
    """

    def __init__(self, pa: Any, delimiter: str, file: IO[bytes], schema: Any) -> None:
        from pyarrow import csv

        single, double = pa.float32(), pa.float64()
        fields = [f.with_type(double) if f.type == single else f for f in schema]
        self._pa, self._schema = pa, pa.schema(fields)
        options = csv.WriteOptions(delimiter=delimiter)
        self._writer = csv.CSVWriter(file, self._schema, write_options=options)
        self.close = self._writer.close

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


class _Table:
    """Record batches into a writer of pyarrow, which is opened with the schema of the first."""

    def __init__(
        self, format: str, file: IO[bytes], outline: Outline, n_threads: int, is_stream: bool
    ) -> None:
        if outline.is_sparse and format in ("csv", "tsv"):
            raise ValueError(
                f"{format.upper()} has no place for sparse rows: write all values "
                "(storage='dense'), or another format"
            )
        self._outline, self._writer = outline, cast(Any, None)
        self._open = partial(table_writer, format, file, is_stream=is_stream)

    def add(self, data: Dataset) -> None:
        batch = record_batch(data, self._outline)
        if self._writer is None:
            self._writer = self._open(batch.schema)
        self._writer.write(batch)

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()


# ---- text ---------------------------------------------------------------------------------------


class _Svmlight:
    """Lines of text.

    Numbers are the shortest that read back to the same bits. Dense rows name all features, zeros
    too; sparse ones their entries. The first line of a file names the last feature in any case,
    and feature 0 where counting begins there, so that a reader finds the same columns.
    """

    def __init__(self, file: IO[bytes], outline: Outline, n_threads: int, is_stream: bool) -> None:
        self._file, self._outline, self._n_threads = file, outline, n_threads
        self._n_rows = 0

    def add(self, data: Dataset) -> None:
        base, first_row = self._outline.base, self._n_rows
        rows = as_sparse(data.rows) if self._outline.is_sparse else as_dense(data.rows)
        ids = None if data.qid is None else _id_words(data.qid, first_row)
        comments = None if data.comments is None else _comments(data, first_row)
        place = _core.first_non_finite(rows.core, self._n_threads)
        if place is not None:
            raise ValueError(
                f"row {first_row + place[0]}, feature {base + place[1]} is missing, which "
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
            base,
            first_row == 0,
            self._n_threads,
        )
        self._file.write(text.data)
        self._n_rows += data.n_rows

    def close(self) -> None:
        """Nothing is held back."""


def _id_words(qid: Array, first_row: int) -> Words:
    ids = ids_of(qid)
    words = ids.tolist() if ids.dtype.kind == "O" else list(map(str, ids.tolist()))
    begins_run = np.concatenate([[True], np.asarray(ids[1:] != ids[:-1], bool)])[: len(ids)]
    for i in np.flatnonzero(begins_run).tolist():
        word = words[i]
        if word.split() != [word] or "#" in word:
            raise ValueError(
                f"the query id of row {first_row + i} is {word!r}; in SVMlight text an id is one "
                "word without blanks and '#': rename it, or write a table"
            )
    return Words.of(words)


def _comments(data: Dataset, first_row: int) -> Comments:
    """The comments of a text as they were; documents of a table as ``docid = ...``."""
    comments: Any = data.comments
    if not isinstance(comments, Comments):
        comments = comments.select(slice(None))  # those of a store become a text
    if isinstance(comments, Comments):
        return comments
    return naming_documents(data.docids or (), first_row, "SVMlight text")


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
    **{format: partial(_Table, format) for format in ("parquet", "arrow", "csv", "tsv")},
    "svmlight": _Svmlight,
    "qrels": _Qrels,
}
