"""Opening a table of any format."""

from __future__ import annotations

import contextlib
import io
import os
import re
from collections.abc import Iterator
from typing import Any

from linrank.data.frames import sparse_part
from linrank.errors import DataFormatError
from linrank.io.blocks import LONGEST_LINE, LongLineError, OneWay, open_blocks
from linrank.io.columns import arrow
from linrank.io.formats import is_arrow_stream, parquet_parts
from linrank.io.roles import Roles
from linrank.io.table_reader import ArrowBatches, Table
from linrank.system.durable import naming


def open_table(source: Any, name: str, head: bytes, format: str, n_threads: int) -> Table:
    """The table of a frame, or of a file or stream of one of the formats but SVMlight text."""
    if format == "frame":
        name = f"<{type(source).__name__}>"
        return ArrowBatches(name, _to_arrow(source, name))
    if format == "parquet":
        return ParquetTable(_seekable(source), name, n_threads)
    if format == "arrow":
        is_stream = is_arrow_stream(head)
        return ArrowTable(source if is_stream else _seekable(source), name, is_stream)
    return CsvTable(source, name, "\t" if format == "tsv" else ",", n_threads)


def _seekable(source: Any) -> Any:
    """A path, or all bytes of a stream: these formats are read from their end."""
    return source if isinstance(source, (str, os.PathLike)) else io.BytesIO(source.read())


_BAND_BYTES = 64 << 20  # of decoded values, at 8 bytes: a few bands are held at a time
_LEAST_COLUMNS = 16  # of a band: a cache line of the matrix
_BATCH_ROWS = 8192


class ParquetTable(Table):
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

    def __init__(self, file: Any, name: str, n_threads: int) -> None:
        self.name, self._n_threads = name, n_threads
        is_path = isinstance(file, (str, os.PathLike))
        parts = parquet_parts(file) if is_path and os.path.isdir(file) else [file]
        arrow()
        import pyarrow.parquet

        with arrow_errors(name, "Parquet"):
            sources = [os.fspath(part) if is_path else part for part in parts]
            self._files = [pyarrow.parquet.ParquetFile(one, pre_buffer=False) for one in sources]
        self.schema = self._files[0].schema_arrow
        for part, opened in zip(parts, self._files, strict=True):
            if not opened.schema_arrow.equals(self.schema):
                raise DataFormatError(
                    f"{part}: its columns or their types differ from those of {parts[0]}"
                )
        self.n_rows = sum(opened.metadata.num_rows for opened in self._files)
        self.size = sum(os.stat(part).st_size for part in parts) if is_path else None

    def batches(self, roles: Roles) -> Iterator[tuple[Any, int, int]]:
        """Row groups by bands of columns, or batches of rows where a column holds whole rows."""
        with arrow_errors(self.name, "Parquet"):
            yield from self._bands(roles) if roles.layout == "columns" else self._rows(roles)

    def _bands(self, roles: Roles) -> Iterator[tuple[Any, int, int]]:
        """All rows of a row group at once, some columns at a time.

        pyarrow decodes a row group a third faster than the same rows in batches, and one of a
        million rows and all columns would take as much memory as the matrix.
        """
        n_rows, done = 0, 0
        groups = ((file, i) for file in self._files for i in range(file.num_row_groups))
        for file, i in groups:
            n_here = file.metadata.row_group(i).num_rows
            for band in _bands_of(roles, n_here):
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


