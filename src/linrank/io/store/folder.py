"""The folder that a store is written into, beside its place, until it is whole."""

from __future__ import annotations

import errno
import os
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linrank.io.store.layout import FILES, MANIFEST
from linrank.system import durable

Array = NDArray[Any]
_WRITE_BACK = 32 << 20  # bytes after which the system is asked to begin writing to the disk


class NewFolder:
    """A hidden folder that takes the place of ``path`` when it is whole, or vanishes.

    One process of a machine writes a store at a time; others are told so at once.
    """

    def __init__(self, path: str, overwrite: bool) -> None:
        self.path, self.overwrite = path, overwrite
        self._files: dict[str, int] = {}
        self._waiting: dict[str, tuple[int, int]] = {}
        check_target(path, overwrite)
        busy = f"{path} is being written by another process; wait for it, or name another folder"
        with durable.naming(path, over=True):
            self._scratch = durable.Scratch(
                os.path.dirname(path), 0o777, token=durable.token_of(path), busy=busy
            )
        self.partial = self._scratch.path

    def write(self, name: str, data: Array) -> None:
        """Append the bytes of an array to a file."""
        with durable.naming(self.path, over=True, what="store", removed=durable.REMOVED):
            if name not in self._files:
                flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0)
                self._files[name] = os.open(os.path.join(self.partial, name), flags, 0o666)
            if not data.nbytes:
                return
            view = data.reshape(-1).view(np.uint8).data
            while view:
                view = view[os.write(self._files[name], view) :]
        self._write_back(name, data.nbytes)

    def _write_back(self, name: str, n_bytes: int) -> None:
        """Have the disk write while the next chunk is made, not all of it at the end."""
        begin, waiting = self._waiting.get(name, (0, 0))
        waiting += n_bytes
        if waiting >= _WRITE_BACK and hasattr(os, "posix_fadvise"):
            os.posix_fadvise(self._files[name], begin, waiting, os.POSIX_FADV_DONTNEED)
            begin, waiting = begin + waiting, 0
        self._waiting[name] = (begin, waiting)

    def take_back(self, name: str, dtype: np.dtype[Any]) -> Array:
        """Read a file that was written, and remove it."""
        os.close(self._files.pop(name))
        self._waiting.pop(name, None)
        place = os.path.join(self.partial, name)
        array = np.fromfile(place, dtype)
        os.remove(place)
        return array

    def finish(self, content: bytes) -> None:
        """Force all to the disk, the manifest last, and give the folder its name."""
        with durable.naming(self.path, over=True, what="store", removed=durable.REMOVED):
            for descriptor in self._files.values():
                os.fsync(descriptor)
            self._close()
            with durable.replacing(os.path.join(self.partial, MANIFEST)) as file:
                file.write(content)
        check_target(self.path, self.overwrite)  # somebody may have put something there meanwhile
        with durable.naming(self.path, over=True):
            self._place()
        durable.sync_folder(os.path.dirname(self.path))
        self.remove()

    def _place(self) -> None:
        """Take the place of what is there: nothing, an empty folder, or a store."""
        if not os.path.isdir(self.path) or not os.listdir(self.path):
            os.rename(self.partial, self.path)  # an empty folder gives way
        else:
            durable.replace_folder(self.partial, self.path)

    def remove(self) -> None:
        """Leave nothing but what has its place."""
        self._close()
        self._scratch.remove()

    def _close(self) -> None:
        while self._files:
            os.close(self._files.popitem()[1])


def check_target(path: str | os.PathLike[str], overwrite: bool) -> str:
    """The absolute path of a store that may be written there.

    An empty folder gives way, and a store where that is wanted; nothing else ever does.
    """
    target = os.path.abspath(os.fspath(path))
    parent = os.path.dirname(target)
    if not os.path.isdir(parent):
        raise FileNotFoundError(
            errno.ENOENT, f"cannot be written: there is no folder {parent}; make it first", target
        )
    if not os.access(parent, os.W_OK | os.X_OK):
        raise PermissionError(
            errno.EACCES, f"cannot be written: no permission to write in {parent}", target
        )
    durable.recover(target)
    try:
        os.lstat(target)
    except FileNotFoundError:
        return target
    if not os.path.isdir(target) or os.path.islink(target):
        raise FileExistsError(f"{target} is there and no folder; name another place")
    names = set(os.listdir(target))
    # A manifest alone may be that of something else.
    if names and (MANIFEST not in names or not names <= FILES or len(names) == 1):
        other = (sorted(names - FILES) or sorted(names))[0]
        raise FileExistsError(f"{target} holds {other!r} and is no store; name another folder")
    if names and not overwrite:
        raise FileExistsError(
            f"{target} is a store already; name another folder, or overwrite it (overwrite=True)"
        )
    return target
