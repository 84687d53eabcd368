"""Files that are whole or not there, and survive a loss of power.

Every file that linrank leaves is written here: under a random name beside its place, which nobody
else can have made and no link leads away from, forced to the disk, then renamed. A reader sees the
old file or the new one, never a part, however many write at once; the last to end wins. What a
killed process leaves is removed by the next one that writes into the folder (`scratch`).
"""

from __future__ import annotations

import errno
import io
import math
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import IO, Any

from linrank.system.scratch import lock_of, new_file, sweep

REMOVED = "; what was written is removed"
FULL_DISK = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_IN_THE_WAY = (errno.ENOTEMPTY, errno.EEXIST)


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """A new file that takes the place of `path` when the block ends well, and vanishes otherwise.

    Links are followed. Pipes and devices such as /dev/stdout cannot be renamed onto: the file is
    then the thing itself.
    """
    name = os.fspath(path)
    check_place(name)
    if os.path.exists(name) and not os.path.isfile(name):
        # Not its real path: that of a pipe behind /dev/stdout is no name of a file.
        with _closing(os.open(name, os.O_WRONLY | getattr(os, "O_CLOEXEC", 0)), name, "") as stream:
            yield stream
        return
    target = os.path.realpath(name)
    folder = os.path.dirname(target)
    sweep(folder)
    made: list[str] = []
    descriptor = -1
    try:  # before there is a file: a signal may come when it was just made
        with naming(name, over=True):
            descriptor = new_file(folder, made)
        # A descriptor of its own: whoever closes the file does not give up the lock.
        with _closing(os.dup(descriptor), name, REMOVED) as file:
            yield file
        with naming(name, over=True, removed=REMOVED):
            os.fsync(descriptor)
            os.replace(made[-1], target)
            sync_folder(folder)
    except BaseException:  # KeyboardInterrupt too
        for temporary in made:
            with suppress(OSError):
                os.unlink(temporary)
        raise
    finally:
        if descriptor >= 0:
            os.close(descriptor)


class _Output(io.FileIO):
    """Says which file it is when it cannot be written."""

    path: str
    removed: str

    def write(self, data: Any, /) -> int:
        with naming(self.path, removed=self.removed):
            return super().write(data)


@contextmanager
def _closing(descriptor: int, path: str, removed: str) -> Iterator[IO[bytes]]:
    """A file that is complete when it is closed; after a fault it is let go, whatever that says."""
    raw = _Output(descriptor, "wb")
    raw.path, raw.removed = path, removed
    file = io.BufferedWriter(raw, 1 << 16)
    try:
        yield file
    except BaseException:
        with suppress(OSError):  # the fault that is under way says more
            file.close()
        raise
    file.close()


def settle(*files: IO[bytes]) -> None:
    """Have all that was written into files of `replacing` on the disk, before one is renamed."""
    for file in files:
        file.flush()
        raw: Any = getattr(file, "raw", None)
        if isinstance(raw, _Output) and stat.S_ISREG(os.fstat(raw.fileno()).st_mode):
            with naming(raw.path, removed=raw.removed):
                os.fsync(raw.fileno())


@contextmanager
def one_at_a_time(path: str | os.PathLike[str]) -> Iterator[None]:
    """Wait until no other process of this machine is in such a block for the same path.

    For files that belong together: each is replaced whole, but not all of them at once.
    """
    target = os.path.realpath(path)
    with naming(os.fspath(path), over=True):
        found = lock_of(os.path.dirname(target), token_of(target), math.inf)
    assert found is not None  # it was waited for
    lock, descriptor = found
    try:
        yield
    finally:
        with suppress(OSError):
            os.unlink(lock)
        os.close(descriptor)


def check_place(path: str | os.PathLike[str]) -> None:
    """Raise an OSError that names `path` now if no file can be written there later."""
    name = os.fspath(path)
    try:
        mode = os.stat(name).st_mode
    except (FileNotFoundError, NotADirectoryError):
        mode = stat.S_IFREG
    except OSError as error:
        if error.errno == errno.ENAMETOOLONG:
            told = f"cannot be written: {os.strerror(error.errno)}; choose a shorter one"
            raise OSError(error.errno, told, name) from None
        raise
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, "is a folder; name a file in it", name)
    folder = os.path.dirname(os.path.realpath(name))
    if stat.S_ISREG(mode) and not os.path.isdir(folder):
        told = f"cannot be written: there is no folder {folder}; create it"
        raise FileNotFoundError(errno.ENOENT, told, name)
    is_allowed = (
        os.access(folder, os.W_OK | os.X_OK) if stat.S_ISREG(mode) else os.access(name, os.W_OK)
    )
    if not is_allowed:
        raise PermissionError(errno.EACCES, "cannot be written: permission denied", name)


