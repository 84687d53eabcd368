"""Store: a data set on disk, read chunk by chunk or as a whole."""

from __future__ import annotations

import os
import weakref
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from linrank import _core
from linrank.choices import MISSING
from linrank.data.dataset import Dataset
from linrank.data.missing import keep_queries
from linrank.data.queries import UNSAID, Queries, query_runs
from linrank.data.rows import Array, ColumnStatistics, CsrRows, DenseRows, Rows
from linrank.data.words import naming_documents
from linrank.errors import DataFormatError, check_one_of
from linrank.io.store.chunks import (
    AGAIN,
    Buffer,
    ChunkReader,
    Files,
    checksum,
    read_manifest,
    span,
)
from linrank.io.store.manifest import MANIFEST
from linrank.io.store.writer import CHUNK_BYTES, StoreWriter, with_stored_comments
from linrank.system import available, cached_property, describe_bytes, map_threads, recover, resolve
from linrank.system.durable import FULL_DISK


class Store:
    """A data set on disk: a folder of arrays, cut into chunks of whole queries.

    Opening one reads the manifest and compares the sizes of all files with it; bytes are compared
    with their checksums when they are first read. Stores are written by ``linrank convert``,
    `Store.write` and `Store.of`. A pickled store is its path: the process that gets it opens it
    again and refuses one that is not the same.

    Parameters
    ----------
    path : path
        The folder.

    Attributes
    ----------
    path : str
        The folder, absolute.
    chunks : tuple of ChunkRange
        Where each chunk lies: ``rows`` and ``queries`` as slices, and ``nbytes``, the size of its
        features.
    n_rows, n_features, n_queries, n_pairs, n_chunks : int
        Numbers of rows, columns, queries, pairs of all queries, and chunks.
    storage : {"dense", "csr"}
    dtype : float32 or float64
        Type of the values.
    nbytes : int
        Bytes of the features: values, and for CSR columns and row ends.
    feature_names : tuple of str or None
        Name of each column, if there are names.
    filling : Filling or None
        How missing values of the rows were filled in, if the data may have had some.
    index_base : int or None
        The number of the first column in the text that it was made of.
    has_ids : bool
        Whether queries have ids; without them there is one query.
    has_weights, has_comments : bool
        Whether rows have weights, comments.
    digest : str
        SHA-256 of the manifest, which holds the checksums of all else: tells stores apart.

    Raises
    ------
    DataFormatError
        The folder is no store, is damaged, incomplete or of another version.

    Examples
    --------
    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = folder.name + "/store"
    >>> store = Store.write(path, [[0.5], [1.0], [2.0]], [0, 1, 2], qid=["a", "b", "a"])
    >>> print(store.dataset().qid, store.dataset().labels, store.n_pairs)
    ['a' 'a' 'b'] [0. 2. 1.] 1
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        folder = os.path.abspath(os.fspath(path))
        place = os.path.join(folder, MANIFEST)
        recover(folder)
        if not os.path.isdir(folder):
            if not os.path.exists(folder):
                raise FileNotFoundError(f"{folder}: there is no such store")
            raise DataFormatError(f"{folder}: is a file; a store is a folder")
        if not os.path.lexists(place):
            raise DataFormatError(
                f"{folder}: has no {MANIFEST}: it is no store, or writing it was interrupted; "
                "write it with linrank convert or linrank.Store.write"
            )
        self.path, self._manifest = folder, read_manifest(place)
        manifest = self._manifest
        self._layout = layout = manifest.layout
        self.chunks = tuple(map(layout.chunk, range(layout.n_chunks)))
        self.n_rows, self.n_queries = layout.total("n_rows"), layout.total("n_queries")
        self.n_features, self.n_chunks = layout.n_features, layout.n_chunks
        self.n_pairs = manifest.n_pairs
        self.storage, self.dtype = layout.storage, layout.dtype
        self.nbytes = sum(chunk.nbytes for chunk in self.chunks)
        self.feature_names, self.index_base = manifest.feature_names, manifest.index_base
        self.filling = manifest.filling
        self.has_ids, self.has_weights = layout.ids is not None, layout.has_weights
        self.has_comments, self.digest = layout.has_comments, manifest.digest
        self._files = Files(self.path, self._layout.sizes())
        self._reader = ChunkReader(self._manifest, self._files)

    @cached_property
    def statistics(self) -> ColumnStatistics:
        """Moments, ranges and non-zeros of the columns, merged chunk by chunk when written."""
        return self._reader.statistics()

    def query_lengths(self, chunk: int | None = None) -> Array:
        """Rows of each query, of one chunk or of all, as int64."""
        chunks = range(self.n_chunks) if chunk is None else [chunk]
        return np.concatenate([np.diff(self.read_queries(i).offsets) for i in chunks])

    # ---- reading ----------------------------------------------------------------------------

    def buffer(self, chunk: int | None = None) -> Buffer:
        """Memory for the features of a chunk, or of any, to be read into again and again."""
        sizes: dict[str, int] = {}
        for name in ("values", "columns"):
            if name in self._layout.arrays:
                chunks = range(self.n_chunks) if chunk is None else [chunk]
                sizes[name] = max(span(*self._layout.place(name, i)) for i in chunks)
        return Buffer(sizes)

    def read(self, i: int, *, into: Buffer | None = None) -> Dataset:
        """Chunk i as a dataset in memory.

        Bytes are compared with their checksums the first time that this process reads them.

        Parameters
        ----------
        i : int
            Number of the chunk.
        into : Buffer, optional
            Memory for its features, made by `buffer`. They are gone with the next read into it.
            Without it new memory is taken, which is slower in a loop.

        Returns
        -------
        Dataset
            Its queries are grouped and ranked already.
        """
        i = self._index(i)
        buffer = self.buffer(i) if into is None else into
        return self._reader.chunk(i, buffer, f"{self.path}, chunk {i}")

    def read_queries(self, i: int) -> Queries:
        """The queries of chunk i alone, its rows counted from 0."""
        return self._reader.of_chunk(self._index(i), self._reader.queries)

    def read_weight(self, i: int) -> Array | None:
        """The weights of the rows of chunk i; None if rows have none."""
        return self._reader.of_chunk(self._index(i), self._reader.weight)

    def read_rows(self, rows: slice) -> Rows:
        """The features of a range of rows, which may cut through queries and chunks, in memory.

        Chunks that this process has not read yet are first read through once and compared with
        their checksums.
        """
        reader, layout = self._reader, self._layout
        begin, end, step = rows.indices(self.n_rows)
        if step != 1 or end < begin:
            raise ValueError(f"rows must be a range forwards without gaps, got {rows}")
        starts = layout.bounds["n_rows"]
        for i in range(bisect_right(starts, begin) - 1, bisect_left(starts, end)):
            reader.check_features(i)
        if layout.storage == "dense":
            values = _range(reader, "values", begin, end)
            found: Rows = DenseRows(values.reshape(end - begin, self.n_features))
        else:
            found = _csr_rows(reader, begin, end)
        reader.check_rows(found, None, True)
        return found

    def dataset(self, *, n_jobs: int | None = None) -> Dataset:
        """The whole store as one dataset, every byte compared with its checksum.

        It is read into memory if it takes at most half of what is free, else copied into a file
        without a name beside it, which is mapped. Whatever is done to the store afterwards does
        not change the dataset.

        Parameters
        ----------
        n_jobs : int, optional
            Threads; None uses all cores.
        """
        reader, n_threads = self._reader, resolve(n_jobs)
        arrays = _arrays(reader, self.path, n_threads)
        _check_sums(reader, arrays, n_threads)
        get = arrays.__getitem__
        comments = reader.comments(None, get) if self.has_comments else None
        return reader.dataset(None, get, comments, True, self.path)

    def verify(self) -> None:
        """Read everything and check it: checksums, offsets, labels against levels, pairs.

        Raises
        ------
        DataFormatError
            With the file and the chunk of the first fault.
        """
        reader = ChunkReader(self._manifest, self._files)  # which has found nothing sound yet
        buffer, n_pairs = self.buffer(), 0
        for i in range(self.n_chunks):
            data = reader.chunk(i, buffer, self.path)
            queries = data.queries
            levels, n_levels = _core.rank_levels(data.labels, queries.offsets, None, 1)
            if not (levels == queries.levels).all() or not (n_levels == queries.n_levels).all():
                raise reader.damage_error("levels", i, "its levels are not those of the labels")
            if self.has_comments:
                reader.of_chunk(i, reader.comments)
            n_pairs += queries.n_pairs
        if n_pairs != self.n_pairs:
            raise DataFormatError(
                f"{self._files.path(MANIFEST)}: says {self.n_pairs} pairs, the labels make "
                f"{n_pairs}; {AGAIN}"
            )
        reader.statistics()

    def _index(self, i: int) -> int:
        if not 0 <= i < self.n_chunks:
            raise IndexError(f"chunk {i} of {self.n_chunks}; chunks are numbered from 0")
        return int(i)

    def __repr__(self) -> str:
        """Where it is and what it holds."""
        return (
            f"<Store {self.path}: {self.n_queries} queries; {self.storage} {self.dtype}, "
            f"{self.n_rows} × {self.n_features}, {describe_bytes(self.nbytes)} in "
            f"{self.n_chunks} chunks>"
        )

    def close(self) -> None:
        """Close the files; datasets that were read stay."""
        self._files.close()

    @property
    def is_closed(self) -> bool:
        """Whether `close` was called: nothing more can be read."""
        return not self._files.close.alive

    def __reduce__(self) -> tuple[Any, ...]:
        return _reopen, (self.path, self.digest)

    # ---- writing ----------------------------------------------------------------------------

    @classmethod
    def write(
        cls,
        path: str | os.PathLike[str],
        X: Any,
        y: Any,
        *,
        qid: Any = None,
        sample_weight: Any = None,
        feature_names: Sequence[str] | None = None,
        docids: Sequence[str | None] | None = None,
        missing: str = "error",
        chunk_bytes: int = CHUNK_BYTES,
        overwrite: bool = False,
        n_jobs: int | None = None,
    ) -> Store:
        """Write arrays or tables as a store; rows are grouped by query.

        Parameters
        ----------
        path : path
            The folder to be made.
        X, y, qid, sample_weight, feature_names
            As for ``Dataset.of``; ids of queries are integers or strings.
        docids : sequence of str or None, optional
            Document of each row.
        missing : {"error", "zero", "mean", "indicator"}, default="error"
            What happens to missing values, as for ``Dataset.of``. The store holds filled rows, and
            how they were filled in: a model that is trained from it has the same policy.
        chunk_bytes : int
            Bytes of the features of a chunk. Out of core, some chunks are in memory at a time.
        overwrite : bool
            Whether to replace a store at `path`; anything else there is never touched.
        n_jobs : int, optional
            Threads; None uses all cores.
        """
        check_one_of("missing", missing, MISSING)  # a store has a value in every place
        own: Any = {"qid": qid, "sample_weight": sample_weight, "feature_names": feature_names}
        data = Dataset.of(X, y, **own, missing=missing, n_jobs=n_jobs)
        how: Any = {"chunk_bytes": chunk_bytes, "overwrite": overwrite, "n_jobs": n_jobs}
        return cls.of(path, data, docids=docids, **how)

    @classmethod
    def of(
        cls,
        path: str | os.PathLike[str],
        data: Dataset,
        *,
        docids: Sequence[str | None] | None = None,
        chunk_bytes: int = CHUNK_BYTES,
        overwrite: bool = False,
        n_jobs: int | None = None,
    ) -> Store:
        """Write a dataset as a store; see `write`."""
        if docids is not None:
            if isinstance(docids, str) or len(docids) != data.n_rows:
                raise ValueError(f"docids must hold one id for each of the {data.n_rows} rows")
            data = replace(data, comments=naming_documents(docids, 0, "a store"))
        offsets, order = data.queries.offsets, data.queries.order
        n_rows = max(1, chunk_bytes * data.n_rows // max(1, data.rows.nbytes))
        options: Any = {"chunk_bytes": chunk_bytes, "overwrite": overwrite, "n_jobs": n_jobs}
        with StoreWriter(path, **options) as writer:
            for first, last in query_runs(offsets, n_rows):
                rows = slice(int(offsets[first]), int(offsets[last]))
                # Rows that do not lie together are gathered by chunks.
                part = data.select(rows if order is None else order[rows])
                writer.append(with_stored_comments(part, rows.start))
            return writer.finish()


# Stores of this process by path and digest: workers get the same one many times, and what was
# found sound once need not be summed again.
_OPENED: weakref.WeakValueDictionary[tuple[str, str], Store] = weakref.WeakValueDictionary()


def _reopen(path: str, digest: str) -> Store:
    store = _OPENED.get((path, digest))
    if store is None or store.is_closed:
        store = Store(path)
        if store.digest != digest:
            raise DataFormatError(
                f"{path}: is not the store that it was when it was sent here; every machine must "
                "see the same folder, and nobody may replace it meanwhile"
            )
        _OPENED[path, digest] = store
    return store


# ---- what is known of a store without its features ----------------------------------------------


def columns_of(store: Store) -> Dataset:
    """A dataset with the columns of the store and no row: what checks of columns look at."""
    rows = DenseRows(np.empty((0, store.n_features), dtype=store.dtype))
    ids = np.empty(0, dtype=np.int64) if store.has_ids else None
    return Dataset(
        rows,
        np.empty(0),
        ids,
        feature_names=store.feature_names,
        source=store.path,
        index_base=store.index_base,
        filling=store.filling,
    )


def outline(store: Store) -> Dataset:
    """A dataset of the shape of a store, with its queries, names and ids, and nothing in its rows.

    What an estimator asks of its data beside the training itself needs no more; it takes some bytes
    a query, whatever the number of rows. Labels and levels are all 0.
    """
    n_rows, found = store.n_rows, []
    for i in range(store.n_chunks):
        part = store.read_queries(i)  # with a level for each row, which does not stay
        found.append((np.diff(part.offsets), part.n_levels, part.ids))
    lengths, n_levels, ids = zip(*found, strict=True)

    def zeros(dtype: Any, n: int = n_rows) -> Array:
        return np.broadcast_to(np.zeros(1, dtype), n)

    queries = Queries(
        np.concatenate([[0], np.cumsum(np.concatenate(lengths))]),
        None,
        zeros(np.int32),
        np.concatenate(n_levels),
        np.concatenate(ids) if store.has_ids else None,
    )
    none, entries = np.empty(0, np.int32), np.empty(0, store.dtype)
    return keep_queries(
        columns_of(store),
        queries,
        rows=CsrRows(entries, none, zeros(np.int64, n_rows + 1), store.n_features),
        labels=zeros(np.float64),
        qid=None if queries.ids is None else np.broadcast_to(queries.ids[:1], n_rows),
    )


def is_limited(X: Any, y: Any, memory_limit: Any, **others: Any) -> bool:
    """Whether a fit is to go over a store in passes; what does not belong together is refused.

    ``others`` are arguments of ``fit`` that a store answers itself.
    """
    if not isinstance(X, Store):
        if memory_limit is not None:
            raise ValueError(
                f"memory_limit={memory_limit!r} is for a store, got {type(X).__name__}: what is in "
                "memory cannot be kept out of it; write it with linrank.Store.write, or leave "
                "memory_limit out"
            )
        return False
    for name, value in {"y": y, **others}.items():
        if value is not None and value is not UNSAID:
            raise ValueError(f"{name} is part of the store {X.path}; call fit(store) without it")
    return memory_limit is not None


# ---- whole stores, and ranges of rows -----------------------------------------------------------


def _arrays(reader: ChunkReader, source: str, n_threads: int) -> dict[str, Array]:
    layout, free = reader.layout, available()
    files = {a.file for a in layout.arrays.values()}
    sizes = {name: size for name, size in layout.sizes().items() if name in files}
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
    """Sum all that was not summed yet, one chunk per task."""

    def check(i: int) -> None:
        for name, array in arrays.items():
            if not reader.sound[name][i]:
                begin, n_bytes = reader.layout.place(name, i)
                data = array.view(np.uint8)[begin : begin + n_bytes]
                reader.check_sum(name, i, checksum(data))

    map_threads(reader.layout.n_chunks, check, n_threads)


def _csr_rows(reader: ChunkReader, begin: int, end: int) -> CsrRows:
    offsets = np.zeros(end - begin + 1, np.int64)
    ends = _range(reader, "row_ends", max(0, begin - 1), end)
    offsets[int(begin == 0) :] = ends  # nothing ends before row 0
    first, last = int(offsets[0]), int(offsets[-1])
    if not 0 <= first <= last <= reader.layout.total("n_entries"):
        raise reader.damage_error("row_ends", None, f"rows from entry {first} to {last}")
    offsets -= first
    reader.check_offsets("row_ends", None, offsets, last - first)
    values = _range(reader, "values", first, last)
    columns = _range(reader, "columns", first, last)
    return CsrRows(values, columns, offsets, reader.layout.n_features)


def _range(reader: ChunkReader, name: str, begin: int, end: int) -> Array:
    stored = reader.layout.arrays[name]
    data = reader.files.read(stored.file, *stored.place(begin, end))
    return np.asarray(data.view(stored.dtype))
