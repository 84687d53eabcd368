"""Where blocks of rows go: a sink for each format, on a binary file."""

from __future__ import annotations

from collections.abc import Callable
from typing import IO, Any, Protocol

from linrank.data.dataset import Dataset
from linrank.data.trec import Qrels
from linrank.data.trec_text import qrels_lines
from linrank.writing.arrow import batch_of, require_pyarrow, schema_of
from linrank.writing.outline import Outline, ids_of
from linrank.writing.text import lines_of

__all__ = ["SINKS", "Sink"]


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
