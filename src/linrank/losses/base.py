"""What a solver may ask of a pair loss."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from linrank import _core
from linrank.data.preferences import Preferences
from linrank.data.rows import Array, Design, StreamedRows
from linrank.pairs import Pairs

_PYTHON = 64.0 * 2.0**-53  # relative error of a number that Python has computed


@dataclass(frozen=True)
class Dual:
    """A feasible point α of the dual, one number per pair, by the sums that a certificate needs.

    The dual value of ``tα`` is ``t·linear - t²·quadratic - R*(t u)`` with ``u = -∇risk(w)``, for
    ``0 <= t <= largest``; R* is the conjugate of the regularizer. Rounding may have taken neither
    sum to the good side: ``linear`` is not above its exact value, ``quadratic`` not below.
    """

    linear: float = 0.0  # e'α
    quadratic: float = 0.0  # ‖α‖²/4C of the squared hinge, 0 of the hinge
    slack: float = 0.0  # primal risk - linear + quadratic + w·u: 0 where α is the slope of the loss
    largest: float = math.inf  # 1 where α has an upper bound

    def __add__(self, other: Dual) -> Dual:
        return Dual(
            self.linear + other.linear,
            self.quadratic + other.quadratic,
            self.slack + other.slack,
            min(self.largest, other.largest),
        )

    def __rmul__(self, C: float) -> Dual:
        return Dual(C * self.linear, C * self.quadratic, C * self.slack, self.largest)


@dataclass(frozen=True)
class Errors:
    """How far rounding may have taken the numbers of a point from those of its exact scores."""

    value: float
    primal: float  # of the loss that is certified, where the value is a smoothing of it
    dual: float  # of the sums that the dual is made of
    gradient: float  # 2-norm


class ScoreLoss:
    """A convex function of the scores, once differentiable; blind to the rows.

    A subclass defines ``at(z)``, `curvature` and `total_weight`. What ``at`` returns has ``z``,
    ``value`` and ``gradient``; see "Custom losses" in the guide. Those of the losses of the core
    know more: they have ``value = Σ ω l(ξ)``, ``ξ = 1 - z_i + z_j``; over the violated pairs,
    those with ``ξ > 0``, ``sum_of_slacks = Σ ω ξ`` and ``n_violations = Σ ω``; and
    ``total_curvature``, which is ``Σ ω l''(ξ)``; and ``gradient = ∂L/∂z`` by position. What a
    sweep found is kept for products.

    Parameters
    ----------
    order : int64 array (n_positions,) or None
        Position ``t`` is row ``order[t]``; None where positions are rows.
    n_positions : int
        Scores that the loss looks at.
    n_threads : int
        Threads of every sweep; the result does not depend on it.
    """

    epsilon = 1.0  # of a smoothed loss; others do not look at it
    has_kink = False  # whether the loss that is certified has one

    def __init__(self, order: Array | None, n_positions: int, n_threads: int = 1) -> None:
        self.order = order
        self.n_positions = n_positions
        self.n_threads = n_threads

    @property
    def mean_weight(self) -> float:
        """Mean of ω over the pairs."""
        raise NotImplementedError("a pair loss that is smoothed defines mean_weight")

    @property
    def total_weight(self) -> float:
        """``Σ ω``; the second derivative along a shift of the scores by v is at most ``8 Σω v²``,
        the first, where there is a kink, at most ``2 Σω |v|``."""
        raise NotImplementedError("a loss with a certificate defines total_weight")

    def at(self, z: Array, near: Any = None) -> Any:
        """The loss at the scores ``z``, by position; ``near`` is a point with similar scores."""
        raise NotImplementedError("a pair loss defines its point by at(z)")

    def errors(self, point: Any, z: Array | None) -> Errors:
        """The rounding of ``point``, at its scores as they are; ``z`` if it needs them.

        A point that does not know its own, as one written in Python, is taken to be off by
        64 roundings: sums by pairs, as NumPy has them, and functions good to a few digits.
        """
        if not hasattr(point, "value_error"):
            terms = abs(point.value) + float(np.abs(point.gradient) @ np.abs(point.z))
            norm = math.sqrt(_core.dot(point.gradient, point.gradient))
            value = _PYTHON * abs(point.value)
            return Errors(value, value, _PYTHON * terms, _PYTHON * norm)
        primal = point.slacks_error if self.has_kink else point.value_error
        return Errors(point.value_error, primal, point.dual_error, point.gradient_error)

    def curvature(self, point: Any, v: Array) -> Array:
        """``∇²L(z) v`` at the scores of ``point``."""
        raise NotImplementedError("a pair loss defines its curvature by curvature(point, v)")

    # What has a number for each position is the loss's own: it may lie on a device.

    def zeros(self) -> Array:
        """The scores of ``w = 0``."""
        return np.zeros(self.n_positions)

    def scores(self, rows: Design, w: Array) -> Array:
        """``X w``."""
        return rows.scores(w, self.order, self.n_threads)

    def by_column(self, rows: Design, r: Array) -> Array:
        """``Xᵀ r``."""
        return rows.gradient(r, self.order, self.n_threads)

    def dot(self, a: Array, b: Array) -> float:
        """``a·b`` over the positions."""
        return _core.dot(a, b, self.n_threads)

    def add_scaled(self, z: Array, t: float, d: Array) -> Array:
        """``z + t d``."""
        return _core.add_scaled(z, t, d, self.n_threads)

    def slope_norm(self, point: Any) -> float:
        """``‖∇L(z)‖``."""
        return math.sqrt(self.dot(point.gradient, point.gradient))

    def primal(self, point: Any) -> float:
        """The loss that is certified: the value, or what the value is a smoothing of."""
        return float(point.value)

    def dual(self, point: Any, errors: Errors) -> Dual:
        """The dual point that belongs to ``point``, for ``C = 1``; it scales with C.

        That of any convex ``L >= 0``, whose point keeps its scores ``z``: with ``g = ∇L(z)`` the
        conjugate has ``-L*(tg) >= t(L(z) - g·z)`` for ``0 <= t <= 1``. Where the regularizer is
        ``½‖w‖²``, ``t = 1`` makes the gap ``½‖∇F(w)‖²``.
        """
        linear = float(point.value) - _core.dot(point.gradient, point.z)
        return Dual(linear - errors.dual, largest=1.0)

    def hessian_product(self, rows: Design, point: Any, v: Array) -> tuple[Array, Array]:
        """``(Xᵀ∇²L(z)X v, X v)``, by two products with the rows."""
        image = self.scores(rows, v)
        return self.by_column(rows, self.curvature(point, image)), image

    def hessian_matrix(self, rows: Design, point: Any) -> Array:
        """``Xᵀ∇²L(z)X`` in full."""
        raise NotImplementedError("a loss for preconditioned solvers defines hessian_matrix")

    def hessian_diagonal(self, rows: Design, point: Any) -> Array:
        """An estimate of the diagonal of ``Xᵀ∇²L(z)X``."""
        raise NotImplementedError("a loss for preconditioned solvers defines hessian_diagonal")


class CoreLoss(ScoreLoss):
    """A loss of the core, whose points multiply by the curvature that their sweep has found."""

    pairs: Any  # with the number and the total weight of those that the loss is a sum of

    @property
    def mean_weight(self) -> float:
        return float(self.total_weight / max(1, self.pairs.n_pairs))

    @property
    def total_weight(self) -> float:
        return float(self.pairs.total_weight())

    def curvature(self, point: Any, v: Array) -> Array:
        return point.multiply(v, self.n_threads)

    def hessian_matrix(self, rows: Design, point: Any) -> Array:
        """``Xᵀ∇²L(z)X`` in full."""
        n = rows.shape[1]
        return _core.hessian_matrix(rows.core, self.order, point, self.n_threads).reshape(n, n)

    def hessian_diagonal(self, rows: Design, point: Any) -> Array:
        """The diagonal of ``Xᵀ∇²L(z)X`` from one pass over the non-zeros.

        It is exact up to rounding where preferences are listed, and an estimate elsewhere.
        """
        return _core.hessian_diagonal(rows.core, self.order, point, self.n_threads)


class PairLoss(CoreLoss):
    """``L(z) = Σ ω_ij l(1 - z_i + z_j)`` over the pairs of queries, never listed.

    Parameters
    ----------
    pairs : Pairs
        Which rows are compared, and the weights ω.
    n_threads : int
        Threads of every sweep; the result does not depend on it.
    """

    def __init__(self, pairs: Pairs, n_threads: int = 1) -> None:
        super().__init__(pairs.queries.order, pairs.queries.n_rows, n_threads)
        self.pairs = pairs
        self.queries = pairs.queries
        self.problem = pairs.problem


class SweptLoss(PairLoss):
    """A loss of the core: a point costs O(n log n), a product no more."""

    name: ClassVar[str]

    def at(self, z: Array, near: _core.PairPoint | None = None) -> _core.PairPoint:
        return _core.pair_point(self.problem, self.name, self.epsilon, z, near, self.n_threads)

    def hessian_product(
        self, rows: Design, point: _core.PairPoint, v: Array
    ) -> tuple[Array, Array]:
        """The same two products in one pass: each query's rows are used twice while in cache."""
        if isinstance(rows, StreamedRows):
            return super().hessian_product(rows, point, v)
        return _core.hessian_product(rows.core, self.order, point, v, self.n_threads)


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

    Parameters
    ----------
    *given
        What the other kinds of the same pairs take.
    epsilon : float
        ε, in (0, 1].
    """

    name = "huber"
    has_kink = True

    def __init__(self, *given: Any, epsilon: float) -> None:
        super().__init__(*given)
        self.epsilon = epsilon

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
    """The hinge over the pairs of queries, smoothed within ε of its kink."""


# ---- losses over preferences that are listed pair by pair ---------------------------------------


class PreferenceLoss(CoreLoss):
    """``L(z) = Σ_t ω_t l(1 - z_win + z_lose)``: O(p) for p preferences, a point or a product.

    Only rows that some preference names have a position: the others are never touched.

    Parameters
    ----------
    preferences : Preferences
        Winners, losers and weights ω, by row.
    n_rows : int
        Rows of the matrix.
    n_threads : int
        Threads of every sweep; the result does not depend on it.
    """

    name: ClassVar[str]

    def __init__(self, preferences: Preferences, n_rows: int, n_threads: int = 1) -> None:
        is_named = np.zeros(n_rows, dtype=bool)
        is_named[preferences.winners] = is_named[preferences.losers] = True
        order = None if is_named.all() else np.flatnonzero(is_named)
        super().__init__(order, n_rows if order is None else len(order), n_threads)
        self.preferences = self.pairs = preferences
        position = np.cumsum(is_named) - 1
        self._list = _core.preference_list(
            position[preferences.winners],
            position[preferences.losers],
            preferences.weight,
            self.n_positions,
        )

    @property
    def mean_weight(self) -> float:
        return self.total_weight / max(1, len(self.preferences))

    def at(self, z: Array, near: Any = None) -> _core.PreferencePoint:
        return _core.preference_point(self._list, self.name, self.epsilon, z, self.n_threads)


class PreferenceSquaredHinge(SquaredHingeKind, PreferenceLoss):
    """``l(ξ) = max(0, ξ)²``."""


class PreferenceHinge(HingeKind, PreferenceLoss):
    """``l(ξ) = max(0, ξ)``."""


class PreferenceHuber(HuberKind, PreferenceLoss):
    """``l(ξ) = [max(0, ξ)² - max(0, ξ - ε)²] / 2ε``."""


# The losses of pairs by the class of these; that of rankings adds its own.
KINDS: dict[type, dict[str, Any]] = {
    Pairs: {"squared_hinge": SquaredHinge, "hinge": Hinge, "huber": Huber},
    Preferences: {
        "squared_hinge": PreferenceSquaredHinge,
        "hinge": PreferenceHinge,
        "huber": PreferenceHuber,
    },
}


def loss_of_pairs(
    kind: str, pairs: Any, n_threads: int = 1, *, epsilon: float | None = None, n_rows: int = 0
) -> ScoreLoss:
    """The loss of this kind of pairs of one of the classes of `KINDS`.

    With ``epsilon``, the hinge is smoothed within that of its kink. ``n_rows`` are those of the
    matrix that listed pairs name the rows of.
    """
    given = (pairs, n_rows, n_threads) if isinstance(pairs, Preferences) else (pairs, n_threads)
    if kind == "hinge" and epsilon is not None:
        return KINDS[type(pairs)]["huber"](*given, epsilon=epsilon)
    return KINDS[type(pairs)][kind](*given)
