"""The format of a store: which files it has, which of their bytes belong to which chunk, and the
manifest that says so: JSON, written last, and believed only after every check.

Every array of a data set is one file of little-endian numbers without a header, so that it can be
read as a whole. A *chunk* is a range of whole queries, and so a range of bytes in every file:

====================  =====  ==============================================================
values.bin            f4/f8  dense: n_rows × n_features, by rows; CSR: the entries
columns.bin           i4/i8  CSR: column of each entry
row_offsets.bin       i8     CSR: 0, then where each row ends in the entries
labels.bin            f8     label of each row
levels.bin            i4     rank of that label inside its query, from 0
weights.bin           f8     weight of each row, if rows have weights
query_offsets.bin     i8     0, then where each query ends in the rows
n_levels.bin          i4     number of different labels of each query
ids.bin               i8     id of each query, if ids are integers
ids.txt               UTF-8  ids of the queries one after the other, if they are text
id_offsets.bin        i8     0, then where each id ends in ids.txt
comments.txt          bytes  comments of the rows one after the other, if there are any
comment_offsets.bin   i8     0, then where each comment ends
====================  =====  ==============================================================
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any, Literal

import numpy as np

from linrank.data.frames import check_names
from linrank.data.missing import Filling
from linrank.errors import DataFormatError
from linrank.options import MISSING
from linrank.system import json_text
from linrank.system.durable import naming
from linrank.system.json_text import Invalid, take
from linrank.system.resources import cached_property

MANIFEST = "manifest.json"
STATISTICS = "statistics.bin"
# Every name that a file of a store can have.
FILES = frozenset(
    f"{MANIFEST} {STATISTICS} values.bin columns.bin row_offsets.bin labels.bin levels.bin "
    "weights.bin query_offsets.bin n_levels.bin ids.bin ids.txt id_offsets.bin comments.txt "
    "comment_offsets.bin".split()
)
Unit = Literal["n_queries", "n_rows", "n_entries", "id_bytes", "comment_bytes"]


@dataclass(frozen=True)
class StoredArray:
    """A file of numbers: `lead` of them, then `width` for each unit (row, query, entry, byte)."""

    file: str
    dtype: np.dtype[Any]
    unit: Unit
    width: int = 1
    lead: int = 0

    def place(self, begin: int, end: int) -> tuple[int, int]:
        """(first byte, number of bytes) of the units from begin to end, the lead left out."""
        size = self.dtype.itemsize
        return size * (self.lead + begin * self.width), size * (end - begin) * self.width

    def size(self, n_units: int) -> int:
        """Bytes of the whole file."""
        return sum(self.place(0, n_units))


@dataclass(frozen=True)
class ChunkRange:
    """Where a chunk lies in the arrays.

    Attributes
    ----------
    rows, queries : slice
        Its rows and queries.
    entries : slice or None
        Its stored entries, where the store is CSR.
    nbytes : int
        Bytes of its features: values, and for CSR columns and row offsets.
    """

    rows: slice
    queries: slice
    entries: slice | None
    nbytes: int


@dataclass(frozen=True, eq=False)
class Layout:
    """What determines the files of a store, and their sizes.

    Attributes
    ----------
    storage : {"dense", "csr"}
    dtype : float32 or float64
        Of the values.
    n_features : int
    ids : {"integer", "text"} or None
        What the ids of the queries are; None for a single query without an id.
    has_weights, has_comments : bool
    counts : mapping
        How many units of each kind every chunk has; see `units`.
    """

    storage: str
    dtype: np.dtype[Any]
    n_features: int
    ids: str | None
    has_weights: bool
    has_comments: bool
    counts: Mapping[str, list[int]]

    @property
    def n_chunks(self) -> int:
        return len(self.counts["n_rows"])

    @cached_property
    def units(self) -> tuple[Unit, ...]:
        """The kinds of units that the chunk table counts."""
        units: list[Unit] = ["n_queries", "n_rows"]
        units += ["n_entries"] if self.storage == "csr" else []
        units += ["id_bytes"] if self.ids == "text" else []
        units += ["comment_bytes"] if self.has_comments else []
        return tuple(units)

    @cached_property
    def arrays(self) -> dict[str, StoredArray]:
        """The arrays, by the name of the file without its ending, but for the ids."""
        i4, i8, f8, byte = (np.dtype(kind) for kind in ("<i4", "<i8", "<f8", "u1"))
        if self.storage == "dense":
            found = {"values": StoredArray("values.bin", self.dtype, "n_rows", self.n_features)}
        else:
            found = {
                "values": StoredArray("values.bin", self.dtype, "n_entries"),
                "columns": StoredArray("columns.bin", np.dtype("<i4"), "n_entries"),
                "row_offsets": StoredArray("row_offsets.bin", i8, "n_rows", lead=1),
            }
        found["labels"] = StoredArray("labels.bin", f8, "n_rows")
        found["levels"] = StoredArray("levels.bin", i4, "n_rows")
        if self.has_weights:
            found["weights"] = StoredArray("weights.bin", f8, "n_rows")
        found["query_offsets"] = StoredArray("query_offsets.bin", i8, "n_queries", lead=1)
        found["n_levels"] = StoredArray("n_levels.bin", i4, "n_queries")
        if self.ids == "integer":
            found["ids"] = StoredArray("ids.bin", i8, "n_queries")
        elif self.ids == "text":
            found["id_text"] = StoredArray("ids.txt", byte, "id_bytes")
            found["id_offsets"] = StoredArray("id_offsets.bin", i8, "n_queries", lead=1)
        if self.has_comments:
            found["comment_text"] = StoredArray("comments.txt", byte, "comment_bytes")
            found["comment_offsets"] = StoredArray("comment_offsets.bin", i8, "n_rows", lead=1)
        return found

    @cached_property
    def bounds(self) -> dict[str, list[int]]:
        """By unit: where each chunk begins, and the total; Python integers, which do not wrap."""
        return {unit: [0, *accumulate(self.counts[unit])] for unit in self.units}

    def total(self, unit: Unit) -> int:
        """Units of a kind in the whole store."""
        return self.bounds[unit][-1]

    def place(self, name: str, chunk: int) -> tuple[int, int]:
        """(first byte, number of bytes) of a chunk in the file of an array."""
        array = self.arrays[name]
        bounds = self.bounds[array.unit]
        return array.place(bounds[chunk], bounds[chunk + 1])

    def sizes(self) -> dict[str, int]:
        """Bytes of every file but the manifest."""
        found = {a.file: a.size(self.total(a.unit)) for a in self.arrays.values()}
        found[STATISTICS] = 5 * 8 * self.n_features
        return found

    def chunk(self, i: int) -> ChunkRange:
        """Where chunk i lies."""

        def part(unit: Unit) -> slice:
            return slice(self.bounds[unit][i], self.bounds[unit][i + 1])

        features = [name for name in ("values", "columns", "row_offsets") if name in self.arrays]
        return ChunkRange(
            part("n_rows"),
            part("n_queries"),
            part("n_entries") if self.storage == "csr" else None,
            sum(self.place(name, i)[1] for name in features),
        )


AGAIN = "copy the store again from where it is whole, or write it anew from its source"
# O_NONBLOCK: opening a pipe that someone put in place of a file must not wait for a writer.
_FLAGS = os.O_RDONLY | sum(
    getattr(os, name, 0) for name in ("O_CLOEXEC", "O_NOFOLLOW", "O_NONBLOCK", "O_BINARY")
)


def open_regular(path: str) -> int:
    """A descriptor of a file that is no link, pipe, device or folder."""
    try:
        descriptor = os.open(path, _FLAGS)
    except FileNotFoundError:
        raise DataFormatError(f"{path}: is missing; {AGAIN}") from None
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.EMLINK):
            raise DataFormatError(
                f"{path}: is a symbolic link, which a store may not contain; copy the file itself "
                "into the folder"
            ) from None
        raise
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise DataFormatError(f"{path}: is no regular file; {AGAIN}")
    return descriptor


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
    filling : Filling or None
        How missing values of the rows were filled in.
    digest : str
        SHA-256 of the manifest.
    """

    layout: Layout
    n_pairs: int
    total_weight: float
    feature_names: tuple[str, ...] | None
    index_base: int | None
    checksums: dict[str, list[int]]
    filling: Filling | None = None
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
            "missing": _policy(self.filling),
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
            "upgrade linrank, or convert the data again",
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
        _filling(d, layout.n_features),
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


