"""An array of mostly zeros as JSON: the places and the values of the others."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np

from linrank.models.file.contents import MAX_INLINE_FEATURES, MAX_SPARSE_FEATURES, Invalid

if TYPE_CHECKING:
    from numpy.typing import NDArray

KEYS = ("n_stored", "indices", "values")


def compact(array: NDArray[np.float64] | None) -> dict[str, Any] | None:
    """Indices and values of what is not zero; None where a list of all is no longer than that.

    Zero means the bits of 0.0: a -0.0 is stored, so that the same bits are read back.
    """
    if array is None or array.size > MAX_SPARSE_FEATURES:
        return None
    stored = np.flatnonzero(np.ascontiguousarray(array).view(np.uint64))
    if 2 * stored.size > MAX_INLINE_FEATURES:
        return None
    indices = stored.tolist()
    beside = json.dumps({"n_stored": len(indices), "indices": indices, "values": []})
    # The values take the same text in both forms; a list adds five characters, "0.0, ", a zero.
    if len(beside) - len("[]") >= 5 * (array.size - stored.size):
        return None
    return {"n_stored": len(indices), "indices": indices, "values": array[stored].tolist()}


def expand(key: str, parts: dict[str, Any], n_features: int) -> NDArray[np.float64]:
    """The array of what `compact` made; the file may hold anything, so all of it is checked."""
    if n_features > MAX_SPARSE_FEATURES:
        raise Invalid(
            f"{key!r} gives indices and values of {n_features} features; that form is for at most "
            f"{MAX_SPARSE_FEATURES}"
        )
    unknown = [name for name in parts if name not in KEYS]
    if unknown:
        raise Invalid(f"unknown key {unknown[0][:80]!r} in {key!r}")
    n_stored, indices, values = (
        _part(key, parts, name, kind) for name, kind in zip(KEYS, (int, list, list), strict=True)
    )
    for name, part in (("indices", indices), ("values", values)):
        if len(part) != n_stored:
            raise Invalid(f"'{key}.{name}' has {len(part)} entries, n_stored is {n_stored}")
    last = -1
    for k, index in enumerate(indices):
        if type(index) is not int:
            raise Invalid(f"{key}.indices[{k}] is a {type(index).__name__}, expected int")
        if not last < index < n_features:
            raise Invalid(
                f"{key}.indices[{k}] is {index}, expected {last + 1} to {n_features - 1}: they "
                "increase, and count features from 0"
            )
        last = index
    for k, value in enumerate(values):
        if type(value) is not float and type(value) is not int:
            raise Invalid(f"{key}.values[{k}] is a {type(value).__name__}, expected a number")
    array = np.zeros(n_features)
    array[indices] = values
    return array


def _part(key: str, parts: dict[str, Any], name: str, kind: type) -> Any:
    if name not in parts:
        raise Invalid(f"the key '{key}.{name}' is missing")
    if type(parts[name]) is not kind:
        found = type(parts[name]).__name__
        raise Invalid(f"'{key}.{name}' is a {found}, expected {kind.__name__}")
    return parts[name]