def name_beside(path: str, suffix: str) -> str:
    """`path` with another extension, cut to what the name of a file may have: 255 bytes."""
    folder, name = os.path.split(path)
    stem = os.path.splitext(name)[0]
    if len(os.fsencode(stem + suffix)) > 255:
        suffix = f"-{token_of(path)}{suffix}"  # names that begin alike stay different
        while len(os.fsencode(stem + suffix)) > 255:
            stem = stem[:-1]
    return os.path.join(folder, stem + suffix)


@contextmanager
def naming(
    name: str, *, over: bool = False, what: str = "file", removed: str = ""
) -> Iterator[None]:
    """Let errors of the system say which file they are about, and what to do if a disk is full.

    Those that name a file keep it, unless ``over``: it may be a temporary one. ``what`` is written,
    ``removed`` tells what became of it.
    """
    try:
        yield
    except OSError as error:
        is_named = error.filename == name or (error.filename is not None and not over)
        if error.errno is None or is_named:
            raise
        told = error.strerror or os.strerror(error.errno)
        if error.errno in FULL_DISK and " was written" not in told:
            told += f" while the {what} was written{removed}: free some room, or choose a place "
            told += "elsewhere"
        raise OSError(error.errno, told, name) from error


def sync_folder(folder: str) -> None:
    """Make new names in a folder survive a loss of power, where the system can."""
    try:
        descriptor = os.open(folder, os.O_RDONLY)
    except OSError:  # no folder can be opened on some systems
        return
    try:
        os.fsync(descriptor)
    except OSError:
        pass
    finally:
        os.close(descriptor)


# ---- folders -------------------------------------------------------------------------------------


def replace_folder(new: str, path: str) -> None:
    """Put a folder in place of another one, and the other in its place, or nothing.

    In one step, so that there is no moment without a folder at `path`, where the system can.
    """
    if _swap(new, path):
        return
    old = _aside(path)
    _remove(old)  # of a process that was killed when the new one was in place
    while True:
        os.rename(path, old)
        try:
            os.rename(new, path)
            break
        except BaseException as error:
            recover(path)
            # Who looked for it in between has put the old one back: once more.
            if not isinstance(error, OSError) or error.errno not in _IN_THE_WAY:
                raise
    _remove(old)


def recover(path: str | os.PathLike[str]) -> None:
    """Put back a folder that a process was about to replace when it was killed, if one was."""
    path = os.path.abspath(os.fsdecode(path))
    if os.path.lexists(path) or not os.path.isdir(old := _aside(path)):
        return
    try:
        os.rename(old, path)
    except OSError as error:  # someone else has, or the new one is in place
        if error.errno not in (errno.ENOENT, *_IN_THE_WAY):
            raise


def token_of(path: str) -> str:
    """Sixteen hexadecimal digits for the name that a path ends in."""
    import hashlib

    return hashlib.sha256(os.fsencode(os.path.basename(path))).hexdigest()[:16]


def _aside(path: str) -> str:
    """Where a folder is while another takes its place by two renames."""
    return os.path.join(os.path.dirname(path), f".linrank-{token_of(path)}.old")


def _remove(folder: str) -> None:
    import shutil

    shutil.rmtree(folder, ignore_errors=True)


def _swap(first: str, second: str) -> bool:
    """Swap what two names stand for, in one step; False where the system cannot."""
    import ctypes

    swap = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if swap is None:
        return False
    here, exchanging = -100, ctypes.c_uint(2)  # AT_FDCWD, RENAME_EXCHANGE
    if swap(here, os.fsencode(first), here, os.fsencode(second), exchanging) == 0:
        return True
    number = ctypes.get_errno()
    if number in (errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP):
        return False
    raise OSError(number, os.strerror(number), first, None, second)
