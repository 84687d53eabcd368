"""Whole methods: the loss of each as published, and the rows it works on."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from linrank import _core
from linrank.data.rows import CsrRows, Rows
from linrank.losses.base import PairLoss
from linrank.options import COUNTED, COUNTINGS
from linrank.pairs import Pairs
from linrank.published.counting import Counted, PublishedLoss, TreeHinge
from linrank.system.resources import cached_property, check_fits

Array = NDArray[Any]

_BYTES_PER_PAIR = 32  # of the list, which grows by doubling, and of the violated ones at two points


class ExplicitPairs(PublishedLoss):
    """``l(ξ) = max(0, ξ)²`` over a list of all p pairs: O(p) in memory and for each product.

    Parameters
    ----------
    pairs : Pairs
        All pairs, ``ω_ij = c_q u_i u_j``.

    Raises
    ------
    MemoryError
        Before anything is allocated, where the list does not fit.
    """

    def __init__(self, pairs: Pairs) -> None:
        super().__init__(pairs)
        n_pairs = pairs.queries.n_pairs
        check_fits(
            n_pairs * _BYTES_PER_PAIR,
            f"solver='prsvm': the list of {n_pairs} pairs",
            "use solver='prsvm+', 'tron' or 'newton', which never write it down",
        )

    @cached_property
    def list(self) -> _core.ExplicitPairs:
        """The pairs, by position."""
        return _core.explicit_pairs(self.problem)

    def at(self, z: Array, near: Any = None) -> _core.ExplicitPairsPoint:
        return _core.explicit_pairs_point(self.list, z)


def published_loss(pairs: Pairs, loss: str, method: str, counting: str | None) -> PairLoss:
    """``Σ ω l(ξ)`` as the method counts it, by one thread.

    Parameters
    ----------
    pairs : Pairs
        All pairs, without gains.
    loss : {"squared_hinge", "hinge"}
        The hinge is for cutting planes only: ``"bundle"`` with a tree is TreeRankSVM.
    method : {"tron", "bundle", "prsvm", "prsvm+"}
        ``"prsvm"`` lists the pairs, ``"prsvm+"`` counts by two pointers for each level.
    counting : str, optional
        How the others count: one of `linrank.options.COUNTINGS`, the first if None.

    Returns
    -------
    PairLoss
        ``at(z)`` gives value, gradient and products at the scores z.

    Examples
    --------
    Two rows of one query whose scores are equal: the one pair has the loss 1.

    >>> from linrank import Dataset
    >>> from linrank.pairs import Pairs
    >>> pairs = Pairs(Dataset.of(np.eye(2), [1, 0]).queries)
    >>> float(published_loss(pairs, "squared_hinge", "tron", "avl").at(np.zeros(2)).value)
    1.0
    """
    if method == "prsvm":
        return ExplicitPairs(pairs)
    way = "two-pointers" if method == "prsvm+" else counting or COUNTINGS[0]
    return (TreeHinge if loss == "hinge" else Counted)(pairs, way)


def check_counting(solver: str, counting: str | None) -> None:
    """Raise ValueError where ``counting`` is given to a solver that does not look at it."""
    if counting is not None and solver not in COUNTED:
        names = " or ".join(repr(name) for name in COUNTED)
        raise ValueError(
            f"counting={counting!r} needs solver={names}, got solver={solver!r}; "
            "the other solvers have their own way of counting"
        )


def sparse_doubles(rows: Rows) -> CsrRows:
    """The rows as published: sparse, in double."""
    if isinstance(rows, CsrRows):
        return CsrRows(
            rows.values.astype(np.float64, copy=False), rows.columns, rows.offsets, rows.n_columns
        )
    is_entry = rows.values != 0
    offsets = np.concatenate([[0], np.cumsum(is_entry.sum(axis=1))]).astype(np.int64)
    columns = np.nonzero(is_entry)[1].astype(np.int32)
    return CsrRows(rows.values[is_entry].astype(np.float64), columns, offsets, rows.shape[1])
