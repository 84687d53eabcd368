"""ChunkReader: the arrays of one chunk, checked before anything uses them as numbers or places."""

from __future__ import annotations

import os
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from linrank import _core
from linrank.data.dataset import Dataset
from linrank.data.queries import Queries
from linrank.data.rows import ColumnStatistics, CsrRows, DenseRows, Rows
from linrank.errors import DataFormatError
from linrank.io.comments import Comments, Words
from linrank.io.store.array_files import AGAIN, Buffer, Files, aligned
from linrank.io.store.layout import STATISTICS, Unit
from linrank.io.store.manifest import Manifest
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


Verify = Literal[True, False, "always"]
_FEATURES = ("values", "columns", "row_offsets")
_BLOCK = 8 << 20  # bytes of a range that is checked without being kept


class ChunkReader:
    """Reads and checks; what was found sound is not summed again unless asked for."""

    def __init__(self, manifest: Manifest, files: Files) -> None:
        self.manifest, self.layout, self.files = manifest, manifest.layout, files
        self._sound = {name: bytearray(self.layout.n_chunks) for name in self.layout.arrays}
        # Chunks whose rows were looked through: a sound checksum says nothing of who wrote them.
        self._looked_through = bytearray(self.layout.n_chunks)

    # ---- arrays as they are in the files --------------------------------------------------------

    def array(self, name: str, i: int, verify: Verify, buffer: Buffer | None = None) -> Array:
        """An array of chunk i; in the buffer, if given."""
        stored = self.layout.arrays[name]
        begin, n_bytes = self.layout.place(name, i)
        out = None if buffer is None else buffer.part(name, begin, n_bytes)
        data = self.files.read(stored.file, begin, n_bytes, out)
        if self._is_due(name, i, verify):
            self.check_sum(name, i, checksum(data))
        return data.view(stored.dtype)

    def _is_due(self, name: str, i: int, verify: Verify) -> bool:
        return verify == "always" or (verify is True and not self._sound[name][i])

    def check_sum(self, name: str, i: int, found: int) -> None:
        """Compare a checksum with that of the manifest, and remember that it was right."""
        if found != self.manifest.checksums[name][i]:
            raise self.damaged(name, i, "its checksum is wrong: bytes have changed")
        self._sound[name][i] = 1

    def is_sound(self, name: str, i: int) -> bool:
        """Whether the checksum was compared already."""
        return bool(self._sound[name][i])

    def damaged(self, name: str, i: int | None, problem: str) -> DataFormatError:
        """The error of an array, with the place of the chunk in its file."""
        path = self.files.path(self.layout.arrays[name].file)
        if i is None:
            return DataFormatError(f"{path}: {problem}; {AGAIN}")
        begin, n_bytes = self.layout.place(name, i)
        where = f"chunk {i}, bytes {begin} to {begin + n_bytes}"
        return DataFormatError(f"{path}: {where}: {problem}; {AGAIN}")

    def offsets(self, name: str, unit: Unit, i: int, verify: Verify) -> Array:
        """Offsets of chunk i, from 0 to its number of units, checked."""
        first, last = self.layout.bounds[unit][i : i + 2]
        ends = self.array(name, i, verify)
        offsets = np.zeros(len(ends) + 1, np.int64)
        np.subtract(ends, first, out=offsets[1:])
        self.check_offsets(name, i, offsets, last - first)
        return offsets

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

    def rows(self, i: int, verify: Verify, buffer: Buffer | None) -> Rows:
        """The features of chunk i."""
        is_new = verify == "always" or (verify is True and not self._looked_through[i])
        values = self.array("values", i, verify, buffer)
        n_features = self.layout.n_features
        if self.layout.storage == "dense":
            rows: Rows = DenseRows(values.reshape(-1, n_features))
        else:
            columns = self.array("columns", i, verify, buffer)
            offsets = self.offsets("row_offsets", "n_entries", i, verify)
            rows = CsrRows(values, columns, offsets, n_features)
        self.check_rows(rows, i, is_new)
        self._looked_through[i] |= is_new
        return rows

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

    def labels(self, i: int, verify: Verify) -> Array:
        """The labels of chunk i."""
        labels = self.array("labels", i, verify)
        self.check_labels(labels, i)
        return labels

    def check_labels(self, labels: Array, i: int | None) -> None:
        if not np.isfinite(labels).all():
            raise self.damaged("labels", i, "a label is no finite number")

    def weight(self, i: int, verify: Verify) -> Array | None:
        """The weights of the rows of chunk i, where there are any."""
        if not self.layout.has_weights:
            return None
        weight = self.array("weights", i, verify)
        self.check_weight(weight, i)
        return weight

    def check_weight(self, weight: Array, i: int | None) -> None:
        if not (np.isfinite(weight) & (weight >= 0.0)).all():
            raise self.damaged("weights", i, "a weight is no finite number >= 0")

    def queries(self, i: int, verify: Verify) -> Queries:
        """The queries of chunk i, ranked when they were written."""
        queries = Queries(
            self.offsets("query_offsets", "n_rows", i, verify),
            None,
            self.array("levels", i, verify),
            self.array("n_levels", i, verify),
            self.ids(i, verify),
        )
        self.check_queries(queries, i)
        return queries

    def check_queries(self, queries: Queries, i: int | None) -> None:
        """Levels are places in arrays of n_levels: none may lie outside. Counts the pairs."""
        try:
            _ = queries.pairs_per_query
        except ValueError as error:
            raise self.damaged("levels", i, str(error)) from None

    def ids(self, i: int, verify: Verify) -> Array | None:
        """The ids of the queries of chunk i."""
        if self.layout.ids is None:
            return None
        if self.layout.ids == "integer":
            return self.array("ids", i, verify)
        offsets = self.offsets("id_offsets", "id_bytes", i, verify)
        return text_ids(self.array("id_text", i, verify), offsets)

    def comments(self, i: int, verify: Verify) -> Comments:
        """The comments of the rows of chunk i."""
        offsets = self.offsets("comment_offsets", "comment_bytes", i, verify)
        return Comments(self.array("comment_text", i, verify), offsets)

    def check_features(self, i: int) -> None:
        """Sum the features of chunk i block by block, without keeping them, if nobody has yet."""
        names = [n for n in _FEATURES if n in self.layout.arrays and not self.is_sound(n, i)]
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


