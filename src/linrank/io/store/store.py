"""Store: a data set on disk, read chunk by chunk or as a whole."""

from __future__ import annotations

import os
import weakref
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linrank import _core
from linrank.data.dataset import Dataset
from linrank.data.queries import Queries
from linrank.data.rows import ColumnStatistics, CsrRows, DenseRows, Rows
from linrank.errors import DataFormatError
from linrank.io.comments import Comments, Words
from linrank.io.store.array_files import AGAIN, Buffer, Files, span
from linrank.io.store.layout import MANIFEST
from linrank.io.store.manifest import Contents, read_manifest
from linrank.io.store.read import ChunkReader, Verify, whole_dataset
from linrank.io.store.writer import CHUNK_BYTES, StoreWriter
from linrank.system.durable import recover
from linrank.system.resources import cached_property, resolve

Array = NDArray[Any]


class StoredComments:
    """The comments of one chunk, as ``linrank.io.comments.Comments``."""

    def __init__(self, reader: ChunkReader, chunk: int, verify: Verify) -> None:
        self._reader, self._chunk, self._verify = reader, chunk, verify

    @cached_property
    def _found(self) -> Comments:
        return self._reader.comments(self._chunk, self._verify)

    def __len__(self) -> int:
        return self._reader.layout.counts["n_rows"][self._chunk]

    def __getitem__(self, i: int) -> str:
        """The comment of row ``i``."""
        return self._found[i]

    def docid(self, i: int) -> str | None:
        """The document of row ``i``."""
        return self._found.docid(i)

    def select(self, index: Any) -> Comments:
        """The comments of some rows."""
        return self._found.select(index)

    def __reduce__(self) -> tuple[Any, ...]:
        return Comments, (self._found.text, self._found.offsets)


def write_dataset(
    path: str | os.PathLike[str],
    data: Dataset,
    docids: Sequence[str | None] | None,
    chunk_bytes: int,
    overwrite: bool,
    n_jobs: int | None,
) -> None:
    """Write all queries; rows that do not lie together are gathered a chunk at a time."""
    queries, order = data.queries, data.queries.order
    comments: Any = data.comments if docids is None else _comments(docids, data.n_rows)
    with StoreWriter(
        path,
        storage="dense" if isinstance(data.rows, DenseRows) else "csr",
        dtype=data.rows.dtype,
        n_features=data.n_features,
        has_ids=queries.ids is not None,
        has_weights=data.weight is not None,
        has_comments=comments is not None,
        feature_names=data.feature_names,
        index_base=data.index_base,
        chunk_bytes=chunk_bytes,
        overwrite=overwrite,
        n_jobs=n_jobs,
    ) as writer:
        for first, last in _parts(data, chunk_bytes):
            begin, end = queries.offsets[first], queries.offsets[last]
            rows: Any = slice(begin, end) if order is None else order[begin:end]
            writer.append(
                data.rows.take(rows),
                data.labels[rows],
                None if data.weight is None else data.weight[rows],
                np.diff(queries.offsets[first : last + 1]),
                None if queries.ids is None else queries.ids[first:last],
                None if comments is None else _plain(comments.select(rows)),
            )
        writer.finish()


