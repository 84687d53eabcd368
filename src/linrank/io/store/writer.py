"""StoreWriter: whole queries in, chunk after chunk; a store only when all of it is on the disk."""

from __future__ import annotations

import os
from collections import Counter, defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from linrank import _core
from linrank.data.dataset import Dataset, as_comments, join_datasets, join_ids
from linrank.data.frames import Array, as_array, as_labels, as_part_weights, check_names
from linrank.data.rows import ColumnStatistics, CsrRows, DenseRows, resized
from linrank.data.words import Comments, Words
from linrank.io.store.chunks import checksum
from linrank.io.store.manifest import FILES, MANIFEST, STATISTICS, Layout, Manifest, Unit
from linrank.system import Scratch, check_place, naming, recover, replacing, resolve
from linrank.system.durable import REMOVED, replace_folder, sync_folder, token_of

if TYPE_CHECKING:
    from linrank.io.store.store import Store

CHUNK_BYTES = 64 << 20


class StoreWriter:
    """Writes a store: `append` whole queries in order, then `finish`.

    A chunk takes queries as long as their features (or their comments, where those are larger) fit
    into `chunk_bytes`, and at least one; where `append` cuts the data does not matter. Until
    `finish` returns there is no store at `path`: a fault, Ctrl-C, a full disk or a killed process
    leave nothing that opens as one. The ids of all queries are kept in memory until then: whether
    they are integers or text shows at the end.

    Parameters
    ----------
    path : path
        Folder of the store, which must not exist yet (or be empty). It is written under another
        name beside it, and renamed.
    chunk_bytes : int
        Bytes of the features of a chunk; a longer query is a chunk of its own.
    overwrite : bool
        Whether to replace a store that is there.
    n_jobs : int, optional
        Threads of checks, ranks and statistics; None uses all cores.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        chunk_bytes: int = CHUNK_BYTES,
        overwrite: bool = False,
        n_jobs: int | None = None,
    ) -> None:
        if chunk_bytes < 1:
            raise ValueError(f"chunk_bytes must be a positive number of bytes, got {chunk_bytes!r}")
        self._chunk_bytes, self._n_threads = chunk_bytes, resolve(n_jobs)
        self._like: Dataset | None = None  # the first rows
        self._pending: list[tuple[Dataset, Array | None]] = []  # queries of the next chunk
        # Of each chunk: integers, or text in UTF-8. Whether all are integers shows at the end.
        self._ids: list[Array | Words] = []
        self._n_pending = 0  # bytes of their features
        self._checksums: defaultdict[str, list[int]] = defaultdict(list)
        self._counts: defaultdict[str, list[int]] = defaultdict(list)  # units of each chunk
        self._totals: Counter[str] = Counter()
        self._n_queries = self._n_pairs = 0
        self._folder: NewFolder | None = NewFolder(os.path.abspath(os.fspath(path)), overwrite)

    def check_alike(self, data: Dataset) -> Dataset:
        """The data, if they can be part of the store; the first ones decide on its layout."""
        if self._like is None:
            if data.rows.dtype not in (np.float32, np.float64):
                raise ValueError(f"values must be float32 or float64, got {data.rows.dtype}")
            if not 1 <= data.n_features <= 2**48:
                raise ValueError(f"a store has 1 to 2^48 features, got {data.n_features}")
            check_names(data.feature_names or ())
            self._statistics = ColumnStatistics.empty(data.n_features)
            self._layout = Layout(
                "dense" if isinstance(data.rows, DenseRows) else "csr",
                data.rows.dtype,
                data.n_features,
                None if data.qid is None else "integer",
                data.weight is not None,
                data.comments is not None,
                self._counts,
            )
            self._like = data.select(np.empty(0, np.int64))
        found, expected = _form(data), _form(self._like)
        if found != expected:
            raise ValueError(
                f"{data.source}: rows are {found}, those before {expected}; all must be alike"
            )
        names, wanted = data.feature_names, self._like.feature_names
        if names != wanted:
            pairs = zip(names or (), wanted or (), strict=False)
            other = next(((a, b) for a, b in pairs if a != b), (names, wanted))
            raise ValueError(
                f"{data.source}: a column is named {other[0]!r} where {other[1]!r} stood before; "
                "all must have the same columns in the same order"
            )
        return data

    @property
    def folder(self) -> NewFolder:
        """Where it is written meanwhile."""
        if self._folder is None:
            raise ValueError("the writer is finished or was given up; make another")
        return self._folder

    def append(self, data: Dataset, ids: Any = None) -> None:
        """Write whole queries.

        Parameters
        ----------
        data : Dataset
            Rows stored like those before; those of a query come together, and its ``qid`` is one
            that no other query has.
        ids : integers or strings (n_queries,), optional
            Of the queries, where ``qid`` are only numbers.
        """
        try:
            self._append(*self._check(data, ids))
        except BaseException:
            self.abort()
            raise

    def _check(self, data: Dataset, ids: Any) -> tuple[Dataset, Array | None]:
        """The rows, and the ids as int64 or strings; an error says what does not fit the store."""
        rows = self.check_alike(data).rows
        if not _core.columns_increase(rows.core, self._n_threads):
            raise ValueError("the columns of a row must increase; see CsrRows")
        place = _core.first_non_finite(rows.core, self._n_threads)
        if place is not None:
            raise ValueError(
                f"row {place[0]} of the block, column {place[1]} is NaN or infinite; say what "
                "stands in for missing values with missing='zero', 'mean' or 'indicator'"
            )
        if data.n_rows == 0:
            raise ValueError("there are no rows to append; a query has at least one")
        labels, weight, comments = as_labels(data.labels, data.n_rows), data.weight, data.comments
        if weight is not None:
            weight = as_part_weights(weight, data.n_rows, "weight")
        if comments is not None and len(comments) != data.n_rows:
            raise ValueError(f"there are {data.n_rows} rows but {len(comments)} comments")
        if data.qid is None:
            ids = None
        else:
            ids = _as_ids(data.qid[query_offsets(data)[:-1]] if ids is None else ids)
        return replace(data, labels=labels, weight=weight), ids

    def _append(self, data: Dataset, ids: Array | None) -> None:
        _ = self.folder  # an error after the end
        offsets = query_offsets(data)
        first, n_queries = 0, len(offsets) - 1
        if ids is not None and len(ids) != n_queries:
            raise ValueError(f"there are {n_queries} queries but {len(ids)} ids")
        if data.n_features > self._layout.n_features:  # of CSR: rows so far are 0 in the new ones
            self._statistics = self._statistics.widen(data.n_features)
            self._layout = replace(self._layout, n_features=data.n_features)
        self._n_queries += n_queries
        if self._layout.ids is None and self._n_queries > 1:
            raise ValueError("a store without ids has one query; give ids to have more")
        ends = np.cumsum(_query_bytes(data, offsets))
        while first < n_queries:
            before = int(ends[first - 1]) if first else 0
            room = self._chunk_bytes - self._n_pending
            last = int(np.searchsorted(ends, before + room, side="right"))
            if last <= first:
                if self._pending:
                    self._flush()
                    continue
                last = first + 1
            part = data.select(slice(int(offsets[first]), int(offsets[last])))
            self._pending.append((part, None if ids is None else ids[first:last]))
            self._n_pending += int(ends[last - 1]) - before
            if last < n_queries:  # the next query does not fit: this is a chunk
                self._flush()
            first = last

    def _flush(self) -> None:
        parts, ids = zip(*self._pending, strict=True)
        self._pending, self._n_pending = [], 0
        if ids[0] is not None:
            whole_ids = join_ids(ids)
            self._ids.append(whole_ids if whole_ids.dtype.kind == "i" else _as_words(whole_ids))
        data = join_datasets(parts)
        del parts  # no longer needed once they are one
        offsets, rows = query_offsets(data), data.rows
        levels, n_levels = _core.rank_levels(data.labels, offsets, None, self._n_threads)
        self._n_pairs += sum(_core.count_pairs(levels, offsets, n_levels).tolist())
        if rows.shape[1] != self._layout.n_features:
            rows = resized(rows, self._layout.n_features)
        self._statistics += ColumnStatistics.of(rows, data.weight, self._n_threads)
        self._count("n_queries", len(n_levels))
        self._write("values", rows.values)
        if isinstance(rows, CsrRows):
            self._write("columns", rows.columns)
            self._write_ends("row_ends", rows.offsets, "n_entries")
        self._write("labels", data.labels)
        self._write("levels", levels)
        self._write("n_levels", n_levels)
        self._write_ends("query_ends", offsets, "n_rows")
        if data.weight is not None:
            self._write("weights", data.weight)
        if isinstance(data.comments, Comments):
            self._write("comment_text", data.comments.text)
            self._write_ends("comment_ends", data.comments.offsets, "comment_bytes")

    def _write_ids(self) -> None:
        """The ids of all queries: as text where those of any chunk are."""
        if any(isinstance(ids, Words) for ids in self._ids):
            self._layout = replace(self._layout, ids="text")
        for ids in self._ids:
            if self._layout.ids == "integer":
                self._write("ids", ids)
                continue
            words = ids if isinstance(ids, Words) else _as_words(ids)
            self._write("id_text", words.text)
            self._write_ends("id_ends", words.offsets, "id_bytes")

    def _write(self, name: str, array: Any) -> None:
        """Append what a chunk has of an array."""
        stored = self._layout.arrays[name]
        data = np.ascontiguousarray(array, stored.dtype)
        self.folder.write(stored.file, data)
        self._checksums[name].append(checksum(data))

    def _write_ends(self, name: str, offsets: Array, unit: Unit) -> None:
        """Append offsets into the units of a chunk, counted from the first chunk on."""
        self._write(name, offsets[1:] + self._totals[unit])
        self._count(unit, int(offsets[-1]))

    def _count(self, unit: Unit, n: int) -> None:
        self._counts[unit].append(n)
        self._totals[unit] += n

    def finish(self) -> Store:
        """Write what is left and the manifest; return the store, opened."""
        from linrank.io.store.store import Store

        try:
            if self._pending:
                self._flush()
            folder = self.folder
            self._write_ids()
            if self._like is None or not self._counts["n_rows"]:
                raise ValueError("nothing was appended; a store has at least one row")
            s = self._statistics
            data = np.concatenate([s.mean, s.variance, s.low, s.high, s.n_nonzero.view(np.float64)])
            folder.write(STATISTICS, data)
            self._checksums["statistics"] = [checksum(data)]
            manifest = Manifest(
                self._layout,
                self._n_pairs,
                s.weight,
                self._like.feature_names,
                self._like.index_base,
                self._checksums,
                self._like.filling,
            )
            folder.finish(manifest.encode())
        except BaseException:
            self.abort()
            raise
        self._folder = None
        return Store(folder.path)

    def abort(self) -> None:
        """Remove all that was written."""
        if self._folder is not None:
            self._folder.remove()
            self._folder = None

    def __enter__(self) -> StoreWriter:
        return self

    def __exit__(self, *_: object) -> None:
        """Whatever was not finished is removed."""
        self.abort()


def _form(data: Dataset) -> str:
    """What all rows of a store have in common; sparse ones may have columns that others lack."""
    storage = f"CSR {data.rows.dtype}"
    if isinstance(data.rows, DenseRows):
        storage = f"dense {data.rows.dtype} of {data.n_features} columns"
    base = "" if data.index_base is None else f", counted from {data.index_base}"
    given = {"ids": data.qid, "weights": data.weight, "comments": data.comments}
    has = [name for name, found in given.items() if found is not None]
    return f"{storage}{base}, with {' and '.join(has) or 'no ids'}"


def query_offsets(data: Dataset) -> Array:
    """Where each query begins and the last one ends, by row; those of a query come together."""
    if data.qid is None:
        return np.array([0, data.n_rows])
    changes = np.flatnonzero(np.asarray(data.qid[1:] != data.qid[:-1], bool)) + 1
    return np.concatenate([[0], changes, [data.n_rows]])


def row_bytes(data: Dataset) -> tuple[Array, Array]:
    """Bytes of the features of each row, and of its comment, as a store has them."""
    rows, n_rows = data.rows, data.n_rows
    if isinstance(rows, DenseRows):
        features = np.full(n_rows, rows.shape[1] * rows.dtype.itemsize)
    else:
        features = np.diff(rows.offsets) * (rows.dtype.itemsize + 4) + 8
    if not isinstance(data.comments, Comments):
        return features, np.zeros(n_rows, np.int64)
    return features, np.diff(data.comments.offsets) + 8


def _query_bytes(data: Dataset, offsets: Array) -> Array:
    """Bytes that the features of each query take in a store, or its comments, if more.

    A chunk is put together in memory, which long comments of few features would fill.
    """
    features, comments = (np.add.reduceat(sizes, offsets[:-1]) for sizes in row_bytes(data))
    return np.asarray(np.maximum(features, comments))


def _as_words(ids: Array) -> Words:
    return Words.of(map(str, ids.tolist()))


def _as_ids(ids: Any) -> Array:
    """Ids as int64 where all are integers, else as strings."""
    array = as_array(ids, "ids")
    if array.ndim != 1:
        raise ValueError(f"ids must be 1-D, one per query; got shape {array.shape}")
    if array.dtype.kind in "bi" or (array.dtype.kind == "u" and array.dtype.itemsize < 8):
        return array.astype(np.int64, copy=False)
    items = array.tolist()
    if all(isinstance(item, str) for item in items):
        return array.astype(object)
    for item in items:
        if not isinstance(item, int) or not -(2**63) <= item < 2**63:
            raise TypeError(
                f"query id {item!r} is a {type(item).__name__}; ids in a store are all strings or "
                "all integers of 64 bits: convert them, as in qid.astype(str)"
            )
    return np.array(items, np.int64)


def with_stored_comments(data: Dataset, first_row: int) -> Dataset:
    """The data with comments as a store has them: documents of a table as LETOR files name them."""
    if data.comments is None:
        return data
    return replace(data, comments=as_comments(data, first_row, "a store"))


# ---- the folder that a store is written into, beside its place, until it is whole ---------------

_WRITE_BACK = 32 << 20  # bytes after which the system is asked to begin writing to the disk


class NewFolder:
    """A hidden folder that takes the place of ``path`` when it is whole, or vanishes.

    One process of a machine writes a store at a time; others get an error at once.
    """

    def __init__(self, path: str, overwrite: bool) -> None:
        self.path, self.overwrite = path, overwrite
        self._files: dict[str, int] = {}
        self._waiting: dict[str, tuple[int, int]] = {}
        check_target(path, overwrite)
        busy = f"{path} is being written by another process; wait for it, or name another folder"
        with naming(path, over=True):
            self._scratch = Scratch(os.path.dirname(path), 0o777, token=token_of(path), busy=busy)
        self.partial = self._scratch.path

    def write(self, name: str, data: Array) -> None:
        """Append the bytes of an array to a file."""
        with naming(self.path, over=True, what="store", removed=REMOVED):
            if name not in self._files:
                flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0)
                self._files[name] = os.open(os.path.join(self.partial, name), flags, 0o666)
            if not data.nbytes:
                return
            view = data.reshape(-1).view(np.uint8).data
            while view:
                view = view[os.write(self._files[name], view) :]
        # The disk is to write while the next chunk is made, not all of it at the end.
        begin, waiting = self._waiting.get(name, (0, 0))
        waiting += data.nbytes
        if waiting >= _WRITE_BACK and hasattr(os, "posix_fadvise"):
            os.posix_fadvise(self._files[name], begin, waiting, os.POSIX_FADV_DONTNEED)
            begin, waiting = begin + waiting, 0
        self._waiting[name] = (begin, waiting)

    def finish(self, content: bytes) -> None:
        """Force all to the disk, the manifest last, and give the folder its name."""
        with naming(self.path, over=True, what="store", removed=REMOVED):
            for descriptor in self._files.values():
                os.fsync(descriptor)
            self._close()
            with replacing(os.path.join(self.partial, MANIFEST)) as file:
                file.write(content)
        check_target(self.path, self.overwrite)  # somebody may have put something there meanwhile
        with naming(self.path, over=True):
            if os.path.isdir(self.path) and os.listdir(self.path):
                replace_folder(self.partial, self.path)
            else:
                os.rename(self.partial, self.path)  # an empty folder gives way
        sync_folder(os.path.dirname(self.path))
        self.remove()

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
    recover(target)
    if not os.path.lexists(target):
        check_place(target)
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
