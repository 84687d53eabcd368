"""The squared hinge."""

from __future__ import annotations

from typing import Any

from linrank.losses.base import Dual, Errors, SweptLoss
from linrank.pairs import Pairs


class SquaredHingeKind:
    """``l(ξ) = max(0, ξ)²``, with the dual point ``α = 2Cωξ``, wherever the pairs come from."""

    name = "squared_hinge"

    def dual(self, point: Any, errors: Errors) -> Dual:
        linear = 2.0 * (point.sum_of_slacks - errors.dual)
        return Dual(linear, point.value + errors.value)


class SquaredHinge(SquaredHingeKind, SweptLoss):
    """``l(ξ) = max(0, ξ)²`` over the pairs of queries."""


class HingeKind:
    """``l(ξ) = max(0, ξ)``; the gradient of a point is a sub-gradient, and there is no curvature.

    With ``α = Cω·1[ξ > 0]``, the slope that the sub-gradient is made of, the dual value does not
    reach the optimum: pairs at the kink need fractions. See `HuberKind` and the bundle solver.
    """

    name = "hinge"
    has_kink = True

    def dual(self, point: Any, errors: Errors) -> Dual:
        return Dual(point.n_violations - errors.dual, largest=1.0)


class HuberKind:
    """``h_ε(ξ) = [max(0, ξ)² - max(0, ξ - ε)²] / 2ε``: the hinge but for ``0 < ξ < ε``.

    ``0 <= hinge - h_ε <= ε/2``. Its slope ``a = clip(ξ/ε, 0, 1)`` gives a feasible ``α = Cωa`` of
    the hinge's own dual: with ``S(θ)``, ``S₂(θ)`` the sums of ``ωξ`` and ``ωξ²`` at margin θ,

    ``Σωa = [S(1) - S(1-ε)]/ε`` and ``Σω(max(0, ξ) - aξ) = S(1) + S(1-ε) - [S₂(1) - S₂(1-ε)]/ε``.

    The latter, the slack of α, is all that separates the optimum of h_ε from a certified optimum of
    the hinge. Only pairs with ``0 < ξ < ε`` contribute, each at most ``ε/4``: it falls as ``ε²``
    while their number falls as ε, and as ε once they are only those that the optimum has at the
    kink, about as many as features.
    """

    name = "huber"
    has_kink = True
    epsilon: float

    def primal(self, point: Any) -> float:
        """The hinge itself."""
        return float(point.sum_of_slacks)

    def dual(self, point: Any, errors: Errors) -> Dual:
        slope = point.sum_of_slacks - point.inner_slacks
        slack = point.sum_of_slacks + point.inner_slacks - 2.0 * point.value
        # The errors are of both sums; their difference, and its quotient, round once more.
        off = errors.dual + 4e-16 * abs(slope)
        return Dual((slope - off) / self.epsilon, 0.0, max(0.0, slack), largest=1.0)


class Hinge(HingeKind, SweptLoss):
    """``l(ξ) = max(0, ξ)`` over the pairs of queries."""


class Huber(HuberKind, SweptLoss):
    """The hinge over the pairs of queries, smoothed within ε of its kink.

    Parameters
    ----------
    pairs : Pairs
        Which rows are compared, and the weights ω.
    epsilon : float
        ε, in (0, 1].
    n_threads : int
        Threads of every sweep; the result does not depend on it.
    """

    def __init__(self, pairs: Pairs, epsilon: float, n_threads: int = 1) -> None:
        super().__init__(pairs, n_threads)
        self.epsilon = epsilon
