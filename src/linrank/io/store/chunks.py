"""Reading the files of a store: range by range, and chunk by chunk, each checked before anything
uses it as numbers or places.

Files are opened once, without following links. Large ranges are read past the page cache
(``O_DIRECT``) where the file system allows it: a store is larger than the memory that the cache may
have, and the disk is then read at its own rate instead of that of the cache, without a copy. Such
reads begin and end at whole pages, so the range lies inside the memory that is read into.
"""

from __future__ import annotations

import errno
import mmap
import os
import stat
import tempfile
import threading
import weakref
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from linrank import _core
from linrank.data.dataset import Dataset
from linrank.data.missing import keep_queries
from linrank.data.queries import Queries
from linrank.data.rows import Array, ColumnStatistics, CsrRows, DenseRows, Rows
from linrank.data.words import Comments, Words
from linrank.errors import DataFormatError
from linrank.io.store.manifest import MAX_BYTES, STATISTICS, Manifest, Unit, decode
from linrank.system import Invalid, describe_bytes, map_threads, naming
from linrank.system.durable import nameless_file

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


def aligned_memory(n_bytes: int) -> NDArray[np.uint8]:
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
        self._parts = {name: aligned_memory(size) for name, size in sizes.items()}

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
                found = os.fstat(self._plain[name]).st_size
                if found != size:
                    what = "truncated" if found < size else "too long"
                    raise DataFormatError(
                        f"{self.path(name)}: is {what}: {found} bytes, the manifest says {size}; "
                        f"{AGAIN}"
                    )
        except BaseException:
            self.close()
            raise

    def path(self, name: str) -> str:
        """Where a file is."""
        return os.path.join(self._folder, name)

    def read_all(self, sizes: Mapping[str, int], n_threads: int) -> dict[str, Array]:
        """Whole files in memory that cannot be written to."""
        found = {name: aligned_memory(size)[:size] for name, size in sizes.items()}

        def read(k: int) -> None:
            name, begin = parts[k]
            self._fill(name, found[name][begin : begin + _PART], begin)

        parts = [(name, begin) for name, size in sizes.items() for begin in range(0, size, _PART)]
        map_threads(len(parts), read, n_threads)
        for array in found.values():
            array.flags.writeable = False
        return found

    def map_copy(self, name: str, n_bytes: int) -> Array:
        """A copy of a file that has no name, mapped: it is read when it is looked at."""
        if n_bytes == 0:
            return np.empty(0, np.uint8)
        folder = os.path.dirname(self._folder)
        is_writable = os.access(folder, os.W_OK | os.X_OK)
        with nameless_file(folder if is_writable else tempfile.gettempdir()) as file:
            for begin in range(0, n_bytes, _PART):
                file.write(self.read(name, begin, min(_PART, n_bytes - begin)).data)
            file.flush()
            return np.frombuffer(
                mmap.mmap(file.fileno(), n_bytes, access=mmap.ACCESS_READ), np.uint8
            )

    def read(self, name: str, begin: int, n_bytes: int, out: Array | None = None) -> Array:
        """Bytes of a file; where `out` is given (pages, at least `span` bytes), inside of it."""
        if n_bytes >= _WORTH_DIRECT or out is not None:
            memory = aligned_memory(span(begin, n_bytes)) if out is None else out
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


# ---- chunks -------------------------------------------------------------------------------------


def checksum(data: NDArray[Any], before: int = 0) -> int:
    """CRC-32C of the bytes of a C-ordered array, which continues that of what came before.

    Examples
    --------
    >>> f"{checksum(np.frombuffer(b'123456789', np.uint8)):08x}"
    'e3069283'
    """
    return _core.crc32c(data.reshape(-1).view(np.uint8), before)


T = TypeVar("T")
Arrays = Callable[[str], Array]
_FEATURES = ("values", "columns", "row_ends")
# Arrays that say where something ends, and in which units.
_ENDS: dict[str, Unit] = {
    "row_ends": "n_entries",
    "query_ends": "n_rows",
    "id_ends": "id_bytes",
    "comment_ends": "comment_bytes",
}
_BLOCK = 8 << 20  # bytes of a range that is checked without being kept


class StoredComments(Comments):
    """The comments of one chunk, read when they are first looked at."""

    def __init__(self, n_rows: int, read: Callable[[], Comments]) -> None:
        self.__dict__.update(_n_rows=n_rows, _read=read)

    def __getattr__(self, name: str) -> Any:
        """Text and offsets, which are not there before they were read."""
        if name not in ("text", "offsets"):
            raise AttributeError(name)
        self.__dict__.update(vars(self.__dict__["_read"]()))
        return self.__dict__[name]

    def __len__(self) -> int:
        return int(self.__dict__["_n_rows"])

    def select(self, index: Any) -> Comments:  # type: ignore[override]
        """The comments of some rows."""
        return Comments(self.text, self.offsets).select(index)

    def __reduce__(self) -> tuple[Any, ...]:
        return Comments, (self.text, self.offsets)


