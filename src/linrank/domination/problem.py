"""The domination loss, and the objective of Domination Rank with its certificate."""

from __future__ import annotations

import math
from copy import copy
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from linrank import _core
from linrank.data.rows import Array, Rows
from linrank.domination.layering import Layering
from linrank.losses.base import KINDS, CoreLoss, Dual, Errors
from linrank.objective import Ridge, Risk, RiskPoint, Sum
from linrank.system.resources import cached_property

_UNIT = 2.0**-53  # of rounding
SAMPLE_SEED = 20100501  # of the preconditioner only: the optimum does not depend on it


class DominationLoss(CoreLoss):
    """``L(z) = Σ_q c_q Σ_i u_i log(1 + Σ_(j in D(i)) u_j exp(m_j - m_i + Δ(i, j)))``.

    ``m = z - s``, and D(i) are the rows of lower layers in i's query; see `Layering`. A point costs
    O(n) and one exponential per row, a product O(n); K² more for the K layers of a query where
    margins come from a table.

    Parameters
    ----------
    layering : Layering
        Layers, margins and weights.
    n_threads : int
        Threads of every sweep; the result does not depend on it.
    """

    def __init__(self, layering: Layering, n_threads: int = 1) -> None:
        queries = layering.queries
        super().__init__(queries.order, queries.n_rows, n_threads)
        self.layering = self.pairs = layering

    def by_position(self) -> DominationLoss:
        """The same loss of rows that lie in the order of their positions."""
        other = copy(self)
        other.order = None
        return other

    def at(self, z: Array, near: Any = None) -> _core.DominationPoint:
        return _core.domination_point(self.layering.core, z, self.n_threads)

    def errors(self, point: _core.DominationPoint, z: Array | None) -> Errors:
        value = point.value_error
        return Errors(value, value, value + point.slope_error, point.gradient_error)

    def dual(self, point: _core.DominationPoint, errors: Errors) -> Dual:
        """The tangent plane: ``L(z') >= t(L(z) - ∇L(z)·z) + t∇L(z)·z'`` for ``t <= 1``.

        At t = 1 by convexity, at t = 0 since ``L >= 0``, and in between by both. `entropy_dual` is
        a better bound there.
        """
        return Dual(point.value - point.slope - errors.dual, largest=1.0)

    def entropy_dual(self, point: _core.DominationPoint, t: float) -> float:
        """A lower bound ``D(t)`` of ``L(z') - t∇L(z)·z'`` over all ``z'``, for ``0 <= t <= 1``.

        With ``ρ_i = σ(log Z_k(i) - m_i)`` and ω = c u,
        ``D(t) = Σ_i ω_i [h(tρ_i) + tρ_i (log Z_k(i) - m_i)] - t∇L(z)·z``, h the binary entropy:
        every row keeps its mixture of dominated rows, and gives it t times the probability.
        ``D(1) = L(z) - ∇L(z)·z``. It certifies ``min L + α‖w‖₁ >= D(t)`` for the t that brings
        ``t‖Xᵀ∇L(z)‖_∞`` down to α. Rounding cannot take it above that.
        """
        return point.dual(t, self.n_threads) - 4.0 * point.value_error - point.slope_error


KINDS[Layering] = {"domination": DominationLoss}


