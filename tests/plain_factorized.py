"""The factorized dual by its definition, pair by pair: the oracle of its descent."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from explicit_pairs import ExplicitPairs

Array = np.ndarray


@dataclass(frozen=True)
class PlainFactors:
    """``f(V) = ½‖β‖² - Σ α``, ``α_ij = <v_i, v_j>``, over a list of pairs."""

    pairs: ExplicitPairs

    def alpha(self, V: Array) -> Array:
        return np.einsum("pk,pk->p", V[self.pairs.winner], V[self.pairs.loser])

    def weights(self, V: Array) -> Array:
        return self.pairs.difference.T @ self.alpha(V)

    def value(self, V: Array) -> float:
        beta = self.weights(V)
        return float(0.5 * beta @ beta - self.alpha(V).sum())

    def gradient(self, V: Array) -> Array:
        slack = self.pairs.difference @ self.weights(V) - 1.0
        gradient = np.zeros_like(V)
        for p, (i, j) in enumerate(zip(self.pairs.winner, self.pairs.loser, strict=True)):
            gradient[i] += slack[p] * V[j]
            gradient[j] += slack[p] * V[i]
        return gradient

    def hinge_objective(self, w: Array, C: float) -> float:
        slack = 1.0 - self.pairs.difference @ w
        return float(0.5 * w @ w + C * (self.pairs.weight * np.maximum(slack, 0.0)).sum())


def bounds(data, C: float, query_weight: dict | None = None) -> Array:
    """``b_i = u_i √(C c_q)`` by row."""
    u = np.ones(data.n_rows) if data.weight is None else np.asarray(data.weight)
    c = np.ones(data.n_rows)
    if query_weight is not None:
        c = np.array([query_weight[q] for q in np.asarray(data.qid).tolist()])
    return u * np.sqrt(C * c)


def largest_fall(V: Array, g: Array, b: Array, constraint: str) -> float:
    """``Σ max <g_i, v_i - v>`` over feasible v."""
    down = np.maximum(-g, 0.0)
    if constraint == "box":
        best = (down * b[:, None] / np.sqrt(V.shape[1])).sum()
    else:
        best = (b * np.linalg.norm(down, axis=1)).sum()
    return float((g * V).sum() + best)