def _bands_of(roles: Roles, n_rows: int) -> list[list[str]]:
    """The columns that are read together: those with another role, then bands of features."""
    width = max(_LEAST_COLUMNS, _BAND_BYTES // (8 * max(1, n_rows)))
    names = list(roles.features)
    bands = [names[j : j + width] for j in range(0, len(names), width)]
    fields = list(roles.fields.values())
    return [fields, *bands] if fields else bands


class ArrowTable(Table):
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

    def __init__(self, file: Any, name: str, is_stream: bool) -> None:
        pa = arrow()
        self.name, self._is_stream = name, is_stream
        is_path = isinstance(file, (str, os.PathLike))
        self.size = os.stat(file).st_size if is_path else None
        with arrow_errors(name, "Arrow"):
            self._source = pa.OSFile(os.fspath(file)) if is_path else pa.PythonFile(file, "r")
            self._reader = (pa.ipc.open_stream if is_stream else pa.ipc.open_file)(self._source)
            self.schema = self._reader.schema

    def batches(self, roles: Roles) -> Iterator[tuple[Any, int, int]]:
        """The batches as they were written, each checked: offsets of a damaged file lead anywhere.

        Dictionaries and strings are checked in full, plain numbers by their sizes.
        """
        n_rows = 0
        with arrow_errors(self.name, "Arrow"):
            for batch in self._stored_batches(roles):
                used = batch.select(roles.used)
                used.validate(full=True)
                yield used, n_rows, self._source.tell() if self._is_stream and self.size else 0
                n_rows += used.num_rows

    def _stored_batches(self, roles: Roles) -> Iterator[Any]:
        if self._is_stream:
            yield from self._reader
            return
        ipc, used = arrow().ipc, set(roles.used)
        fields = [i for i, name in enumerate(self.schema.names) if name in used]
        options = ipc.IpcReadOptions(included_fields=fields)
        reader = ipc.open_file(self._source, options=options)
        for i in range(reader.num_record_batches):
            yield reader.get_batch(i)


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


# ---- errors of pyarrow as ours, with the name of the file ---------------------------------------

_LONGEST = 300  # characters of a foreign message


@contextlib.contextmanager
def arrow_errors(source: str, what: str) -> Iterator[None]:
    """Turn what pyarrow raises on bad contents into a DataFormatError; ``what`` is the format."""
    pa = arrow()
    try:
        with naming(source):
            yield
    except DataFormatError:
        raise
    except pa.ArrowMemoryError as error:
        raise MemoryError(f"{source}: reading this {what} file: {error}") from error
    except UnicodeDecodeError as error:
        raise DataFormatError(f"{source}: {what} data with text that is not UTF-8") from error
    except (pa.ArrowException, OSError) as error:
        # pyarrow reports contents it cannot make sense of as an OSError without a number.
        if getattr(error, "errno", None) is not None:
            raise
        raise damage_error(source, what, error) from error


def damage_error(source: str, what: str, error: object) -> DataFormatError:
    """A foreign message on the contents of a file, in one line and not too long."""
    text = " ".join(str(error).split())
    more = " ..." if len(text) > _LONGEST else ""
    return DataFormatError(f"{source}: damaged {what} data: {text[:_LONGEST]}{more}")


# ---- text with a header line and separators (CSV, TSV) ------------------------------------------


class PeekableText(OneWay):
    """Bytes of a text, the first of which can be looked at before they are read."""

    def __init__(self, source: Any) -> None:
        text = open_blocks(source)
        self.name, self.size = text.name, text.size
        self.n_done = 0  # bytes of the source, compressed if it is
        self._blocks = text.blocks
        self._ready = bytearray()
        self._error: DataFormatError | None = None

    def peek(self, size: int) -> bytes:
        """The next bytes, at least ``size`` of them unless the text ends before."""
        self._fill(size)
        return bytes(self._ready)

    def read(self, size: int = -1) -> bytes:
        """The next bytes, at most ``size``; none at the end."""
        self._fill(size if size >= 0 else 1 << 62)
        data = bytes(self._ready if size < 0 else self._ready[:size])
        del self._ready[: len(data)]
        if not data and self._error is not None:
            raise self._error
        return data

    def _fill(self, size: int) -> None:
        try:
            while len(self._ready) < size:
                block, self.n_done = next(self._blocks)
                self._ready += block
        except StopIteration:
            pass
        except DataFormatError as error:  # raised when all before it was read
            self._error = error


_PROBE = 1 << 20  # bytes from which types are inferred
_BLOCK = 1 << 20
_ROOM = 8  # of a block: times the first two lines; a line longer than a block cannot be read
_LOOKED_AT = 1000  # values of a column of words
_MOSTLY = 0.9
_ROW = re.compile(r"Row #(\d+): ")
_CONVERSION = re.compile(
    r"In CSV column #(\d+): .*CSV conversion error to \w+: invalid value '(.*)'"
)
_SHAPE = re.compile(r"CSV parse error: .*Expected (\d+) columns, got (\d+)")


_IDS = ("qid", "docid", "session", "query", "document")  # roles whose values stay text


class CsvTable(Table):
    """Text whose first line names the columns.

    Features, labels and weights are read as float64 numbers, ids as text; what type a column has
    is inferred from the first megabyte. An empty field, ``NA``, ``NaN``, ``null`` and the like are
    a missing number.

    Parameters
    ----------
    source : path of a file or binary file object
        Plain or compressed.
    name : str
        What it is called in messages.
    separator : str
        What stands between two fields: a comma or a tab.
    n_threads : int
        1 converts on this thread, more use those of pyarrow.
    """

    is_text = True

    def __init__(self, source: Any, name: str, separator: str, n_threads: int) -> None:
        self.name, self._separator, self._n_threads = name, separator, n_threads
        self._source = source if isinstance(source, (str, os.PathLike)) else None
        self._stream = PeekableText(source)
        self.size = self._stream.size
        head, n_first = self._first_lines()
        self._block = max(_BLOCK, _ROOM * n_first)
        with arrow_errors(name, "CSV"):
            reader = self._open(io.BytesIO(head), {}, None, 2 * len(head) + _BLOCK)
            self.schema = _with_slips(reader)
            self._check_header()

    def batches(self, roles: Roles) -> Iterator[tuple[Any, int, int]]:
        """Batches of the columns that are used, numbers as float64 and ids as strings."""
        types = self._types(roles)
        n_rows = 0
        try:
            for batch in self._open(self._stream, types, roles.used, n_threads=self._n_threads):
                yield batch, n_rows, self._stream.n_done
                n_rows += batch.num_rows
        except arrow().ArrowException as error:
            raise self._explain(error, types, roles) from None

    def _types(self, roles: Roles) -> dict[str, Any]:
        pa = arrow()
        types = {
            name: pa.bool_() if self.schema.field(name).type == pa.bool_() else pa.float64()
            for name in (*roles.features, *roles.fields.values())
        }
        for role, name in roles.fields.items():
            # A column of words is no number: said on reading its first value, with the value.
            if role in _IDS or pa.types.is_string(self.schema.field(name).type):
                types[name] = pa.string()
        return types

    def _open(
        self,
        stream: Any,
        types: dict[str, Any],
        columns: list[str] | None,
        probe: int | None = None,
        n_threads: int = 1,
    ) -> Any:
        from pyarrow import csv

        return csv.open_csv(
            arrow().PythonFile(stream, "r"),
            read_options=csv.ReadOptions(
                use_threads=n_threads > 1, block_size=probe or self._block
            ),
            parse_options=csv.ParseOptions(
                delimiter=self._separator,
                newlines_in_values=True,
                invalid_row_handler=None if probe is None else lambda row: "skip",
            ),
            convert_options=csv.ConvertOptions(column_types=types, include_columns=columns),
        )

    def _first_lines(self) -> tuple[bytes, int]:
        """A megabyte of whole lines, or two lines if these are longer, and the bytes of the two."""
        size = _PROBE
        while True:
            head = self._stream.peek(size)[:size]
            if not head.strip():
                raise DataFormatError(f"{self.name}: empty; the first line must name the columns")
            is_all = len(head) < size
            first = head.split(b"\n" if b"\n" in head else b"\r", 2)
            if len(first) > 2 or is_all:
                break
            if size >= LONGEST_LINE:
                raise LongLineError(self.name, LONGEST_LINE)
            size *= 2
        if is_all and len(head.strip().splitlines()) < 2:
            raise DataFormatError(f"{self.name}: no rows")
        end = len(head) if is_all else max(head.rfind(b"\n"), head.rfind(b"\r")) + 1
        return head[:end], len(first[0]) + len(first[1])

    def _check_header(self) -> None:
        names = self.schema.names
        numbers = [name for name in names if _is_number(name)]
        # A number that comes twice is a value too, whatever words stand beside it.
        if len(numbers) == len(names) or len(set(numbers)) < len(numbers):
            raise DataFormatError(
                f"{self.name}: the first line, {', '.join(names[:4])}, ..., holds numbers; it must "
                "name the columns: put a line such as label,qid,f1,f2 in front"
            )
        if len(names) == 1:
            other = next((c for c in ",\t;|" if c != self._separator and c in names[0]), None)
            if other is not None:
                raise DataFormatError(
                    f"{self.name}: the first line has no {self._separator!r} but {other!r}; "
                    "csv is separated by commas, tsv by tabs: say format='csv' or 'tsv', or "
                    "write the file with one of them"
                )

    def _explain(self, error: Exception, types: dict[str, Any], roles: Roles) -> DataFormatError:
        """The fault with its row: threads lose count, so the text is read again without."""
        text = str(error)
        if self._source is not None and "Row #" not in text:
            try:
                for _ in self._open(PeekableText(self._source), types, roles.used):
                    pass
            except arrow().ArrowException as again:
                text = str(again)
        row = _ROW.search(text)
        place = self.name if row is None else f"{self.name}:{row[1]}"
        if found := _CONVERSION.search(text):
            column = self.schema.names[int(found[1])]
            return DataFormatError(
                f"{place}: the column {column!r} holds {found[2][:60]!r}, which is no number; "
                "correct it, or leave the column out with features="
            )
        if found := _SHAPE.search(text):
            return DataFormatError(
                f"{place}: a line with {found[2]} fields, the first line has {found[1]}"
            )
        return damage_error(self.name, "CSV", text)


def _with_slips(reader: Any) -> Any:
    """The schema of a text; a column of numbers with a few words is one of numbers.

    Then the words are faults, named with their line, and no feature goes missing for them.
    """
    pa, schema = arrow(), reader.schema
    batch = next(iter(reader), None)
    for i, field in enumerate(schema):
        if batch is None or not pa.types.is_string(field.type):
            continue
        values = [v for v in batch.column(i).slice(0, _LOOKED_AT).to_pylist() if v]
        if sum(map(_is_number, values)) > _MOSTLY * len(values):
            schema = schema.set(i, pa.field(field.name, pa.float64()))
    return schema


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
