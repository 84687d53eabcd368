"""Margins: by how much a row is to beat the rows below it, in the forms that users give them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linrank.data.frames import as_array
from linrank.data.queries import Queries

__all__ = [
    "FUNCTIONS",
    "describe_margin",
    "is_by_row",
    "is_table",
    "margin_shift",
    "margin_table",
]

Array = NDArray[Any]

_LARGEST = 1e250
FUNCTIONS = ("log", "linear")  # of the label, k1·log(y) + k2 and k1·y + k2
_FORMS = (
    "None, a number, 'log' or 'linear', ('log', k1, k2), ('linear', k1, k2), a function of the "
    "labels, one number for each row, or a square table over the layers"
)


def is_table(margin: Any) -> bool:
    """Whether a margin is one for each pair of layers, not one for each row."""
    return _n_axes(margin) == 2


def is_by_row(margin: Any) -> bool:
    """Whether a margin is one for each row."""
    return _n_axes(margin) == 1


def _n_axes(margin: Any) -> int:
    """Of the array that a margin is; 0 for all other forms."""
    if margin is None or isinstance(margin, str) or callable(margin) or _is_named(margin):
        return 0
    return _as_array(margin).ndim


def margin_shift(margin: Any, labels: Array, queries: Queries) -> Array | None:
    """The separable margins s of the rows, by position; None if they are all zero.

    Parameters
    ----------
    margin : None, float, str, tuple, callable or array
        As in `linrank.layering.Layering.of`, a table excepted.
    labels : float64 array
        By row.
    queries : Queries
        Its levels are the layers.
    """
    if margin is None:
        return None
    if isinstance(margin, str) or _is_named(margin):
        shift = _of_labels(*_named(margin), labels, queries)
    elif callable(margin):
        shift = queries.gather(_called(margin, labels))
    else:
        given = _as_array(margin)
        if given.ndim == 0:
            shift = _per_boundary(float(given), queries)
        else:
            shift = queries.gather(_per_row(given, queries.n_rows, "margin"))
    _check_size(shift)
    return np.ascontiguousarray(shift, dtype=np.float64) if shift.any() else None


def margin_table(margin: Any, layers: Array) -> Array:
    """``Δ[a, b]`` below the diagonal, zeros elsewhere: no layer is above itself or a higher one.

    Parameters
    ----------
    margin : array (K, K)
        What layer a must have over layer b.
    layers : float64 array (K,)
        The layers of all queries, ascending.
    """
    table, n = _as_array(margin), len(layers)
    if table.shape != (n, n):
        shown = ", ".join(f"{layer:g}" for layer in layers[:10]) + (", ..." if n > 10 else "")
        raise ValueError(
            f"margin is a table of shape {table.shape}, but the data have {n} layers ({shown}); "
            f"give one row and one column for each layer, ascending: shape ({n}, {n})"
        )
    below: Array = np.tril(table, -1)
    wrong = np.argwhere(~np.isfinite(below))
    if wrong.size:
        a, b = wrong[0]
        raise ValueError(
            f"margin[{a}, {b}], of layer {layers[a]:g} over layer {layers[b]:g}, is "
            f"{below[a, b]:g}; margins must be finite"
        )
    _check_size(below)
    return np.ascontiguousarray(below)


def describe_margin(margin: Any) -> str | None:
    """A margin in a word, for the summary of a model: ``1``, ``log:1,2.7``, ``table``, ..."""
    if margin is None:
        return None
    if isinstance(margin, str) or _is_named(margin):
        name, k1, k2 = _named(margin)
        return name if (k1, k2) == (1.0, 0.0) else f"{name}:{k1:g},{k2:g}"
    if callable(margin):
        return "function"
    given = _as_array(margin)
    return f"{float(given):g}" if given.ndim == 0 else ("rows", "table")[given.ndim - 1]


# ---- the forms ----------------------------------------------------------------------------------


def _is_named(margin: Any) -> bool:
    return isinstance(margin, tuple | list) and len(margin) > 0 and isinstance(margin[0], str)


def _named(margin: Any) -> tuple[str, float, float]:
    """(function, k1, k2) of ``"log"``, ``("log", k1)`` or ``("log", k1, k2)``."""
    name, *constants = [margin] if isinstance(margin, str) else list(margin)
    if name not in FUNCTIONS or len(constants) > 2:
        raise ValueError(f"margin must be {_FORMS}, got {margin!r}")
    k1, k2 = constants + [1.0, 0.0][len(constants) :]
    for place, k in (("k1", k1), ("k2", k2)):
        if isinstance(k, bool) or not isinstance(k, int | float | np.number) or not np.isfinite(k):
            raise ValueError(f"{place} of margin {margin!r} must be a finite number, got {k!r}")
    return name, float(k1), float(k2)


def _of_labels(name: str, k1: float, k2: float, labels: Array, queries: Queries) -> Array:
    """``k1·log(y) + k2`` or ``k1·y + k2`` above the lowest layer of each query, 0 in it."""
    y, above = queries.gather(labels), queries.levels > 0
    r = y[above]
    if name == "log":
        _check_logarithm(y, above, queries)
        r = np.log(r)
    shift = np.zeros(queries.n_rows)
    with np.errstate(over="ignore"):
        shift[above] = k1 * r + k2
    if not np.isfinite(shift).all():
        raise ValueError(f"margin ({name!r}, {k1:g}, {k2:g}) of the labels is not finite")
    return shift


def _check_logarithm(y: Array, above: Array, queries: Queries) -> None:
    wrong = np.flatnonzero(above & (y <= 0))
    if wrong.size:
        t = int(wrong[0])
        row = t if queries.order is None else int(queries.order[t])
        raise ValueError(
            f"margin 'log' is of labels > 0, but row {row}, above the lowest layer of its query, "
            f"has label {y[t]:g}; use 'linear', a function of the labels, or other labels"
        )


def _per_boundary(k: float, queries: Queries) -> Array:
    if not np.isfinite(k):
        raise ValueError(f"margin must be finite, got {k}")
    with np.errstate(over="ignore"):
        shift: Array = k * queries.levels
    return shift


def _check_size(margins: Array) -> None:
    """Sums of margins over the rows must not overflow."""
    largest = float(np.abs(margins).max(initial=0.0))
    if largest > _LARGEST:
        raise ValueError(
            f"a margin is {largest:g} in size, and sums of margins would overflow; give margins "
            f"of at most {_LARGEST:g}"
        )


def _called(margin: Callable[[Array], Any], labels: Array) -> Array:
    shift = as_array(margin(labels.copy()), "margin(labels)")
    return _per_row(shift, len(labels), "margin(labels)")


def _per_row(shift: Array, n_rows: int, name: str) -> Array:
    if shift.shape != (n_rows,) or shift.dtype.kind not in "biuf":
        raise ValueError(
            f"{name} must be one number for each of {n_rows} rows, got an array of shape "
            f"{shift.shape} and dtype {shift.dtype}"
        )
    finite = np.isfinite(shift)
    if not finite.all():
        i = int(np.argmin(finite))
        raise ValueError(f"{name} is {shift[i]:g} at row {i}; margins must be finite")
    return shift


def _as_array(margin: Any) -> Array:
    try:
        given = as_array(margin, "margin")
    except ValueError:  # lists of different lengths
        given = np.empty(0, dtype=object)
    if given.ndim > 2 or given.dtype.kind not in "iuf":
        raise ValueError(f"margin must be {_FORMS}, got {margin!r}")
    return given.astype(np.float64, copy=False)
