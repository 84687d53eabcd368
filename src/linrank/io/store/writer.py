"""StoreWriter: whole queries in, chunk after chunk; a store only when all of it is on the disk."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from linrank import _core
from linrank.data.frames import as_array, as_labels, check_names
from linrank.data.queries import as_sizes
from linrank.data.rows import ColumnStatistics, CsrRows, DenseRows, Rows
from linrank.io.comments import Comments, Words
from linrank.io.store.batch import Block, Pending, as_words
from linrank.io.store.layout import STATISTICS, Layout, NewFolder, StoredArray
from linrank.io.store.manifest import Manifest
from linrank.io.store.read import checksum
from linrank.system.resources import resolve

if TYPE_CHECKING:
    from linrank.io.store.store import Store

Array = NDArray[Any]


def checked_block(
    layout: Layout,
    rows: Rows,
    labels: Any,
    weight: Any,
    sizes: Any,
    ids: Any,
    comments: Comments | None,
    n_threads: int,
) -> Block:
    """A block of whole queries that fits the store, or an error that says what does not."""
    _check_rows(layout, rows, n_threads)
    n_rows = rows.shape[0]
    labels = as_labels(labels, n_rows)
    sizes = as_sizes(sizes, n_rows)
    _check_given("weights", weight is not None, layout.has_weights)
    _check_given("comments", comments is not None, layout.has_comments)
    _check_given("ids", ids is not None, layout.ids is not None)
    if weight is not None:
        # as_weights refuses zeros everywhere; a block among others may have them.
        weight = np.ascontiguousarray(weight, np.float64)
        if weight.shape != (n_rows,) or not (np.isfinite(weight) & (weight >= 0.0)).all():
            raise ValueError(f"weight must hold a finite number >= 0 for each of the {n_rows} rows")
    if comments is not None and len(comments) != n_rows:
        raise ValueError(f"there are {n_rows} rows but {len(comments)} comments")
    return Block(rows, labels, weight, sizes, _as_ids(ids, len(sizes)), comments)


def _check_rows(layout: Layout, rows: Rows, n_threads: int) -> None:
    storage = "dense" if isinstance(rows, DenseRows) else "csr"
    found = (storage, rows.dtype.name, rows.shape[1])
    expected = (layout.storage, layout.dtype.name, layout.n_features)
    if found != expected:
        raise ValueError(
            f"rows are {found[0]} {found[1]} of {found[2]} columns, the store is {expected[0]} "
            f"{expected[1]} of {expected[2]}"
        )
    if not _core.columns_increase(rows.core, n_threads):
        raise ValueError("the columns of a row must increase; see CsrRows")
    place = _core.first_non_finite(rows.core, n_threads)
    if place is not None:
        raise ValueError(f"row {place[0]} of the block, column {place[1]} is NaN or infinite")


def _check_given(name: str, given: bool, wanted: bool) -> None:
    if given != wanted:
        verb = "needs" if wanted else "takes no"
        raise ValueError(f"this store {verb} {name}: it was opened with has_{name}={wanted}")


def _as_ids(ids: Any, n_queries: int) -> Array | Words | None:
    """Ids as int64 where all are integers, else as text."""
    if ids is None:
        return None
    if not isinstance(ids, Words):
        array = as_array(ids, "ids")
        if array.ndim != 1:
            raise ValueError(f"ids must be 1-D, one per query; got shape {array.shape}")
        ids = _integers_or_words(array)
    if len(ids) != n_queries:
        raise ValueError(f"there are {n_queries} queries but {len(ids)} ids")
    return ids  # type: ignore[no-any-return]


def _integers_or_words(array: Array) -> Array | Words:
    if array.dtype.kind in "bi" or (array.dtype.kind == "u" and array.dtype.itemsize < 8):
        return array.astype(np.int64, copy=False)
    items = array.tolist()
    if all(isinstance(item, str) for item in items):
        return Words.of(items)
    for item in items:
        if not isinstance(item, int) or not -(2**63) <= item < 2**63:
            raise TypeError(
                f"query id {item!r} is a {type(item).__name__}; ids in a store are all strings or "
                "all integers of 64 bits: convert them, as in qid.astype(str)"
            )
    return np.array(items, np.int64)


CHUNK_BYTES = 64 << 20


class StoreWriter:
    """Writes a store: `append` whole queries in order, then `finish`.

    A chunk takes queries as long as their features (or their comments, where those are larger) fit
    into `chunk_bytes`, and at least one; where `append` cuts the data does not matter. Until
    `finish` returns there is no store at `path`: a fault, Ctrl-C, a full disk or a killed process
    leave nothing that opens as one.

    Parameters
    ----------
    path : path
        Folder of the store, which must not exist yet (or be empty). It is written under another
        name beside it, and renamed.
    storage : {"dense", "csr"}
    dtype : {"float32", "float64"}
        Of the values.
    n_features : int
    has_ids : bool
        Whether queries have ids; without them there is one query.
    has_weights, has_comments : bool
        Whether rows have weights, comments.
    feature_names : sequence of str, optional
    index_base : {0, 1}, optional
        The number of the first column in the text that the data came from.
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
        storage: str,
        dtype: Any,
        n_features: int,
        has_ids: bool = True,
        has_weights: bool = False,
        has_comments: bool = False,
        feature_names: Sequence[str] | None = None,
        index_base: int | None = None,
        chunk_bytes: int = CHUNK_BYTES,
        overwrite: bool = False,
        n_jobs: int | None = None,
    ) -> None:
        _check_options(storage, np.dtype(dtype), n_features, feature_names, index_base, chunk_bytes)
        units = ("n_queries", "n_rows", "n_entries", "id_bytes", "comment_bytes")
        self._n_queries = 0
        self._counts: dict[str, list[int]] = {unit: [] for unit in units}
        self._layout = Layout(
            storage,
            np.dtype(dtype),
            n_features,
            "integer" if has_ids else None,
            has_weights,
            has_comments,
            self._counts,
        )
        self._names = None if feature_names is None else tuple(feature_names)
        self._index_base, self._chunk_bytes = index_base, chunk_bytes
        self._n_threads = resolve(n_jobs)
        self._pending = Pending(self._layout, chunk_bytes)
        self._checksums: dict[str, list[int]] = {}
        self._totals: dict[str, int] = dict.fromkeys(units, 0)
        self._n_pairs, self._statistics = 0, ColumnStatistics.empty(n_features)
        self._folder: NewFolder | None = NewFolder(os.path.abspath(os.fspath(path)), overwrite)

    @property
    def folder(self) -> str:
        """Where it is written meanwhile."""
        if self._folder is None:
            raise ValueError("the writer is finished or was given up; make another")
        return self._folder.partial

    def append(
        self,
        rows: Rows,
        labels: Array,
        weight: Array | None,
        sizes: Array,
        ids: Array | Words | Sequence[str] | None,
        comments: Comments | None = None,
    ) -> None:
        """Write whole queries; all arrays are read before it returns and may be used again.

        Parameters
        ----------
        rows : DenseRows or CsrRows
            Of the storage, the type and the number of columns of the store.
        labels : float64 array (n_rows,)
        weight : float64 array (n_rows,) or None
        sizes : int64 array (n_queries,)
            Rows of each query; they sum to n_rows.
        ids : integers, strings or Words (n_queries,), or None
            An id comes once in a store: who appends has grouped the rows.
        comments : Comments or None
            One comment a row.
        """
        try:
            self._append(
                checked_block(
                    self._layout, rows, labels, weight, sizes, ids, comments, self._n_threads
                )
            )
        except BaseException:
            self.abort()
            raise

    def _append(self, block: Block) -> None:
        _ = self.folder  # an error after the end
        self._n_queries += block.n_queries
        if self._layout.ids is None and self._n_queries > 1:
            raise ValueError("a store without ids has one query; give ids to have more")
        nbytes = block.query_bytes()
        ends = np.cumsum(nbytes)
        first, n_queries = 0, block.n_queries
        while first < n_queries:
            before = int(ends[first - 1]) if first else 0
            room = self._chunk_bytes - self._pending.nbytes
            last = int(np.searchsorted(ends, before + room, side="right"))
            if last <= first:
                if len(self._pending):
                    self._flush()
                    continue
                last = first + 1
            part = block.take(first, last)
            if last < n_queries and not len(self._pending):
                self._write_chunk(part)  # the next query does not fit: this is a chunk
            else:
                self._pending.add(part, int(ends[last - 1]) - before)
            first = last

    def _flush(self) -> None:
        self._write_chunk(self._pending.block())
        self._pending.clear()

    def _write_chunk(self, block: Block) -> None:
        offsets = block.offsets
        levels, n_levels = _core.rank_levels(block.labels, offsets, None, self._n_threads)
        self._n_pairs += sum(_core.count_pairs(levels, offsets, n_levels).tolist())
        self._statistics = self._statistics.merged(
            ColumnStatistics.of(block.rows, block.weight, self._n_threads)
        )
        arrays: dict[str, Array] = {"values": block.rows.values, "labels": block.labels}
        units = {"n_queries": block.n_queries, "n_rows": len(block.labels)}
        if isinstance(block.rows, CsrRows):
            arrays["columns"] = block.rows.columns
            arrays["row_offsets"] = block.rows.offsets[1:] + self._totals["n_entries"]
            units["n_entries"] = len(block.rows.values)
        arrays |= {"levels": levels, "n_levels": n_levels}
        arrays["query_offsets"] = offsets[1:] + self._totals["n_rows"]
        if block.weight is not None:
            arrays["weights"] = block.weight
        if block.ids is not None:
            self._add_ids(block.ids, arrays, units)
        if block.comments is not None:
            arrays["comment_text"] = block.comments.text
            arrays["comment_offsets"] = block.comments.offsets[1:] + self._totals["comment_bytes"]
            units["comment_bytes"] = len(block.comments.text)
        for name, array in arrays.items():
            self._write(name, self._layout.arrays[name], array)
        for unit in self._counts:
            self._counts[unit].append(units.get(unit, 0))
            self._totals[unit] += units.get(unit, 0)

    def _write(self, name: str, stored: StoredArray, array: Array) -> None:
        if self._folder is None:
            raise ValueError("the writer is finished or was given up; make another")
        data = np.ascontiguousarray(array, stored.dtype)
        before = self._checksums.setdefault(name, [])
        if stored.lead and not before:
            self._folder.write(stored.file, np.zeros(stored.lead, stored.dtype))
        self._folder.write(stored.file, data)
        before.append(checksum(data))

    def _add_ids(self, ids: Array | Words, arrays: dict[str, Array], units: dict[str, int]) -> None:
        if isinstance(ids, Words) and self._layout.ids == "integer":
            self._make_ids_text()
        if self._layout.ids == "integer":
            arrays["ids"] = np.asarray(ids)
            return
        words = as_words(ids)
        arrays["id_text"] = words.text
        arrays["id_offsets"] = words.offsets[1:] + self._totals["id_bytes"]
        units["id_bytes"] = len(words.text)

    def _make_ids_text(self) -> None:
        """Rewrite the ids so far, which were integers, as text."""
        self._layout = replace(self._layout, ids="text")
        self._pending.layout = self._layout
        if self._checksums.pop("ids", None) is None or self._folder is None:
            return
        ids = self._folder.take_back("ids.bin", np.dtype("<i8"))
        begin = 0
        for chunk, n_queries in enumerate(self._counts["n_queries"]):
            words = as_words(ids[begin : begin + n_queries])
            self._write("id_text", self._layout.arrays["id_text"], words.text)
            ends = words.offsets[1:] + self._totals["id_bytes"]
            self._write("id_offsets", self._layout.arrays["id_offsets"], ends)
            self._counts["id_bytes"][chunk] = len(words.text)
            self._totals["id_bytes"] += len(words.text)
            begin += n_queries

    def widen(self, n_features: int) -> None:
        """Have more columns from now on; rows so far, which must be CSR, are 0 in them."""
        if n_features == self._layout.n_features:
            return
        if self._layout.storage == "dense" or n_features < self._layout.n_features:
            raise ValueError(
                f"a {self._layout.storage} store of {self._layout.n_features} columns cannot "
                f"become one of {n_features}; only CSR can, and only wider"
            )
        self._statistics = self._statistics.widened(n_features)
        self._layout = replace(self._layout, n_features=n_features)
        self._pending.layout = self._layout

    def finish(self) -> Store:
        """Write what is left and the manifest; return the store, opened."""
        from linrank.io.store.store import Store

        try:
            if len(self._pending):
                self._flush()
            folder = self._folder
            if folder is None:
                raise ValueError("the writer is finished or was given up; make another")
            s = self._statistics
            if s.n_rows == 0:
                raise ValueError("nothing was appended; a store has at least one row")
            data = np.concatenate([s.mean, s.variance, s.low, s.high, s.n_nonzero.view(np.float64)])
            folder.write(STATISTICS, data)
            self._checksums["statistics"] = [checksum(data)]
            manifest = Manifest(
                self._layout,
                self._n_pairs,
                s.weight,
                self._names,
                self._index_base,
                self._checksums,
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


def _check_options(
    storage: str,
    dtype: np.dtype[Any],
    n_features: int,
    feature_names: Sequence[str] | None,
    index_base: int | None,
    chunk_bytes: int,
) -> None:
    if storage not in ("dense", "csr"):
        raise ValueError(f"storage must be 'dense' or 'csr', got {storage!r}")
    if dtype not in (np.float32, np.float64):
        raise ValueError(f"dtype must be float32 or float64, got {dtype}")
    if not 1 <= n_features <= 2**48:
        raise ValueError(f"n_features must be from 1 to 2^48, got {n_features}")
    if feature_names is not None and len(feature_names) != n_features:
        raise ValueError(f"there are {n_features} features but {len(feature_names)} names")
    check_names(feature_names or ())
    if index_base not in (None, 0, 1):
        raise ValueError(f"index_base must be 0, 1 or None, got {index_base!r}")
    if chunk_bytes < 1:
        raise ValueError(f"chunk_bytes must be a positive number of bytes, got {chunk_bytes!r}")
