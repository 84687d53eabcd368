"""write: a data set, part by part, into one file; whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, replace
from functools import partial
from importlib import import_module
from itertools import chain
from typing import IO, Any

import numpy as np

from linrank import _core
from linrank.data import Array, CsrRows, Dataset, Words, as_comments, as_stored
from linrank.errors import check_one_of
from linrank.io.blocks import Progress, StandardOutput, import_zstd
from linrank.io.columns import arrow
from linrank.io.formats import TABLES, TEXTS
from linrank.io.roles import is_misleading
from linrank.io.sidecars import ENDINGS
from linrank.io.trec import Qrels, qrels_lines
from linrank.system import check_place, replacing, resolve

Blocks = Iterator[Dataset]
_BLOCK_BYTES, _BLOCK_ROWS = 32 << 20, 1 << 20


@contextmanager
def open_output(name: str, is_text: bool = True) -> Iterator[IO[bytes]]:
    """A file that appears whole or not at all, text compressed as its name says; - is standard
    output."""
    if name == "-":
        standard: Any = StandardOutput()
        yield standard
        standard.flush()
        return
    with (
        replacing(name) as whole,
        compress(whole, name) if is_text else nullcontext(whole) as file,
    ):
        yield file


def compress(file: IO[bytes], name: str) -> Any:
    """A stream into a file, compressed as the last extension of its name says."""
    extension = os.path.splitext(name.lower())[1]
    if extension == ".gz":  # without a name and a time: the same data give the same bytes
        return import_module("gzip").GzipFile("", "wb", 6, file, mtime=0)
    if extension == ".bz2":
        return import_module("bz2").BZ2File(file, "wb")
    if extension == ".xz":
        return import_module("lzma").LZMAFile(file, "wb", preset=1)
    if extension == ".zst":
        zstd = import_zstd("writing")
        if hasattr(zstd, "ZstdFile"):
            return zstd.ZstdFile(file, "w")
        return zstd.ZstdCompressor().stream_writer(file, closefd=False)
    return nullcontext(file)


@dataclass(frozen=True)
class Written:
    """A file that was written.

    Attributes
    ----------
    path, format : str
    n_rows, n_features : int
    storage : {"dense", "csr"}
    dtype : str
        Of the values.
    nbytes : int or None
        Size of the file; None for a pipe.
    left_out : tuple of str
        What the rows had and the format has no place for.
    misleading : tuple of str
        Features of a table that are named as labels, ids, weights or positions are: whoever reads
        it must say that they are features.
    """

    path: str
    format: str
    n_rows: int
    n_features: int
    storage: str
    dtype: str
    nbytes: int | None
    left_out: tuple[str, ...]
    misleading: tuple[str, ...] = ()


def write(
    parts: Dataset | Iterable[Dataset],
    path: str | os.PathLike[str],
    format: str,
    *,
    storage: str = "auto",
    overwrite: bool = False,
    n_jobs: int | None = None,
    n_rows: int | None = None,
    progress: Progress | None = None,
) -> Written:
    """Write a data set as one file, a block of rows at a time.

    Parameters
    ----------
    parts : Dataset or iterable of them
        Parts of one data set in order, alike but for their rows.
    path : path
        The file, or ``"-"`` for standard output. Text is compressed where the name ends in .gz,
        .bz2 or .xz.
    format : {"svmlight", "parquet", "arrow", "csv", "tsv", "qrels"}
    storage : {"auto", "dense", "csr"}
        Whether all values are written, or the entries that are given; "auto": as they are stored.
        CSV and TSV always hold all.
    overwrite : bool
        Whether to replace a file that is there.
    n_jobs : int, optional
        Threads; None uses all cores.
    n_rows : int, optional
        Rows of all parts, for `progress`.
    progress : callable, optional
        Called as ``progress(rows_done, n_rows or None)`` after each block.

    Returns
    -------
    Written

    Examples
    --------
    >>> import tempfile
    >>> data = Dataset.of([[0.5], [1.0]], [0, 1], qid=["a", "a"])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = write(data, folder + "/data.txt", "svmlight")
    ...     print(open(folder + "/data.txt").read(), end="")
    0 qid:a 1:0.5
    1 qid:a 1:1
    """
    check_one_of("storage", storage, ("auto", "dense", "csr"))
    every = iter([parts] if isinstance(parts, Dataset) else parts)
    first = next(every, None)
    if first is None or first.n_rows == 0:
        raise ValueError("there are no rows to write")
    if storage == "auto":
        is_wide = first.rows.is_sparse and format not in ("csv", "tsv")
        storage = "csr" if is_wide else "dense"
    name, form, base = os.fspath(path), _form_of(first), _base(first)
    _check_place(name, format, overwrite)
    total = first.n_rows if isinstance(parts, Dataset) else n_rows
    every, done = chain([first], every), 0
    del first

    def blocks() -> Iterator[Dataset]:
        nonlocal done
        for block in _cut_blocks(every, form, storage, base):
            done += block.n_rows
            yield block
            del block  # not held while the next is read
            if progress is not None:
                progress(done, total)

    with open_output(name, format in TEXTS) as file:
        SINKS[format](blocks(), file, resolve(n_jobs), name)
    names, is_text = form["names"], format == "svmlight"
    are_columns = format in TABLES and storage == "dense"
    has_no_names = is_text or (format in TABLES and not are_columns)
    left_out = []
    if format == "qrels":
        left_out.append("the features")
    elif names is not None and has_no_names:
        left_out.append("the names of the features")
    if form["position_type"] is not None and is_text:
        left_out.append("the positions")
    return Written(
        name,
        format,
        done,
        form["n_features"],
        storage,
        form["dtype"].name,
        os.path.getsize(name) if os.path.isfile(name) else None,
        tuple(left_out),
        tuple(filter(is_misleading, names or ())) if are_columns else (),
    )


def write_columns(columns: Mapping[str, Any], name: str, format: str) -> None:
    """Write a table of whole columns, as `write` writes data sets; a file there is replaced."""
    batch = arrow(f"writing {name}").RecordBatch.from_pydict(dict(columns))
    with open_output(name, format in TEXTS) as file:
        _write_batches(iter([batch]), format, file, name)


def _check_place(name: str, format: str, overwrite: bool) -> None:
    """Raise an OSError before anything is written, rather than after an hour."""
    if name == "-":
        return
    check_place(name)
    if os.path.isfile(name) and not overwrite:
        raise FileExistsError(
            f"{name} is there already; name another, or overwrite it (overwrite=True)"
        )
    if format not in ("svmlight", "csv", "tsv"):
        return
    for suffix in ENDINGS:
        if os.path.exists(name + suffix):
            raise FileExistsError(
                f"{name}{suffix} is there and would be read along with the new {name}; remove it, "
                "or name another file"
            )


class MixedIds(ValueError):
    """Query ids of a later part are of another type: text behind numbers."""


def _form_of(data: Dataset) -> dict[str, Any]:
    """What all parts of a file have in common."""
    return {
        "n_features": data.n_features,
        "dtype": data.rows.dtype,
        "names": data.feature_names,
        "id_type": None if data.qid is None else ids_of(data.qid).dtype,
        "has_weight": data.weight is not None,
        "has_docids": data.comments is not None,
        "position_type": None if data.position is None else data.position.dtype,
    }


def _cut_blocks(
    parts: Iterator[Dataset], form: Mapping[str, Any], storage: str, base: int
) -> Iterator[Dataset]:
    """The rows of all parts, some at a time, stored alike and with ``base`` as index base."""
    for part in parts:
        for name, value in _form_of(part).items():
            if value != form[name]:
                raise (MixedIds if name == "id_type" else ValueError)(
                    f"{part.source}: {name} is {value}, but {form[name]} in the parts before; all "
                    "parts must be alike"
                )
        row_bytes = part.rows.nbytes // max(1, part.n_rows)
        if storage == "dense":
            row_bytes = max(row_bytes, part.n_features * part.rows.dtype.itemsize)
        step = max(1, min(_BLOCK_ROWS, _BLOCK_BYTES // max(1, row_bytes)))
        for begin in range(0, part.n_rows, step):
            block = part if step >= part.n_rows else part.select(slice(begin, begin + step))
            yield replace(block, rows=as_stored(block.rows, storage), index_base=base)
            del block
        del part  # not held while the next is read


# ---- where blocks of rows go: a sink for each format, on a binary file --------------------------


_ROLES = ("label", "qid", "docid", "sample_weight", "position")  # columns of what is no feature


def _column_names(data: Dataset) -> list[str]:
    """A name for each feature, none twice, none that another column has."""
    if data.feature_names is None:
        base = data.index_base or 0
        return [f"f{j}" for j in range(base, base + data.n_features)]
    seen: set[str] = set()
    for name in data.feature_names:
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
    return list(data.feature_names)


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


# ---- tables -------------------------------------------------------------------------------------


def record_batch(data: Dataset) -> Any:
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
    if data.comments is not None:
        columns["docid"] = pa.array(data.docids, pa.string())
    if data.weight is not None:
        columns["sample_weight"] = pa.array(data.weight)
    if data.position is not None:
        columns["position"] = pa.array(data.position)
    if isinstance(data.rows, CsrRows):
        columns["features"] = _vectors(pa, data.rows)
    else:
        by_column = np.ascontiguousarray(data.rows.values.T)
        has_missing = bool(np.isnan(by_column).any())
        arrays = (pa.array(column, from_pandas=has_missing) for column in by_column)
        columns |= zip(_column_names(data), arrays, strict=True)
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


def _write_batches(batches: Iterator[Any], format: str, file: IO[bytes], name: str) -> None:
    """Write record batches with the schema of the first; ``name`` is that of the file."""
    writer = None
    try:
        for batch in batches:
            if writer is None:
                writer = _table_writer(format, file, batch.schema, name)
            writer.write(batch)
            del batch  # not held while the next is made
    except BaseException:
        if writer is not None:
            with suppress(Exception):  # the fault that is under way says more
                writer.close()
        raise
    if writer is not None:
        writer.close()


def _table_writer(format: str, file: IO[bytes], schema: Any, name: str) -> Any:
    """What takes record batches by ``write``, until ``close``.

    A batch is a row group of Parquet. An Arrow file has an index of its batches, a stream has none.
    """
    pa = arrow(f"writing {format}")
    if format == "parquet":
        from pyarrow import parquet

        return parquet.ParquetWriter(file, schema)
    if format == "arrow":
        is_stream = name == "-" or name.lower().endswith(".arrows")
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


def _write_table(format: str, blocks: Blocks, file: IO[bytes], n_threads: int, name: str) -> None:
    """Rows of a table."""

    def batches() -> Iterator[Any]:
        for data in blocks:
            if data.rows.is_sparse and format in ("csv", "tsv"):
                raise ValueError(
                    f"{format.upper()} has no place for sparse rows: write all values "
                    "(storage='dense'), or another format"
                )
            yield record_batch(data)
            del data

    _write_batches(batches(), format, file, name)


# ---- text ---------------------------------------------------------------------------------------


def _write_svmlight(blocks: Blocks, file: IO[bytes], n_threads: int, name: str) -> None:
    """Lines of text.

    Numbers are the shortest that read back to the same bits. Dense rows name all features, zeros
    too; sparse ones their entries. The first line of a file names the last feature in any case,
    and feature 0 where counting begins there, so that a reader finds the same columns.
    """
    first_row = 0
    for data in blocks:
        file.write(_svmlight_text(data, first_row, n_threads).data)
        first_row += data.n_rows
        del data  # not held while the next is read


def _svmlight_text(data: Dataset, first_row: int, n_threads: int) -> Array:
    ids = None if data.qid is None else _id_words(data.qid, first_row).core
    has_comments = data.comments is not None
    comments = as_comments(data, first_row, "SVMlight text").core if has_comments else None
    place = _core.first_non_finite(data.rows.core, n_threads)
    base = data.index_base or 0
    if place is not None:
        raise ValueError(
            f"row {first_row + place[0]}, feature {base + place[1]} is missing, which "
            "SVMlight text cannot say: fill it in (missing='zero', 'mean' or 'indicator'), or "
            "write a table"
        )
    return _core.svmlight_text(
        data.rows.core, data.labels, data.weight, ids, comments, base, first_row == 0, n_threads
    )


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


def _write_qrels(blocks: Blocks, file: IO[bytes], n_threads: int, name: str) -> None:
    """Labels as judgments ``qid 0 docid label``; held until the end, to find documents twice."""
    qid: list[Any] = []
    docids: list[Any] = []
    labels: list[float] = []
    for data in blocks:
        found = data.docids
        for ids, what in ((data.qid, "query"), (found, "document")):
            if ids is None:
                raise ValueError(
                    f"the rows have no {what} ids, which judgments (qrels) need; read them from "
                    "data that has them"
                )
        assert found is not None
        assert data.qid is not None
        if None in found:
            row = len(docids) + found.index(None)
            raise ValueError(f"row {row} has no document id, which judgments (qrels) need")
        docids += found
        qid += ids_of(data.qid).tolist()
        labels += data.labels.tolist()
    qrels = Qrels.of(qid, docids, labels)
    for block in qrels_lines(qrels.qid, qrels.docids.tolist(), qrels.relevance):
        file.write(block.encode("utf-8", "surrogateescape"))


# Each takes blocks of rows in order, and completes the file.
SINKS: dict[str, Callable[[Blocks, IO[bytes], int, str], None]] = {
    **{format: partial(_write_table, format) for format in TABLES},
    "svmlight": _write_svmlight,
    "qrels": _write_qrels,
}