@dataclass(frozen=True, eq=False)
class DominationProblem:
    """``F(w) = L(XDw) + alpha·pen(w)``, pen = ``‖w‖₁``, ``‖w‖²`` or 0, L the domination loss.

    With ``‖w‖²`` it is ``2 alpha`` times the `objective` ``½‖w‖² + C·L(XDw)`` that Newton's method
    minimizes: a `linrank.ranksvm.train.Plannable`.
    """

    rows: Rows
    layering: Layering
    penalty: str
    alpha: float
    scale: Array | None = None
    n_threads: int = 1
    loss: ClassVar[str] = "domination"

    @property
    def n_features(self) -> int:
        return self.rows.shape[1]

    @property
    def n_rows(self) -> int:
        return self.layering.queries.n_rows

    largest_matrix = n_features  # up to which the whole Hessian may be formed
    capacity = n_rows  # of a sample

    @property
    def longest_query(self) -> int:
        """Rows of the longest query."""
        return int(np.diff(self.layering.queries.offsets).max())

    def objective(self, epsilon: float = 1.0) -> Sum:
        """``½‖w‖² + L(XDw)/(2 alpha)``; nothing is smoothed, whatever ``epsilon``."""
        return Sum(Ridge(), replace(self.risk, C=1.0 / (2.0 * self.alpha)))

    def sharpening(self, tol: float) -> None:
        """Nothing is smoothed."""

    def sample(self, n_rows: int) -> DominationProblem:
        """The same problem on about ``n_rows`` rows, its loss at 0 scaled up to the whole."""
        layering = self.layering.sample(n_rows, SAMPLE_SEED)
        part, whole = (
            DominationLoss(some).at(np.zeros(some.queries.n_rows)).value
            for some in (layering, self.layering)
        )
        share = part / whole if part > 0.0 else 1.0
        rows: Any = self.rows
        if rows.device is not None:  # the loss, on the host, looks at those of the sample
            order, queries = layering.queries.order, replace(layering.queries, order=None)
            rows = rows.stored(slice(None) if order is None else order, self.n_threads)
            layering = replace(layering, queries=queries)
        return replace(self, rows=rows, layering=layering, alpha=share * self.alpha, n_threads=1)

    @cached_property
    def risk(self) -> Risk:
        """L as a function of the weights."""
        return Risk(self.rows, DominationLoss(self.layering, self.n_threads), 1.0, self.scale)

    def columns(self) -> _core.Columns:
        """The matrix by columns; where rows are positions, one copy for all who ask."""
        order = self.layering.queries.order
        return self.rows.by_column if order is None else _core.columns(self.rows.core, order, 1)

    def at(
        self,
        w: Array,
        scores: Array | None = None,
        among: Array | None = None,
        columns: _core.Columns | None = None,
    ) -> PenalizedPoint:
        """The objective at ``w``; ``scores`` are ``XDw`` by position, if they are known.

        With ``among``, the certificate is that of the problem in which only these features move;
        it then costs no more than their ``columns``, if these are given.
        """
        point = self.risk.at(w) if scores is None else RiskPoint(self.risk, w, scores)
        return PenalizedPoint(self.penalty, self.alpha, point, among, columns)

    def largest_alpha(self) -> float:
        """``‖∇L(0)‖_∞``: with the l1 penalty, all weights are zero from there on."""
        return float(np.abs(self.risk.at(np.zeros(self.n_features)).gradient).max())


