"""The expressions of PMML that numbers need, with its rules for missing values (NaN here)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from engines.rules import require

EXPRESSIONS = ("Constant", "FieldRef", "NormContinuous", "Apply")

_ARITHMETIC = {"+": np.add, "-": np.subtract, "*": np.multiply, "/": np.divide}
_COMPARISON = {
    "equal": np.equal,
    "notEqual": np.not_equal,
    "lessThan": np.less,
    "lessOrEqual": np.less_equal,
    "greaterThan": np.greater,
    "greaterOrEqual": np.greater_equal,
}


def evaluate(expression: Any, values: Mapping[str, np.ndarray]) -> Any:
    tag = expression.tag.split("}")[1]
    if tag == "Constant":
        return np.float64(expression.text)
    if tag == "Apply":
        return _apply(expression, values)
    name = expression.get("field")
    require(name in values, f"the field {name!r} is not there yet")
    field = _replaced(values[name], expression.get("mapMissingTo"))
    return field if tag == "FieldRef" else _normalised(expression, field)


def _apply(expression: Any, values: Mapping[str, np.ndarray]) -> Any:
    name = expression.get("function")
    children = [child for child in expression if not child.tag.endswith("}Extension")]
    arguments = [evaluate(child, values) for child in children]
    if name == "if":
        require(len(arguments) in (2, 3), "if has a condition and one or two values")
        condition, yes, *no = arguments
        chosen = np.where(condition != 0, yes, no[0] if no else np.nan)
        return np.where(np.isnan(condition), np.nan, chosen)
    if name in ("isMissing", "isNotMissing"):
        require(len(arguments) == 1, f"{name} takes a field")
        return (np.isnan(arguments[0]) == (name == "isMissing")) * 1.0
    require(len(arguments) == 2, f"{name} takes two arguments, got {len(arguments)}")
    require(name in _ARITHMETIC or name in _COMPARISON, f"the function {name!r}")
    if name in _ARITHMETIC:
        return _replaced(_ARITHMETIC[name](*arguments), expression.get("mapMissingTo"))
    missing = np.isnan(arguments[0]) | np.isnan(arguments[1])
    return np.where(missing, np.nan, _COMPARISON[name](*arguments) * 1.0)


def _replaced(values: Any, replacement: str | None) -> Any:
    return values if replacement is None else np.where(np.isnan(values), float(replacement), values)


def _normalised(expression: Any, field: Any) -> Any:
    """A line through two points, extended beyond them (outliers as they are)."""
    require(expression.get("outliers", "asIs") == "asIs", "outliers as they are")
    points = [(float(p.get("orig")), float(p.get("norm"))) for p in expression]
    require(len(points) == 2 and points[0][0] < points[1][0], "two points, the lower one first")
    (x0, y0), (x1, y1) = points
    return y0 + (field - x0) * ((y1 - y0) / (x1 - x0))
