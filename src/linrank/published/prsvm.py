"""PRSVM: the squared hinge over pairs that are written down."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from linrank import _core
from linrank.lazy import cached_property
from linrank.memory import check_fits
from linrank.pairs import Pairs
from linrank.published.counting import PublishedLoss

__all__ = ["ExplicitPairs"]

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
