"""Whole methods: the objective of each as published, for the trust-region solver."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from linrank.data.rows import CsrRows, Rows
from linrank.losses.base import PairLoss
from linrank.objective import Ridge, Risk, Sum
from linrank.pairs import Pairs
from linrank.published.counting import Counted
from linrank.published.prsvm import ExplicitPairs

__all__ = ["check_counting", "objective"]

Array = NDArray[Any]


def objective(
    rows: Rows, pairs: Pairs, C: float, scale: Array | None, method: str, counting: str | None
) -> Sum:
    """``½‖w‖² + C Σ ω max(0, ξ)²`` on rows as published, sparse, double, by one thread.

    Parameters
    ----------
    rows, pairs, C, scale
        As of `linrank.objective.Risk`.
    method : {"tron", "prsvm", "prsvm+"}
        ``"prsvm"`` lists the pairs, ``"prsvm+"`` counts by two pointers for each level.
    counting : str, optional
        How ``"tron"`` counts: one of `COUNTINGS`, ``"selection-tree"`` if None.
    """
    way = "two-pointers" if method == "prsvm+" else counting or "selection-tree"
    loss: PairLoss = ExplicitPairs(pairs) if method == "prsvm" else Counted(pairs, way)
    return Sum(Ridge(), Risk(_sparse_doubles(rows), loss, C, scale))


def check_counting(solver: str, counting: str | None) -> None:
    """Raise ValueError where ``counting`` is given to a solver that does not look at it."""
    if counting is not None and solver != "tron":
        raise ValueError(
            f"counting={counting!r} needs solver='tron', got solver={solver!r}; "
            "the other solvers have their own way of counting"
        )


def _sparse_doubles(rows: Rows) -> CsrRows:
    if isinstance(rows, CsrRows):
        return CsrRows(
            rows.values.astype(np.float64, copy=False), rows.columns, rows.offsets, rows.n_columns
        )
    is_entry = rows.values != 0
    offsets = np.concatenate([[0], np.cumsum(is_entry.sum(axis=1))]).astype(np.int64)
    columns = np.nonzero(is_entry)[1].astype(np.int32)
    return CsrRows(rows.values[is_entry].astype(np.float64), columns, offsets, rows.shape[1])
