"""Contents: what the manifest tells of a store, without a look at the arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from linrank.memory import describe_bytes
from linrank.store.layout import ChunkRange
from linrank.store.manifest import Manifest

__all__ = ["Contents"]


class Contents:
    """Sizes, types and chunks of a store at a path."""

    def __init__(self, path: str, manifest: Manifest) -> None:
        self.path, self._manifest, self._layout = path, manifest, manifest.layout
        self.chunks: tuple[ChunkRange, ...] = tuple(
            map(self._layout.chunk, range(self._layout.n_chunks))
        )

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self._layout.total("n_rows")

    @property
    def n_features(self) -> int:
        """Number of columns."""
        return self._layout.n_features

    @property
    def n_queries(self) -> int:
        """Number of queries."""
        return self._layout.total("n_queries")

    @property
    def n_pairs(self) -> int:
        """Pairs of all queries."""
        return self._manifest.n_pairs

    @property
    def n_chunks(self) -> int:
        """Number of chunks."""
        return self._layout.n_chunks

    @property
    def storage(self) -> str:
        """``"dense"`` or ``"csr"``."""
        return self._layout.storage

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the values."""
        return self._layout.dtype

    @property
    def nbytes(self) -> int:
        """Bytes of the features: values, and for CSR columns and row offsets."""
        return sum(chunk.nbytes for chunk in self.chunks)

    @property
    def feature_names(self) -> tuple[str, ...] | None:
        """Name of each column, if there are names."""
        return self._manifest.feature_names

    @property
    def index_base(self) -> int | None:
        """The number of the first column in the text that it was made of."""
        return self._manifest.index_base

    @property
    def has_ids(self) -> bool:
        """Whether queries have ids; without them there is one query."""
        return self._layout.ids is not None

    @property
    def has_weights(self) -> bool:
        """Whether rows have weights."""
        return self._layout.has_weights

    @property
    def has_comments(self) -> bool:
        """Whether rows have comments."""
        return self._layout.has_comments

    @property
    def digest(self) -> str:
        """SHA-256 of the manifest, which holds the checksums of all else: tells stores apart."""
        return self._manifest.digest

    def rows_of(self, i: int) -> int:
        """Rows of chunk i."""
        return self._layout.counts["n_rows"][i]

    def bytes_of(self, i: int) -> int:
        """Bytes of the features of chunk i."""
        return self.chunks[i].nbytes

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
