"""Opening a table of any format."""

from __future__ import annotations

import io
import os
from typing import Any

from linrank.tabular.arrow_tables import Table
from linrank.tabular.formats import is_arrow_stream

__all__ = ["open_table"]


def open_table(source: Any, name: str, head: bytes, format: str, n_threads: int) -> Table:
    """The table of a frame, or of a file or stream of one of the formats but SVMlight text."""
    if format == "frame":
        from linrank.tabular.frames import FrameTable

        return FrameTable(source)
    if format == "parquet":
        from linrank.tabular.parquet import ParquetTable

        return ParquetTable(_seekable(source), name, n_threads)
    if format == "arrow":
        from linrank.tabular.ipc import ArrowTable

        is_stream = is_arrow_stream(head)
        return ArrowTable(source if is_stream else _seekable(source), name, is_stream)
    from linrank.tabular.csv import CsvTable

    return CsvTable(source, name, "\t" if format == "tsv" else ",", n_threads)


def _seekable(source: Any) -> Any:
    """A path, or all bytes of a stream: these formats are read from their end."""
    return source if isinstance(source, (str, os.PathLike)) else io.BytesIO(source.read())
