"""The file that rows are written into: compressed by its name, whole or not there."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import IO, Any

from linrank.data.byte_streams import StandardOutput
from linrank.durable import replacing
from linrank.writing.formats import TEXTS
from linrank.writing.outline import Outline

__all__ = ["check_place", "has_positions_beside", "opened"]

_SIDECARS = (".query", ".group", ".weight", ".position")


def check_place(name: str, format: str, outline: Outline, overwrite: bool) -> None:
    """Raise an OSError before anything is written, rather than after an hour."""
    if name == "-":
        return
    if os.path.isdir(name):
        raise IsADirectoryError(errno.EISDIR, "is a folder; name a file in it", name)
    folder = os.path.dirname(os.path.realpath(name))
    if not os.path.isdir(folder):
        raise FileNotFoundError(
            errno.ENOENT, f"cannot be written: there is no folder {folder}", name
        )
    if os.path.isfile(name) and not overwrite:
        raise FileExistsError(
            f"{name} is there already; name another, or overwrite it (overwrite=True)"
        )
    if format not in TEXTS or format == "qrels":
        return
    own = (".position",) if has_positions_beside(format, outline) and overwrite else ()
    for suffix in _SIDECARS:
        if os.path.exists(name + suffix) and suffix not in own:
            raise FileExistsError(
                f"{name}{suffix} is there and would be read along with the new {name}; remove it, "
                "or name another file"
            )


def has_positions_beside(format: str, outline: Outline) -> bool:
    """Whether positions go into a file of their own: lines of SVMlight text have no place."""
    return format == "svmlight" and outline.position_type is not None


@contextmanager
def opened(
    name: str, format: str, outline: Outline
) -> Iterator[tuple[IO[bytes], IO[bytes] | None]]:
    """The file, and that of positions beside it where there is one."""
    if name == "-":
        standard: Any = StandardOutput()
        yield standard, None
        standard.flush()
        return
    with ExitStack() as stack:
        beside: Any = None
        if has_positions_beside(format, outline):
            second = stack.enter_context(replacing(f"{name}.position"))
        place = stack.enter_context(replacing(name))
        # Both are closed, and so on the disk, before one of them gets its name.
        if has_positions_beside(format, outline):
            beside = stack.enter_context(open(second, "wb"))
        yield stack.enter_context(_new_file(place, name, format)), beside


def _new_file(place: str, name: str, format: str) -> Any:
    """A new file, compressed as the last extension of its name says where it is text."""
    extension = os.path.splitext(name.lower())[1] if format in TEXTS else ""
    if extension == ".gz":
        import gzip

        return gzip.GzipFile(place, "wb", 6, mtime=0)  # the same data give the same bytes
    if extension == ".bz2":
        import bz2

        return bz2.BZ2File(place, "wb")
    if extension == ".xz":
        import lzma

        return lzma.LZMAFile(place, "wb", preset=1)
    return open(place, "wb")
