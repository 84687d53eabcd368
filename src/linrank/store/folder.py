"""The folder that a store is written into, beside its place, and its files."""

from __future__ import annotations

import os
import shutil
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["NewFolder"]

Array = NDArray[Any]


class NewFolder:
    """A folder ``<path>.partial`` that takes its place when it is whole, or vanishes."""

    def __init__(self, path: str, overwrite: bool) -> None:
        self.path, self.overwrite = path, overwrite
        self.partial = f"{path}.partial"
        if os.path.lexists(path) and not overwrite and not _is_empty(path):
            raise FileExistsError(f"{path} exists; name another folder, or pass overwrite=True")
        if os.path.isdir(self.partial):
            shutil.rmtree(self.partial)
        os.mkdir(self.partial)
        self._files: dict[str, int] = {}

    def write(self, name: str, data: Array) -> None:
        """Append the bytes of an array to a file."""
        if name not in self._files:
            place = os.path.join(self.partial, name)
            self._files[name] = os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
        view = data.data.cast("B") if data.nbytes else memoryview(b"")
        while view:
            view = view[os.write(self._files[name], view) :]

    def take_back(self, name: str, dtype: np.dtype[Any]) -> Array:
        """Read a file that was written, and remove it."""
        os.close(self._files.pop(name))
        place = os.path.join(self.partial, name)
        array = np.fromfile(place, dtype)
        os.remove(place)
        return array

    def finish(self, manifest: str, content: bytes) -> None:
        """Force all to the disk, the manifest last, and rename the folder."""
        for descriptor in self._files.values():
            os.fsync(descriptor)
        self._close()
        with open(os.path.join(self.partial, manifest), "xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        if self.overwrite and os.path.isdir(self.path):
            shutil.rmtree(self.path)
        os.rename(self.partial, self.path)

    def remove(self) -> None:
        """Leave nothing."""
        self._close()
        shutil.rmtree(self.partial, ignore_errors=True)

    def _close(self) -> None:
        while self._files:
            os.close(self._files.popitem()[1])


def _is_empty(path: str) -> bool:
    return os.path.isdir(path) and not os.listdir(path)
