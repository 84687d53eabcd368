"""Read a model file that may be damaged, foreign or hostile."""

from __future__ import annotations

import json
import os
import re
import stat
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from linrank.errors import ModelFormatError
from linrank.model_file import arrays, sparse
from linrank.model_file.contents import (
    FOREIGN,
    FORMAT,
    MAX_FEATURES,
    MAX_INLINE_FEATURES,
    MAX_JSON_BYTES,
    RESAVE,
    SPARSE,
    VERSION,
    Contents,
    Invalid,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeVar

    from numpy.typing import NDArray

    T = TypeVar("T")

__all__ = ["read"]

# What a model can hold at most: three lists of a million entries, and a few dozen settings.
MAX_COMMAS = 3 * MAX_INLINE_FEATURES + 1000
MAX_BRACKETS = 64
MAX_NUMBER_LENGTH = 64
KEYS = (
    *("format", "version", "kind", "linrank", "n_features", "scaling", "training"),
    *("arrays", "feature_names", "factors", "coef"),
)


def read(path: str | os.PathLike[str], build: Callable[[Contents], T]) -> T:
    """``build(contents)`` of the file at `path`.

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
    with open(name, "rb") as file:
        content = file.read(size + 1)  # the buffer is taken in advance: no more than needed
    if len(content) != size:
        raise Invalid("the file changed while it was read", "load it again")
    return content


_STRING = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)
_LONG_NUMBER = re.compile(rb"[-+.0-9eE]{%d}" % (MAX_NUMBER_LENGTH + 1))


def _check_bulk(content: bytes) -> None:
    """Count what the parser would make: a value can take 25 times the memory of its text."""
    skeleton = _STRING.sub(b"", content)
    if skeleton.count(b"[") + skeleton.count(b"{") > MAX_BRACKETS:
        raise Invalid("more lists and objects than a linrank model has", FOREIGN)
    if skeleton.count(b",") > MAX_COMMAS:
        raise Invalid(f"more than {MAX_COMMAS} values", FOREIGN)
    if _LONG_NUMBER.search(skeleton):
        raise Invalid(f"a number of more than {MAX_NUMBER_LENGTH} characters", FOREIGN)


def _parse(content: bytes) -> dict[str, Any]:
    _check_bulk(content)
    try:
        text = content.decode()
    except UnicodeDecodeError as error:
        raise Invalid(f"not a text file (byte {error.start} is not UTF-8)", FOREIGN) from None
    try:
        document = json.loads(
            text, object_pairs_hook=_without_duplicates, parse_constant=_reject_constant
        )
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        # Damage leaves the first brace in place; a file without it was never a model.
        remedy = RESAVE if text.lstrip().startswith("{") else FOREIGN
        raise Invalid(f"not JSON at {where} ({error.msg})", remedy) from None
    if not isinstance(document, dict):
        raise Invalid(f"holds a {type(document).__name__}, not an object", FOREIGN)
    return document


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for key, value in pairs:
        if key in result:
            raise Invalid(f"the key {key[:80]!r} occurs twice")
        result[key] = value
    return result


def _reject_constant(name: str) -> NoReturn:
    raise Invalid(f"holds {name}, which is not a finite number")


def _decode(document: dict[str, Any], folder: str) -> Contents:
    _check_header(document)
    n_features = _integer(document, "n_features", 1, MAX_FEATURES)
    reference = _field(document, "arrays", dict, type(None))
    if reference is None:
        names, factors, coef = _inline_arrays(document, n_features)
    else:
        names, factors, coef = _arrays_beside(document, reference, folder, n_features)
    scaling = _field(document, "scaling", str)
    return Contents(
        coef, names, scaling, factors, _training(document), _field(document, "linrank", str)
    )


def _check_header(document: dict[str, Any]) -> None:
    if document.get("format") != FORMAT:
        raise Invalid(f'not a linrank model (no "format": "{FORMAT}")', FOREIGN)
    version = _integer(document, "version", 1, 2**31)
    if version > VERSION:
        raise Invalid(
            f"format version {version} is newer than {VERSION}, the newest that this linrank reads",
            "upgrade with pip install --upgrade linrank",
        )
    kind = _field(document, "kind", str)
    if kind != "linear":
        raise Invalid(f"kind is {kind[:80]!r}, expected 'linear'", FOREIGN)
    # A key that we do not know may change what the scores mean.
    unknown = [key for key in document if key not in KEYS]
    if unknown:
        raise Invalid(f"unknown key {unknown[0][:80]!r}")


def _field(document: dict[str, Any], key: str, *types: type, name: str | None = None) -> Any:
    if key not in document:
        raise Invalid(f"the key {name or key!r} is missing")
    value = document[key]
    if type(value) not in types:  # not isinstance: True is no number here
        expected = " or ".join("null" if t is type(None) else t.__name__ for t in types)
        raise Invalid(f"{name or key!r} is a {type(value).__name__}, expected {expected}")
    return value


def _integer(document: dict[str, Any], key: str, low: int, high: int) -> int:
    value = int(_field(document, key, int))
    if not low <= value <= high:
        raise Invalid(f"{key!r} is {value}, expected {low} to {high}")
    return value


def _training(document: dict[str, Any]) -> dict[str, Any]:
    training: dict[str, Any] = _field(document, "training", dict)
    for key in training:
        scalars = (str, int, float, bool, type(None))
        _field(training, key, *scalars, name=f"training.{key[:80]}")
    return training


_Arrays = tuple["list[str] | None", "NDArray[np.float64] | None", "NDArray[np.float64]"]


def _inline_arrays(document: dict[str, Any], n_features: int) -> _Arrays:
    names = _field(document, "feature_names", list, type(None))
    # Before memory is taken for what a few characters can claim: names are as many as features.
    if names is not None and len(names) != n_features:
        raise Invalid(f"{len(names)} feature names for {n_features} coefficients")
    forms = (list, dict) if document["version"] >= SPARSE else (list,)
    factors = _field(document, "factors", *forms, type(None))
    coef = _numbers("coef", _field(document, "coef", *forms), n_features)
    return names, None if factors is None else _numbers("factors", factors, n_features), coef


def _numbers(key: str, values: Any, n_features: int) -> NDArray[np.float64]:
    """The array of a list of all its numbers, or of the indices and values of some."""
    if isinstance(values, dict):
        return sparse.expand(key, values, n_features)
    if len(values) != n_features:
        raise Invalid(f"{key!r} has {len(values)} entries for {n_features} features")
    for j, value in enumerate(values):
        if type(value) is not float and type(value) is not int:
            raise Invalid(f"{key}[{j}] is a {type(value).__name__}, expected a number")
    return np.array(values, dtype=np.float64)


def _arrays_beside(
    document: dict[str, Any], reference: dict[str, Any], folder: str, n_features: int
) -> _Arrays:
    for key in ("feature_names", "factors", "coef"):
        _field(document, key, type(None))  # they are given in one place only
    name = _field(reference, "file", str, name="arrays.file")
    if name in ("", ".", "..") or re.search(r"[/\\\0]", name):
        raise Invalid(f"arrays.file is {name[:80]!r}, expected a file name without a folder")
    path = os.path.join(folder, name)
    try:
        expected = _field(reference, "sha256", str, name="arrays.sha256")
        tensors = arrays.read_tensors(path, n_features, expected)
        names = tensors.get("feature_names")
        named = None if names is None else arrays.decode_names(names)
    except Invalid as error:
        raise Invalid(f"its arrays file {path}: {error.problem}", error.remedy) from None
    return named, tensors.get("factors"), tensors["coef"]
