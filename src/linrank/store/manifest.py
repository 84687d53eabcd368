"""The manifest of a store: JSON, written last, and believed only after every check."""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import dataclass
from typing import Any

import numpy as np

from linrank.durable import naming
from linrank.errors import DataFormatError
from linrank.store.fields import (
    MAX_BYTES,
    MAX_COUNT,
    Invalid,
    boolean,
    choice,
    counts,
    integer,
    member,
    parse,
    texts,
)
from linrank.store.files import AGAIN, open_regular
from linrank.store.layout import Layout

__all__ = ["FORMAT", "VERSION", "Manifest", "read_manifest"]

FORMAT = "linrank-store"
VERSION = 1
_DIGEST = b', "digest": "'
_FOREIGN = "name the folder of a store, as linrank convert writes it"


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
        head = json.dumps(document)[:-1].encode() + _DIGEST
        return head + hashlib.sha256(head).hexdigest().encode() + b'"}\n'


def read_manifest(path: str) -> Manifest:
    """The manifest at a path, checked; whatever is wrong with it is a DataFormatError."""
    try:
        return _decode(_read_bytes(path))
    except Invalid as error:
        raise DataFormatError(f"{path}: {error.problem}; {error.remedy or AGAIN}") from None


def _read_bytes(path: str) -> bytes:
    descriptor = open_regular(path)
    with naming(path), open(descriptor, "rb") as file:
        size = os.fstat(descriptor).st_size
        if size > MAX_BYTES:
            raise Invalid(f"has {size} bytes, more than a manifest ({MAX_BYTES})")
        content = file.read(size + 1)
    if len(content) != size:
        raise Invalid("changed while it was read", "open the store again")
    return content


def _decode(content: bytes) -> Manifest:
    d = parse(content)
    if d.get("format") != FORMAT:
        raise Invalid(f'is no manifest of a store (no "format": "{FORMAT}")', _FOREIGN)
    version = integer(d, "version", 0)
    if version != VERSION:
        raise Invalid(
            f"is of format version {version}, this linrank reads version {VERSION}",
            "upgrade with pip install --upgrade linrank, or convert the data again",
        )
    layout = _layout(d)
    _check_files(member(d, "files", dict), layout)
    _check_digest(content)
    for unit in ("n_queries", "n_rows"):
        if member(d, unit, int) != layout.total(unit):
            raise Invalid(f"{unit} is {d[unit]} but its chunks have {layout.total(unit)}")
    weight = member(d, "total_weight", float)
    if not 0.0 <= weight < float("inf"):
        raise Invalid(f"total_weight is {weight}, expected a finite number >= 0")
    return Manifest(
        layout,
        integer(d, "n_pairs", 0, MAX_COUNT**2),
        weight,
        texts(d, "feature_names", layout.n_features),
        choice(d, "index_base", (None, 0, 1)),
        _checksums(member(d, "checksums", dict), layout),
        hashlib.sha256(content).hexdigest(),
    )


def _layout(d: dict[str, Any]) -> Layout:
    table = member(d, "chunks", dict)
    n_chunks = len(member(table, "n_rows", list))
    if n_chunks == 0:
        raise Invalid("has no chunks")
    layout = Layout(
        choice(d, "storage", ("dense", "csr")),
        np.dtype(choice(d, "dtype", ("float32", "float64"))),
        integer(d, "n_features", 1, 2**48),
        choice(d, "ids", (None, "integer", "text")),
        boolean(d, "weights"),
        boolean(d, "comments"),
        table,
    )
    if set(table) != set(layout.units):
        raise Invalid(f"chunks has the members {sorted(table)}, expected {sorted(layout.units)}")
    for unit in layout.units:
        # A query has a row and a chunk has a query; a row may be empty.
        counts(table, unit, n_chunks, 1 if unit in ("n_queries", "n_rows") else 0)
    if max(map(sum, table.values())) > MAX_COUNT or max(layout.sizes().values()) >= 2**63:
        raise Invalid("has chunks of more bytes than a file can have")
    if any(q > r for q, r in zip(table["n_queries"], table["n_rows"], strict=True)):
        raise Invalid("has a chunk of more queries than rows")
    if layout.ids is None and layout.total("n_queries") != 1:
        raise Invalid(f"has {layout.total('n_queries')} queries without ids, expected 1")
    return layout


def _check_files(files: dict[str, Any], layout: Layout) -> None:
    """Only the names of the format: no path of the manifest is ever opened."""
    expected = layout.sizes()
    for name in files:
        if name not in expected:
            where = " outside its folder" if "/" in name or "\\" in name or ".." in name else ""
            raise Invalid(f"names the file {name[:80]!r}{where}, which no such store has")
    for name, size in expected.items():
        if member(files, name, int) != size:
            raise Invalid(f"gives {name} {files[name]} bytes but its chunks have {size}")


def _check_digest(content: bytes) -> None:
    """The last member is the SHA-256 of all before its value."""
    end = b'"}\n'
    head, written = content[: -64 - len(end)], content[-64 - len(end) : -len(end)]
    sound = head.endswith(_DIGEST) and content.endswith(end)
    if not sound or hashlib.sha256(head).hexdigest().encode() != written:
        raise Invalid("was changed after it was written: its digest is wrong")


def _checksums(found: dict[str, Any], layout: Layout) -> dict[str, list[int]]:
    names = dict.fromkeys(layout.arrays, layout.n_chunks) | {"statistics": 1}
    if set(found) != set(names):
        raise Invalid(f"checksums has the members {sorted(found)}, expected {sorted(names)}")
    return {name: counts(found, name, n, 0, 2**32 - 1) for name, n in names.items()}
