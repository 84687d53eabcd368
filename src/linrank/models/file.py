"""The model file: one JSON object, with safetensors beside it for very large models.

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
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from linrank.errors import ModelFormatError
from linrank.system import json_text
from linrank.system.durable import check_place, name_beside, naming, one_at_a_time, replacing
from linrank.system.json_text import Invalid, take

T = TypeVar("T")

MAX_JSON_BYTES = 2**28
MAX_NAMES_BYTES = 8 * MAX_JSON_BYTES
MAX_LISTED = 1_000_000  # numbers or names of a list; beyond, arrays go to a safetensors file
MAX_SPARSE = 2**24  # of arrays by indices and values: a short file must not take 8 GB
MAX_PACKED = MAX_JSON_BYTES - 2**24  # characters of base64 in one file; the rest is for names
RESAVE = "restore the file from a copy, or train and save the model again"
_MAX_REFERRING_BYTES = 1 << 20  # of a JSON file without arrays of its own
_TENSORS = {"F32": "float32", "F64": "float64", "I32": "int32", "I64": "int64"}


def check_keys(holder: dict[str, Any], known: Iterable[str], where: str = "") -> None:
    """Refuse any other key: one that we do not know may change what the scores mean."""
    unknown = [key for key in holder if key not in known]
    if unknown:
        place = f" in {where.removesuffix('.')!r}" if where else ""
        raise Invalid(f"unknown key {unknown[0][:80]!r}{place}")


@dataclass(frozen=True)
class Array:
    """A field that holds an array.

    ``shape`` names the fields that give its sizes, each plus ``extra``; a vector whose size is None
    has as many entries as it has.
    """

    shape: tuple[str | None, ...] = ("n_features",)
    dtypes: tuple[str, ...] = ("float64",)
    optional: bool = True
    packed: bool = False
    extra: int = 0

    @property
    def types(self) -> tuple[type, ...]:
        """What it is in JSON; null where it is left out, or in the file beside."""
        return (dict, type(None)) if self.packed else (list, dict, type(None))

    def check(self, name: str, dtype: str, shape: list[int], sizes: Mapping[str, Any]) -> None:
        """Refuse a type or a shape that the array cannot have."""
        if dtype not in self.dtypes:
            raise Invalid(f"{name!r} is {dtype[:80]}, expected {' or '.join(self.dtypes)}")
        first = shape[0] if shape else 0
        expected = [first if key is None else sizes[key] + self.extra for key in self.shape]
        if shape != expected:
            raise Invalid(f"{name!r} has the shape {shape}, expected {expected}")

    def decode(self, name: str, found: Any, sizes: Mapping[str, Any]) -> NDArray[Any]:
        """The array of what `encode` made."""
        if self.packed:
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
        check_keys(found, ("dtype", "shape", "data"), where)
        dtype, shape = take(found, "dtype", (str,), where), take(found, "shape", (list,), where)
        data = take(found, "data", (str,), where)
        for size in shape:
            if type(size) is not int or size < 0:
                raise Invalid(f"'{name}.shape' holds {str(size)[:80]}, expected an integer >= 0")
        self.check(name, dtype, shape, sizes)
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
        """The array as JSON; None for a list that would be too long."""
        if self.packed:
            little = array.astype(array.dtype.newbyteorder("<"), order="C", copy=False)
            data = base64.b64encode(little.tobytes()).decode("ascii")
            return {"dtype": array.dtype.name, "shape": list(array.shape), "data": data}
        short = _compact(array)
        return array.tolist() if short is None and array.size <= MAX_LISTED else short


def encode(arrays: Mapping[str, NDArray[Any]], specs: Mapping[str, Array]) -> dict[str, Any] | None:
    """All arrays as JSON; None if they are too large for it."""
    packed = sum(_packed_length(a.nbytes) for key, a in arrays.items() if specs[key].packed)
    if packed > MAX_PACKED:
        return None
    found = {key: specs[key].encode(array) for key, array in arrays.items()}
    return found if all(value is not None for value in found.values()) else None


def _packed_length(n_bytes: int) -> int:
    return 4 * ((n_bytes + 2) // 3)


def _compact(array: NDArray[np.float64]) -> dict[str, Any] | None:
    """Indices and values of what is not zero; None where a list of all is no longer than that.

    Zero means the bits of 0.0: a -0.0 is stored, so that the same bits are read back.
    """
    if array.size > MAX_SPARSE:
        return None
    stored = np.flatnonzero(np.ascontiguousarray(array).view(np.uint64))
    if 2 * stored.size > MAX_LISTED:
        return None
    found = {"indices": stored.tolist(), "values": []}
    # The values take the same text in both forms; a list adds five characters, "0.0, ", a zero.
    if len(json.dumps(found)) - len("[]") >= 5 * (array.size - stored.size):
        return None
    return {**found, "values": array[stored].tolist()}


def _expand(name: str, found: dict[str, Any], size: int) -> NDArray[np.float64]:
    """The array of what `_compact` made."""
    if size > MAX_SPARSE:
        raise Invalid(
            f"{name!r} gives indices and values of {size} entries; that form is for at most "
            f"{MAX_SPARSE}"
        )
    where = f"{name}."
    check_keys(found, ("indices", "values"), where)
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


# ---- the file beside ----------------------------------------------------------------------------


def names_beside(target: str) -> tuple[str, str]:
    """The names that the arrays file of the model file `target` may have.

    There are two: one for the arrays of a model that is there, one for those of its successor. The
    second is no name that the arrays of another model have: there may be a model.2.json.
    """
    stem, suffix = os.path.splitext(target)
    if suffix == ".safetensors":
        raise ValueError(f"{target}: that name is needed for the arrays; save to {stem}.json")
    return name_beside(target, ".safetensors"), name_beside(target, ".successor.safetensors")


def used_by(target: str) -> str | None:
    """The arrays file of the model at `target`, if there is one that has such a file."""
    try:
        if not os.path.isfile(target) or os.path.getsize(target) > _MAX_REFERRING_BYTES:
            return None
        with open(target, "rb") as file:
            document = json_text.parse(file.read(_MAX_REFERRING_BYTES), _MAX_REFERRING_BYTES)
        path = os.path.join(os.path.dirname(target), document["arrays"])
        return path if path in names_beside(target) else None
    except (OSError, ValueError, TypeError, LookupError):
        return None


def to_tensors(
    arrays: Mapping[str, NDArray[Any]], feature_names: Sequence[str] | None, size: str
) -> bytes:
    """Arrays as a safetensors file, of a model of that ``size``; names travel as a JSON list."""
    try:
        from safetensors.numpy import save
    except ImportError:
        raise _needs_safetensors(f"saving a model of {size}") from None
    whole = {key: np.ascontiguousarray(array) for key, array in arrays.items()}
    if feature_names is not None:
        names = json.dumps(feature_names, ensure_ascii=False).encode()
        whole["feature_names"] = np.frombuffer(names, dtype=np.uint8)
    return bytes(save(whole))


def digest(blocks: Iterable[bytes]) -> str:
    """Ties the two files together: an interrupted save over an older model is noticed."""
    import hashlib  # loads OpenSSL, 3 ms that no ordinary model needs

    total = hashlib.sha256()
    for block in blocks:
        total.update(block)
    return total.hexdigest()


def read_tensors(
    path: str, expected_digest: str, specs: Mapping[str, Array], sizes: Mapping[str, Any]
) -> dict[str, Any]:
    """Arrays and feature names of a file; types and sizes are checked before they are read."""
    try:
        from safetensors import SafetensorError, safe_open
    except ImportError:
        raise _needs_safetensors(f"reading {path}") from None
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):
            raise Invalid("not a regular file")
        with safe_open(path, framework="numpy") as file, open(path, "rb") as content:
            keys = list(file.keys())
            for key in keys:
                _check_tensor(key, file.get_slice(key), specs, sizes)
            if digest(iter(lambda: content.read(1 << 20), b"")) != expected_digest:
                raise Invalid("it belongs to another model (its SHA-256 differs)")
            found: dict[str, Any] = {key: file.get_tensor(key) for key in keys}
    except FileNotFoundError:
        raise Invalid("the file is missing", "keep it beside the JSON file") from None
    except (SafetensorError, OSError) as error:
        raise Invalid(f"not a valid safetensors file ({error})") from None
    if "feature_names" in found:
        found["feature_names"] = decode_names(found["feature_names"], sizes["n_features"])
    return found


def _check_tensor(
    key: str, part: Any, specs: Mapping[str, Array], sizes: Mapping[str, Any]
) -> None:
    shape, dtype = list(part.get_shape()), str(part.get_dtype())
    if key == "feature_names":
        if dtype != "U8" or len(shape) != 1 or shape[0] > MAX_NAMES_BYTES:
            raise Invalid(f"{key!r} is {dtype} {shape}, expected bytes of text (U8)")
    elif key not in specs:
        raise Invalid(f"unknown tensor {key[:80]!r}")
    else:
        specs[key].check(key, _TENSORS.get(dtype, dtype), shape, sizes)


def decode_names(encoded: NDArray[np.uint8], n_features: int) -> list[str]:
    """The feature names of an arrays file."""
    problem = "the tensor 'feature_names' is not a JSON list of strings"
    try:
        names = json_text.parse(encoded.tobytes(), n_features, max_brackets=1)
    except json_text.MalformedJSON as error:
        raise Invalid(f"{problem}: {error}") from None
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise Invalid(problem)
    return names


def _needs_safetensors(purpose: str) -> ImportError:
    return ImportError(f"{purpose} needs safetensors: pip install safetensors")


FORMAT = "linrank-model"
VERSION = 1  # the only one that is read
MAX_ROWS = 2**40  # of training data: a number only, no memory goes with it
# What a model can hold at most: four lists of a million entries, and a few dozen settings. Those
# of statistics are of models of 20,000 features at most.
MAX_VALUES = 4 * MAX_LISTED + 1000
FOREIGN = "pass a file written by save() of a linrank model or by linrank train"


@dataclass(frozen=True)
class Field:
    """A field that is in JSON: the types of its value, and the limits of an integer."""

    types: tuple[type, ...]
    limits: tuple[int, int] | None = None


_NULL = type(None)
_TEXT, _NUMBER = Field((str,)), Field((int, float))
_FLOATS, _INTEGERS = ("float32", "float64"), ("int32", "int64")
_COMMON: dict[str, Field | Array] = {
    "format": _TEXT,
    "version": Field((int,), (1, 2**31)),
    "kind": _TEXT,
    "linrank": _TEXT,
    "n_features": Field((int,), (1, 2**30)),
    "scaling": _TEXT,
    "training": Field((dict,)),
    "arrays": Field((str, _NULL)),
    "sha256": Field((str, _NULL)),
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


def _curves(name: str) -> dict[str, Field | Array]:
    """Functions of single features; what belongs together is checked where they are made."""
    whole = {"feature": _INTEGERS, "offsets": _INTEGERS}
    parts = ("feature", "offsets", "knots", "values", "slopes")
    return {
        f"{name}.{part}": Array((None,), whole.get(part, ("float64",)), packed=True)
        for part in parts
    }


TABLES: dict[str, dict[str, Field | Array]] = {
    "linear": {
        **_BY_FEATURE,
        "factors": Array(),
        "coef": Array(optional=False),
    },
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
        "phases": Array(("n_support",), packed=True),
        "support": Array(("n_support",), _INTEGERS, packed=True),
        "factors": Array(packed=True),
    },
}


_KINDS = " or ".join(map(repr, TABLES))


def _arrays_of(kind: str) -> dict[str, Array]:
    return {key: spec for key, spec in TABLES[kind].items() if isinstance(spec, Array)}


# ---- reading ------------------------------------------------------------------------------------


def read(path: str | os.PathLike[str], build: Callable[[dict[str, Any]], T]) -> T:
    """``build(contents)`` of the file at `path`: its fields, as the table of its kind has them.

    Whatever is wrong with the file, the values that `build` rejects with a TypeError or
    ValueError included, becomes a ModelFormatError that names the file and the remedy.
    """
    name = os.fspath(path)
    try:
        contents = _decode(_parse(_read_bytes(name)), os.path.dirname(name))
        try:
            return build(contents)
        except (TypeError, ValueError) as error:
            raise Invalid(str(error)) from None
    except Invalid as error:
        raise ModelFormatError(f"{name}: {error.problem}; {error.remedy or RESAVE}") from None


def _read_bytes(name: str) -> bytes:
    status = os.stat(name)
    if not stat.S_ISREG(status.st_mode):
        raise Invalid("not a regular file", FOREIGN)
    size = status.st_size
    if size == 0:
        raise Invalid("the file is empty")
    if size > MAX_JSON_BYTES:
        raise Invalid(f"{size} bytes is more than a model can take ({MAX_JSON_BYTES})", FOREIGN)
    with naming(name), open(name, "rb") as file:
        content = file.read(size + 1)  # the buffer is taken in advance: no more than needed
    if len(content) != size:
        raise Invalid("the file changed while it was read", "load it again")
    return content


def _parse(content: bytes) -> dict[str, Any]:
    if content.startswith((b"PAR1", b"ARROW1")):
        raise Invalid("a table (Parquet or Arrow), not a model", FOREIGN)
    try:
        document = json_text.parse(content, MAX_VALUES)
    except json_text.TooMuchJSON as error:
        raise Invalid(str(error), FOREIGN) from None
    except json_text.MalformedJSON as error:
        # Damage leaves the first brace in place; a file without it was never a model.
        raise Invalid(str(error), None if content.lstrip()[:1] == b"{" else FOREIGN) from None
    if not isinstance(document, dict):
        raise Invalid(f"holds a {type(document).__name__}, not an object", FOREIGN)
    return document


def _decode(document: dict[str, Any], folder: str) -> dict[str, Any]:
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
        raise Invalid(f"kind is {kind[:80]!r}, expected {_KINDS}", FOREIGN)
    check_keys(document, TABLES[kind])
    contents = {key: _value(document, key, spec) for key, spec in TABLES[kind].items()}
    for key in contents["training"]:
        take(contents["training"], key, (str, int, float, bool, _NULL), "training.")
    if contents["arrays"] is not None:
        contents |= _read_beside(contents, folder)
    names, n_features = contents["feature_names"], contents["n_features"]
    # Before memory is taken for what a few characters can claim.
    if names is not None and len(names) != n_features:
        raise Invalid(f"{len(names)} feature names for {n_features} features")
    for key, spec in _arrays_of(kind).items():
        if contents[key] is not None and contents["arrays"] is None:
            contents[key] = spec.decode(key, contents[key], contents)
        if contents[key] is None and not spec.optional:
            raise Invalid(f"there is no array {key!r}")
    return contents


def _value(document: dict[str, Any], key: str, spec: Field | Array) -> Any:
    value = take(document, key, spec.types)
    if isinstance(spec, Field) and spec.limits is not None and value is not None:
        low, high = spec.limits
        if not low <= value <= high:
            raise Invalid(f"{key!r} is {value}, expected {low} to {high}")
    return float(value) if float in spec.types and type(value) is int else value


def _read_beside(contents: dict[str, Any], folder: str) -> dict[str, Any]:
    """Arrays and feature names of the file that a document names."""
    specs = _arrays_of(contents["kind"])
    for key in ("feature_names", *specs):
        take(contents, key, (_NULL,))  # they are given in one place only
    name, expected = contents["arrays"], take(contents, "sha256", (str,))
    if name in ("", ".", "..") or set(name) & set("/\\\0"):
        raise Invalid(f"'arrays' is {name[:80]!r}, expected a file name without a folder")
    path = os.path.join(folder, name)
    try:
        return read_tensors(path, expected, specs, contents)
    except Invalid as error:
        raise Invalid(f"its arrays file {path}: {error.problem}", error.remedy) from None


# ---- writing ------------------------------------------------------------------------------------


def write(kind: str, contents: Mapping[str, Any], path: str | os.PathLike[str]) -> None:
    """Write a model to `path`, whole or not at all, and what is too large to a file beside it.

    `contents` has the fields of the table of that kind but for those that say what the file is. The
    same contents give the same bytes.
    """
    name = os.fspath(path)
    check_place(name)
    whole = to_json(kind, contents)
    if whole is None and os.path.exists(name) and not os.path.isfile(name):
        raise ValueError(
            f"{name}: a model of {_size(contents)} takes two files and cannot go to a pipe or "
            "device; name a file"
        )
    target = os.path.realpath(name)
    if whole is not None and used_by(target) is None:
        _replace(name, whole)
        return
    with one_at_a_time(name):
        old = used_by(target)
        if whole is not None:
            _replace(name, whole)
        else:
            # Under a name that the old model does not use, which thus stays whole.
            beside = next(path for path in names_beside(target) if path != old)
            arrays = _given(kind, contents)
            content = to_tensors(arrays, contents["feature_names"], _size(contents))
            reference = {"arrays": os.path.basename(beside), "sha256": digest([content])}
            none = dict.fromkeys(["feature_names", *_arrays_of(kind)])
            _replace_both(beside, content, target, _text({**contents, **none, **reference}, kind))
        _remove(old)


def to_json(kind: str, contents: Mapping[str, Any]) -> bytes | None:
    """The model file with all arrays in it; None where they are too large for that."""
    names = contents["feature_names"]
    if names is not None and len(names) > MAX_LISTED:
        return None
    found = encode(_given(kind, contents), _arrays_of(kind))
    return None if found is None else _text({**contents, **found}, kind)


def _given(kind: str, contents: Mapping[str, Any]) -> dict[str, NDArray[Any]]:
    """The arrays that a model has."""
    return {key: contents[key] for key in _arrays_of(kind) if contents.get(key) is not None}


def _replace_both(beside: str, content: bytes, target: str, text: bytes) -> None:
    try:
        _replace(beside, content)
        _replace(target, text)
    except BaseException:
        if used_by(target) != beside:
            _remove(beside)
        raise


def _replace(path: str, content: bytes) -> None:
    with replacing(path) as file:
        file.write(content)


def _remove(path: str | None) -> None:
    if path is not None:
        with suppress(FileNotFoundError):
            os.unlink(path)


def _size(contents: Mapping[str, Any]) -> str:
    """How large the model is, in words."""
    rows = f"{contents['n_support']} support rows of " if "n_support" in contents else ""
    return f"{rows}{contents['n_features']} features"


def _text(contents: Mapping[str, Any], kind: str) -> bytes:
    head = {"format": FORMAT, "version": VERSION, "kind": kind}
    contents = {**contents, "training": dict(sorted(contents["training"].items())), **head}
    # Python writes a float as the shortest decimal that reads back as the same bits: at most 17
    # digits. One line per key keeps the file readable and the encoder in C.
    lines = (
        f'"{key}": {json.dumps(contents.get(key), allow_nan=False, ensure_ascii=False)}'
        for key in TABLES[kind]
    )
    text = ("{\n" + ",\n".join(lines) + "\n}\n").encode()
    if len(text) > MAX_JSON_BYTES:
        raise ValueError(
            f"the model takes {len(text)} bytes as JSON, more than {MAX_JSON_BYTES}; "
            "shorten or drop its feature names"
        )
    return text