class ChunkReader:
    """Reads and checks; what was found sound is not summed again."""

    def __init__(self, manifest: Manifest, files: Files) -> None:
        self.manifest, self.layout, self.files = manifest, manifest.layout, files
        # By array, the chunks whose checksums were compared.
        self.sound = {name: bytearray(self.layout.n_chunks) for name in self.layout.arrays}
        # Chunks whose rows were looked through: a sound checksum says nothing of who wrote them.
        self._looked_through = bytearray(self.layout.n_chunks)

    # ---- arrays as they are in the files --------------------------------------------------------

    def array(self, name: str, i: int, buffer: Buffer | None = None) -> Array:
        """An array of chunk i; features in the buffer, if given."""
        stored = self.layout.arrays[name]
        begin, n_bytes = self.layout.place(name, i)
        out = None
        if buffer is not None and name in ("values", "columns"):
            out = buffer.part(name, begin, n_bytes)
        data = self.files.read(stored.file, begin, n_bytes, out)
        if not self.sound[name][i]:
            self.check_sum(name, i, checksum(data))
        return data.view(stored.dtype)

    def check_sum(self, name: str, i: int, found: int) -> None:
        """Compare a checksum with that of the manifest, and remember that it was right."""
        if found != self.manifest.checksums[name][i]:
            raise self.damage_error(name, i, "its checksum is wrong: bytes have changed")
        self.sound[name][i] = 1

    def damage_error(self, name: str, i: int | None, problem: str) -> DataFormatError:
        """The error of an array, with the place of the chunk in its file."""
        path = self.files.path(self.layout.arrays[name].file)
        if i is None:
            return DataFormatError(f"{path}: {problem}; {AGAIN}")
        begin, n_bytes = self.layout.place(name, i)
        where = f"chunk {i}, bytes {begin} to {begin + n_bytes}"
        return DataFormatError(f"{path}: {where}: {problem}; {AGAIN}")

    def offsets(self, name: str, i: int | None, ends: Array) -> Array:
        """Offsets of the rows, queries or texts of chunk i, or of all, from where each ends."""
        unit: Unit = _ENDS[name]
        first, end = 0, self.layout.total(unit)
        if i is not None:
            first, end = self.layout.bounds[unit][i : i + 2]
        offsets = np.zeros(len(ends) + 1, np.int64)
        np.subtract(ends, first, out=offsets[1:])
        self.check_offsets(name, i, offsets, end - first)
        offsets.flags.writeable = False
        return offsets

    def check_offsets(self, name: str, i: int | None, offsets: Array, end: int) -> None:
        """Offsets end where they should and never decrease; queries have rows."""
        if offsets[-1] != end:
            raise self.damage_error(name, i, f"it ends at {offsets[-1]}, not at {end}")
        # Two arrays compared, not subtracted: a difference could overflow.
        order = np.less_equal if name == "query_ends" else np.less
        if order(offsets[1:], offsets[:-1]).any():
            raise self.damage_error(name, i, "its ends do not increase")

    # ---- the parts of a dataset -----------------------------------------------------------------

    def chunk(self, i: int, buffer: Buffer, source: str) -> Dataset:
        """Chunk i, its features in the buffer; its comments are read when they are looked at."""
        is_new = not self._looked_through[i]
        arrays = partial(self.array, i=i, buffer=buffer)
        comments = None
        if self.layout.has_comments:
            n_rows = self.layout.counts["n_rows"][i]
            read = partial(self.of_chunk, i, self.comments)
            comments = StoredComments(n_rows, read)
        data = self.dataset(i, arrays, comments, is_new, source)
        self._looked_through[i] |= is_new
        return data

    def dataset(
        self, i: int | None, arrays: Arrays, comments: Any, thoroughly: bool, source: str
    ) -> Dataset:
        """The rows of chunk i, or of all, of arrays by name, each checked before it is used."""
        manifest, n_features = self.manifest, self.layout.n_features
        values = arrays("values")
        if self.layout.storage == "dense":
            rows: Rows = DenseRows(values.reshape(-1, n_features))
        else:
            columns = arrays("columns")
            offsets = self.offsets("row_ends", i, arrays("row_ends"))
            rows = CsrRows(values, columns, offsets, n_features)
        self.check_rows(rows, i, thoroughly)
        labels = arrays("labels")
        if not np.isfinite(labels).all():
            raise self.damage_error("labels", i, "a label is no finite number")
        weight, queries = self.weight(i, arrays), self.queries(i, arrays)
        qid = None if queries.ids is None else np.repeat(queries.ids, np.diff(queries.offsets))
        names, base, filling = manifest.feature_names, manifest.index_base, manifest.filling
        data = Dataset(rows, labels, qid, weight, names, comments, source, base, filling=filling)
        return keep_queries(data, queries)

    def check_rows(self, rows: Rows, i: int | None, thoroughly: bool) -> None:
        """Columns exist; thoroughly: they increase, and values are finite."""
        try:
            core = rows.core
        except ValueError as error:
            raise self.damage_error("columns", i, str(error)) from None
        if not thoroughly:
            return
        if not _core.columns_increase(core, 1):
            raise self.damage_error("columns", i, "the columns of a row do not increase")
        place = _core.first_non_finite(core, 1)
        if place is not None:
            row, column = place
            raise self.damage_error("values", i, f"row {row}, column {column} is no finite number")

    def weight(self, i: int | None, arrays: Arrays) -> Array | None:
        """The weights of rows, where there are any."""
        if not self.layout.has_weights:
            return None
        weight = arrays("weights")
        if not (np.isfinite(weight) & (weight >= 0.0)).all():
            raise self.damage_error("weights", i, "a weight is no finite number >= 0")
        return weight

    def queries(self, i: int | None, arrays: Arrays) -> Queries:
        """The queries, ranked when they were written."""
        offsets = self.offsets("query_ends", i, arrays("query_ends"))
        ids = arrays("ids") if self.layout.ids == "integer" else None
        if self.layout.ids == "text":
            ends = self.offsets("id_ends", i, arrays("id_ends"))
            ids = np.empty(len(ends) - 1, dtype=object)
            # Bytes that are no UTF-8 appear as \\xNN, as in text files.
            ids[:] = Words(arrays("id_text"), ends).tolist("backslashreplace")
        queries = Queries(offsets, None, arrays("levels"), arrays("n_levels"), ids)
        try:
            # Levels are places in arrays of n_levels: none may lie outside. Counts the pairs.
            _ = queries.pairs_per_query
        except ValueError as error:
            raise self.damage_error("levels", i, str(error)) from None
        return queries

    def comments(self, i: int | None, arrays: Arrays) -> Comments:
        """The comments of rows."""
        ends = self.offsets("comment_ends", i, arrays("comment_ends"))
        return Comments(arrays("comment_text"), ends)

    def of_chunk(self, i: int, read: Callable[[int, Arrays], T]) -> T:
        """What one of the methods above reads of chunk i."""
        return read(i, partial(self.array, i=i))

    def check_features(self, i: int) -> None:
        """Sum the features of chunk i block by block, without keeping them, unless done before."""
        names = [n for n in _FEATURES if n in self.layout.arrays and not self.sound[n][i]]
        memory = aligned_memory(2 * _BLOCK)
        for name in names:
            stored = self.layout.arrays[name]
            begin, n_bytes = self.layout.place(name, i)
            found = 0
            for start in range(begin, begin + n_bytes, _BLOCK):
                size = min(_BLOCK, begin + n_bytes - start)
                block = self.files.read(stored.file, start, size, memory)
                found = checksum(block, found)
                if name == "values" and not np.isfinite(block.view(stored.dtype)).all():
                    raise self.damage_error(name, i, "a value is no finite number")
            self.check_sum(name, i, found)

    def statistics(self) -> ColumnStatistics:
        """The statistics of all columns; moments may have overflowed."""
        n, n_rows = self.layout.n_features, self.layout.total("n_rows")
        data, place = self.files.read(STATISTICS, 0, 5 * 8 * n), self.files.path(STATISTICS)
        if checksum(data) != self.manifest.checksums["statistics"][0]:
            raise DataFormatError(f"{place}: its checksum is wrong: bytes have changed; {AGAIN}")
        parts = data.view(np.float64).reshape(5, n)
        mean, variance, low, high = parts[:4]
        counts, weight = parts[4].view(np.int64), self.manifest.total_weight
        has_range = weight == 0.0 or bool((low <= high).all())
        if not has_range or (variance < 0.0).any() or counts.min() < 0 or counts.max() > n_rows:
            raise DataFormatError(f"{place}: holds ranges or counts that no rows have; {AGAIN}")
        return ColumnStatistics(weight, n_rows, mean, variance, low, high, counts)
