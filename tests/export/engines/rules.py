"""What several engines share: strict JSON, columns of feature values, sums in single precision."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

Columns = Mapping[str, np.ndarray]


class Refused(Exception):
    """The engine does not take the artefact, or not with the meaning that it should have."""


def require(condition: object, complaint: str) -> None:
    if not condition:
        raise Refused(complaint)


def strict_json(text: str | bytes) -> Any:
    """JSON of RFC 8259: no NaN, no Infinity, and no key twice, which parsers settle differently."""
    try:
        return json.loads(text, object_pairs_hook=_unique, parse_constant=_no_constant)
    except (ValueError, UnicodeDecodeError) as problem:
        raise Refused(f"not JSON: {problem}") from None


def single(value: Any, what: str) -> np.float32:
    """A JSON number as Java's float: true is no number, and what overflows would rank nothing."""
    require(type(value) in (int, float), f"{what} is {value!r}, not a number")
    with np.errstate(over="ignore"):
        result = np.float32(value)
    require(np.isfinite(result), f"{what} is {value!r}, infinite in single precision")
    return result


def known_keys(mapping: Any, keys: Iterable[str], what: str) -> dict[str, Any]:
    require(isinstance(mapping, dict), f"{what} is no object: {mapping!r}")
    unknown = set(mapping) - set(keys)
    require(not unknown, f"{what} has unknown fields {sorted(unknown)}")
    return mapping


def column(columns: Columns, name: str) -> np.ndarray:
    require(name in columns, f"there is no feature {name!r}")
    return columns[name]


def float32_sum(terms: Iterable[tuple[np.float32, np.ndarray]], n_rows: int) -> np.ndarray:
    """Σ w_j x_j from left to right, each product and each sum rounded to single precision."""
    total = np.zeros(n_rows, np.float32)
    for weight, values in terms:
        total += weight * values
    return total


def n_rows(columns: Columns) -> int:
    return len(next(iter(columns.values())))


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    keys = [key for key, _ in pairs]
    require(len(set(keys)) == len(keys), f"duplicate keys among {keys[:20]}")
    return dict(pairs)


def _no_constant(name: str) -> Any:
    raise Refused(f"{name} is no JSON number")
