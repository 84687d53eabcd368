"""The file that rows are written into: compressed by its name, whole or not there."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from typing import IO, Any

from linrank.data.byte_streams import StandardOutput
from linrank.durable import check_place as check_file
from linrank.durable import one_at_a_time, replacing, settle
from linrank.writing.formats import TEXTS
from linrank.writing.outline import Outline

__all__ = ["check_place", "has_positions_beside", "opened"]

_SIDECARS = (".query", ".group", ".weight", ".position")


def check_place(name: str, format: str, outline: Outline, overwrite: bool) -> None:
    """Raise an OSError before anything is written, rather than after an hour."""
    if name == "-":
        return
    check_file(name)
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
            stack.enter_context(one_at_a_time(name))
            beside = stack.enter_context(replacing(f"{name}.position"))
        whole = stack.enter_context(replacing(name))
        with _compressed(whole, name, format) as file:
            yield file, beside
        if beside is not None:
            # Both are on the disk before one gets its name, and between the two there are no
            # positions rather than those of other rows.
            settle(whole, beside)
            with suppress(FileNotFoundError):
                os.unlink(os.path.realpath(f"{name}.position"))


def _compressed(file: IO[bytes], name: str, format: str) -> Any:
    """A stream into a file, compressed as the last extension of its name says where it is text."""
    extension = os.path.splitext(name.lower())[1] if format in TEXTS else ""
    if extension == ".gz":
        import gzip

        return gzip.GzipFile("", "wb", 6, file, mtime=0)  # the same data give the same bytes
    if extension == ".bz2":
        import bz2

        return bz2.BZ2File(file, "wb")
    if extension == ".xz":
        import lzma

        return lzma.LZMAFile(file, "wb", preset=1)
    if extension == ".zst":
        return _zstd_writer(file)
    return nullcontext(file)


def _zstd_writer(file: IO[bytes]) -> Any:
    try:
        from compression.zstd import ZstdFile  # Python 3.14 and later
    except ImportError:
        try:
            import zstandard
        except ImportError:
            raise ImportError(
                "writing .zst needs the zstandard package: pip install linrank[zstd]"
            ) from None
        return zstandard.ZstdCompressor().stream_writer(file, closefd=False)
    return ZstdFile(file, "w")
