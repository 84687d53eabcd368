"""Temporary files and folders that vanish with their owner, or soon after it.

Each has a random name in the folder that it is for, and its owner holds a lock (``flock``) on it as
long as it lives: the system takes the lock away however the process ends. Whoever writes into a
folder first removes what has no owner any more, and never what has one:

==================================  ===============================================================
``.linrank-MACHINE-TOKEN.tmp``      a file on its way to its name; locked itself
``.linrank-MACHINE-TOKEN.lock``     says that the folder beside it is in use; there before it is
                                    made, and until it is gone
``.linrank-MACHINE-TOKEN.dir``      that folder
==================================  ===============================================================

A file is locked after it was made, so its writer looks whether it is still there when it has the
lock. Numbers of processes say nothing: two containers have the same. MACHINE names the running
kernel, which keeps the locks of all its containers. Where another one made the file, the lock may
be known to that machine alone (some network file systems); such files must also have been left
alone for a day. Nothing is ever removed where the file system has no locks.
"""

from __future__ import annotations

import os
import re
import stat
import time
from contextlib import suppress
from types import TracebackType

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
    and whoever cleans up must know it.
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
    except OSError:  # whoever writes here will say why it cannot be done
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


class Scratch:
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

    def __enter__(self) -> Scratch:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.remove()
