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
        D = self.difference[used]
        alpha = box_quadratic_program(D, C * self.weight[used])
        w = D.T @ alpha
        return w, float(alpha.sum() - 0.5 * w @ w)

    def _squared(self, C: float) -> tuple[Array, float]:
        D, weight = self.difference, self.weight

        def value_and_gradient(w: Array) -> tuple[float, Array]:
            slack = np.maximum(0.0, 1.0 - D @ w)
            return 0.5 * w @ w + C * weight @ slack**2, w - 2.0 * C * D.T @ (weight * slack)

        options = {"maxiter": 20000, "maxfun": 100000, "ftol": 1e-16, "gtol": 1e-10}
        start = np.zeros(D.shape[1])
        best = minimize(value_and_gradient, start, jac=True, method="L-BFGS-B", options=options)
        # α = 2Cωξ is dual feasible, with F - D = ½‖∇F‖² exactly.
        gradient = value_and_gradient(best.x)[1]
        return best.x, float(best.fun - 0.5 * gradient @ gradient)


def pair_loss(slack: Array, loss: str, epsilon: float = 0.0) -> Array:
    """``l(ξ)``; the Huberised hinge is ξ²/2ε up to ε and ξ - ε/2 beyond."""
    positive = np.maximum(0.0, slack)
    if loss == "squared_hinge":
        return positive**2
    if loss == "hinge":
        return positive
    inner = np.minimum(positive, epsilon)
    return inner**2 / (2.0 * epsilon) + (positive - inner)


def box_quadratic_program(D: Array, upper: Array) -> Array:
    """``argmax e'α - ½‖D'α‖²`` over ``0 <= α <= upper``, by a primal-dual interior-point method.

    The dual of ``min ½‖w‖² + Σ upper_p max(0, 1 - D_p·w)``. With the multipliers l and u of the two
    bounds, ``DD'α - e - l + u = 0``, ``l α = μ`` and ``u (upper - α) = μ``; μ goes to 0.
    """
    alpha, low, high = 0.5 * upper, 1.0 / upper, 1.0 / upper
    n = len(upper)
    for _ in range(200):
        room = upper - alpha
        total = low @ alpha + high @ room
        residual = D @ (D.T @ alpha) - 1.0 - low + high
        w = D.T @ alpha
        primal = 0.5 * w @ w + upper @ np.maximum(0.0, 1.0 - D @ w)
        if primal - (alpha.sum() - 0.5 * w @ w) <= 1e-11 * primal:
            break
        mu = 0.1 * total / (2 * n)
        # (DD' + S) dα = r with S diagonal, by Woodbury through a matrix of the size of w.
        S = low / alpha + high / room
        r = -residual + (mu / alpha - low) - (mu / room - high)
        inner = np.eye(D.shape[1]) + D.T @ (D / S[:, np.newaxis])
        step = r / S - (D @ np.linalg.solve(inner, D.T @ (r / S))) / S
        d_low = mu / alpha - low - low / alpha * step
        d_high = mu / room - high + high / room * step
        t = 1.0
        for x, dx in ((alpha, step), (room, -step), (low, d_low), (high, d_high)):
            if (dx < 0).any():
                t = min(t, 0.995 * float(np.min(-x[dx < 0] / dx[dx < 0])))
        alpha, low, high = alpha + t * step, low + t * d_low, high + t * d_high
    return alpha
