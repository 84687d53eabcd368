"""Files that are whole or not there, and survive a loss of power."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["full_disk", "replacing", "sync_folder"]


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


def full_disk(error: OSError, path: str, what: str) -> OSError:
    """A full disk by the name that the user gave: the file that could not grow is gone.

    Any other error comes back as it is. ``what`` was being written, as in "store".
    """
    if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        return error
    told = f"{os.strerror(error.errno)} while the {what} was written; what was written is removed"
    return OSError(error.errno, f"{told}: free some room, or choose a place elsewhere", path)


@contextmanager
def replacing(path: str) -> Iterator[str]:
    """A temporary name beside `path`; renamed to it on success, removed on any failure.

    A reader of `path` sees the old file or the new one, never a part. Pipes and devices such as
    /dev/stdout cannot be renamed onto and are written directly; links are followed.
    """
    if os.path.exists(path) and not os.path.isfile(path):
        yield path  # not its real path: that of a pipe behind /dev/stdout is no name of a file
        return
    target = os.path.realpath(path)
    folder, name = os.path.split(target)
    # The extension stays last: writers may choose their format by it.
    temporary = os.path.join(folder, f".{os.getpid()}.{name}")
    try:
        yield temporary
        os.replace(temporary, target)
    except BaseException:  # KeyboardInterrupt too
        if os.path.exists(temporary):
            os.unlink(temporary)
        raise
