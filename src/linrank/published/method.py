"""Whole methods: the objective of each as published, for the trust-region solver."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from linrank.data.rows import CsrRows, Rows
from linrank.losses.base import PairLoss
from linrank.objective import Ridge, Risk, Sum
from linrank.options import COUNTED, COUNTINGS
from linrank.pairs import Pairs
from linrank.published.counting import Counted, TreeHinge
from linrank.published.prsvm import ExplicitPairs

__all__ = ["Problem", "check_counting", "objective"]

Array = NDArray[Any]


class Problem(Protocol):
    """What is to be minimised: the fields of `linrank.objective.Risk`, and the name of the loss."""

    @property
    def rows(self) -> Rows: ...
    @property
    def pairs(self) -> Pairs: ...
    @property
    def C(self) -> float: ...
    @property
    def scale(self) -> Array | None: ...
    @property
    def loss(self) -> str: ...


def objective(problem: Problem, method: str, counting: str | None) -> Sum:
    """``½‖w‖² + C Σ ω l(ξ)`` on rows as published: sparse, double, by one thread.

    Parameters
    ----------
    problem : Problem
        The hinge is for cutting planes only: ``"bundle"`` with a tree is TreeRankSVM.
    method : {"tron", "bundle", "prsvm", "prsvm+"}
        ``"prsvm"`` lists the pairs, ``"prsvm+"`` counts by two pointers for each level.
    counting : str, optional
        How the others count: one of `linrank.options.COUNTINGS`, the first if None.
    """
    way = "two-pointers" if method == "prsvm+" else counting or COUNTINGS[0]
    loss: PairLoss
    if method == "prsvm":
        loss = ExplicitPairs(problem.pairs)
    else:
        loss = (TreeHinge if problem.loss == "hinge" else Counted)(problem.pairs, way)
    return Sum(Ridge(), Risk(_sparse_doubles(problem.rows), loss, problem.C, problem.scale))


def check_counting(solver: str, counting: str | None) -> None:
    """Raise ValueError where ``counting`` is given to a solver that does not look at it."""
    if counting is not None and solver not in COUNTED:
        names = " or ".join(repr(name) for name in COUNTED)
        raise ValueError(
            f"counting={counting!r} needs solver={names}, got solver={solver!r}; "
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
