"""The domination loss by its definition, and a generic solver for it: twins for fast code."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize


@dataclass
class PlainDomination:
    """``Σ_q c_q Σ_i u_i log(1 + Σ_(j below i) u_j exp(z_j - z_i + Δ_ij))``, pair by pair.

    `layer` and `qid` are by row; ``delta(i, j)`` is the margin of row i over row j; ``c`` maps
    query ids to weights.
    """

    X: np.ndarray
    layer: np.ndarray
    qid: np.ndarray
    delta: object = None
    u: np.ndarray | None = None
    c: dict | None = None

    def __post_init__(self):
        self.X = np.asarray(self.X, dtype=float)
        n = len(self.X)
        self.u = np.ones(n) if self.u is None else self.u
        self.below = [
            [j for j in range(n) if self.qid[i] == self.qid[j] and self.layer[i] > self.layer[j]]
            for i in range(n)
        ]

    def margin(self, i, j):
        return 0.0 if self.delta is None else self.delta(i, j)

    def loss(self, w):
        """Value and gradient."""
        z = self.X @ w
        value, gradient = 0.0, np.zeros(len(w))
        for i, below in enumerate(self.below):
            a = np.array([z[j] - z[i] + self.margin(i, j) for j in below] + [0.0])
            weight = np.array([self.u[j] for j in below] + [1.0])
            largest = a.max()
            terms = weight * np.exp(a - largest)
            c = 1.0 if self.c is None else self.c[self.qid[i]]
            value += c * self.u[i] * (largest + np.log(terms.sum()))
            share = terms / terms.sum()
            for j, p in zip(below, share[:-1], strict=True):
                gradient += c * self.u[i] * p * (self.X[j] - self.X[i])
        return value, gradient

    def objective(self, w, penalty, alpha):
        pen = {"l1": np.abs(w).sum(), "l2": w @ w, "none": 0.0}[penalty]
        return self.loss(w)[0] + alpha * pen

    def minimum(self, penalty, alpha):
        """The weights that L-BFGS-B finds; l1 as a linear function of w⁺ and w⁻, both >= 0."""
        d = self.X.shape[1]
        if penalty == "l1":

            def split(v):
                value, gradient = self.loss(v[:d] - v[d:])
                return value + alpha * v.sum(), np.concatenate([gradient, -gradient]) + alpha

            found = minimize(
                split,
                np.zeros(2 * d),
                jac=True,
                method="L-BFGS-B",
                bounds=[(0, None)] * (2 * d),
                options={"ftol": 1e-15, "gtol": 1e-10, "maxiter": 10_000},
            )
            return found.x[:d] - found.x[d:]

        def smooth(w):
            value, gradient = self.loss(w)
            ridge = alpha if penalty == "l2" else 0.0
            return value + ridge * w @ w, gradient + 2 * ridge * w

        options = {"ftol": 1e-15, "gtol": 1e-10, "maxiter": 10_000}
        return minimize(smooth, np.zeros(d), jac=True, method="L-BFGS-B", options=options).x
