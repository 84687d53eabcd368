"""The model file: one JSON object, with safetensors beside it for very large models.

The tables say which fields a file of each kind has; reading with its checks and writing follow from
them. A file is data from anywhere: every size is bounded before memory is taken for it, every type
is checked, and whatever is wrong ends in a ModelFormatError that names the file and the remedy.
"""

from __future__ import annotations

import json
import os
import stat
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from linrank.errors import ModelFormatError
from linrank.models import arrays
from linrank.models.arrays import MAX_JSON_BYTES, RESAVE, Array, Invalid, check_keys, take
from linrank.system import json_text
from linrank.system.durable import check_place, naming, one_at_a_time, replacing

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import TypeVar

    T = TypeVar("T")

FORMAT = "linrank-model"
VERSION = 1  # the only one that is read
MAX_ROWS = 2**40  # of training data: a number only, no memory goes with it
# What a model can hold at most: four lists of a million entries, and a few dozen settings. Those
# of statistics are of models of 20,000 features at most.
MAX_VALUES = 4 * arrays.MAX_LISTED + 1000
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
TABLES: dict[str, dict[str, Field | Array]] = {
    "linear": {
        **_COMMON,
        "missing": _TEXT,
        "filled": Array(),  # values of missing="mean", weights of "indicator"
        "statistics.weight": Field((int, float, _NULL)),
        "statistics.n_rows": Field((int, _NULL), (1, MAX_ROWS)),
        **{f"statistics.{key}": Array() for key in ("mean", "variance", "low", "high")},
        "statistics.n_nonzero": Array(),
        "factors": Array(),
        "coef": Array(optional=False),
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
        raise ModelFormatError(f"{name}: {error.problem}; {error.remedy}") from None


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
        raise Invalid(str(error), RESAVE if content.lstrip()[:1] == b"{" else FOREIGN) from None
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
            "upgrade with pip install --upgrade linrank",
        )
    kind = take(document, "kind", (str,))
    if kind not in TABLES:
        raise Invalid(f"kind is {kind[:80]!r}, expected 'linear' or 'kernel'", FOREIGN)
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
        return arrays.read_tensors(path, expected, specs, contents)
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
    specs, names = _arrays_of(kind), contents["feature_names"]
    given = {key: contents[key] for key in specs if contents.get(key) is not None}
    is_short = names is None or len(names) <= arrays.MAX_LISTED
    found = arrays.encode(given, specs) if is_short else None
    head = {"format": FORMAT, "version": VERSION, "kind": kind}
    values = {**contents, "training": dict(sorted(contents["training"].items())), **head}
    whole = None if found is None else _text({**values, **found}, kind)
    if whole is None and os.path.exists(name) and not os.path.isfile(name):
        raise ValueError(
            f"{name}: a model of {_size(contents)} takes two files and cannot go to a pipe or "
            "device; name a file"
        )
    target = os.path.realpath(name)
    if whole is not None and arrays.used_by(target) is None:
        _replace(name, whole)
        return
    with one_at_a_time(name):
        old = arrays.used_by(target)
        if whole is not None:
            _replace(name, whole)
        else:
            # Under a name that the old model does not use, which thus stays whole.
            beside = next(path for path in arrays.names_beside(target) if path != old)
            content = arrays.to_tensors(given, names, _size(contents))
            reference = {"arrays": os.path.basename(beside), "sha256": arrays.digest([content])}
            bare = {**values, **dict.fromkeys(specs), "feature_names": None, **reference}
            _replace_both(beside, content, target, _text(bare, kind))
        _remove(old)


def _replace_both(beside: str, content: bytes, target: str, text: bytes) -> None:
    try:
        _replace(beside, content)
        _replace(target, text)
    except BaseException:
        if arrays.used_by(target) != beside:
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


def _text(contents: dict[str, Any], kind: str) -> bytes:
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
