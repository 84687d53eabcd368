"""One number per row: labels and weights, checked once."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from linrank.data.frames import as_float, read_column

__all__ = ["as_labels", "as_part_weights", "as_weights"]

Array = NDArray[Any]


def as_labels(y: Any, n_rows: int | None = None) -> Array:
    """Return labels as a finite float64 vector (of ``n_rows`` elements, if given)."""
    if y is None:
        raise ValueError("linrank requires y to be passed, but the target y is None")
    return _vector(y, "y", n_rows)


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


def _vector(values: Any, name: str, n_rows: int | None) -> Array:
    a = np.asarray(read_column(values))
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
