"""The list of all pairs, and the optimum over it by generic solvers: the oracle of every trainer.

A brute-force twin of `linrank.pairs.Pairs`: it writes out what the library never does. The optimum
is certified by weak duality, ``D(α) <= F* <= F(w)``, whatever method found ``α`` and ``w``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from scipy.optimize import minimize

from linrank.data.dataset import Dataset

Array = np.ndarray


@dataclass(frozen=True)
class ExplicitPairs:
    """Every pair as a row: ``(winner, loser)`` in input order, ``x_i - x_j`` and the weight ω."""

    winner: Array
    loser: Array
    difference: Array
    weight: Array

    @classmethod
    def of(
        cls,
        data: Dataset,
        *,
        query_weight: Any = None,
        gain: Array | None = None,
        adjacent: bool = False,
        scale: Array | None = None,
    ) -> ExplicitPairs:
        """The pairs of ``data`` by their definition, ``ω_ij = c_q u_i u_j (g_i - g_j)``.

        ``query_weight`` maps a query id to c; ``gain`` holds g by row, in input order.
        """
        X = np.asarray(data.X.toarray() if sparse.issparse(data.X) else data.X, dtype=np.float64)
        y = np.asarray(data.labels, dtype=np.float64)
        qid = np.zeros(len(y), dtype=np.int64) if data.qid is None else np.asarray(data.qid)
        u = np.ones(len(y)) if data.weight is None else np.asarray(data.weight)
        listed = []
        for i in range(len(y)):
            below = [y[j] for j in range(len(y)) if qid[j] == qid[i] and y[j] < y[i]]
            for j in range(len(y)):
                if qid[i] == qid[j] and y[i] > y[j] and (not adjacent or y[j] == max(below)):
                    c = 1.0 if query_weight is None else query_weight[qid[i].item()]
                    g = 1.0 if gain is None else gain[i] - gain[j]
                    listed.append((i, j, c * u[i] * u[j] * g))
        i = np.array([pair[0] for pair in listed], dtype=np.int64)
        j = np.array([pair[1] for pair in listed], dtype=np.int64)
        difference = X[i] - X[j]
        if scale is not None:
            difference = difference * scale
        return cls(i, j, difference, np.array([pair[2] for pair in listed]))

    def slacks(self, w: Array) -> Array:
        """``ξ = 1 - w·(x_i - x_j)`` of every pair."""
        return 1.0 - self.difference @ w

    def objective(self, w: Array, C: float, loss: str, epsilon: float = 0.0) -> float:
        """``½‖w‖² + C Σ ω l(ξ)`` with the loss "squared_hinge", "hinge" or "huber"."""
        return float(0.5 * w @ w + C * self.weight @ pair_loss(self.slacks(w), loss, epsilon))

    def optimum(self, C: float, loss: str = "squared_hinge") -> tuple[float, Array]:
        """``(F*, w*)``, F* certified to 1e-8 relative: hinge and squared hinge."""
        w, lower = {"hinge": self._hinge, "squared_hinge": self._squared}[loss](C)
        value = self.objective(w, C, loss)
        assert value - lower <= 1e-8 * value, (value, lower)
        return value, w

    def _hinge(self, C: float) -> tuple[Array, float]:
        used = self.weight > 0
        return box_quadratic_program(self.difference[used], C * self.weight[used])

    def _squared(self, C: float) -> tuple[Array, float]:
        D, weight = self.difference, self.weight

        def value_and_gradient(w: Array) -> tuple[float, Array]:
            slack = np.maximum(0.0, 1.0 - D @ w)
            return 0.5 * w @ w + C * weight @ slack**2, w - 2.0 * C * D.T @ (weight * slack)

        def hessian(w: Array) -> Array:
            violated = weight * (D @ w < 1.0)
            return np.eye(len(w)) + 2.0 * C * D.T @ (D * violated[:, np.newaxis])

        start = np.zeros(D.shape[1])
        options = {"gtol": 1e-9, "maxiter": 1000}
        best = minimize(
            value_and_gradient, start, jac=True, hess=hessian, method="trust-exact", options=options
        )
        # α = 2Cωξ is dual feasible, with F - D = ½‖∇F‖² exactly.
        return best.x, float(best.fun - 0.5 * best.jac @ best.jac)


def pair_loss(slack: Array, loss: str, epsilon: float = 0.0) -> Array:
    """``l(ξ)``; the Huberised hinge is ξ²/2ε up to ε and ξ - ε/2 beyond."""
    positive = np.maximum(0.0, slack)
    if loss == "squared_hinge":
        return positive**2
    if loss == "hinge":
        return positive
    inner = np.minimum(positive, epsilon)
    return inner**2 / (2.0 * epsilon) + (positive - inner)


def box_quadratic_program(D: Array, upper: Array) -> tuple[Array, float]:
    """``max e'α - ½‖D'α‖²`` over ``0 <= α <= upper``, by a primal-dual interior-point method.

    Gives the minimizer of the primal ``½‖w‖² + Σ upper_p max(0, 1 - D_p·w)`` and the dual value,
    each the best of all iterates, as rounding spoils the last. With ``w = D'α`` and the multipliers
    ``low`` and ``high`` of the two bounds, ``D w - e - low + high = 0``, ``low α = μ`` and
    ``high (upper - α) = μ``; μ goes to 0. Every Newton step is a system of the size of w.
    """
    alpha, room = 0.5 * upper, 0.5 * upper
    w = D.T @ alpha
    excess = D @ w - 1.0
    low, high = (np.maximum(s * excess, 0.0) + np.abs(excess).mean() for s in (1.0, -1.0))
    best, least, lower = w, np.inf, -np.inf
    for _ in range(100):
        found = D.T @ alpha
        primal = 0.5 * w @ w + upper @ np.maximum(0.0, 1.0 - D @ w)
        if primal < least:
            best, least = w, primal
        lower = max(lower, float(alpha.sum() - 0.5 * found @ found))
        if least - lower <= 1e-12 * least or low @ alpha + high @ room <= 1e-14 * least:
            break
        mu = 0.1 * (low @ alpha + high @ room) / (2 * len(upper))
        r = -(D @ w - 1.0 - low + high) + (mu / alpha - low) - (mu / room - high)
        S = low / alpha + high / room
        inner = np.eye(D.shape[1]) + D.T @ (D / S[:, np.newaxis])
        dw = np.linalg.solve(inner, found - w + D.T @ (r / S))
        step = (r - D @ dw) / S
        d_low = mu / alpha - low - low / alpha * step
        d_high = mu / room - high + high / room * step
        t = 1.0
        for x, dx in ((alpha, step), (room, -step), (low, d_low), (high, d_high)):
            if (dx < 0).any():
                t = min(t, 0.995 * float(np.min(-x[dx < 0] / dx[dx < 0])))
        w, alpha, room = w + t * dw, alpha + t * step, room - t * step
        low, high = low + t * d_low, high + t * d_high
    return best, lower
