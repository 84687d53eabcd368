"""The model file: one JSON object, its large arrays in base64.

The tables say which fields a file of each kind has; reading with its checks and writing follow from
them. A file is data from anywhere: every size is bounded before memory is taken for it, every type
is checked, and whatever is wrong ends in a ModelFormatError that names the file and the remedy.
"""

from __future__ import annotations

import base64
import json
import math
import os
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from linrank.errors import ModelFormatError
from linrank.system import Invalid, available, check_place, json_text, naming, replacing, take

T = TypeVar("T")

FORMAT = "linrank-model"
VERSION = 1  # the only one that is read
MAX_LISTED = 1_000_000  # numbers of a list; a longer array is in base64
# What is read of any file; of a larger one only as much as there is free memory for.
MAX_BYTES = 2**28
MAX_VALUES = 4_000_000  # of its JSON: names, lists of numbers, settings
MAX_SPARSE = 2**24  # entries of an array by indices and values: a short file must not take 8 GB
BYTES_PER_BYTE = 8  # its text, with four bytes for a character where one is rare, and the arrays
BYTES_PER_VALUE = 100
BYTES_PER_ENTRY = 24  # the array, the copy of the model, and what is compared with it
MAX_ROWS = 2**40  # of training data: a number only, no memory goes with it
RESAVE = "restore the file from a copy, or train and save the model again"
FOREIGN = "pass a file written by save() of a linrank model or by linrank train"
ROOM = f"{FOREIGN}, or load it where more memory is free"

_NULL = type(None)


@dataclass(frozen=True)
class Field:
    """A field that is in JSON: the types of its value, and the limits of an integer."""

    types: tuple[type, ...]
    limits: tuple[int, int] | None = None


@dataclass(frozen=True)
class Array:
    """A field that holds an array.

    ``shape`` names the fields that give its sizes, each plus ``extra``; a vector whose size is None
    has as many entries as it has. A ``packed`` array is always in base64; another one is a list, or
    indices and values, while that is short.
    """

    shape: tuple[str | None, ...] = ("n_features",)
    dtypes: tuple[str, ...] = ("float64",)
    optional: bool = True
    packed: bool = False
    extra: int = 0

    @property
    def types(self) -> tuple[type, ...]:
        """What it is in JSON; null where the model has no such array."""
        return (dict, _NULL) if self.packed else (list, dict, _NULL)

    def decode(self, name: str, found: Any, sizes: Mapping[str, Any]) -> NDArray[Any]:
        """The array of what `encode` made."""
        if self.packed or (isinstance(found, dict) and "data" in found):
            return self._unpack(name, found, sizes)
        size = sizes["n_features"]
        if isinstance(found, dict):
            return _expand(name, found, size)
        if len(found) != size:
            raise Invalid(f"{name!r} has {len(found)} entries, expected {size}")
        _check_entries(name, found, (int, float))
        return np.array(found, dtype=np.float64)

    def _unpack(self, name: str, found: dict[str, Any], sizes: Mapping[str, Any]) -> NDArray[Any]:
        where = f"{name}."
        _check_keys(found, ("dtype", "shape", "data"), where)
        dtype, shape = take(found, "dtype", (str,), where), take(found, "shape", (list,), where)
        data = take(found, "data", (str,), where)
        for size in shape:
            if type(size) is not int or size < 0:
                raise Invalid(f"'{name}.shape' holds {str(size)[:80]}, expected an integer >= 0")
        if dtype not in self.dtypes:
            raise Invalid(f"{name!r} is {dtype[:80]}, expected {' or '.join(self.dtypes)}")
        first = shape[0] if shape else 0
        expected = [first if key is None else sizes[key] + self.extra for key in self.shape]
        if shape != expected:
            raise Invalid(f"{name!r} has the shape {shape}, expected {expected}")
        n_bytes = math.prod(shape) * np.dtype(dtype).itemsize
        if len(data) != _packed_length(n_bytes):
            takes = f"{dtype} {shape} takes {_packed_length(n_bytes)}"
            raise Invalid(f"'{name}.data' has {len(data)} characters, {takes}")
        try:
            content = base64.b64decode(data, validate=True)
        except ValueError as error:  # of other characters, or of = in other places
            raise Invalid(f"'{name}.data' is not base64 ({error})") from None
        if len(content) != n_bytes:
            raise Invalid(f"'{name}.data' holds {len(content)} bytes, not {n_bytes}")
        little = np.frombuffer(content, dtype=np.dtype(dtype).newbyteorder("<"))
        array: NDArray[Any] = little.reshape(shape).astype(dtype, copy=False)
        return array

    def encode(self, array: NDArray[Any]) -> Any:
        """The array as JSON."""
        if not self.packed:
            short = _compact(array)
            if short is not None or array.size <= MAX_LISTED:
                return array.tolist() if short is None else short
        little = array.astype(array.dtype.newbyteorder("<"), order="C", copy=False)
        data = base64.b64encode(little.tobytes()).decode("ascii")
        return {"dtype": array.dtype.name, "shape": list(array.shape), "data": data}


