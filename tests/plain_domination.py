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
        self.layer, self.qid = np.asarray(self.layer, dtype=float), np.asarray(self.qid)
        n = len(self.X)
        self.u = np.ones(n) if self.u is None else self.u
        rows = np.arange(n)
        self.below = [rows[(self.qid == self.qid[i]) & (self.layer < self.layer[i])] for i in rows]
        margin = (lambda i, j: 0.0) if self.delta is None else self.delta
        self.margins = [
            np.array([margin(i, j) for j in below], dtype=float)
            for i, below in enumerate(self.below)
        ]

    def loss(self, w):
        """Value and gradient."""
        z = self.X @ w
        value, by_row = 0.0, np.zeros(len(z))
        for i, below in enumerate(self.below):
            a = np.append(z[below] - z[i] + self.margins[i], 0.0)
            largest = a.max()
            terms = np.append(self.u[below], 1.0) * np.exp(a - largest)
            weight = self.u[i] * (1.0 if self.c is None else self.c[self.qid[i]])
            value += weight * (largest + np.log(terms.sum()))
            share = weight * terms[:-1] / terms.sum()
            by_row[below] += share
            by_row[i] -= share.sum()
        return value, by_row @ self.X

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
