"""Arrow IPC, files (Feather 2) and streams, as tables."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

from linrank.tabular.columns import arrow
from linrank.tabular.faults import reading
from linrank.tabular.roles import Roles

__all__ = ["ArrowTable"]


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
