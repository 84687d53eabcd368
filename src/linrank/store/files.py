"""The files of a store, read range by range."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linrank.errors import DataFormatError

__all__ = ["Files"]

Array = NDArray[Any]


class Files:
    """The files of a folder, opened on first use."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._open: dict[str, int] = {}

    def path(self, name: str) -> str:
        return os.path.join(self._folder, name)

    def read(self, name: str, begin: int, n_bytes: int, out: Array | None = None) -> Array:
        """Bytes of a file, into ``out`` where it is given."""
        if name not in self._open:
            self._open[name] = os.open(self.path(name), os.O_RDONLY)
        data = np.empty(n_bytes, np.uint8) if out is None else out[:n_bytes]
        view, place = data.data, begin
        while view:
            n_read = os.preadv(self._open[name], [view], place)
            if n_read == 0:
                raise DataFormatError(f"{self.path(name)}: is truncated; convert the data again")
            view, place = view[n_read:], place + n_read
        return data
