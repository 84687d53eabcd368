"""Rows and datasets put together from parts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linrank.data.rows import CsrRows, DenseRows, Rows

__all__ = ["as_sparse", "join_ids", "join_offsets", "join_optional", "join_rows", "join_sparse"]

Array = NDArray[Any]
_EXACT = 2**53  # integers up to here are float64 numbers


def join_rows(parts: Sequence[Rows]) -> Rows:
    """All rows of the parts, which have the same columns: dense if all are, else CSR.

    A copy, unless there is one part only.

    Examples
    --------
    >>> join_rows([DenseRows(np.eye(2)), DenseRows(np.ones((1, 2)))]).to_user().tolist()
    [[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]
    """
    if len(parts) == 1:
        return parts[0]
    dense = [part for part in parts if isinstance(part, DenseRows)]
    if len(dense) == len(parts):
        return DenseRows(np.concatenate([part.values for part in dense]))
    return join_sparse(parts, parts[0].shape[1])


def join_sparse(parts: Sequence[Rows], n_columns: int) -> CsrRows:
    """All rows of the parts as CSR; columns that a part lacks are 0."""
    sparse = [part if isinstance(part, CsrRows) else as_sparse(part) for part in parts]
    return CsrRows(
        np.concatenate([part.values for part in sparse]),
        np.concatenate([part.columns for part in sparse]),
        join_offsets([part.offsets for part in sparse]),
        n_columns,
    )


def as_sparse(rows: DenseRows) -> CsrRows:
    """The entries of dense rows that are not 0."""
    row, column = np.nonzero(rows.values)
    offsets = np.concatenate([[0], np.cumsum(np.bincount(row, minlength=rows.shape[0]))])
    values = rows.values[row, column]
    return CsrRows(values, column.astype(np.int32), offsets, rows.shape[1])


def join_ids(parts: Sequence[Array]) -> Array:
    """Query ids of consecutive parts, no two different ones made equal.

    NumPy would write numbers as strings, and 2⁵³ and 2⁵³ + 1 as one float64.

    Examples
    --------
    >>> join_ids([np.array([2**53, 2**53 + 1]), np.array([0.0])]).tolist()
    [9007199254740992, 9007199254740993, 0.0]
    """
    kinds = {a.dtype.kind for a in parts}
    mixes = len(kinds) > 1
    if mixes and (kinds & set("OUS") or {"i", "u"} <= kinds or _beyond_floats(parts)):
        parts = [a.astype(object) for a in parts]
    return np.concatenate(list(parts))


def join_offsets(parts: Sequence[Array]) -> Array:
    """Offsets of consecutive parts, each from 0, as offsets of the whole."""
    sizes = [np.diff(part) for part in parts]
    return np.concatenate([[0], np.cumsum(np.concatenate(sizes))]).astype(np.int64)


def join_optional(parts: Sequence[Array | None]) -> Array | None:
    """The concatenation of what all parts have, or none of them."""
    given = [part for part in parts if part is not None]
    return np.concatenate(given) if given else None


def _beyond_floats(parts: Sequence[Array]) -> bool:
    """Whether there are integers that float64 may not tell apart."""
    integers = [a for a in parts if a.dtype.kind in "iu" and len(a)]
    return any(int(a.max()) > _EXACT or int(a.min()) < -_EXACT for a in integers)