def text_ids(text: Array, offsets: Array) -> Array:
    """Ids as an array of strings; bytes that are no UTF-8 appear as \\xNN, as in text files."""
    ids = np.empty(len(offsets) - 1, dtype=object)
    ids[:] = Words(text, offsets).tolist("backslashreplace")
    return ids


def whole_dataset(reader: ChunkReader, source: str, verify: bool, n_threads: int) -> Dataset:
    """All chunks as one dataset, of arrays that nobody can write to.

    What serves as a place in memory (offsets, levels, columns) is always checked; with ``verify``,
    so is every byte, once.
    """
    layout = reader.layout
    arrays = _arrays(reader, source, n_threads)
    if verify:
        _check_sums(reader, arrays, n_threads)
    rows = _rows(reader, arrays, verify)
    reader.check_labels(arrays["labels"], None)
    if layout.has_weights:
        reader.check_weight(arrays["weights"], None)
    queries = _queries(reader, arrays)
    comments = None
    if layout.has_comments:
        offsets = arrays["comment_offsets"]
        reader.check_offsets("comment_offsets", None, offsets, layout.total("comment_bytes"))
        comments = Comments(arrays["comment_text"], offsets)
    qid = None if queries.ids is None else np.repeat(queries.ids, np.diff(queries.offsets))
    names, base = reader.manifest.feature_names, reader.manifest.index_base
    weight = arrays.get("weights")
    data = Dataset(rows, arrays["labels"], qid, weight, names, comments, source, base)
    data.__dict__["queries"] = queries
    return data


def _arrays(reader: ChunkReader, source: str, n_threads: int) -> dict[str, Array]:
    layout, free = reader.layout, available()
    sizes = {a.file: a.size(layout.total(a.unit)) for a in layout.arrays.values()}
    n_bytes = sum(sizes.values())
    if free is None or n_bytes <= free // 2:
        found = reader.files.read_all(sizes, n_threads)
    else:
        try:
            found = {name: reader.files.copied(name, size) for name, size in sizes.items()}
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
            if not reader.is_sound(name, i):
                begin, n_bytes = reader.layout.place(name, i)
                data = array.view(np.uint8)[begin : begin + n_bytes]
                reader.check_sum(name, i, checksum(data))

    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(n_threads) as pool:
        for done in [pool.submit(check, i) for i in range(reader.layout.n_chunks)]:
            done.result()


def _rows(reader: ChunkReader, arrays: dict[str, Array], thoroughly: bool) -> Rows:
    n_features = reader.layout.n_features
    if reader.layout.storage == "dense":
        rows: Rows = DenseRows(arrays["values"].reshape(-1, n_features))
    else:
        offsets = arrays["row_offsets"]
        reader.check_offsets("row_offsets", None, offsets, reader.layout.total("n_entries"))
        rows = CsrRows(arrays["values"], arrays["columns"], offsets, n_features)
    reader.check_rows(rows, None, thoroughly)
    return rows


def _queries(reader: ChunkReader, arrays: dict[str, Array]) -> Queries:
    layout, offsets = reader.layout, arrays["query_offsets"]
    reader.check_offsets("query_offsets", None, offsets, layout.total("n_rows"))
    ids = arrays.get("ids")
    if layout.ids == "text":
        ends = arrays["id_offsets"]
        reader.check_offsets("id_offsets", None, ends, layout.total("id_bytes"))
        ids = text_ids(arrays["id_text"], ends)
    queries = Queries(offsets, None, arrays["levels"], arrays["n_levels"], ids)
    reader.check_queries(queries, None)
    return queries
