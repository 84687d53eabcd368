"""Parquet files, and folders of them, as tables."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

from linrank.errors import DataFormatError
from linrank.tabular.columns import arrow
from linrank.tabular.faults import reading
from linrank.tabular.formats import parquet_parts
from linrank.tabular.roles import Roles

__all__ = ["ParquetTable"]

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
