"""Rows and datasets put together from parts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linrank.data.rows import CsrRows, DenseRows, Rows

__all__ = ["join_offsets", "join_optional", "join_rows"]

Array = NDArray[Any]


def join_rows(parts: Sequence[Rows]) -> Rows:
    """All rows of the parts, which are of one kind and have the same columns; a copy."""
    first = parts[0]
    if len(parts) == 1:
        return first
    if isinstance(first, DenseRows):
        return DenseRows(np.concatenate([part.values for part in parts]))
    sparse = [part for part in parts if isinstance(part, CsrRows)]
    return CsrRows(
        np.concatenate([part.values for part in sparse]),
        np.concatenate([part.columns for part in sparse]),
        join_offsets([part.offsets for part in sparse]),
        first.n_columns,
    )


def join_offsets(parts: Sequence[Array]) -> Array:
    """Offsets of consecutive parts, each from 0, as offsets of the whole."""
    sizes = [np.diff(part) for part in parts]
    return np.concatenate([[0], np.cumsum(np.concatenate(sizes))]).astype(np.int64)


def join_optional(parts: Sequence[Array | None]) -> Array | None:
    """The concatenation of what all parts have, or none of them."""
    given = [part for part in parts if part is not None]
    return np.concatenate(given) if given else None