def _packed_length(n_bytes: int) -> int:
    return 4 * ((n_bytes + 2) // 3)


def _compact(array: NDArray[np.float64]) -> dict[str, Any] | None:
    """Indices and values of what is not zero; None where a list of all is no longer than that.

    Zero means the bits of 0.0: a -0.0 is stored, so that the same bits are read back.
    """
    bits = np.ascontiguousarray(array).view(np.uint64)
    if 2 * np.count_nonzero(bits) > MAX_LISTED:
        return None
    stored = np.flatnonzero(bits)
    found = {"indices": stored.tolist(), "values": []}
    # The values take the same text in both forms; a list adds five characters, "0.0, ", per zero.
    if len(json.dumps(found)) - len("[]") >= 5 * (array.size - stored.size):
        return None
    return {**found, "values": array[stored].tolist()}


def _expand(name: str, found: dict[str, Any], size: int) -> NDArray[np.float64]:
    """The array of what `_compact` made."""
    where = f"{name}."
    _check_keys(found, ("indices", "values"), where)
    indices, values = (take(found, key, (list,), where) for key in ("indices", "values"))
    if len(indices) != len(values):
        raise Invalid(f"{name!r} has {len(indices)} indices and {len(values)} values")
    _check_entries(f"{name}.indices", indices, (int,))
    _check_entries(f"{name}.values", values, (int, float))
    last = -1
    for k, index in enumerate(indices):
        if not last < index < size:
            raise Invalid(
                f"{name}.indices[{k}] is {index}, expected {last + 1} to {size - 1}: they "
                "increase, and count features from 0"
            )
        last = index
    array = np.zeros(size)
    array[indices] = values
    return array


def _check_entries(name: str, values: list[Any], types: tuple[type, ...]) -> None:
    for k, value in enumerate(values):
        if type(value) not in types:
            expected = "a number" if float in types else "int"
            raise Invalid(f"{name}[{k}] is a {type(value).__name__}, expected {expected}")


def _check_keys(holder: dict[str, Any], known: Iterable[str], where: str = "") -> None:
    """Refuse any other key: one that we do not know may change what the scores mean."""
    unknown = [key for key in holder if key not in known]
    if unknown:
        place = f" in {where.removesuffix('.')!r}" if where else ""
        raise Invalid(f"unknown key {unknown[0][:80]!r}{place}")


# ---- the fields of each kind of model ------------------------------------------------------------

_TEXT, _NUMBER = Field((str,)), Field((int, float))
_FLOATS, _INTEGERS = ("float32", "float64"), ("int32", "int64")
_COMMON: dict[str, Field | Array] = {
    "format": _TEXT,
    "version": Field((int,), (1, 2**31)),
    "kind": _TEXT,
    "linrank": _TEXT,
    "n_features": Field((int,), (1, 2**31 - 1)),
    "scaling": _TEXT,
    "training": Field((dict,)),
    "feature_names": Field((list, _NULL)),
}
_BY_FEATURE: dict[str, Field | Array] = {
    **_COMMON,
    "missing": _TEXT,
    "filled": Array(),  # values of missing="mean", weights of "indicator"
    "absent": Array(),  # of missing="mean", 1 for features that were missing in training
    "statistics.weight": Field((int, float, _NULL)),
    "statistics.n_rows": Field((int, _NULL), (1, MAX_ROWS)),
    **{f"statistics.{key}": Array() for key in ("mean", "variance", "low", "high")},
    "statistics.n_nonzero": Array(),
}


CURVE_PARTS = ("feature", "offsets", "knots", "values", "slopes")


def _curves(name: str) -> dict[str, Field | Array]:
    """Functions of single features; what belongs together is checked where they are made."""
    dtypes = (_INTEGERS, _INTEGERS, *[("float64",)] * 3)
    parts = zip(CURVE_PARTS, dtypes, strict=True)
    return {f"{name}.{part}": Array((None,), dtype, packed=True) for part, dtype in parts}


TABLES: dict[str, dict[str, Field | Array]] = {
    "linear": {**_BY_FEATURE, "factors": Array(), "coef": Array(optional=False)},
    "additive": {
        **_BY_FEATURE,
        "gamma": Field((int, float, _NULL)),  # of interactions; null without them
        "n_landmarks": Field((int,), (0, MAX_ROWS)),
        "n_quantiles": Field((int,), (0, 2**30)),
        **_curves("curves"),
        **_curves("quantiles"),
        "landmarks": Array(("n_landmarks", "n_quantiles"), packed=True),
        "coef": Array(("n_landmarks",), packed=True),
    },
    "kernel": {
        **_COMMON,
        "kernel": _TEXT,
        "gamma": _NUMBER,
        "degree": Field((int,), (1, 2**31 - 1)),
        "coef0": _NUMBER,
        "n_support": Field((int,), (0, MAX_ROWS)),
        "n_train": Field((int, _NULL), (1, MAX_ROWS)),
        "rows": Array(("n_support", "n_features"), _FLOATS, packed=True),
        "values": Array((None,), _FLOATS, packed=True),
        "columns": Array((None,), _INTEGERS, packed=True),
        "offsets": Array(("n_support",), _INTEGERS, packed=True, extra=1),
        "coef": Array(("n_support",), optional=False, packed=True),
        "support": Array(("n_support",), _INTEGERS, packed=True),
        "factors": Array(packed=True),
    },
}


# ---- reading ------------------------------------------------------------------------------------


def read(path: str | os.PathLike[str], build: Callable[[dict[str, Any]], T]) -> T:
    """``build(contents)`` of the file at `path`: its fields, as the table of its kind has them.

    Whatever is wrong with the file, the values that `build` rejects with a TypeError or
    ValueError included, becomes a ModelFormatError that names the file and the remedy.
    """
    name = os.fspath(path)
    try:
        contents = _decode(_parse(_read_bytes(name)))
        try:
            return build(contents)
        except (TypeError, ValueError) as error:
            raise Invalid(str(error)) from None
    except Invalid as error:
        raise ModelFormatError(f"{name}: {error.problem}; {error.remedy or RESAVE}") from None


def most_bytes() -> int:
    """The size of the largest file that is read on this machine now."""
    return _extend(MAX_BYTES, BYTES_PER_BYTE)


def _extend(limit: int, n_bytes: int) -> int:
    """The limit, or as many things of ``n_bytes`` as there is free memory for."""
    return max(limit, (available() or 0) // n_bytes)


def _read_bytes(name: str) -> bytes:
    status = os.stat(name)
    if not stat.S_ISREG(status.st_mode):
        raise Invalid("not a regular file", FOREIGN)
    size = status.st_size
    if size == 0:
        raise Invalid("the file is empty")
    if size > (most := most_bytes()):
        problem = f"{size} bytes is more than there is free memory for ({most})"
        raise Invalid(problem, ROOM)
    with naming(name), open(name, "rb") as file:
        content = file.read(size + 1)  # the buffer is taken in advance: no more than needed
    if len(content) != size:
        raise Invalid("the file changed while it was read", "load it again")
    return content


def _parse(content: bytes) -> dict[str, Any]:
    if content.startswith((b"PAR1", b"ARROW1")):
        raise Invalid("a table (Parquet or Arrow), not a model", FOREIGN)
    try:
        document = json_text.parse(content, _extend(MAX_VALUES, BYTES_PER_VALUE))
    except json_text.TooMuchJSON as error:
        raise Invalid(str(error), FOREIGN) from None
    except json_text.MalformedJSON as error:
        # Damage leaves the first brace in place; a file without it was never a model.
        raise Invalid(str(error), None if content.lstrip()[:1] == b"{" else FOREIGN) from None
    if not isinstance(document, dict):
        raise Invalid(f"holds a {type(document).__name__}, not an object", FOREIGN)
    return document


def _decode(document: dict[str, Any]) -> dict[str, Any]:
    """The contents of a document: checked values, and arrays."""
    if document.get("format") != FORMAT:
        raise Invalid(f'not a linrank model (no "format": "{FORMAT}")', FOREIGN)
    version = _value(document, "version", _COMMON["version"])
    if version > VERSION:
        raise Invalid(
            f"format version {version} is newer than {VERSION}, which this linrank reads",
            "upgrade linrank",
        )
    kind = take(document, "kind", (str,))
    if kind not in TABLES:
        raise Invalid(f"kind is {kind[:80]!r}, expected {' or '.join(map(repr, TABLES))}", FOREIGN)
    _check_keys(document, TABLES[kind])
    contents = {key: _value(document, key, spec) for key, spec in TABLES[kind].items()}
    for key in contents["training"]:
        take(contents["training"], key, (str, int, float, bool, _NULL), "training.")
    names, n_features = contents["feature_names"], contents["n_features"]
    # Before memory is taken for what a few characters can claim.
    if names is not None and len(names) != n_features:
        raise Invalid(f"{len(names)} feature names for {n_features} features")
    arrays = _arrays_of(kind)
    _check_sparse(contents, arrays)
    for key, spec in arrays.items():
        if contents[key] is not None:
            contents[key] = spec.decode(key, contents[key], contents)
        elif not spec.optional:
            raise Invalid(f"there is no array {key!r}")
    return contents


def _check_sparse(contents: Mapping[str, Any], arrays: Iterable[str]) -> None:
    """Refuse arrays by indices and values that there is no free memory for."""
    found = [contents[key] for key in arrays if isinstance(contents[key], dict)]
    n_entries = contents["n_features"] * sum("data" not in array for array in found)
    if n_entries > (most := _extend(MAX_SPARSE, BYTES_PER_ENTRY)):
        problem = f"gives indices and values of {n_entries} entries, and there is free memory for"
        raise Invalid(f"{problem} {most}", ROOM)


def _value(document: dict[str, Any], key: str, spec: Field | Array) -> Any:
    value = take(document, key, spec.types)
    if isinstance(spec, Field) and spec.limits is not None and value is not None:
        low, high = spec.limits
        if not low <= value <= high:
            raise Invalid(f"{key!r} is {value}, expected {low} to {high}")
    return float(value) if float in spec.types and type(value) is int else value


def _arrays_of(kind: str) -> dict[str, Array]:
    return {key: spec for key, spec in TABLES[kind].items() if isinstance(spec, Array)}


# ---- writing ------------------------------------------------------------------------------------


def write(kind: str, contents: Mapping[str, Any], path: str | os.PathLike[str]) -> None:
    """Write a model to `path`, whole or not at all.

    `contents` has the fields of the table of that kind but for those that say what the file is. The
    same contents give the same bytes.
    """
    name = os.fspath(path)
    check_place(name)
    with replacing(name) as file:
        for line in _encode_lines(kind, contents):
            file.write(line)


def encode(kind: str, contents: Mapping[str, Any]) -> bytes:
    """The bytes of the model file."""
    return b"".join(_encode_lines(kind, contents))


def _encode_lines(kind: str, contents: Mapping[str, Any]) -> Iterator[bytes]:
    """One line per key: the file stays readable, and one array at a time is text."""
    training = dict(sorted(contents["training"].items()))
    head = {"format": FORMAT, "version": VERSION, "kind": kind, "training": training}
    whole = {**contents, **head}
    opening = "{\n"
    for key, spec in TABLES[kind].items():
        value = whole.get(key)
        if isinstance(spec, Array) and value is not None:
            value = spec.encode(value)
        # Python writes a float as the shortest decimal that reads back as the same bits: at most
        # 17 digits.
        text = json.dumps(value, allow_nan=False, ensure_ascii=False)
        yield f'{opening}"{key}": {text}'.encode()
        opening = ",\n"
    yield b"\n}\n"
