"""Store: a data set on disk, read chunk by chunk or mapped whole."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linrank.data.comments import Comments
from linrank.data.dataset import Dataset
from linrank.data.queries import Queries
from linrank.data.rows import CsrRows, DenseRows, Rows
from linrank.data.statistics import ColumnStatistics
from linrank.data.words import Words
from linrank.store.files import Files
from linrank.store.layout import MANIFEST, STATISTICS, ChunkRange, Layout
from linrank.store.manifest import Manifest
from linrank.store.writer import CHUNK_BYTES, StoreWriter

__all__ = ["Store"]

Array = NDArray[Any]


class Store:
    """A data set on disk: a folder of arrays, cut into chunks of whole queries."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = os.path.abspath(os.fspath(path))
        with open(os.path.join(self.path, MANIFEST), "rb") as file:
            d = json.loads(file.read())
        layout = Layout(
            d["storage"],
            np.dtype(d["dtype"]),
            d["n_features"],
            d["ids"],
            d["weights"],
            d["comments"],
            d["chunks"],
        )
        names = None if d["feature_names"] is None else tuple(d["feature_names"])
        self._manifest = Manifest(
            layout, d["n_pairs"], d["total_weight"], names, d["index_base"], d["checksums"]
        )
        self._layout, self._files = layout, Files(self.path)
        self.chunks: tuple[ChunkRange, ...] = tuple(map(layout.chunk, range(layout.n_chunks)))

    @property
    def n_rows(self) -> int:
        return self._layout.total("n_rows")

    @property
    def n_features(self) -> int:
        return self._layout.n_features

    @property
    def n_queries(self) -> int:
        return self._layout.total("n_queries")

    @property
    def n_pairs(self) -> int:
        return self._manifest.n_pairs

    @property
    def n_chunks(self) -> int:
        return self._layout.n_chunks

    @property
    def storage(self) -> str:
        return self._layout.storage

    @property
    def dtype(self) -> np.dtype[Any]:
        return self._layout.dtype

    @property
    def nbytes(self) -> int:
        return sum(self._layout.sizes().values())

    @property
    def feature_names(self) -> tuple[str, ...] | None:
        return self._manifest.feature_names

    @property
    def index_base(self) -> int | None:
        return self._manifest.index_base

    @property
    def has_weights(self) -> bool:
        return self._layout.has_weights

    @property
    def has_ids(self) -> bool:
        """Whether queries have ids; without, all rows are one query."""
        return self._layout.ids is not None

    def buffer(self) -> Any:
        """Memory for the features of any chunk."""
        return np.empty(max(chunk.nbytes for chunk in self.chunks), dtype=np.uint8)

    @property
    def statistics(self) -> ColumnStatistics:
        n = self.n_features
        data = self._files.read(STATISTICS, 0, 40 * n).view(np.float64).reshape(5, n)
        weight = self._manifest.total_weight
        counts = data[4].view(np.int64)
        return ColumnStatistics(weight, self.n_rows, data[0], data[1], data[2], data[3], counts)

    def _array(self, name: str, i: int) -> Array:
        stored = self._layout.arrays[name]
        begin, n_bytes = self._layout.place(name, i)
        return self._files.read(stored.file, begin, n_bytes).view(stored.dtype)

    def _offsets(self, name: str, i: int, unit: Any) -> Array:
        ends = self._array(name, i)
        return np.concatenate([[0], ends - self._layout.bounds[unit][i]])

    def read(self, i: int, *, into: Any = None, verify: bool = True) -> Dataset:
        """Chunk i, in memory."""
        chunk = self.chunks[i]
        n_rows = chunk.rows.stop - chunk.rows.start
        values = self._array("values", i)
        if self.storage == "dense":
            rows: Rows = DenseRows(values.reshape(n_rows, self.n_features))
        else:
            offsets = self._offsets("row_offsets", i, "n_entries")
            rows = CsrRows(values, self._array("columns", i), offsets, self.n_features)
        return self._dataset(
            rows,
            self._array("labels", i),
            self._array("weights", i) if self.has_weights else None,
            self._offsets("query_offsets", i, "n_rows"),
            self._array("levels", i),
            self._array("n_levels", i),
            self._ids(i),
            None,
            f"{self.path} (chunk {i})",
        )

    def _ids(self, i: int) -> Array | None:
        if self._layout.ids is None:
            return None
        if self._layout.ids == "integer":
            return self._array("ids", i)
        words = Words(self._array("id_text", i), self._offsets("id_offsets", i, "id_bytes"))
        return np.array(words.tolist(), dtype=object)

    def _dataset(
        self,
        rows: Rows,
        labels: Array,
        weight: Array | None,
        offsets: Array,
        levels: Array,
        n_levels: Array,
        ids: Array | None,
        comments: Comments | None,
        source: str,
    ) -> Dataset:
        qid = None if ids is None else np.repeat(ids, np.diff(offsets))
        names, base = self.feature_names, self.index_base
        data = Dataset(rows, labels, qid, weight, names, comments, source, base)
        data.__dict__["queries"] = Queries(offsets, None, levels, n_levels, ids)
        return data

    def dataset(self, verify: bool = True) -> Dataset:
        """The whole, mapped."""
        layout = self._layout

        def mapped(name: str) -> Array:
            stored = layout.arrays[name]
            n = stored.lead + layout.total(stored.unit) * stored.width
            if n == 0:
                return np.empty(0, stored.dtype)
            return np.asarray(np.memmap(self._files.path(stored.file), stored.dtype, "r", 0, (n,)))

        if self.storage == "dense":
            rows: Rows = DenseRows(mapped("values").reshape(self.n_rows, self.n_features))
        else:
            columns, offsets = mapped("columns"), mapped("row_offsets")
            rows = CsrRows(mapped("values"), columns, offsets, self.n_features)
        ids = None
        if layout.ids == "integer":
            ids = mapped("ids")
        elif layout.ids == "text":
            words = Words(mapped("id_text"), mapped("id_offsets"))
            ids = np.array(words.tolist(), dtype=object)
        comments = None
        if layout.has_comments:
            comments = Comments(mapped("comment_text"), mapped("comment_offsets"))
        return self._dataset(
            rows,
            mapped("labels"),
            mapped("weights") if self.has_weights else None,
            mapped("query_offsets"),
            mapped("levels"),
            mapped("n_levels"),
            ids,
            comments,
            self.path,
        )

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
        chunk_bytes: int = CHUNK_BYTES,
        overwrite: bool = False,
    ) -> Store:
        """Write arrays as a store."""
        data = Dataset.of(X, y, qid=qid, sample_weight=sample_weight, feature_names=feature_names)
        return cls.of(path, data, chunk_bytes=chunk_bytes, overwrite=overwrite)

    @classmethod
    def of(
        cls,
        path: str | os.PathLike[str],
        data: Dataset,
        *,
        chunk_bytes: int = CHUNK_BYTES,
        overwrite: bool = False,
    ) -> Store:
        """Write a dataset as a store."""
        queries = data.queries
        if queries.order is not None:
            data = data.select(queries.order)
        with StoreWriter(
            path,
            storage="dense" if isinstance(data.rows, DenseRows) else "csr",
            dtype=data.rows.dtype,
            n_features=data.n_features,
            has_ids=queries.ids is not None,
            has_weights=data.weight is not None,
            has_comments=data.comments is not None,
            feature_names=data.feature_names,
            index_base=data.index_base,
            chunk_bytes=chunk_bytes,
            overwrite=overwrite,
        ) as writer:
            sizes = np.diff(queries.offsets)
            comments: Any = data.comments
            writer.append(data.rows, data.labels, data.weight, sizes, queries.ids, comments)
            return writer.finish()
