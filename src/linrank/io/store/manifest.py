"""The manifest of a store: JSON, written last, and believed only after every check."""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import dataclass
from typing import Any

import numpy as np

from linrank.data.frames import check_names
from linrank.errors import DataFormatError
from linrank.io.store.array_files import AGAIN, open_regular
from linrank.io.store.layout import ChunkRange, Layout
from linrank.system import json_text
from linrank.system.durable import naming
from linrank.system.json_text import Invalid, take
from linrank.system.resources import describe_bytes

# What a manifest can hold at most. Its lists are a dozen, whatever the number of chunks.
MAX_BYTES = 256 << 20
MAX_VALUES = 20_000_000
MAX_COUNT = 1 << 60


def parse(content: bytes) -> dict[str, Any]:
    """The JSON object of a file that may be damaged or hostile."""
    try:
        document = json_text.parse(content, MAX_VALUES)
    except json_text.MalformedJSON as error:
        raise Invalid(f"is truncated, damaged or no manifest: {error}") from None
    if not isinstance(document, dict):
        raise Invalid(f"holds a {type(document).__name__}, not an object")
    return document


def choice(document: dict[str, Any], name: str, choices: tuple[Any, ...]) -> Any:
    """One of a few values."""
    value = take(document, name, tuple(dict.fromkeys(map(type, choices))))
    if value not in choices:
        raise Invalid(f"{name} is {_short(value)}, expected one of {choices}")
    return value


def integer(document: dict[str, Any], name: str, low: int, high: int = MAX_COUNT) -> int:
    """An integer within limits."""
    value: int = take(document, name, (int,))
    if not low <= value <= high:
        raise Invalid(f"{name} is {_short(value)}, expected {low} to {high}")
    return value


def counts(
    document: dict[str, Any], name: str, n: int | None, low: int, high: int = MAX_COUNT
) -> list[int]:
    """A list of n integers within limits."""
    values: list[int] = take(document, name, (list,))
    if n is not None and len(values) != n:
        raise Invalid(f"{name} has {len(values)} elements, expected {n}")
    for k, value in enumerate(values):
        if type(value) is not int or not low <= value <= high:
            raise Invalid(f"{name}[{k}] is {_short(value)}, expected {low} to {high}")
    return values


def texts(document: dict[str, Any], name: str, n: int) -> tuple[str, ...] | None:
    """A list of n names, or null."""
    if document.get(name, "") is None:
        return None
    values = take(document, name, (list,))
    if len(values) != n:
        raise Invalid(f"{name} has {len(values)} elements, expected {n}")
    for k, value in enumerate(values):
        if type(value) is not str:
            raise Invalid(f"{name}[{k}] is {_short(value)}, expected a string")
    try:
        check_names(values)
    except ValueError as error:
        raise Invalid(str(error)) from None
    return tuple(values)


def _short(value: Any) -> str:
    if isinstance(value, (list, dict)):
        return f"a {type(value).__name__}"
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:60]}..."


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
    _check_files(take(d, "files", (dict,)), layout)
    _check_digest(content)
    for unit in ("n_queries", "n_rows"):
        if take(d, unit, (int,)) != layout.total(unit):
            raise Invalid(f"{unit} is {d[unit]} but its chunks have {layout.total(unit)}")
    weight = take(d, "total_weight", (float,))
    if not 0.0 <= weight < float("inf"):
        raise Invalid(f"total_weight is {weight}, expected a finite number >= 0")
    return Manifest(
        layout,
        integer(d, "n_pairs", 0, MAX_COUNT**2),
        weight,
        texts(d, "feature_names", layout.n_features),
        choice(d, "index_base", (None, 0, 1)),
        _checksums(take(d, "checksums", (dict,)), layout),
        hashlib.sha256(content).hexdigest(),
    )


def _layout(d: dict[str, Any]) -> Layout:
    table = take(d, "chunks", (dict,))
    n_chunks = len(take(table, "n_rows", (list,)))
    if n_chunks == 0:
        raise Invalid("has no chunks")
    layout = Layout(
        choice(d, "storage", ("dense", "csr")),
        np.dtype(choice(d, "dtype", ("float32", "float64"))),
        integer(d, "n_features", 1, 2**48),
        choice(d, "ids", (None, "integer", "text")),
        take(d, "weights", (bool,)),
        take(d, "comments", (bool,)),
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
        if take(files, name, (int,)) != size:
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
