"""Layout: which files a store has, and which of their bytes belong to which chunk.

Every array of a data set is one file of little-endian numbers without a header, so that it can be
read as a whole. A *chunk* is a range of whole queries, and so a range of bytes in every file:

====================  =====  ==============================================================
values.bin            f4/f8  dense: n_rows × n_features, by rows; CSR: the entries
columns.bin           i4/i8  CSR: column of each entry
row_offsets.bin       i8     CSR: 0, then where each row ends in the entries
labels.bin            f8     label of each row
levels.bin            i4     rank of that label inside its query, from 0
weights.bin           f8     weight of each row, if rows have weights
query_offsets.bin     i8     0, then where each query ends in the rows
n_levels.bin          i4     number of different labels of each query
ids.bin               i8     id of each query, if ids are integers
ids.txt               UTF-8  ids of the queries one after the other, if they are text
id_offsets.bin        i8     0, then where each id ends in ids.txt
comments.txt          bytes  comments of the rows one after the other, if there are any
comment_offsets.bin   i8     0, then where each comment ends
====================  =====  ==============================================================
"""

from __future__ import annotations

import errno
import os
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from linrank.system import durable
from linrank.system.resources import cached_property

MANIFEST = "manifest.json"
STATISTICS = "statistics.bin"
# Every name that a file of a store can have.
FILES = frozenset(
    f"{MANIFEST} {STATISTICS} values.bin columns.bin row_offsets.bin labels.bin levels.bin "
    "weights.bin query_offsets.bin n_levels.bin ids.bin ids.txt id_offsets.bin comments.txt "
    "comment_offsets.bin".split()
)
Unit = Literal["n_queries", "n_rows", "n_entries", "id_bytes", "comment_bytes"]


@dataclass(frozen=True)
class StoredArray:
    """A file of numbers: `lead` of them, then `width` for each unit (row, query, entry, byte)."""

    file: str
    dtype: np.dtype[Any]
    unit: Unit
    width: int = 1
    lead: int = 0

    def place(self, begin: int, end: int) -> tuple[int, int]:
        """(first byte, number of bytes) of the units from begin to end, the lead left out."""
        size = self.dtype.itemsize
        return size * (self.lead + begin * self.width), size * (end - begin) * self.width

    def size(self, n_units: int) -> int:
        """Bytes of the whole file."""
        return sum(self.place(0, n_units))


@dataclass(frozen=True)
class ChunkRange:
    """Where a chunk lies in the arrays.

    Attributes
    ----------
    rows, queries : slice
        Its rows and queries.
    entries : slice or None
        Its stored entries, where the store is CSR.
    nbytes : int
        Bytes of its features: values, and for CSR columns and row offsets.
    """

    rows: slice
    queries: slice
    entries: slice | None
    nbytes: int


