"""RankSVM with a kernel by brute force: kernels by their formulas, every pair written out.

With ``Q = R R'`` the problem in β is a linear one over the rows of R, ``w = R'β``; its optimum over
explicit pairs is certified by `ExplicitPairs.optimum`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from explicit_pairs import ExplicitPairs
from linrank.data.dataset import Dataset
from linrank.data.rows import DenseRows

Array = np.ndarray


def plain_kernel(
    A: Any, B: Any, name: str, *, gamma: float = 1.0, degree: int = 3, coef0: float = 0.0
) -> Array:
    """``K(A, B)``, entry by entry."""
    rules = {
        "rbf": lambda a, b: np.exp(-gamma * ((a - b) ** 2).sum()),
        "poly": lambda a, b: (gamma * (a @ b) + coef0) ** degree,
        "sigmoid": lambda a, b: np.tanh(gamma * (a @ b) + coef0),
        "linear": lambda a, b: a @ b,
    }
    A, B = np.asarray(A, dtype=np.float64), np.asarray(B, dtype=np.float64)
    return np.array([[rules[name](a, b) for b in B] for a in A])


def root(Q: Array) -> Array:
    """R with ``R R' = Q``, what is negative by rounding taken for 0."""
    values, vectors = np.linalg.eigh(Q)
    return vectors * np.sqrt(np.maximum(values, 0.0))


@dataclass(frozen=True)
class KernelTwin:
    """The problem ``½ β'Qβ + C Σ ω l(1 - (s_i - s_j))`` over explicit pairs."""

    R: Array
    pairs: ExplicitPairs

    @classmethod
    def of(cls, data: Dataset, Q: Array, **options: Any) -> KernelTwin:
        """The pairs of the labels; options as `ExplicitPairs.of`."""
        R = root(Q)
        return cls(R, ExplicitPairs.of(replace(data, rows=DenseRows(R)), **options))

    def optimum(self, C: float, loss: str = "squared_hinge") -> tuple[float, Array]:
        """The least objective, and the scores of the rows there."""
        value, w = self.pairs.optimum(C, loss)
        return value, self.R @ w

    def objective(self, scores: Array, beta: Array, C: float, loss: str = "squared_hinge") -> float:
        """``½ β's + C Σ ω l`` at given scores ``s = Qβ``."""
        slack = np.maximum(0.0, 1.0 - scores[self.pairs.winner] + scores[self.pairs.loser])
        losses = slack if loss == "hinge" else slack**2
        return float(0.5 * beta @ scores + C * self.pairs.weight @ losses)
