"""Opening a table of any format."""

from __future__ import annotations

import io
import os
from collections.abc import Iterator
from typing import Any

from linrank.data.frames import sparse_part
from linrank.errors import DataFormatError
from linrank.io.formats import is_arrow_stream, parquet_parts
from linrank.io.tables.columns import arrow
from linrank.io.tables.csv import reading
from linrank.io.tables.read import Table
from linrank.io.tables.roles import Roles


def open_table(source: Any, name: str, head: bytes, format: str, n_threads: int) -> Table:
    """The table of a frame, or of a file or stream of one of the formats but SVMlight text."""
    if format == "frame":
        return FrameTable(source)
    if format == "parquet":
        return ParquetTable(_seekable(source), name, n_threads)
    if format == "arrow":
        is_stream = is_arrow_stream(head)
        return ArrowTable(source if is_stream else _seekable(source), name, is_stream)
    from linrank.io.tables.csv import CsvTable

    return CsvTable(source, name, "\t" if format == "tsv" else ",", n_threads)


def _seekable(source: Any) -> Any:
    """A path, or all bytes of a stream: these formats are read from their end."""
    return source if isinstance(source, (str, os.PathLike)) else io.BytesIO(source.read())


_BAND_BYTES = 64 << 20  # of decoded values, at 8 bytes: a few bands are held at a time
_LEAST_COLUMNS = 16  # of a band: a cache line of the matrix
_BATCH_ROWS = 8192


class ParquetTable:
    """A Parquet file, or a folder of them: columns and rows are announced at the end of each.

    Parameters
    ----------
    file : path or binary file object that can seek
        The file, or the folder.
    name : str
        What it is called in messages.
    n_threads : int
        1 decodes on this thread, more use those of pyarrow.
    """

    is_text = False

    def __init__(self, file: Any, name: str, n_threads: int) -> None:
        self.name, self._n_threads = name, n_threads
        is_path = isinstance(file, (str, os.PathLike))
        parts = parquet_parts(file) if is_path and os.path.isdir(file) else [file]
        self._files = [_open(part, name, is_path) for part in parts]
        self.schema = self._files[0].schema_arrow
        for part, opened in zip(parts, self._files, strict=True):
            if not opened.schema_arrow.equals(self.schema):
                raise DataFormatError(
                    f"{part}: its columns or their types differ from those of {parts[0]}"
                )
        self.n_rows: int | None = sum(opened.metadata.num_rows for opened in self._files)
        self.size: int | None = sum(os.stat(part).st_size for part in parts) if is_path else None

    def batches(self, roles: Roles) -> Iterator[tuple[Any, int, int]]:
        """Row groups by bands of columns, or batches of rows where a column holds whole rows."""
        with reading(self.name, "Parquet"):
            yield from self._bands(roles) if roles.layout == "columns" else self._rows(roles)

    def row_batches(self, roles: Roles) -> Iterator[tuple[Any, int, int]]:
        """As `batches`, with all columns in each."""
        with reading(self.name, "Parquet"):
            yield from self._rows(roles)

    def _bands(self, roles: Roles) -> Iterator[tuple[Any, int, int]]:
        """All rows of a row group at once, some columns at a time.

        pyarrow decodes a row group a third faster than the same rows in batches, and one of a
        million rows and all columns would take as much memory as the matrix.
        """
        n_rows, done = 0, 0
        groups = ((file, i) for file in self._files for i in range(file.num_row_groups))
        for file, i in groups:
            n_here = file.metadata.row_group(i).num_rows
            for band in _cut(roles, n_here):
                table = file.read_row_group(i, band, use_threads=self._n_threads > 1)
                if table.num_rows != n_here:
                    raise DataFormatError(
                        f"{self.name}: row group {i} has {table.num_rows:,} rows and announces "
                        f"{n_here:,}; the file is damaged"
                    )
                begin = n_rows
                done += n_here * len(band)
                for batch in table.select(band).to_batches():
                    yield batch, begin, self._share(done, len(roles.used))
                    begin += batch.num_rows
            n_rows += n_here

    def _rows(self, roles: Roles) -> Iterator[tuple[Any, int, int]]:
        n_rows, how = 0, {"batch_size": _BATCH_ROWS, "use_threads": self._n_threads > 1}
        for file in self._files:
            for batch in file.iter_batches(columns=roles.used, **how):
                yield batch, n_rows, self._share(n_rows, 1)
                n_rows += batch.num_rows

    def _share(self, n_values: int, n_columns: int) -> int:
        return (self.size or 0) * n_values // max(1, n_columns * (self.n_rows or 0))


