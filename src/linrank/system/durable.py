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
import re
import stat
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from typing import IO, Any

_PREFIX = ".linrank-"
_NAME = re.compile(r"\.linrank-([0-9a-f]{8})-[0-9a-f]{16}\.(tmp|lock|dir)")
_PATIENCE = 24 * 3600.0  # seconds that a file of another machine must have been left alone
_A_MOMENT = 0.5  # seconds; more than a sweep holds a lock
_OPEN = os.O_RDWR | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NOFOLLOW", 0)


def _machine() -> str:
    """Eight digits for the kernel that runs here, since it was started."""
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            return file.read(8)
    except OSError:
        from zlib import crc32

        return f"{crc32(os.uname().nodename.encode()):08x}"


def _name(folder: str, token: str, suffix: str) -> str:
    return os.path.join(folder, f"{_PREFIX}{_machine()}-{token}{suffix}")


def new_file(folder: str, made: list[str], suffix: str = ".tmp", mode: int = 0o666) -> int:
    """A new file in a folder: a descriptor that holds its lock until it is closed.

    Its name is random, so nobody can have put a link there, and no other process has the same. It
    is the last of ``made``, where it is before there is a file: a signal may come at any moment,
    and the cleanup must know it.
    """
    while True:
        made.append(_name(folder, os.urandom(8).hex(), suffix))
        descriptor = os.open(made[-1], _OPEN | os.O_CREAT | os.O_EXCL, mode)
        try:
            # A sweep may have found it before it was locked, and taken it for left behind.
            if _lock(descriptor) is not False and os.path.lexists(made[-1]):
                return descriptor
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)


def nameless_file(folder: str) -> IO[bytes]:
    """A new file that ends with the process; a sweep knows the name that it has for a moment."""
    made: list[str] = []
    try:
        return open(new_file(folder, made, mode=0o600), "w+b")
    finally:
        for name in made:
            with suppress(OSError):
                os.unlink(name)


def lock_of(folder: str, token: str, patience: float) -> tuple[str, int] | None:
    """The lock of a token: its path, and a descriptor that holds it until it is closed.

    None if others hold it for so many seconds.
    """
    path, end, n_lost = _name(folder, token, ".lock"), time.monotonic() + patience, 0
    while True:
        descriptor = os.open(path, _OPEN | os.O_CREAT, 0o600)
        try:
            if _lock(descriptor) is not False:
                # Who held it may have removed it meanwhile. Not time and again: there are file
                # systems on which a file does not keep its number.
                if _is_at(descriptor, path) or n_lost == 20:
                    return path, descriptor
                n_lost += 1
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)
        if time.monotonic() > end:
            return None
        time.sleep(0.01)


def _lock(descriptor: int) -> bool | None:
    """Whether the lock was got; None where there are no locks."""
    try:
        import fcntl
    except ImportError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return None
    return True


def _is_at(descriptor: int, path: str) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), os.lstat(path))
    except FileNotFoundError:
        return False


def sweep(folder: str) -> None:
    """Remove what processes that are gone have left in a folder."""
    try:
        with os.scandir(folder or os.curdir) as entries:
            names = [entry.name for entry in entries if entry.name.startswith(_PREFIX)]
    except OSError:  # a later write will report it
        return
    for name in sorted(names):
        if found := _NAME.fullmatch(name):
            # Who removes a folder must have its lock, even if that has to be made first.
            is_folder = found[2] == "dir"
            path = os.path.join(folder, f"{name[:-4]}.lock" if is_folder else name)
            _remove_if_left(path, found[1] == _machine(), os.O_CREAT if is_folder else 0)


def _remove_if_left(path: str, is_ours: bool, flags: int) -> None:
    """Remove a file, and the folder that it is the lock of, if nobody holds its lock."""
    try:
        # O_NONBLOCK: a pipe of that name must not be waited for.
        descriptor = os.open(path, _OPEN | getattr(os, "O_NONBLOCK", 0) | flags, 0o600)
    except OSError:  # gone, a link, or another user's
        return
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode) or _lock(descriptor) is not True:
            return
        if not _is_at(descriptor, path):  # the name is of a newer file
            return
        if not is_ours and time.time() - _last_use(path) < _PATIENCE:
            return
        _remove_folder(_folder_of(path))
        os.unlink(path)
    except OSError:  # not allowed to; the next to come may be
        pass
    finally:
        os.close(descriptor)


def _folder_of(lock: str) -> str:
    return f"{os.path.splitext(lock)[0]}.dir"


def _last_use(path: str) -> float:
    """When a file, or one in the folder that it is the lock of, was last written."""
    times, folder = [os.lstat(path).st_mtime], _folder_of(path)
    if os.path.isdir(folder):
        with os.scandir(folder) as entries:
            times += [entry.stat(follow_symlinks=False).st_mtime for entry in entries]
    return max(times)


def _remove_folder(path: str) -> None:
    """Remove a folder and all in it, if it is there; a link of that name stays."""
    if os.path.isdir(path):
        from shutil import rmtree

        rmtree(path, ignore_errors=True)


class Scratch(AbstractContextManager["Scratch"]):
    """A folder of one's own inside another, removed at the end; a context manager.

    Parameters
    ----------
    folder : str, optional
        Where to make it; by default where the system wants temporary files.
    mode : int
        Permissions, less those that the umask takes.
    token : str, optional
        Sixteen hexadecimal digits: one at a time can have the folder of a token on a machine.
    busy : str, optional
        What the FileExistsError says to others.

    Attributes
    ----------
    path : str
        The folder.
    """

    def __init__(
        self,
        folder: str | None = None,
        mode: int = 0o700,
        *,
        token: str | None = None,
        busy: str = "",
    ) -> None:
        self._made: list[str] = []
        self._descriptor = -1
        if folder is None:
            from tempfile import gettempdir

            folder = gettempdir()
        sweep(folder)
        try:
            self._take(folder, token, busy)
            os.mkdir(self.path, mode)
        except BaseException:
            self.remove()
            raise

    def _take(self, folder: str, token: str | None, busy: str) -> None:
        if token is None:
            self._descriptor = new_file(folder, self._made, ".lock", 0o600)
        else:
            found = lock_of(folder, token, _A_MOMENT)
            if found is None:
                raise FileExistsError(busy)
            self._made, self._descriptor = [found[0]], found[1]
            if _lock(self._descriptor) is None:  # no locks here: nobody else may share the folder
                self.remove()
                self._take(folder, None, busy)
            _remove_folder(_folder_of(self._made[-1]))  # of one who was killed since the sweep
        self.path = _folder_of(self._made[-1])

    def remove(self) -> None:
        """Remove the folder, if it still has its name."""
        while self._made:
            lock = self._made.pop()
            _remove_folder(_folder_of(lock))
            if self._descriptor < 0 or _is_at(self._descriptor, lock):
                with suppress(OSError):
                    os.unlink(lock)
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def __exit__(self, *_: object) -> None:
        self.remove()


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
        with _stream(os.open(name, os.O_WRONLY | getattr(os, "O_CLOEXEC", 0)), name, "") as stream:
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
        with _stream(os.dup(descriptor), name, REMOVED) as file:
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
def _stream(descriptor: int, path: str, removed: str) -> Iterator[IO[bytes]]:
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
    _remove_folder(old)  # of a process that was killed when the new one was in place
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
    _remove_folder(old)


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
