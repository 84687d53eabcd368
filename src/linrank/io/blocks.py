"""Blocks of whole lines of text, from files, compressed or not, and from streams."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from linrank.errors import DataFormatError
from linrank.system.durable import naming


def standard_input() -> Any:
    """The bytes of standard input; OSError where the process was started without one."""
    if sys.stdin is None:
        raise OSError("standard input is closed; name a file in place of -")
    return sys.stdin.buffer


HEAD = 8  # bytes looked at to tell formats apart


class OneWay:
    """What Python and pyarrow ask of a stream beside ``read``, for one that cannot seek."""

    closed = False

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return False

    def writable(self) -> bool:
        return False

    def close(self) -> None:
        """Nothing is held: a stream that was handed over belongs to who opened it."""


class StandardOutput(OneWay):
    """Standard output for bytes: it stays open, and all bytes arrive, behind text written before.

    With PYTHONUNBUFFERED its binary stream is the bare descriptor, which may take a part only: of
    a pipe, 64 kB would arrive and the rest be lost without an error.
    """

    def __init__(self) -> None:
        if sys.stdout is None:
            raise OSError("standard output is closed")
        self._n_bytes = 0
        with naming("standard output"):
            sys.stdout.flush()
        self._raw = sys.stdout.buffer

    def write(self, data: Any) -> int:
        rest = memoryview(data).cast("B")
        size = len(rest)
        with naming("standard output"):
            while rest:
                rest = rest[self._raw.write(rest) or 0 :]
        self._n_bytes += size
        return size

    def tell(self) -> int:
        return self._n_bytes

    def flush(self) -> None:
        with naming("standard output"):
            self._raw.flush()

    def writable(self) -> bool:
        return True

    def readable(self) -> bool:
        return False


def name_of(stream: Any) -> str:
    """What a file object is called in messages; one opened by its number has no words for it."""
    name = getattr(stream, "name", None)
    return name if isinstance(name, str) else "<stream>"


class Replay(OneWay):
    """A stream whose first bytes were looked at; reading starts with them, and is counted.

    Parameters
    ----------
    raw : binary file object
        The stream.
    name : str
        What it is called in messages.
    whole_line : bool
        Whether a line end among the first bytes is enough: someone may wait for an answer to a line
        before writing the next.
    is_owned : bool
        Whether `close` closes the stream.

    Attributes
    ----------
    head : bytes
        The first eight bytes, fewer where the stream is shorter.
    n_read : int
        Bytes that were read so far.
    """

    def __init__(
        self, raw: Any, name: str, whole_line: bool = False, is_owned: bool = False
    ) -> None:
        self.raw, self.name, self.n_read, self.is_owned = raw, name, 0, is_owned
        self.head = b""
        more: Any = b"?"
        while more and len(self.head) < HEAD and not (whole_line and b"\n" in self.head):
            with naming(name):
                more = raw.read(HEAD - len(self.head)) or b""
            if not isinstance(more, bytes):
                raise TypeError(
                    f"the file object must give bytes, got {type(more).__name__}; "
                    "open it in binary mode, 'rb'"
                )
            self.head += more
        self._ahead = self.head

    def read(self, size: int = -1) -> bytes:
        """The next bytes, at most ``size``; all of them where it is negative."""
        end = len(self._ahead) if size < 0 else size
        data, self._ahead = self._ahead[:end], self._ahead[end:]
        if not data or size < 0:
            with naming(self.name):
                data += self.raw.read(size)
        self.n_read += len(data)
        return data

    def close(self) -> None:
        """Close the stream if it is owned."""
        if self.is_owned:
            self.raw.close()


def open_stream(source: Any, whole_line: bool = False) -> Replay:
    """A path, ``"-"`` (standard input) or a binary file object as a stream."""
    if hasattr(source, "read"):
        return Replay(source, name_of(source), whole_line)
    if (path := os.fspath(source)) == "-":
        return Replay(standard_input(), "<stdin>", whole_line)
    file = open(path, "rb", buffering=0)  # noqa: SIM115  (for who reads the stream)
    return Replay(file, os.fsdecode(path), whole_line, is_owned=True)


Progress = Callable[[int, "int | None"], object]
BLOCK_SIZE = 4 << 20
LONGEST_LINE = 256 << 20  # bytes: ten million features
_WINDOW = 4096  # bytes in which a line end is looked for
_UTF8_MARK = b"\xef\xbb\xbf"


class LongLineError(DataFormatError):
    """A line is longer than the most that is read: it may be no text at all, or have no end."""

    def __init__(self, name: str, longest: int) -> None:
        self.what = f"a line has more than {longest:,} bytes"
        super().__init__(f"{name}: {self.what}; check that it is text with line ends")


class Stretch:
    """Whole lines of a file, read on demand, by any thread.

    Read and not mapped: a file that becomes shorter while it is mapped ends the process.
    """

    def __init__(self, file: _File, begin: int, end: int) -> None:
        self._file, self._begin, self._end = file, begin, end

    def __len__(self) -> int:
        return self._end - self._begin

    def read(self) -> memoryview:
        """The bytes; DataFormatError if they are no longer there."""
        data = self._file.read(self._begin, len(self))
        if len(data) < len(self):
            raise self._file.shorter(self._begin + len(data))
        return memoryview(data)


Part = memoryview | DataFormatError | Stretch


def read_part(part: Part) -> memoryview:
    """The bytes of a block; an error that stands in its place is raised."""
    if isinstance(part, DataFormatError):
        raise part
    return part.read() if isinstance(part, Stretch) else part


@dataclass(frozen=True)
class TextBlocks:
    """The text of one input, cut behind line ends.

    Attributes
    ----------
    name : str
        The input in messages.
    size : int or None
        Bytes of the input as stored (compressed, if it is); None when unknown.
    parts : iterator of (memoryview, Stretch or DataFormatError, int)
        Each block and the bytes of the input gone through with it. An error in the compressed data
        comes last, in place of a block, so that faults in the text before it are found first.
    """

    name: str
    size: int | None
    parts: Iterator[tuple[Part, int]]

    @property
    def blocks(self) -> Iterator[tuple[memoryview, int]]:
        """The parts, all of them read; an error is raised in its turn."""
        return ((read_part(part), n) for part, n in self.parts)


def open_blocks(
    source: Any, block_size: int = BLOCK_SIZE, *, longest_line: int | None = None
) -> TextBlocks:
    """Open a path, ``"-"`` (standard input) or a binary file object.

    Compression (gzip, bzip2, xz, Zstandard) is recognized by the first bytes, not by the name. A
    plain file is taken to end where it ended when it was opened.

    A line of more than ``longest_line`` bytes, by default `LONGEST_LINE`, ends the blocks with a
    `LongLineError`, so that the memory is bounded.
    """
    longest, stream = longest_line or LONGEST_LINE, open_stream(source, whole_line=True)
    try:
        stored_as = _compression(stream.head, stream.name)
        # None of what is no file, and of a pipe.
        size = os.fstat(stream.raw.fileno()).st_size or None if stream.is_owned else None
        if size is None or stored_as is not None:
            parts = _cut_lines(_reader_of(stored_as, stream), stream, block_size, longest)
        else:
            begin = len(_UTF8_MARK) if stream.head.startswith(_UTF8_MARK) else 0
            file = _File(stream.raw, stream.name, size)
            parts = _stretches(file, begin, block_size, longest)
        return TextBlocks(stream.name, size, parts)
    except BaseException:
        stream.close()
        raise


class _File:
    """A file of a known size, read from anywhere; closed when it is no longer referenced."""

    def __init__(self, file: Any, name: str, size: int) -> None:
        self._file, self.name, self.size = file, name, size

    def read(self, begin: int, n_bytes: int) -> bytes:
        """As many bytes as there are; one call of the system may return fewer, at most 2 GiB."""
        found: list[bytes] = []
        with naming(self.name):
            while n_bytes > 0 and (data := os.pread(self._file.fileno(), n_bytes, begin)):
                found.append(data)
                begin, n_bytes = begin + len(data), n_bytes - len(data)
        return found[0] if len(found) == 1 else b"".join(found)

    def line_end(self, place: int, longest_line: int) -> int:
        """Where the line at a place ends; DataFormatError if it is too long, or cut off."""
        begin = place
        while place < self.size:
            if place - begin > longest_line:
                raise LongLineError(self.name, longest_line)
            if not (window := self.read(place, min(_WINDOW, self.size - place))):
                raise self.shorter(place)
            if (n_bytes := window.find(b"\n") + 1) > 0:
                return place + n_bytes
            place += len(window)
        return self.size

    def shorter(self, end: int) -> DataFormatError:
        return DataFormatError(
            f"{self.name}: became shorter while it was read: it had {self.size:,} bytes, and ends "
            f"after {end:,} now; read it again when nobody writes to it"
        )

    def __del__(self) -> None:
        self._file.close()


def _stretches(
    file: _File, begin: int, block_size: int, longest_line: int
) -> Iterator[tuple[Part, int]]:
    """Ranges that end behind the first line end at or after their nominal size."""
    while begin < file.size:
        try:
            end = file.line_end(begin + block_size - 1, longest_line)
        except DataFormatError as error:
            # The lines before come first: they may have faults of their own.
            if n_before := file.read(begin, block_size).rfind(b"\n") + 1:
                yield Stretch(file, begin, begin + n_before), begin + n_before
            yield error, begin + n_before
            return
        yield Stretch(file, begin, end), end
        begin = end


def _cut_lines(
    read: Callable[..., bytes], stream: Replay, block_size: int, longest_line: int
) -> Iterator[tuple[Part, int]]:
    """Cut what ``read`` returns behind the last line end of each chunk."""
    kept: list[bytes] = []
    n_kept, first = 0, True
    while True:
        try:
            chunk = read(block_size)
        except DataFormatError as error:
            yield error, stream.n_read
            break
        end = chunk.rfind(b"\n") + 1
        if end > 0 or not chunk:
            block = b"".join([*kept, chunk[:end]])
            kept, n_kept = [], 0
            marked = first and block.startswith(_UTF8_MARK)
            first = False
            if block:
                yield memoryview(block)[len(_UTF8_MARK) if marked else 0 :], stream.n_read
        if not chunk:
            break
        kept.append(chunk[end:])
        n_kept += len(kept[-1])
        if n_kept > longest_line:
            yield LongLineError(stream.name, longest_line), stream.n_read
            break
    stream.close()


# ---- compressed formats -------------------------------------------------------------------------

_MAGIC = {
    b"\x1f\x8b": "gzip",
    b"BZh": "bzip2",
    b"\xfd7zXZ\x00": "xz",
    b"\x28\xb5\x2f\xfd": "Zstandard",
}
_MODULES = {"gzip": "gzip", "bzip2": "bz2", "xz": "lzma"}
_FOREIGN = {
    b"PK\x03\x04": "a zip archive; unpack it first",
    b"PAR1": "a Parquet file; read it with linrank.load, or format='parquet'",
    b"\xff\xfe": "UTF-16 text; convert it to UTF-8",
    b"\xfe\xff": "UTF-16 text; convert it to UTF-8",
}


def _compression(head: bytes, name: str) -> str | None:
    """The compression that ``head`` is the start of, None for plain text."""
    for magic, what in _FOREIGN.items():
        if head.startswith(magic):
            raise DataFormatError(f"{name}: expected UTF-8 text, got {what}")
    return next((kind for magic, kind in _MAGIC.items() if head.startswith(magic)), None)


def import_zstd(verb: str) -> Any:
    """The module of Zstandard; ``verb`` says what needs it where there is none."""
    for name in ("compression.zstd", "zstandard"):  # Python 3.14 and later have the first
        with suppress(ImportError):
            return import_module(name)
    raise ImportError(f"{verb} .zst needs the zstandard package: pip install zstandard")


class _ZstdFile:
    """Zstandard by decompressor objects: a stream reader of the library hides a missing end."""

    def __init__(self, stream: Replay) -> None:
        zstd = import_zstd("reading")
        self._new: Callable[[], Any] = zstd.ZstdDecompressor
        if not hasattr(zstd, "ZstdFile"):  # the package
            self._new = lambda: zstd.ZstdDecompressor().decompressobj()
        self._stream, self._decompressor = stream, self._new()
        self._ready: list[bytes] = []
        self._rest = b""

    def read(self, size: int) -> bytes:
        n_ready = sum(map(len, self._ready))
        # Little compressed data at a time: it may grow several thousand times.
        while n_ready < size and (data := self._rest or self._stream.read(1 << 13)):
            if self._decompressor.eof:
                self._decompressor = self._new()
            self._ready.append(self._decompressor.decompress(data))
            self._rest = self._decompressor.unused_data if self._decompressor.eof else b""
            n_ready += len(self._ready[-1])
        if n_ready == 0 and not self._decompressor.eof:
            raise EOFError
        text = b"".join(self._ready)
        self._ready = [text[size:]] if len(text) > size else []
        return text[:size]


def _reader_of(kind: str | None, stream: Replay) -> Callable[[int], bytes]:
    """What reads the text of a stream that is compressed so, or not at all.

    Errors of the compression libraries get one form.
    """
    if kind is None:
        return stream.read
    name, module = stream.name, _MODULES.get(kind)
    file: Any = _ZstdFile(stream) if module is None else import_module(module).open(stream)

    def read_guarded(size: int) -> bytes:
        try:
            return file.read(size)
        except EOFError:
            raise DataFormatError(
                f"{name}: the {kind} data end too early; the file is truncated"
            ) from None
        except Exception as error:
            # zlib.error, LZMAError, ZstdError and OSErrors without a number: bad data. An OSError
            # with a number is the system's.
            if isinstance(error, (MemoryError, ImportError)) or getattr(error, "errno", None):
                raise
            raise DataFormatError(f"{name}: damaged {kind} data: {error}") from error

    return read_guarded