@dataclass(frozen=True, eq=False)
class Layout:
    """What determines the files of a store, and their sizes.

    Attributes
    ----------
    storage : {"dense", "csr"}
    dtype : float32 or float64
        Of the values.
    n_features : int
    ids : {"integer", "text"} or None
        What the ids of the queries are; None for a single query without an id.
    has_weights, has_comments : bool
    counts : mapping
        How many units of each kind every chunk has; see `units`.
    """

    storage: str
    dtype: np.dtype[Any]
    n_features: int
    ids: str | None
    has_weights: bool
    has_comments: bool
    counts: Mapping[str, list[int]]

    @property
    def n_chunks(self) -> int:
        return len(self.counts["n_rows"])

    @cached_property
    def index_dtype(self) -> np.dtype[Any]:
        """Of the columns of entries: the narrower one that holds them."""
        return np.dtype("<i4" if self.n_features <= 2**31 - 1 else "<i8")

    @cached_property
    def units(self) -> tuple[Unit, ...]:
        """The kinds of units that the chunk table counts."""
        units: list[Unit] = ["n_queries", "n_rows"]
        units += ["n_entries"] if self.storage == "csr" else []
        units += ["id_bytes"] if self.ids == "text" else []
        units += ["comment_bytes"] if self.has_comments else []
        return tuple(units)

    @cached_property
    def arrays(self) -> dict[str, StoredArray]:
        """The arrays, by the name of the file without its ending, but for the ids."""
        i4, i8, f8, byte = (np.dtype(kind) for kind in ("<i4", "<i8", "<f8", "u1"))
        if self.storage == "dense":
            found = {"values": StoredArray("values.bin", self.dtype, "n_rows", self.n_features)}
        else:
            found = {
                "values": StoredArray("values.bin", self.dtype, "n_entries"),
                "columns": StoredArray("columns.bin", self.index_dtype, "n_entries"),
                "row_offsets": StoredArray("row_offsets.bin", i8, "n_rows", lead=1),
            }
        found["labels"] = StoredArray("labels.bin", f8, "n_rows")
        found["levels"] = StoredArray("levels.bin", i4, "n_rows")
        if self.has_weights:
            found["weights"] = StoredArray("weights.bin", f8, "n_rows")
        found["query_offsets"] = StoredArray("query_offsets.bin", i8, "n_queries", lead=1)
        found["n_levels"] = StoredArray("n_levels.bin", i4, "n_queries")
        if self.ids == "integer":
            found["ids"] = StoredArray("ids.bin", i8, "n_queries")
        elif self.ids == "text":
            found["id_text"] = StoredArray("ids.txt", byte, "id_bytes")
            found["id_offsets"] = StoredArray("id_offsets.bin", i8, "n_queries", lead=1)
        if self.has_comments:
            found["comment_text"] = StoredArray("comments.txt", byte, "comment_bytes")
            found["comment_offsets"] = StoredArray("comment_offsets.bin", i8, "n_rows", lead=1)
        return found

    @cached_property
    def bounds(self) -> dict[str, list[int]]:
        """By unit: where each chunk begins, and the total; Python integers, which do not wrap."""
        return {unit: [0, *accumulate(self.counts[unit])] for unit in self.units}

    def total(self, unit: Unit) -> int:
        """Units of a kind in the whole store."""
        return self.bounds[unit][-1]

    def place(self, name: str, chunk: int) -> tuple[int, int]:
        """(first byte, number of bytes) of a chunk in the file of an array."""
        array = self.arrays[name]
        bounds = self.bounds[array.unit]
        return array.place(bounds[chunk], bounds[chunk + 1])

    def sizes(self) -> dict[str, int]:
        """Bytes of every file but the manifest."""
        found = {a.file: a.size(self.total(a.unit)) for a in self.arrays.values()}
        found[STATISTICS] = 5 * 8 * self.n_features
        return found

    def chunk(self, i: int) -> ChunkRange:
        """Where chunk i lies."""

        def part(unit: Unit) -> slice:
            return slice(self.bounds[unit][i], self.bounds[unit][i + 1])

        features = [name for name in ("values", "columns", "row_offsets") if name in self.arrays]
        return ChunkRange(
            part("n_rows"),
            part("n_queries"),
            part("n_entries") if self.storage == "csr" else None,
            sum(self.place(name, i)[1] for name in features),
        )


Array = NDArray[Any]
# ---- the folder that a store is written into, beside its place, until it is whole ---------------

_WRITE_BACK = 32 << 20  # bytes after which the system is asked to begin writing to the disk


