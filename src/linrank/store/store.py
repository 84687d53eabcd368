"""Store: a data set on disk, read chunk by chunk or as a whole."""

from __future__ import annotations

import os
import weakref
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linrank import _core
from linrank.data.dataset import Dataset
from linrank.data.queries import Queries
from linrank.data.rows import Rows
from linrank.data.statistics import ColumnStatistics
from linrank.durable import recover
from linrank.errors import DataFormatError
from linrank.lazy import cached_property
from linrank.store.buffer import Buffer, span
from linrank.store.comments import StoredComments
from linrank.store.contents import Contents
from linrank.store.files import AGAIN, Files
from linrank.store.layout import MANIFEST
from linrank.store.manifest import read_manifest
from linrank.store.reading import ChunkReader, Verify
from linrank.store.row_ranges import read_rows
from linrank.store.whole import whole_dataset
from linrank.store.writer import CHUNK_BYTES
from linrank.store.writing import write_dataset
from linrank.threads import resolve

__all__ = ["Store"]

Array = NDArray[Any]


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