def _open(file: Any, name: str, is_path: bool) -> Any:
    arrow()
    import pyarrow.parquet

    with reading(name, "Parquet"):
        return pyarrow.parquet.ParquetFile(os.fspath(file) if is_path else file, pre_buffer=False)


def _cut(roles: Roles, n_rows: int) -> list[list[str]]:
    """The columns that are read together: those with another role, then bands of features."""
    width = max(_LEAST_COLUMNS, _BAND_BYTES // (8 * max(1, n_rows)))
    names = list(roles.features)
    bands = [names[j : j + width] for j in range(0, len(names), width)]
    fields = list(roles.fields.values())
    return [fields, *bands] if fields else bands


class ArrowTable:
    """An Arrow file or stream; only the columns that are used are read of a file.

    Parameters
    ----------
    file : path or binary file object
        The data; a file, unlike a stream, must be able to seek.
    name : str
        What it is called in messages.
    is_stream : bool
        Whether batches follow one another without an index.
    """

    n_rows: int | None = None
    is_text = False

    def __init__(self, file: Any, name: str, is_stream: bool) -> None:
        pa = arrow()
        self.name, self._is_stream = name, is_stream
        is_path = isinstance(file, (str, os.PathLike))
        self.size: int | None = os.stat(file).st_size if is_path else None
        with reading(name, "Arrow"):
            source = pa.OSFile(os.fspath(file)) if is_path else pa.PythonFile(file, "r")
            self._source = source
            opened = pa.ipc.open_stream(source) if is_stream else pa.ipc.open_file(source)
            self._reader = opened
            self.schema = opened.schema

    def batches(self, roles: Roles) -> Iterator[tuple[Any, int, int]]:
        """The batches as they were written, each checked: offsets of a damaged file lead anywhere.

        Dictionaries and strings are checked in full, plain numbers by their sizes.
        """
        n_rows = 0
        with reading(self.name, "Arrow"):
            for batch in self._stored(roles):
                used = batch.select(roles.used)
                used.validate(full=True)
                yield used, n_rows, self._source.tell() if self._is_stream and self.size else 0
                n_rows += used.num_rows

    def _stored(self, roles: Roles) -> Iterator[Any]:
        if self._is_stream:
            yield from self._reader
            return
        ipc, used = arrow().ipc, set(roles.used)
        fields = [i for i, name in enumerate(self.schema.names) if name in used]
        options = ipc.IpcReadOptions(included_fields=fields)
        reader = ipc.open_file(self._source, options=options)
        for i in range(reader.num_record_batches):
            yield reader.get_batch(i)


_FRAME_ROWS = 65_536


class FrameTable:
    """A frame in memory; its columns are looked at where they are, if their types allow."""

    is_text = False

    def __init__(self, frame: Any) -> None:
        self.name = f"<{type(frame).__name__}>"
        self._table = _to_arrow(frame, self.name)
        self.schema = self._table.schema
        self.n_rows: int | None = self._table.num_rows
        self.size: int | None = None

    def batches(self, roles: Roles) -> Iterator[tuple[Any, int, int]]:
        """The batches of the table, long ones in parts."""
        n_rows = 0
        for batch in self._table.select(roles.used).to_batches(max_chunksize=_FRAME_ROWS):
            yield batch, n_rows, 0
            n_rows += batch.num_rows


def _to_arrow(frame: Any, name: str) -> Any:
    pa = arrow()
    library = type(frame).__module__.partition(".")[0]
    if library == "pyarrow":
        return pa.Table.from_batches([frame]) if isinstance(frame, pa.RecordBatch) else frame
    if library == "polars":
        return frame.to_arrow()
    if sparse_part(frame) is not None:
        raise TypeError(
            f"{name} has sparse columns, which Arrow has not; give the features to Dataset.of"
        )
    try:
        return pa.Table.from_pandas(frame, preserve_index=False)
    except (pa.ArrowException, TypeError, ValueError) as error:
        if not frame.columns.is_unique:
            repeated = frame.columns[frame.columns.duplicated()][0]
            raise DataFormatError(
                f"{name}: several columns are named {str(repeated)!r}; rename all but one"
            ) from None
        text = " ".join(str(error).split())
        raise DataFormatError(f"{name}: a column is not of one type: {text}") from None
