"""ChunkReader: the arrays of one chunk, checked before anything uses them as numbers or places."""

from __future__ import annotations

import os
from bisect import bisect_left, bisect_right
from collections.abc import Callable
from functools import partial
from typing import Any, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from linrank import _core
from linrank.data.dataset import Dataset
from linrank.data.queries import Queries
from linrank.data.rows import ColumnStatistics, CsrRows, DenseRows, Rows
from linrank.data.words import Comments, Words
from linrank.errors import DataFormatError
from linrank.io.store.files import AGAIN, Buffer, Files, aligned
from linrank.io.store.manifest import STATISTICS, Manifest, Unit
from linrank.system.durable import FULL_DISK
from linrank.system.resources import available, describe_bytes

Array = NDArray[Any]


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
Verify = Literal[True, False, "always"]
_FEATURES = ("values", "columns", "row_offsets")
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
    """Reads and checks; what was found sound is not summed again unless asked for."""

    def __init__(self, manifest: Manifest, files: Files) -> None:
        self.manifest, self.layout, self.files = manifest, manifest.layout, files
        # By array, the chunks whose checksums were compared.
        self.sound = {name: bytearray(self.layout.n_chunks) for name in self.layout.arrays}
        # Chunks whose rows were looked through: a sound checksum says nothing of who wrote them.
        self._looked_through = bytearray(self.layout.n_chunks)

    # ---- arrays as they are in the files --------------------------------------------------------

    def array(self, name: str, i: int, verify: Verify, buffer: Buffer | None = None) -> Array:
        """An array of chunk i; features in the buffer, if given."""
        stored = self.layout.arrays[name]
        begin, n_bytes = self.layout.place(name, i)
        out = None
        if buffer is not None and name in ("values", "columns"):
            out = buffer.part(name, begin, n_bytes)
        data = self.files.read(stored.file, begin, n_bytes, out)
        if verify == "always" or (verify is True and not self.sound[name][i]):
            self.check_sum(name, i, checksum(data))
        return data.view(stored.dtype)

    def check_sum(self, name: str, i: int, found: int) -> None:
        """Compare a checksum with that of the manifest, and remember that it was right."""
        if found != self.manifest.checksums[name][i]:
            raise self.damaged(name, i, "its checksum is wrong: bytes have changed")
        self.sound[name][i] = 1

    def damaged(self, name: str, i: int | None, problem: str) -> DataFormatError:
        """The error of an array, with the place of the chunk in its file."""
        path = self.files.path(self.layout.arrays[name].file)
        if i is None:
            return DataFormatError(f"{path}: {problem}; {AGAIN}")
        begin, n_bytes = self.layout.place(name, i)
        where = f"chunk {i}, bytes {begin} to {begin + n_bytes}"
        return DataFormatError(f"{path}: {where}: {problem}; {AGAIN}")

    def offsets(self, name: str, unit: Unit, i: int | None, found: Array) -> Array:
        """Offsets of chunk i, or of all, from 0 to its number of units, checked."""
        first, end = 0, self.layout.total(unit)
        if i is not None:
            first, end = self.layout.bounds[unit][i : i + 2]
            ends, found = found, np.zeros(len(found) + 1, np.int64)
            np.subtract(ends, first, out=found[1:])
        self.check_offsets(name, i, found, end - first)
        return found

    def check_offsets(self, name: str, i: int | None, offsets: Array, end: int) -> None:
        """Offsets start at 0, end where they should and never decrease; queries have rows."""
        if offsets[0] != 0 or offsets[-1] != end:
            raise self.damaged(name, i, f"its offsets end at {offsets[-1]}, not at {end}")
        least = 1 if name == "query_offsets" else 0
        # Two arrays compared, not subtracted: a difference could overflow.
        if (offsets[1:] < offsets[:-1]).any() or (least and (offsets[1:] == offsets[:-1]).any()):
            raise self.damaged(name, i, "its offsets do not increase")

    def check_leads(self) -> None:
        """Files of offsets begin with 0, which belongs to no chunk and is in no checksum."""
        for name, stored in self.layout.arrays.items():
            lead = self.files.read(stored.file, 0, stored.place(0, 0)[0])
            if lead.any():
                first = lead.view(stored.dtype)[0]
                raise self.damaged(name, None, f"its offsets begin with {first}, not with 0")

    # ---- the parts of a dataset -----------------------------------------------------------------

    def chunk(self, i: int, verify: Verify, buffer: Buffer, source: str) -> Dataset:
        """Chunk i, its features in the buffer; its comments are read when they are looked at."""
        is_new = verify == "always" or (verify is True and not self._looked_through[i])
        arrays = partial(self.array, i=i, verify=verify, buffer=buffer)
        comments = None
        if self.layout.has_comments:
            n_rows = self.layout.counts["n_rows"][i]
            read = partial(self.of_chunk, i, verify, self.comments)
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
            offsets = self.offsets("row_offsets", "n_entries", i, arrays("row_offsets"))
            rows = CsrRows(values, columns, offsets, n_features)
        self.check_rows(rows, i, thoroughly)
        labels = arrays("labels")
        if not np.isfinite(labels).all():
            raise self.damaged("labels", i, "a label is no finite number")
        weight, queries = self.weight(i, arrays), self.queries(i, arrays)
        qid = None if queries.ids is None else np.repeat(queries.ids, np.diff(queries.offsets))
        names, base, filling = manifest.feature_names, manifest.index_base, manifest.filling
        data = Dataset(rows, labels, qid, weight, names, comments, source, base, filling=filling)
        data.__dict__["queries"] = queries
        return data

    def check_rows(self, rows: Rows, i: int | None, thoroughly: bool) -> None:
        """Columns exist; thoroughly: they increase, and values are finite."""
        try:
            core = rows.core
        except ValueError as error:
            raise self.damaged("columns", i, str(error)) from None
        if not thoroughly:
            return
        if not _core.columns_increase(core, 1):
            raise self.damaged("columns", i, "the columns of a row do not increase")
        place = _core.first_non_finite(core, 1)
        if place is not None:
            row, column = place
            raise self.damaged("values", i, f"row {row}, column {column} is no finite number")

    def weight(self, i: int | None, arrays: Arrays) -> Array | None:
        """The weights of rows, where there are any."""
        if not self.layout.has_weights:
            return None
        weight = arrays("weights")
        if not (np.isfinite(weight) & (weight >= 0.0)).all():
            raise self.damaged("weights", i, "a weight is no finite number >= 0")
        return weight

    def queries(self, i: int | None, arrays: Arrays) -> Queries:
        """The queries, ranked when they were written."""
        offsets = self.offsets("query_offsets", "n_rows", i, arrays("query_offsets"))
        ids = arrays("ids") if self.layout.ids == "integer" else None
        if self.layout.ids == "text":
            ends = self.offsets("id_offsets", "id_bytes", i, arrays("id_offsets"))
            ids = np.empty(len(ends) - 1, dtype=object)
            # Bytes that are no UTF-8 appear as \\xNN, as in text files.
            ids[:] = Words(arrays("id_text"), ends).tolist("backslashreplace")
        queries = Queries(offsets, None, arrays("levels"), arrays("n_levels"), ids)
        try:
            # Levels are places in arrays of n_levels: none may lie outside. Counts the pairs.
            _ = queries.pairs_per_query
        except ValueError as error:
            raise self.damaged("levels", i, str(error)) from None
        return queries

    def comments(self, i: int | None, arrays: Arrays) -> Comments:
        """The comments of rows."""
        ends = self.offsets("comment_offsets", "comment_bytes", i, arrays("comment_offsets"))
        return Comments(arrays("comment_text"), ends)

    def of_chunk(self, i: int, verify: Verify, read: Callable[[int, Arrays], T]) -> T:
        """What one of the methods above reads of chunk i."""
        return read(i, partial(self.array, i=i, verify=verify))

    def check_features(self, i: int) -> None:
        """Sum the features of chunk i block by block, without keeping them, if nobody has yet."""
        names = [n for n in _FEATURES if n in self.layout.arrays and not self.sound[n][i]]
        memory = aligned(2 * _BLOCK)
        for name in names:
            stored = self.layout.arrays[name]
            begin, n_bytes = self.layout.place(name, i)
            found = 0
            for start in range(begin, begin + n_bytes, _BLOCK):
                size = min(_BLOCK, begin + n_bytes - start)
                block = self.files.read(stored.file, start, size, memory)
                found = checksum(block, found)
                if name == "values" and not np.isfinite(block.view(stored.dtype)).all():
                    raise self.damaged(name, i, "a value is no finite number")
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


