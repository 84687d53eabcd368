"""One number per row: labels and weights, checked once."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from linrank.data.frames import as_array, as_float

__all__ = ["as_labels", "as_part_weights", "as_weights", "check_apart", "read_only"]

Array = NDArray[Any]
_EXACT = 2**53  # integers up to here are float64 numbers, each by itself


def as_labels(y: Any, n_rows: int | None = None) -> Array:
    """Return labels as a finite float64 vector (of ``n_rows`` elements, if given)."""
    if y is None:
        raise ValueError("linrank requires y to be passed, but the target y is None")
    given = as_array(y, "y")
    labels = _vector(given, "y", n_rows)
    check_apart(given, "y")
    return labels


def check_apart(labels: Array, what: str) -> None:
    """Refuse integers that differ and would be one label in float64, which pairs are made by."""
    if labels.dtype.kind == "O":
        labels = np.array([v for v in labels.flat if isinstance(v, int)], dtype=object)
    elif labels.dtype.kind not in "iu" or labels.dtype.itemsize < 8:
        return
    if labels.size == 0 or max(int(labels.max()), -int(labels.min())) <= _EXACT:
        return
    distinct = np.unique(labels)
    same = np.flatnonzero(np.diff(distinct.astype(np.float64)) == 0.0)
    if same.size:
        low, high = distinct[same[0]], distinct[same[0] + 1]
        raise ValueError(
            f"{what} holds {low} and {high}, which are the same number in float64; subtract a "
            "common number from all labels, or number them in their order"
        )


def as_weights(weight: Any, n_rows: int, name: str = "sample_weight") -> Array:
    """Return weights as a finite float64 vector >= 0, not all zero."""
    vector = as_part_weights(weight, n_rows, name)
    if not vector.any():
        raise ValueError(f"{name} is zero everywhere; at least one weight must be > 0")
    return vector


def as_part_weights(weight: Any, n_rows: int, name: str = "sample_weight") -> Array:
    """Return the weights of a part of the rows, finite and >= 0; all of them may be zero."""
    vector = _vector(weight, name, n_rows)
    if (vector < 0).any():
        i = int(np.argmax(vector < 0))
        raise ValueError(f"{name} must be >= 0, got {vector[i]} at row {i}")
    return vector


def read_only(a: Array) -> Array:
    """``a``, or a view of it that cannot be written to."""
    if a.flags.writeable:
        a = a.view()
        a.flags.writeable = False
    return a


def _vector(values: Any, name: str, n_rows: int | None) -> Array:
    a = as_array(values, name)
    if a.ndim == 2 and a.shape[1] == 1:
        a = a[:, 0]
    if a.ndim != 1:
        raise ValueError(f"{name} should be a 1d array, got an array of shape {a.shape} instead")
    vector = np.ascontiguousarray(as_float(a, name), dtype=np.float64)
    if n_rows is not None and len(vector) != n_rows:
        raise ValueError(
            f"inconsistent lengths: X has {n_rows} rows but {name} has {len(vector)} elements"
        )
    finite = np.isfinite(vector)
    if not finite.all():
        i = int(np.argmin(finite))
        what = "NaN" if np.isnan(vector[i]) else "infinity (inf)"
        raise ValueError(f"Input {name} contains {what} at row {i}")
    return vector