def _policy(filling: Filling | None) -> dict[str, Any] | None:
    """How missing values were filled in, as JSON; ``absent`` are the features that lacked some."""
    if filling is None:
        return None
    absent = filling.columns if filling.absent is None else np.flatnonzero(filling.absent)
    return {
        "kind": filling.kind,
        "n_features": filling.n_features,
        "values": None if filling.values is None else filling.values.tolist(),
        "absent": absent.tolist(),
    }


def _filling(d: dict[str, Any], n_columns: int) -> Filling | None:
    """The inverse of `_policy`; stores of earlier versions have none."""
    if d.get("missing") is None:
        return None
    found = take(d, "missing", (dict,))
    kind = choice(found, "kind", MISSING[1:])
    n_features = integer(found, "n_features", 1, n_columns)
    absent = np.array(counts(found, "absent", None, 0, n_features - 1), np.int64)
    if (np.diff(absent) <= 0).any():
        raise Invalid("absent holds features that do not increase")
    filling = Filling(kind, n_features)
    if kind == "indicator":
        filling = replace(filling, columns=absent)
    if kind == "mean":
        values = take(found, "values", (list,))
        if len(values) != n_features or any(type(value) is not float for value in values):
            raise Invalid(f"values holds no mean of each of the {n_features} features")
        is_absent = np.isin(np.arange(n_features), absent)
        filling = replace(filling, values=np.array(values), absent=is_absent)
    if filling.n_columns != n_columns:
        raise Invalid(f"missing is for {filling.n_columns} columns, expected {n_columns}")
    return filling
