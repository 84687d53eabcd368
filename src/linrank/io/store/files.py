"""The files of a store: opened once, without following links, and read range by range; and the
folder that they are written into.

Large ranges are read past the page cache (``O_DIRECT``) where the file system allows it: a store is
larger than the memory that the cache may have, and the disk is then read at its own rate instead of
that of the cache, without a copy. Such reads begin and end at whole pages, so the range lies inside
the memory that is read into.
"""

from __future__ import annotations

import errno
import mmap
import os
import stat
import tempfile
import threading
import weakref
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linrank.errors import DataFormatError
from linrank.io.store.manifest import FILES, MANIFEST, MAX_BYTES, Manifest, decode
from linrank.system.durable import (
    REMOVED,
    Scratch,
    check_place,
    naming,
    recover,
    replace_folder,
    replacing,
    sync_folder,
    token_of,
)
from linrank.system.json_text import Invalid
from linrank.system.resources import describe_bytes

Array = NDArray[Any]
AGAIN = "copy the store again from where it is whole, or write it anew from its source"
# O_NONBLOCK: opening a pipe that someone put in place of a file must not wait for a writer.
_FLAGS = os.O_RDONLY | sum(
    getattr(os, name, 0) for name in ("O_CLOEXEC", "O_NOFOLLOW", "O_NONBLOCK", "O_BINARY")
)


def open_regular(path: str) -> int:
    """A descriptor of a file that is no link, pipe, device or folder."""
    try:
        descriptor = os.open(path, _FLAGS)
    except FileNotFoundError:
        raise DataFormatError(f"{path}: is missing; {AGAIN}") from None
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.EMLINK):
            raise DataFormatError(
                f"{path}: is a symbolic link, which a store may not contain; copy the file itself "
                "into the folder"
            ) from None
        raise
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise DataFormatError(f"{path}: is no regular file; {AGAIN}")
    return descriptor


def read_manifest(path: str) -> Manifest:
    """The manifest at a path, checked; whatever is wrong with it is a DataFormatError."""
    descriptor = open_regular(path)
    with naming(path), open(descriptor, "rb") as file:
        size = os.fstat(descriptor).st_size
        content = file.read(min(size, MAX_BYTES) + 1)
    try:
        if size > MAX_BYTES:
            raise Invalid(f"has {size} bytes, more than a manifest ({MAX_BYTES})")
        if len(content) != size:
            raise Invalid("changed while it was read", "open the store again")
        return decode(content)
    except Invalid as error:
        raise DataFormatError(f"{path}: {error.problem}; {error.remedy or AGAIN}") from None


PAGE = 4096  # reads past the page cache begin and end at multiples of it, in the file and in memory
_LARGE = 4 << 20
# Of this process alone: by default children that are forked would share it, and read into it too.
_PRIVATE: dict[str, int] = (
    {"flags": mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS} if hasattr(mmap, "MAP_PRIVATE") else {}
)


