"""The format of a store: which files it has, which of their bytes belong to which chunk, and the
manifest that says so: JSON, written last, and believed only after every check.

Every array of a data set is one file of little-endian numbers without a header, so that it can be
read as a whole. A *chunk* is a range of whole queries, and so a range of bytes in every file:

====================  =====  ==============================================================
values.bin            f4/f8  dense: n_rows × n_features, by rows; CSR: the entries
columns.bin           i4     CSR: column of each entry
row_ends.bin          i8     CSR: where each row ends in the entries
labels.bin            f8     label of each row
levels.bin            i4     rank of that label inside its query, from 0
weights.bin           f8     weight of each row, if rows have weights
query_ends.bin        i8     where each query ends in the rows
n_levels.bin          i4     number of different labels of each query
ids.bin               i8     id of each query, if ids are integers
ids.txt               UTF-8  ids of the queries one after the other, if they are text
id_ends.bin           i8     where each id ends in ids.txt
comments.txt          bytes  comments of the rows one after the other, if there are any
comment_ends.bin      i8     where each comment ends
====================  =====  ==============================================================
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import accumulate
from math import isfinite
from typing import Any, Literal

import numpy as np

from linrank.choices import MISSING
from linrank.data import Filling, check_names
from linrank.system import Invalid, cached_property, json_text, take

MANIFEST = "manifest.json"
STATISTICS = "statistics.bin"
Unit = Literal["n_queries", "n_rows", "n_entries", "id_bytes", "comment_bytes"]


@dataclass(frozen=True)
class StoredArray:
    """A file of numbers, `width` of them for each unit (row, query, entry, byte)."""

    file: str
    dtype: np.dtype[Any]
    unit: Unit
    width: int = 1

    def place(self, begin: int, end: int) -> tuple[int, int]:
        """(first byte, number of bytes) of the units from begin to end."""
        size = self.dtype.itemsize * self.width
        return size * begin, size * (end - begin)


_I4, _I8, _F8, _BYTE = (np.dtype(kind) for kind in ("<i4", "<i8", "<f8", "u1"))
# All arrays but the values, whose type and size differ from store to store.
_ARRAYS = {
    "columns": StoredArray("columns.bin", _I4, "n_entries"),
    "row_ends": StoredArray("row_ends.bin", _I8, "n_rows"),
    "labels": StoredArray("labels.bin", _F8, "n_rows"),
    "levels": StoredArray("levels.bin", _I4, "n_rows"),
    "weights": StoredArray("weights.bin", _F8, "n_rows"),
    "query_ends": StoredArray("query_ends.bin", _I8, "n_queries"),
    "n_levels": StoredArray("n_levels.bin", _I4, "n_queries"),
    "ids": StoredArray("ids.bin", _I8, "n_queries"),
    "id_text": StoredArray("ids.txt", _BYTE, "id_bytes"),
    "id_ends": StoredArray("id_ends.bin", _I8, "n_queries"),
    "comment_text": StoredArray("comments.txt", _BYTE, "comment_bytes"),
    "comment_ends": StoredArray("comment_ends.bin", _I8, "n_rows"),
}
# Every name that a file of a store can have.
FILES = frozenset([MANIFEST, STATISTICS, "values.bin", *(a.file for a in _ARRAYS.values())])


@dataclass(frozen=True)
class ChunkRange:
    """Where a chunk lies in the arrays.

    Attributes
    ----------
    rows, queries : slice
        Its rows and queries.
    nbytes : int
        Bytes of its features: values, and for CSR columns and row ends.
    """

    rows: slice
    queries: slice
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
    def arrays(self) -> dict[str, StoredArray]:
        """The arrays by name."""
        is_csr = self.storage == "csr"
        unit: Unit = "n_entries" if is_csr else "n_rows"
        width = 1 if is_csr else self.n_features
        values = StoredArray("values.bin", self.dtype, unit, width)
        is_given = {
            "columns row_ends": is_csr,
            "weights": self.has_weights,
            "ids": self.ids == "integer",
            "id_text id_ends": self.ids == "text",
            "comment_text comment_ends": self.has_comments,
        }
        absent = {name for names, given in is_given.items() if not given for name in names.split()}
        others = {name: array for name, array in _ARRAYS.items() if name not in absent}
        return {"values": values, **others}

    @cached_property
    def units(self) -> tuple[Unit, ...]:
        """The kinds of units that the chunk table counts."""
        return tuple(dict.fromkeys(array.unit for array in self.arrays.values()))

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
        found = {a.file: a.place(0, self.total(a.unit))[1] for a in self.arrays.values()}
        found[STATISTICS] = 5 * 8 * self.n_features
        return found

    def chunk(self, i: int) -> ChunkRange:
        """Where chunk i lies."""

        def part(unit: Unit) -> slice:
            return slice(self.bounds[unit][i], self.bounds[unit][i + 1])

        features = [name for name in ("values", "columns", "row_ends") if name in self.arrays]
        return ChunkRange(
            part("n_rows"),
            part("n_queries"),
            sum(self.place(name, i)[1] for name in features),
        )


# ---- the manifest: written, and read as what may be damaged or hostile --------------------------

FORMAT = "linrank-store"
VERSION = 1
# What a manifest can hold at most. Its lists are a dozen, whatever the number of chunks.
MAX_BYTES = 256 << 20
MAX_VALUES = 20_000_000
MAX_COUNT = 1 << 60
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

    def document(self) -> dict[str, Any]:
        """The members of the file but for the digest."""
        layout = self.layout
        return {
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

    def encode(self) -> bytes:
        """The bytes of the file; the last member is the SHA-256 of all before its value."""
        head = json.dumps(self.document())[:-1].encode() + _DIGEST
        return head + hashlib.sha256(head).hexdigest().encode() + b'"}\n'


def decode(content: bytes) -> Manifest:
    """The manifest of the bytes of its file; `Invalid` says what is wrong with them."""
    try:
        d = json_text.parse(content, MAX_VALUES)
    except json_text.MalformedJSON as error:
        raise Invalid(f"is truncated, damaged or no manifest: {error}") from None
    if not isinstance(d, dict) or d.get("format") != FORMAT:
        raise Invalid(f'is no manifest of a store (no "format": "{FORMAT}")', _FOREIGN)
    if (version := _integer(d, "version", 0)) != VERSION:
        raise Invalid(
            f"is of format version {version}, this linrank reads version {VERSION}",
            "upgrade linrank, or convert the data again",
        )
    if "query_offsets.bin" in take(d, "files", (dict,)):  # now query_ends.bin, without a first 0
        raise Invalid("was written by a development version of linrank", "convert the data again")
    layout = _layout(d)
    weight = take(d, "total_weight", (float,))
    if not (isfinite(weight) and weight >= 0.0):
        raise Invalid(f"total_weight is {weight}, expected a finite number >= 0")
    sums = take(d, "checksums", (dict,))
    n_sums = dict.fromkeys(layout.arrays, layout.n_chunks) | {"statistics": 1}
    found = Manifest(
        layout,
        _integer(d, "n_pairs", 0, MAX_COUNT**2),
        weight,
        _names(d, layout.n_features),
        _choice(d, "index_base", (None, 0, 1)),
        {name: _integers(sums, name, n, 0, 2**32 - 1) for name, n in n_sums.items()},
        _filling(d, layout.n_features),
        hashlib.sha256(content).hexdigest(),
    )
    # All that follows from the rest, such as the sizes of the files: no path of the manifest is
    # ever opened, and none may stand there that is not a name of the format.
    _check_same(found.document(), {k: v for k, v in d.items() if k != "digest"})
    _check_digest(content)
    return found


def _layout(d: dict[str, Any]) -> Layout:
    table = take(d, "chunks", (dict,))
    n_chunks = len(take(table, "n_rows", (list,)))
    if n_chunks == 0:
        raise Invalid("has no chunks")
    layout = Layout(
        _choice(d, "storage", ("dense", "csr")),
        np.dtype(_choice(d, "dtype", ("float32", "float64"))),
        _integer(d, "n_features", 1, 2**48),
        _choice(d, "ids", (None, "integer", "text")),
        take(d, "weights", (bool,)),
        take(d, "comments", (bool,)),
        table,
    )
    for unit in layout.units:
        # A query has a row and a chunk has a query; a row may be empty.
        _integers(table, unit, n_chunks, 1 if unit in ("n_queries", "n_rows") else 0)
    if any(layout.total(unit) > MAX_COUNT for unit in layout.units) or (
        max(layout.sizes().values()) >= 2**63
    ):
        raise Invalid("has chunks of more bytes than a file can have")
    if any(q > r for q, r in zip(table["n_queries"], table["n_rows"], strict=True)):
        raise Invalid("has a chunk of more queries than rows")
    if layout.ids is None and layout.total("n_queries") != 1:
        raise Invalid(f"has {layout.total('n_queries')} queries without ids, expected 1")
    return layout


def _check_same(expected: dict[str, Any], found: dict[str, Any], where: str = "") -> None:
    """Objects that have to be equal, types included: True is not 1 here."""
    for name in found:
        if name not in expected:
            outside = "/" in name or "\\" in name or ".." in name
            what = f"{where}{name[:80]!r}{' outside its folder' if outside else ''}"
            raise Invalid(f"names {what}, which no such store has")
    for name, value in expected.items():
        if name not in found:
            raise Invalid(f"the key {where + name!r} is missing")
        own = found[name]
        if isinstance(value, dict) and isinstance(own, dict):
            _check_same(value, own, f"{name}: ")
        elif json.dumps(own) != json.dumps(value):
            raise Invalid(f"{where}{name} is {_short(own)}, expected {_short(value)}")


def _check_digest(content: bytes) -> None:
    """The last member is the SHA-256 of all before its value."""
    end = b'"}\n'
    head, written = content[: -64 - len(end)], content[-64 - len(end) : -len(end)]
    sound = head.endswith(_DIGEST) and content.endswith(end)
    if not sound or hashlib.sha256(head).hexdigest().encode() != written:
        raise Invalid("was changed after it was written: its digest is wrong")


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
    """The inverse of `_policy`."""
    found = take(d, "missing", (dict, type(None)))
    if found is None:
        return None
    kind = _choice(found, "kind", MISSING[1:])
    n_features = _integer(found, "n_features", 1, n_columns)
    absent = np.array(_integers(found, "absent", None, 0, n_features - 1), np.int64)
    if (np.diff(absent) <= 0).any():
        raise Invalid("absent holds features that do not increase")
    filling = Filling(kind, n_features)
    if kind == "indicator":
        filling = replace(filling, columns=absent)
    if kind == "mean":
        values = take(found, "values", (list,))
        is_number = (type(value) is float and isfinite(value) for value in values)
        if len(values) != n_features or not all(is_number):
            raise Invalid(f"values holds no mean of each of the {n_features} features")
        is_absent = np.isin(np.arange(n_features), absent)
        filling = replace(filling, values=np.array(values), absent=is_absent)
    if filling.n_columns != n_columns:
        raise Invalid(f"missing is for {filling.n_columns} columns, expected {n_columns}")
    return filling


# ---- members of the manifest, each of a type and within limits ----------------------------------


def _choice(d: dict[str, Any], name: str, choices: tuple[Any, ...]) -> Any:
    value = take(d, name, tuple(dict.fromkeys(map(type, choices))))
    if value not in choices:
        raise Invalid(f"{name} is {_short(value)}, expected one of {choices}")
    return value


def _integer(d: dict[str, Any], name: str, low: int, high: int = MAX_COUNT) -> int:
    return _check_limits(take(d, name, (int,)), name, low, high)


def _integers(
    d: dict[str, Any], name: str, n: int | None, low: int, high: int = MAX_COUNT
) -> list[int]:
    values = _list(d, name, n)
    return [_check_limits(v, f"{name}[{k}]", low, high) for k, v in enumerate(values)]


def _check_limits(value: Any, name: str, low: int, high: int) -> int:
    if type(value) is not int or not low <= value <= high:
        raise Invalid(f"{name} is {_short(value)}, expected {low} to {high}")
    return value


def _list(d: dict[str, Any], name: str, n: int | None) -> list[Any]:
    values: list[Any] = take(d, name, (list,))
    if n is not None and len(values) != n:
        raise Invalid(f"{name} has {len(values)} elements, expected {n}")
    return values


def _names(d: dict[str, Any], n: int) -> tuple[str, ...] | None:
    if take(d, "feature_names", (list, type(None))) is None:
        return None
    values = _list(d, "feature_names", n)
    try:
        check_names(values)
    except (TypeError, ValueError) as error:
        raise Invalid(f"feature_names: {error}") from None
    return tuple(values)


def _short(value: Any) -> str:
    if isinstance(value, (list, dict)):
        return f"a {type(value).__name__}"
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:60]}..."
