"""Pair losses by the published ways of counting violated pairs."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from linrank import _core
from linrank.data.rows import CsrRows, Rows, as_rows
from linrank.losses.base import Dual, Errors, PairLoss
from linrank.options import COUNTED, COUNTINGS
from linrank.pairs import Pairs
from linrank.system.resources import cached_property, check_fits

Array = NDArray[Any]


class PublishedLoss(PairLoss):
    """``l(ξ) = max(0, ξ)²`` over all pairs as published: one thread, double, no gains."""

    def __init__(self, pairs: Pairs) -> None:
        if pairs.gain is not None or pairs.adjacent:
            what = "adjacent levels" if pairs.adjacent else "pairs weighted by gains"
            raise ValueError(
                f"the published methods count all pairs alike and do not know {what}; "
                "use solver='newton'"
            )
        super().__init__(pairs)

    def curvature(self, point: Any, v: Array) -> Array:
        product: Array = point.multiply(v)
        return product

    def errors(self, point: Any, z: Array | None) -> Errors:
        """From above, whatever way of counting: sums of at most n terms, of scores about the mean.

        The formulas are those of `core/pair_sweep.cpp`, all pairs taken for violated ones.
        """
        assert z is not None  # published points do not travel without
        pairs, starts = self.pairs, self.queries.offsets[:-1]
        lengths = np.diff(self.queries.offsets)
        u = np.ones(len(z)) if pairs.row_weight is None else pairs.row_weight
        c = np.ones(len(starts)) if pairs.query_weight is None else pairs.query_weight
        s = np.abs(z - np.repeat(np.add.reduceat(z, starts) / lengths, lengths))
        weight, scores = np.add.reduceat(u, starts), np.add.reduceat(u * s, starts)
        size = 1.0 + np.maximum.reduceat(s, starts)
        unit = 2.0**-53 * 20.0 * (lengths + 2.0) * c
        slope = unit * np.maximum.reduceat(u, starts) * (scores + weight * size)
        reach = weight + scores
        value = float((unit * reach * (scores + weight * size)).sum())
        slacks = float((unit * reach * weight).sum())
        primal = slacks if self.has_kink else value
        return Errors(value, primal, slacks, float(np.sqrt((lengths * slope * slope).sum())))

    def dual(self, point: Any, errors: Errors) -> Dual:
        """``α = 2Cωξ``."""
        return Dual(2.0 * (point.sum_of_slacks - errors.dual), point.value + errors.value)


class Counted(PublishedLoss):
    """``l(ξ) = max(0, ξ)²`` over all pairs, by one of the ways of counting.

    Parameters
    ----------
    pairs : Pairs
        All pairs, ``ω_ij = c_q u_i u_j``; neither gains nor adjacent levels were published.
    counting : str
        One of `linrank.options.COUNTINGS`.
    """

    def __init__(self, pairs: Pairs, counting: str = "selection-tree") -> None:
        super().__init__(pairs)
        if counting not in COUNTINGS:
            raise ValueError(f"counting must be one of {', '.join(COUNTINGS)}, got {counting!r}")
        self.counting = counting
        if counting == "prefix-table":
            # A table has (l_q + 1)(k_q + 1) numbers for the query in hand.
            lengths, n_levels = np.diff(self.queries.offsets), self.queries.n_levels
            sizes = (lengths + 1).astype(float) * (n_levels + 1.0)
            q = int(sizes.argmax())
            check_fits(
                int(8 * sizes[q]),
                "counting='prefix-table': the table of a query with "
                f"{lengths[q]} rows and {n_levels[q]} levels",
                "use counting='selection-tree'",
            )

    def at(self, z: Array, near: Any = None) -> Any:
        return _core.published_point(self.problem, z, self.counting)


class HingePoint(NamedTuple):
    """The hinge at one vector of scores: ``Σ ω max(0, ξ)`` and a sub-gradient in the scores."""

    value: float
    sum_of_slacks: float
    n_violations: float
    gradient: Array


class TreeHinge(Counted):
    """``l(ξ) = max(0, ξ)`` over all pairs: the oracle of TreeRankSVM, by default on its tree.

    The sub-gradient is ``∂/∂z_i = Σ ω_ji - Σ ω_ij`` over the violated pairs (j, i) and (i, j).

    Parameters
    ----------
    pairs : Pairs
        All pairs, ``ω_ij = c_q u_i u_j``.
    counting : str, default="red-black"
        One of `linrank.options.COUNTINGS`.
    """

    has_kink = True

    def __init__(self, pairs: Pairs, counting: str = "red-black") -> None:
        super().__init__(pairs, counting)

    def at(self, z: Array, near: Any = None) -> HingePoint:
        point = super().at(z)
        slacks = point.sum_of_slacks
        return HingePoint(slacks, slacks, point.n_violations, point.hinge_gradient)

    def curvature(self, point: Any, v: Array) -> Array:
        """``0``: the hinge is piecewise linear."""
        return np.zeros_like(v)

    def dual(self, point: Any, errors: Errors) -> Dual:
        """``α = Cω·1[ξ > 0]``, the slope that the sub-gradient is made of."""
        return Dual(point.n_violations - errors.dual, largest=1.0)


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
    from scipy.sparse import csr_array

    rows = as_rows(csr_array(rows.values.astype(np.float64)))
    assert isinstance(rows, CsrRows)
    return rows