def _parts(data: Dataset, chunk_bytes: int) -> list[tuple[int, int]]:
    """Ranges of queries of about a chunk each: what is gathered is a copy."""
    queries = data.queries
    n_rows = max(1, chunk_bytes * data.n_rows // max(1, data.rows.nbytes))
    cuts = [0]
    while cuts[-1] < queries.n_queries:
        wanted = queries.offsets[cuts[-1]] + n_rows
        cuts.append(max(cuts[-1] + 1, int(np.searchsorted(queries.offsets, wanted, "right")) - 1))
    return list(pairwise(cuts))


def _comments(docids: Sequence[str | None], n_rows: int) -> Comments:
    """Comments that name the documents, as LETOR files do."""
    if isinstance(docids, str) or len(docids) != n_rows:
        raise ValueError(f"docids must hold one id for each of the {n_rows} rows")
    for i, docid in enumerate(docids):
        if docid is not None and (not isinstance(docid, str) or len(docid.split()) != 1):
            raise ValueError(f"docids[{i}] is {docid!r}; an id is a string without blanks, or None")
    words = Words.of("" if docid is None else f"docid = {docid}" for docid in docids)
    return Comments(words.text, words.offsets)


def _plain(comments: Any) -> Comments:
    """Comments as one text, whatever class held them."""
    if isinstance(comments, Comments):
        return comments
    words = Words.of(comments[i] for i in range(len(comments)))
    return Comments(words.text, words.offsets)


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


class Store(Contents):
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
        Where each chunk lies: ``rows``, ``queries`` and ``entries`` (CSR, else None) as slices,
        and ``nbytes``, the size of its features.

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
        super().__init__(folder, read_manifest(place))
        self._files = Files(self.path, self._layout.sizes())
        self._reader = ChunkReader(self._manifest, self._files)

    @cached_property
    def statistics(self) -> ColumnStatistics:
        """Moments, ranges and non-zeros of the columns, merged chunk by chunk when written."""
        return self._reader.statistics()

    def query_lengths(self, chunk: int | None = None) -> Array:
        """Rows of each query, of one chunk or of all, as int64."""
        return self._by_chunk(chunk, lambda i: np.diff(self.read_queries(i).offsets))

    def query_levels(self, chunk: int | None = None) -> Array:
        """Number of different labels of each query, of one chunk or of all, as int32."""
        return self._by_chunk(chunk, lambda i: self.read_queries(i).n_levels)

    def _by_chunk(self, chunk: int | None, read: Any) -> Array:
        if chunk is not None:
            return np.asarray(read(chunk))
        return np.concatenate([read(i) for i in range(self.n_chunks)])

    # ---- reading ----------------------------------------------------------------------------

    def buffer(self) -> Buffer:
        """Memory for the features of any chunk, to be read into again and again."""
        sizes: dict[str, int] = {}
        for name in ("values", "columns"):
            if name in self._layout.arrays:
                places = (self._layout.place(name, i) for i in range(self.n_chunks))
                sizes[name] = max(span(*place) for place in places)
        return Buffer(sizes)

    def read(self, i: int, *, into: Buffer | None = None, verify: Verify = True) -> Dataset:
        """Chunk i as a dataset in memory.

        Parameters
        ----------
        i : int
            Number of the chunk.
        into : Buffer, optional
            Memory for its features, made by `buffer`. They are gone with the next read into it.
            Without it new memory is taken, which is slower in a loop.
        verify : {True, False, "always"}, default=True
            Whether to compare the bytes with their checksums: the first time that this process
            reads them, never, or each time.

        Returns
        -------
        Dataset
            Its queries are grouped and ranked already.
        """
        if verify not in (True, False, "always"):
            raise ValueError(f"verify must be True, False or 'always', got {verify!r}")
        i, reader = self._index(i), self._reader
        rows = reader.rows(i, verify, self._own_buffer(i) if into is None else into)
        queries = reader.queries(i, verify)
        qid = None if queries.ids is None else np.repeat(queries.ids, np.diff(queries.offsets))
        comments = StoredComments(reader, i, verify) if self.has_comments else None
        data = Dataset(
            rows,
            reader.labels(i, verify),
            qid,
            reader.weight(i, verify),
            self.feature_names,
            comments,
            f"{self.path}, chunk {i}",
            self.index_base,
        )
        data.__dict__["queries"] = queries
        return data

    def read_queries(self, i: int) -> Queries:
        """The queries of chunk i alone, its rows counted from 0."""
        return self._reader.queries(self._index(i), True)

    def read_weight(self, i: int) -> Array | None:
        """The weights of the rows of chunk i; None if rows have none."""
        return self._reader.weight(self._index(i), True)

    def read_rows(self, rows: slice, *, verify: bool = True) -> Rows:
        """The features of a range of rows, which may cut through queries and chunks, in memory.

        With ``verify``, chunks that this process has not read yet are first read through once and
        compared with their checksums.
        """
        return read_rows(self._reader, rows, verify)

    def dataset(self, verify: bool = True, *, n_jobs: int | None = None) -> Dataset:
        """The whole store as one dataset.

        It is read into memory if it takes at most half of what is free, else copied into a file
        without a name beside it, which is mapped. Whatever is done to the store afterwards does
        not change the dataset.

        Parameters
        ----------
        verify : bool
            Whether to compare every byte with its checksum first: a pass over the store. Offsets,
            levels and columns are checked in any case.
        n_jobs : int, optional
            Threads of that pass; None uses all cores.
        """
        return whole_dataset(self._reader, self.path, verify, resolve(n_jobs))

    def verify(self) -> None:
        """Read everything and check it: checksums, offsets, labels against levels, pairs.

        Raises
        ------
        DataFormatError
            With the file and the chunk of the first fault.
        """
        buffer, n_pairs = self.buffer(), 0
        self._reader.check_leads()
        for i in range(self.n_chunks):
            data = self.read(i, into=buffer, verify="always")
            queries = data.queries
            levels, n_levels = _core.rank_levels(data.labels, queries.offsets, None, 1)
            if not (levels == queries.levels).all() or not (n_levels == queries.n_levels).all():
                raise self._reader.damaged("levels", i, "its levels are not those of the labels")
            if self.has_comments:
                self._reader.comments(i, "always")
            n_pairs += queries.n_pairs
        if n_pairs != self.n_pairs:
            raise DataFormatError(
                f"{self._files.path(MANIFEST)}: says {self.n_pairs} pairs, the labels make "
                f"{n_pairs}; {AGAIN}"
            )
        self.__dict__.pop("statistics", None)
        _ = self.statistics

    def _own_buffer(self, i: int) -> Buffer:
        names = [name for name in ("values", "columns") if name in self._layout.arrays]
        return Buffer({name: span(*self._layout.place(name, i)) for name in names})

    def close(self) -> None:
        """Close the files; datasets that were read stay."""
        self._files.close()

    @property
    def is_closed(self) -> bool:
        """Whether `close` was called: nothing more can be read."""
        return not self._files.close.alive

    def __reduce__(self) -> tuple[Any, ...]:
        return _reopened, (self.path, self.digest)

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
        chunk_bytes : int
            Bytes of the features of a chunk. Out of core, some chunks are in memory at a time.
        overwrite : bool
            Whether to replace a store at `path`; anything else there is never touched.
        n_jobs : int, optional
            Threads; None uses all cores.
        """
        data = Dataset.of(
            X,
            y,
            qid=qid,
            sample_weight=sample_weight,
            feature_names=feature_names,
            n_jobs=n_jobs,
        )
        return cls.of(
            path, data, docids=docids, chunk_bytes=chunk_bytes, overwrite=overwrite, n_jobs=n_jobs
        )

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
        write_dataset(path, data, docids, chunk_bytes, overwrite, n_jobs)
        return cls(path)


# Stores of this process by path and digest: workers get the same one many times, and what was
# found sound once need not be summed again.
_OPENED: weakref.WeakValueDictionary[tuple[str, str], Store] = weakref.WeakValueDictionary()


def _reopened(path: str, digest: str) -> Store:
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