def span(begin: int, n_bytes: int) -> int:
    """Bytes of memory that reading a range of a file in whole pages takes."""
    return max(PAGE, -(-(begin + n_bytes) // PAGE) * PAGE - begin // PAGE * PAGE)


def aligned(n_bytes: int) -> NDArray[np.uint8]:
    """At least so many bytes, in whole pages that begin at a page."""
    n_bytes = max(PAGE, -(-n_bytes // PAGE) * PAGE)
    try:
        # Given back when the last array that looks at it is gone.
        memory = mmap.mmap(-1, n_bytes, **_PRIVATE)
    except (OSError, OverflowError):
        raise MemoryError(f"there is no memory for {describe_bytes(n_bytes)} of a chunk") from None
    advice: Any = getattr(mmap, "MADV_HUGEPAGE", None)
    if advice is not None and n_bytes >= _LARGE:
        memory.madvise(advice)
    return np.frombuffer(memory, np.uint8)


class Buffer:
    """Page-aligned memory by name of array; see ``Store.buffer``.

    A dataset that was read into a buffer looks at this memory: it is gone with the next read into
    the same buffer.
    """

    def __init__(self, sizes: Mapping[str, int]) -> None:
        self._parts = {name: aligned(size) for name, size in sizes.items()}

    @property
    def nbytes(self) -> int:
        return sum(part.nbytes for part in self._parts.values())

    def part(self, name: str, begin: int, n_bytes: int) -> NDArray[np.uint8]:
        """Memory of an array, enough for a range of its file."""
        part, needed = self._parts.get(name), span(begin, n_bytes)
        if part is None or part.nbytes < needed:
            raise ValueError(
                f"the buffer holds {0 if part is None else part.nbytes} bytes of {name}, the chunk "
                f"needs {needed}; make one with the buffer() of the store that is read"
            )
        return part


_DIRECT = getattr(os, "O_DIRECT", 0)
# A file system without such reads, a system without /proc (ENOENT), too many open files.
_NO_DIRECT = (errno.EINVAL, errno.EOPNOTSUPP, errno.ENOENT, errno.EACCES, errno.EPERM, errno.EMFILE)
_WORTH_DIRECT = 1 << 20  # bytes; below (labels, offsets), the cache is faster and has them soon
_PART = 8 << 20  # bytes that a thread reads at a time
_MOST = 1 << 30  # bytes of one call; the system takes less than 2³¹


class Files:
    """The files of a folder, whose sizes were announced."""

    def __init__(self, folder: str, sizes: Mapping[str, int]) -> None:
        self._folder = folder
        self._plain: dict[str, int] = {}
        self._direct: dict[str, int] = {}
        self._no_direct: set[str] = set() if _DIRECT else set(sizes)
        self._lock = threading.Lock()
        self.close = weakref.finalize(self, _close, self._plain, self._direct)
        try:
            for name, size in sizes.items():
                self._plain[name] = open_regular(self.path(name))
                self._check_size(name, size)
        except BaseException:
            self.close()
            raise

    def path(self, name: str) -> str:
        """Where a file is."""
        return os.path.join(self._folder, name)

    def _check_size(self, name: str, size: int) -> None:
        found = os.fstat(self._plain[name]).st_size
        if found != size:
            what = "truncated" if found < size else "too long"
            raise DataFormatError(
                f"{self.path(name)}: is {what}: {found} bytes, the manifest says {size}; {AGAIN}"
            )

    def read_all(self, sizes: Mapping[str, int], n_threads: int) -> dict[str, Array]:
        """Whole files in memory that cannot be written to."""
        found = {name: aligned(size)[:size] for name, size in sizes.items()}

        def read(part: tuple[str, int]) -> None:
            name, begin = part
            self._fill(name, found[name][begin : begin + _PART], begin)

        parts = [(name, begin) for name, size in sizes.items() for begin in range(0, size, _PART)]
        from concurrent.futures import ThreadPoolExecutor

        with ThreadPoolExecutor(n_threads) as pool:
            for _ in pool.map(read, parts):
                pass
        for array in found.values():
            array.flags.writeable = False
        return found

    def map_copy(self, name: str, n_bytes: int) -> Array:
        """A copy of a file that has no name, mapped: it is read when it is looked at."""
        if n_bytes == 0:
            return np.empty(0, np.uint8)
        folder = os.path.dirname(self._folder)
        is_writable = os.access(folder, os.W_OK | os.X_OK)
        with tempfile.TemporaryFile(dir=folder if is_writable else None) as file:
            for begin in range(0, n_bytes, _PART):
                file.write(self.read(name, begin, min(_PART, n_bytes - begin)).data)
            file.flush()
            return np.frombuffer(
                mmap.mmap(file.fileno(), n_bytes, access=mmap.ACCESS_READ), np.uint8
            )

    def read(self, name: str, begin: int, n_bytes: int, out: Array | None = None) -> Array:
        """Bytes of a file; where `out` is given (pages, at least `span` bytes), inside of it."""
        if n_bytes >= _WORTH_DIRECT or out is not None:
            memory = aligned(span(begin, n_bytes)) if out is None else out
            start = begin // PAGE * PAGE
            data = memory[begin - start :][:n_bytes]
            direct = n_bytes >= _WORTH_DIRECT and name not in self._no_direct
            if direct and self._read_direct(name, start, begin + n_bytes, memory):
                return data
        else:
            data = np.empty(n_bytes, np.uint8)
        return self._fill(name, data, begin)

    def _fill(self, name: str, data: Array, begin: int) -> Array:
        """All of `data`, read from a place of a file."""
        with naming(self.path(name)):
            n_read = _read_all(self._descriptor(name), data, begin, len(data))
        if n_read < len(data):
            raise self._shorter(name, len(data) - n_read)
        return data

    def _read_direct(self, name: str, start: int, end: int, memory: Array) -> bool:
        """Whether the bytes from start to end were read past the cache into memory."""
        try:
            descriptor = self._direct_descriptor(name)
            n_read = _read_all(descriptor, memory[: span(start, end - start)], start, end - start)
        except OSError as error:
            if error.errno not in _NO_DIRECT:
                raise
            self._no_direct.add(name)
            return False
        if n_read < end - start:
            raise self._shorter(name, end - start - n_read)
        return True

    def _descriptor(self, name: str) -> int:
        if not self.close.alive:
            raise ValueError(f"{self._folder}: the store was closed; open it again with Store")
        return self._plain[name]

    def _direct_descriptor(self, name: str) -> int:
        with self._lock:
            if name not in self._direct:
                # Through the descriptor: the same file, whatever its name means by now.
                source = f"/proc/self/fd/{self._descriptor(name)}"
                self._direct[name] = os.open(source, os.O_RDONLY | os.O_CLOEXEC | _DIRECT)
            return self._direct[name]

    def _shorter(self, name: str, n_missing: int) -> DataFormatError:
        return DataFormatError(
            f"{self.path(name)}: became shorter while it was open: {n_missing} bytes are missing; "
            f"{AGAIN}"
        )


def _read_all(descriptor: int, memory: Array, begin: int, least: int) -> int:
    """Bytes that were read: at least `least`, unless the file ends before."""
    done = 0
    while done < least:
        view = memory[done : done + _MOST].data
        n_read = os.preadv(descriptor, [view], begin + done)
        if n_read == 0:
            break
        done += n_read
    return done


def _close(*opened: dict[str, int]) -> None:
    for descriptors in opened:
        while descriptors:
            os.close(descriptors.popitem()[1])


# ---- the folder that a store is written into, beside its place, until it is whole ---------------

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
        with naming(path, over=True):
            self._scratch = Scratch(os.path.dirname(path), 0o777, token=token_of(path), busy=busy)
        self.partial = self._scratch.path

    def write(self, name: str, data: Array) -> None:
        """Append the bytes of an array to a file."""
        with naming(self.path, over=True, what="store", removed=REMOVED):
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

    def finish(self, content: bytes) -> None:
        """Force all to the disk, the manifest last, and give the folder its name."""
        with naming(self.path, over=True, what="store", removed=REMOVED):
            for descriptor in self._files.values():
                os.fsync(descriptor)
            self._close()
            with replacing(os.path.join(self.partial, MANIFEST)) as file:
                file.write(content)
        check_target(self.path, self.overwrite)  # somebody may have put something there meanwhile
        with naming(self.path, over=True):
            if os.path.isdir(self.path) and os.listdir(self.path):
                replace_folder(self.partial, self.path)
            else:
                os.rename(self.partial, self.path)  # an empty folder gives way
        sync_folder(os.path.dirname(self.path))
        self.remove()

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
    recover(target)
    if not os.path.lexists(target):
        check_place(target)
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