class NewFolder:
    """A hidden folder that takes the place of ``path`` when it is whole, or vanishes.

    One process of a machine writes a store at a time; others are told so at once.
    """

    def __init__(self, path: str, overwrite: bool) -> None:
        self.path, self.overwrite = path, overwrite
        self._files: dict[str, int] = {}
        self._waiting: dict[str, tuple[int, int]] = {}
        check_target(path, overwrite)
        busy = f"{path} is being written by another process; wait for it, or name another folder"
        with durable.naming(path, over=True):
            self._scratch = durable.Scratch(
                os.path.dirname(path), 0o777, token=durable.token_of(path), busy=busy
            )
        self.partial = self._scratch.path

    def write(self, name: str, data: Array) -> None:
        """Append the bytes of an array to a file."""
        with durable.naming(self.path, over=True, what="store", removed=durable.REMOVED):
            if name not in self._files:
                flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0)
                self._files[name] = os.open(os.path.join(self.partial, name), flags, 0o666)
            if not data.nbytes:
                return
            view = data.reshape(-1).view(np.uint8).data
            while view:
                view = view[os.write(self._files[name], view) :]
        self._write_back(name, data.nbytes)

    def _write_back(self, name: str, n_bytes: int) -> None:
        """Have the disk write while the next chunk is made, not all of it at the end."""
        begin, waiting = self._waiting.get(name, (0, 0))
        waiting += n_bytes
        if waiting >= _WRITE_BACK and hasattr(os, "posix_fadvise"):
            os.posix_fadvise(self._files[name], begin, waiting, os.POSIX_FADV_DONTNEED)
            begin, waiting = begin + waiting, 0
        self._waiting[name] = (begin, waiting)

    def take_back(self, name: str, dtype: np.dtype[Any]) -> Array:
        """Read a file that was written, and remove it."""
        os.close(self._files.pop(name))
        self._waiting.pop(name, None)
        place = os.path.join(self.partial, name)
        array = np.fromfile(place, dtype)
        os.remove(place)
        return array

    def finish(self, content: bytes) -> None:
        """Force all to the disk, the manifest last, and give the folder its name."""
        with durable.naming(self.path, over=True, what="store", removed=durable.REMOVED):
            for descriptor in self._files.values():
                os.fsync(descriptor)
            self._close()
            with durable.replacing(os.path.join(self.partial, MANIFEST)) as file:
                file.write(content)
        check_target(self.path, self.overwrite)  # somebody may have put something there meanwhile
        with durable.naming(self.path, over=True):
            self._place()
        durable.sync_folder(os.path.dirname(self.path))
        self.remove()

    def _place(self) -> None:
        """Take the place of what is there: nothing, an empty folder, or a store."""
        if not os.path.isdir(self.path) or not os.listdir(self.path):
            os.rename(self.partial, self.path)  # an empty folder gives way
        else:
            durable.replace_folder(self.partial, self.path)

    def remove(self) -> None:
        """Leave nothing but what has its place."""
        self._close()
        self._scratch.remove()

    def _close(self) -> None:
        while self._files:
            os.close(self._files.popitem()[1])


def check_target(path: str | os.PathLike[str], overwrite: bool) -> str:
    """The absolute path of a store that may be written there.

    An empty folder gives way, and a store where that is wanted; nothing else ever does.
    """
    target = os.path.abspath(os.fspath(path))
    parent = os.path.dirname(target)
    if not os.path.isdir(parent):
        raise FileNotFoundError(
            errno.ENOENT, f"cannot be written: there is no folder {parent}; make it first", target
        )
    if not os.access(parent, os.W_OK | os.X_OK):
        raise PermissionError(
            errno.EACCES, f"cannot be written: no permission to write in {parent}", target
        )
    durable.recover(target)
    try:
        os.lstat(target)
    except FileNotFoundError:
        return target
    if not os.path.isdir(target) or os.path.islink(target):
        raise FileExistsError(f"{target} is there and no folder; name another place")
    names = set(os.listdir(target))
    # A manifest alone may be that of something else.
    if names and (MANIFEST not in names or not names <= FILES or len(names) == 1):
        other = (sorted(names - FILES) or sorted(names))[0]
        raise FileExistsError(f"{target} holds {other!r} and is no store; name another folder")
    if names and not overwrite:
        raise FileExistsError(
            f"{target} is a store already; name another folder, or overwrite it (overwrite=True)"
        )
    return target