def whole_dataset(reader: ChunkReader, source: str, verify: bool, n_threads: int) -> Dataset:
    """All chunks as one dataset, of arrays that nobody can write to.

    What serves as a place in memory (offsets, levels, columns) is always checked; with ``verify``,
    so is every byte, once.
    """
    arrays = _arrays(reader, source, n_threads)
    if verify:
        _check_sums(reader, arrays, n_threads)
    get = arrays.__getitem__
    comments = reader.comments(None, get) if reader.layout.has_comments else None
    return reader.dataset(None, get, comments, verify, source)


def _arrays(reader: ChunkReader, source: str, n_threads: int) -> dict[str, Array]:
    layout, free = reader.layout, available()
    sizes = {a.file: a.size(layout.total(a.unit)) for a in layout.arrays.values()}
    n_bytes = sum(sizes.values())
    if free is None or n_bytes <= free // 2:
        found = reader.files.read_all(sizes, n_threads)
    else:
        try:
            found = {name: reader.files.map_copy(name, size) for name, size in sizes.items()}
        except OSError as error:
            if error.errno not in FULL_DISK:
                raise
            raise MemoryError(
                f"{source}: takes {describe_bytes(n_bytes)}, more than half of the "
                f"{describe_bytes(free)} of memory that are free, and there is no room on the disk "
                f"for a copy that could be mapped ({os.strerror(error.errno)}); train within a "
                "memory_limit, or free some room"
            ) from None
    return {name: found[a.file].view(a.dtype) for name, a in layout.arrays.items()}