@dataclass(frozen=True, eq=False)
class PenalizedPoint:
    """`DominationProblem` at one ``w``.

    Where only some features may move, ``among`` them, subgradient, residual and gap are those of
    the problem in which the weights of all others are given.
    """

    penalty: str
    alpha: float
    risk: RiskPoint
    among: Array | None = None
    columns: _core.Columns | None = None

    @property
    def w(self) -> Array:
        return self.risk.w

    @cached_property
    def value(self) -> float:
        """``F(w)``."""
        w = self.w
        if self.penalty == "l1":
            return self.risk.value + self.alpha * float(np.abs(w).sum())
        return self.risk.value + (self.alpha * _core.dot(w, w) if self.penalty == "l2" else 0.0)

    def at_scores(self, w: Array, scores: Array) -> PenalizedPoint:
        """The same problem at another ``w``, whose scores are known."""
        return replace(self, risk=RiskPoint(self.risk.risk, w, scores))

    @cached_property
    def derivatives(self) -> Array:
        """``∂L/∂w_r`` of the features that may move, in their order."""
        risk, among = self.risk.risk, self.among
        if among is None:
            return self.risk.gradient
        if self.columns is None:
            return self.risk.gradient[among]
        found = self.columns.products(among, self.risk.loss.gradient, risk.loss.n_threads)
        return found if risk.scale is None else risk.scale[among] * found

    @cached_property
    def subgradient(self) -> Array:
        """The shortest vector of ``∂F(w)``: zero at the optimum, and only there.

        Features that may not move have a 0.
        """
        if self.among is None:
            return self._slopes(self.derivatives, self.w)
        slopes = np.zeros(len(self.w))
        slopes[self.among] = self._slopes(self.derivatives, self.w[self.among])
        return slopes

    def _slopes(self, g: Array, w: Array) -> Array:
        if self.penalty == "none":
            return g
        if self.penalty == "l2":
            return np.asarray(g + 2.0 * self.alpha * w)
        at_zero = np.sign(g) * np.maximum(np.abs(g) - self.alpha, 0.0)
        return np.where(w != 0.0, g + self.alpha * np.sign(w), at_zero)

    @property
    def kkt_residual(self) -> float:
        """``‖subgradient‖``."""
        return math.sqrt(_core.dot(self.subgradient, self.subgradient))

    @cached_property
    def rounding(self) -> float:
        """``value`` and its exact value at ``w`` are no farther apart, for scores just computed."""
        w = np.abs(self.w)
        return self.risk.primal_error(w) + _UNIT * (len(w) + 8) * self.value

    @cached_property
    def gap(self) -> float:
        """Certified: ``F(w) - min F <= gap``; infinite without a penalty: there may be no minimum.

        l2: from ``min F >= ta - t²‖∇L‖²/4alpha``, the tangent plane of L at any length. l1: the
        entropy dual at ``t∇L``, t small enough that ``t‖∇L(w)‖_∞ <= alpha``; weights that may not
        move, w̄, add ``t∇L·w̄ + alpha‖w̄‖₁`` to it. All rounding counts against it.
        """
        if self.penalty == "none":
            return math.inf
        bound = self._ridge_bound() if self.penalty == "l2" else self._lasso_bound()
        return max(self.rounding, self.value + self.rounding - max(0.0, bound))

    def _ridge_bound(self) -> float:
        dual = self.risk.dual
        above = np.abs(self.derivatives) + self._errors
        half = (1.0 + _UNIT * (len(above) + 8)) * _core.dot(above, above) / (4.0 * self.alpha)
        still = self._still
        linear = dual.linear + self._slope_of(still)
        t = min(1.0, max(0.0, linear / (2.0 * half))) if half > 0.0 else 1.0
        held = self.alpha * _core.dot(still, still)
        return t * (linear - t * half) + held - 8.0 * _UNIT * (abs(linear) + half + held)

    def _lasso_bound(self) -> float:
        largest = float((np.abs(self.derivatives) + self._errors).max(initial=0.0))
        t = 1.0 if largest <= self.alpha else (1.0 - 4.0 * _UNIT) * self.alpha / largest
        loss = self.risk.risk.loss
        assert isinstance(loss, DominationLoss)
        still = self._still
        held = self.alpha * float(np.abs(still).sum())
        bound = loss.entropy_dual(self.risk.loss, t) + t * self._slope_of(still) + held
        return bound - _UNIT * (len(still) + 8) * held

    @property
    def _errors(self) -> Array:
        """The rounding of `derivatives`."""
        errors = self.risk.gradient_error
        return errors if self.among is None else errors[self.among]

    @property
    def _still(self) -> Array:
        """The weights that may not move; 0 for the others."""
        still: Array = self.w.copy()
        still[slice(None) if self.among is None else self.among] = 0.0
        return still

    def _slope_of(self, still: Array) -> float:
        """``∇L·still``, rounded down."""
        if not still.any():
            return 0.0
        size = np.abs(self.risk.gradient) + self.risk.gradient_error
        rounding = (self.risk.gradient_error + _UNIT * (len(still) + 8) * size) @ np.abs(still)
        return _core.dot(self.risk.gradient, still) - float(rounding)
