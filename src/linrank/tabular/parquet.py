"""Parquet files as tables."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

from linrank.tabular.columns import arrow
from linrank.tabular.faults import reading
from linrank.tabular.roles import Roles

__all__ = ["ParquetTable"]

_BATCH_BYTES = 32 << 20  # of decoded values: a few are held at a time


class ParquetTable:
    """A Parquet file: its columns and rows are announced at its end.

    Parameters
    ----------
    file : path or binary file object that can seek
        The file; one that has a path is mapped.
    name : str
        What it is called in messages.
    n_threads : int
        1 decodes on this thread, more use those of pyarrow.
    """

    is_text = False

    def __init__(self, file: Any, name: str, n_threads: int) -> None:
        arrow()
        import pyarrow.parquet

        self.name, self._n_threads = name, n_threads
        is_path = isinstance(file, (str, os.PathLike))
        with reading(name, "Parquet"):
            self._file = pyarrow.parquet.ParquetFile(
                os.fspath(file) if is_path else file, memory_map=is_path, pre_buffer=False
            )
            self.schema = self._file.schema_arrow
            self.n_rows: int | None = self._file.metadata.num_rows
        self.size: int | None = os.stat(file).st_size if is_path else None

    def batches(self, roles: Roles) -> Iterator[tuple[Any, int]]:
        """Batches of some ten megabytes, decoded column by column."""
        n_rows = max(1, self.n_rows or 0)
        per_batch = max(1024, _BATCH_BYTES // (8 * max(1, len(roles.used))))
        done = 0
        with reading(self.name, "Parquet"):
            found = self._file.iter_batches(
                batch_size=min(per_batch, n_rows),
                columns=roles.used,
                use_threads=self._n_threads > 1,
            )
            for batch in found:
                done += batch.num_rows
                yield batch, (self.size or 0) * done // n_rows
