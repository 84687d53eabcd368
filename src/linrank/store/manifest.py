"""The manifest of a store: JSON, written last, and believed only after every check."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import Any

from linrank.store.layout import Layout

__all__ = ["FORMAT", "VERSION", "Manifest"]

FORMAT = "linrank-store"
VERSION = 1


@dataclass(frozen=True, eq=False)
class Manifest:
    """What `manifest.json` says.

    Attributes
    ----------
    layout : Layout
        The files and their ranges.
    n_pairs : int
        Pairs of all queries.
    total_weight : float
        Weight of all rows.
    feature_names : tuple of str or None
    index_base : int or None
        The number of the first column in the text that the store was made of.
    checksums : dict
        By name of the array: the checksum of each chunk; ``statistics`` has one.
    digest : str
        SHA-256 of the manifest.
    """

    layout: Layout
    n_pairs: int
    total_weight: float
    feature_names: tuple[str, ...] | None
    index_base: int | None
    checksums: dict[str, list[int]]
    digest: str = ""

    def encode(self) -> bytes:
        """The bytes of the file; the last member is the SHA-256 of all before its value."""
        layout = self.layout
        document: dict[str, Any] = {
            "format": FORMAT,
            "version": VERSION,
            "storage": layout.storage,
            "dtype": layout.dtype.name,
            "n_rows": layout.total("n_rows"),
            "n_features": layout.n_features,
            "n_queries": layout.total("n_queries"),
            "n_pairs": self.n_pairs,
            "total_weight": self.total_weight,
            "ids": layout.ids,
            "weights": layout.has_weights,
            "comments": layout.has_comments,
            "index_base": self.index_base,
            "feature_names": self.feature_names,
            "files": layout.sizes(),
            "chunks": {unit: layout.counts[unit] for unit in layout.units},
            "checksums": self.checksums,
        }
        head = json.dumps(document)[:-1].encode() + b', "digest": "'
        return head + hashlib.sha256(head).hexdigest().encode() + b'"}\n'