def _check_sums(reader: ChunkReader, arrays: dict[str, Array], n_threads: int) -> None:
    """Sum all that was not summed yet, a chunk a task."""

    def check(i: int) -> None:
        for name, array in arrays.items():
            if not reader.sound[name][i]:
                begin, n_bytes = reader.layout.place(name, i)
                data = array.view(np.uint8)[begin : begin + n_bytes]
                reader.check_sum(name, i, checksum(data))

    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(n_threads) as pool:
        for done in [pool.submit(check, i) for i in range(reader.layout.n_chunks)]:
            done.result()


def read_rows(reader: ChunkReader, rows: slice, verify: bool) -> Rows:
    """The features of some consecutive rows, in memory of their own."""
    layout = reader.layout
    begin, end, step = rows.indices(layout.total("n_rows"))
    if step != 1 or end < begin:
        raise ValueError(f"rows must be a range forwards without gaps, got {rows}")
    if verify:
        starts = layout.bounds["n_rows"]
        for i in range(bisect_right(starts, begin) - 1, bisect_left(starts, end)):
            reader.check_features(i)
    if layout.storage == "dense":
        values = _range(reader, "values", begin, end)
        found: Rows = DenseRows(values.reshape(end - begin, layout.n_features))
    else:
        found = _csr_rows(reader, begin, end)
    reader.check_rows(found, None, verify)
    return found


def _csr_rows(reader: ChunkReader, begin: int, end: int) -> CsrRows:
    # The offsets have a 0 in front: those of rows begin to end lie one further.
    offsets = _range(reader, "row_offsets", begin - 1, end)
    first, last = int(offsets[0]), int(offsets[-1])
    if not 0 <= first <= last <= reader.layout.total("n_entries") or (begin == 0 and first != 0):
        raise reader.damaged("row_offsets", None, f"rows from entry {first} to {last}")
    offsets = offsets - first
    reader.check_offsets("row_offsets", None, offsets, last - first)
    values = _range(reader, "values", first, last)
    columns = _range(reader, "columns", first, last)
    return CsrRows(values, columns, offsets, reader.layout.n_features)


def _range(reader: ChunkReader, name: str, begin: int, end: int) -> Array:
    stored = reader.layout.arrays[name]
    data = reader.files.read(stored.file, *stored.place(begin, end))
    return np.asarray(data.view(stored.dtype))
