"""The folder that a store is written into, beside its place, until it is whole."""

from __future__ import annotations

import os
import shutil
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linrank.durable import sync_folder
from linrank.store.layout import FILES, MANIFEST

__all__ = ["NewFolder", "check_target"]

Array = NDArray[Any]
_UNFINISHED = f"{MANIFEST}.new"
_WORKING = FILES | {_UNFINISHED}
_WRITE_BACK = 32 << 20  # bytes after which the system is asked to begin writing to the disk


class NewFolder:
    """A folder ``<path>.partial`` that takes its place when it is whole, or vanishes.

    There is one such name for a path: what a killed process has left is found and removed by the
    next one. A lock, which dies with its process, tells a folder that is being written from one
    that was left.
    """

    def __init__(self, path: str, overwrite: bool) -> None:
        self.path, self.overwrite = path, overwrite
        self.partial = f"{path}.partial"
        self._files: dict[str, int] = {}
        self._waiting: dict[str, tuple[int, int]] = {}
        self._is_placed = False
        check_target(path, overwrite)
        self._lock = self._take()

    def _take(self) -> int | None:
        """Make the folder and lock it; remove what a killed process has left."""
        try:
            os.mkdir(self.partial)
        except FileExistsError:
            if os.path.islink(self.partial) or not os.path.isdir(self.partial):
                raise FileExistsError(
                    f"{self.partial} is there and no folder; remove it or name another place"
                ) from None
            lock = _locked(self.partial)  # or an error: another process is writing
            try:
                _check_remains(self.partial, _WORKING)
                for name in os.listdir(self.partial):
                    os.remove(os.path.join(self.partial, name))
            except BaseException:
                _unlock(lock)
                raise
            return lock
        return _locked(self.partial)

    def write(self, name: str, data: Array) -> None:
        """Append the bytes of an array to a file."""
        if name not in self._files:
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0)
            self._files[name] = os.open(os.path.join(self.partial, name), flags, 0o666)
        if not data.nbytes:
            return
        view = data.reshape(-1).view(np.uint8).data
        try:
            while view:
                view = view[os.write(self._files[name], view) :]
        except OSError as error:  # a full disk
            error.filename = os.path.join(self.partial, name)
            raise
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
        for descriptor in self._files.values():
            os.fsync(descriptor)
        self._close()
        # Under another name first: a manifest is whole or not there.
        place = os.path.join(self.partial, MANIFEST)
        unfinished = os.path.join(self.partial, _UNFINISHED)
        with open(unfinished, "xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.rename(unfinished, place)
        sync_folder(self.partial)
        check_target(self.path, self.overwrite)  # somebody may have put something there meanwhile
        if os.path.isdir(self.path) and os.listdir(self.path):
            self._replace()
        else:
            os.rename(self.partial, self.path)  # an empty folder gives way
        self._is_placed = True
        sync_folder(os.path.dirname(self.path))
        _unlock(self._lock)
        self._lock = None

    def _replace(self) -> None:
        """Put the new store in place of the old: two renames, then the old one goes."""
        old = f"{self.path}.old"
        check_old(self.path)
        if os.path.lexists(old):
            shutil.rmtree(old)
        os.rename(self.path, old)
        try:
            os.rename(self.partial, self.path)
        except BaseException:
            os.rename(old, self.path)
            raise
        shutil.rmtree(old)

    def remove(self) -> None:
        """Leave nothing."""
        self._close()
        if not self._is_placed:  # else the name may be another writer's by now
            shutil.rmtree(self.partial, ignore_errors=True)
        _unlock(self._lock)
        self._lock = None

    def _close(self) -> None:
        while self._files:
            os.close(self._files.popitem()[1])


def check_target(path: str | os.PathLike[str], overwrite: bool) -> str:
    """The absolute path of a store that may be written there.

    An empty folder gives way, and a store where that is wanted; nothing else ever does.
    """
    target = os.path.abspath(os.fspath(path))
    if not os.path.lexists(target):
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
    if names:
        check_old(target)
    return target


def check_old(path: str) -> None:
    """Refuse to overwrite a store if what has the name that it is to have meanwhile is no store."""
    old = f"{path}.old"
    if not os.path.lexists(old):
        return
    if os.path.islink(old) or not os.path.isdir(old):
        raise FileExistsError(f"{old} is there and no store; move it elsewhere to overwrite {path}")
    _check_remains(old, FILES)


def _check_remains(folder: str, expected: frozenset[str]) -> None:
    """Refuse to remove what no writer of a store can have left."""
    with os.scandir(folder) as entries:
        other = sorted(e.name for e in entries if e.name not in expected or e.is_dir())
    if other:
        raise FileExistsError(
            f"{folder} holds {other[0]!r}, which no store has; remove it or name another folder"
        )


def _locked(folder: str) -> int | None:
    """A descriptor that holds the lock of a folder; None where the system has no such locks."""
    try:
        import fcntl
    except ImportError:
        return None
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        raise FileExistsError(
            f"{folder} is being written by another process; wait for it, or name another folder"
        ) from None
    except OSError:  # a file system without locks
        os.close(descriptor)
        return None
    return descriptor


def _unlock(descriptor: int | None) -> None:
    if descriptor is not None:
        os.close(descriptor)
