"""The domination loss by its definition, and a generic solver for it: twins for fast code."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize

import reference
from linrank.data.queries import Queries


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

    def loss(self, w):
        """Value and gradient."""
        n, X = len(self.layer), np.asarray(self.X, dtype=float)
        queries = Queries.of(self.layer, self.qid)
        order = np.arange(n) if queries.order is None else queries.order
        margin = (lambda i, j: 0.0) if self.delta is None else self.delta
        found = reference.domination_loss(
            (X @ w)[order],
            queries.offsets,
            queries.levels,
            u=None if self.u is None else np.asarray(self.u)[order],
            c=None if self.c is None else [self.c[q] for q in queries.ids.tolist()],
            margin=lambda i, j: margin(order[i], order[j]),
        )
        return found["value"], found["gradient"] @ X[order]

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
