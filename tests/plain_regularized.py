"""The regularized dual over explicit pairs and whole matrices: the twin of linrank.lowrank."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize

from explicit_pairs import ExplicitPairs

Array = np.ndarray


def plain_svt(M: Array, threshold: float) -> Array:
    """``Σ max(0, σ - τ) u vᵀ`` by the whole decomposition."""
    left, values, right = np.linalg.svd(M, full_matrices=False)
    return (left * np.maximum(0.0, values - threshold)) @ right


@dataclass(frozen=True)
class PlainRegularized:
    """``Ψ(α) = ½‖β‖² - e'α + Σ h(σ(P(α)))``, ``0 <= α <= Cω``, P(α) of side n_rows."""

    pairs: ExplicitPairs
    n_rows: int
    gamma: float
    lam: float
    C: float

    @property
    def upper(self) -> Array:
        return self.C * self.pairs.weight

    def matrix(self, alpha: Array) -> Array:
        """``P(α)``, block diagonal by query up to the order of the rows."""
        P = np.zeros((self.n_rows, self.n_rows))
        P[self.pairs.winner, self.pairs.loser] = alpha
        return P

    def low_rank(self, alpha: Array) -> Array:
        """The A that is best for α: ``SVT_{γ/2λ}(P(α))``."""
        return plain_svt(self.matrix(alpha), self.gamma / (2.0 * self.lam))

    def joint(self, alpha: Array, A: Array) -> float:
        """``½‖β‖² - e'α + γ‖A‖_* + λ‖P(α) - A‖²``."""
        beta = self.pairs.difference.T @ alpha
        nuclear = self.gamma * np.linalg.svd(A, compute_uv=False).sum()
        distance = self.lam * ((self.matrix(alpha) - A) ** 2).sum()
        return float(0.5 * beta @ beta - alpha.sum() + nuclear + distance)

    def value(self, alpha: Array) -> float:
        return self.joint(alpha, self.low_rank(alpha))

    def gradient(self, alpha: Array) -> Array:
        margins = self.pairs.difference @ (self.pairs.difference.T @ alpha)
        rest = 2.0 * self.lam * (self.matrix(alpha) - self.low_rank(alpha))
        return margins - 1.0 + rest[self.pairs.winner, self.pairs.loser]

    def gap(self, alpha: Array) -> float:
        """The Frank-Wolfe gap: ``Ψ(α) - Ψ*`` is at most ``<g, α> + Σ Cω max(0, -g)``."""
        g = self.gradient(alpha)
        return float(g @ alpha + self.upper @ np.maximum(0.0, -g))

    def minimum(self) -> tuple[float, float]:
        """``(Ψ(α), Ψ(α) - gap)`` by a generic solver: the minimum lies between."""
        alpha = np.zeros(len(self.upper))
        for _ in range(10):  # a line search that fails may succeed from where it ended
            alpha = minimize(
                lambda alpha: (self.value(alpha), self.gradient(alpha)),
                alpha,
                jac=True,
                bounds=list(zip(0.0 * self.upper, self.upper, strict=True)),
                method="L-BFGS-B",
                options={"maxiter": 3000, "maxfun": 3000, "ftol": 1e-14, "gtol": 1e-9},
            ).x
            if self.gap(alpha) <= 1e-6 * abs(self.value(alpha)):
                break
        value = self.value(alpha)
        return value, value - self.gap(alpha)
