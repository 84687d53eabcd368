"""
Custom losses
=============

RankNet's logistic loss in Python, minimized by linrank's Newton method with its certificate.
"""

from types import SimpleNamespace

import matplotlib.pyplot as plt
import numpy as np
from scipy.special import expit

import linrank
from linrank.data.rows import as_rows
from linrank.losses.base import ScoreLoss
from linrank.objective import Ridge, Risk, Sum
from linrank.solvers.conjugate import Plain
from linrank.solvers.newton import newton


class LogisticLoss(ScoreLoss):
    def __init__(self, data):
        super().__init__(None, data.n_rows)
        same_query = data.qid[:, None] == data.qid
        self.above, self.below = np.nonzero(same_query & (data.y[:, None] > data.y))

    total_weight = property(lambda self: float(len(self.above)))

    def at(self, z, near=None):
        margin = z[self.above] - z[self.below]
        p, value = expit(-margin), np.logaddexp(0.0, -margin).sum()
        return SimpleNamespace(z=z, value=value, gradient=self.by_row(-p), bend=p * (1 - p))

    def curvature(self, point, v):
        return self.by_row(point.bend * (v[self.above] - v[self.below]))

    def by_row(self, terms):
        n = self.n_positions
        return np.bincount(self.above, terms, n) - np.bincount(self.below, terms, n)


data = linrank.make_ranking(n_queries=60, n_features=8, noise=0.5, random_state=0)
objective = Sum(Ridge(), Risk(as_rows(data.X), LogisticLoss(data), C=0.01))
result = newton(objective, np.zeros(8), preconditioner=Plain(), tol=1e-6)
print(f"objective {result.value:.4f}, at most {result.gap:.1e} above its minimum")

hinge = linrank.RankSVM(C=0.01, scale="none", pair_weighting="uniform").fit(data)
plt.bar(np.arange(8) - 0.2, result.w / np.linalg.norm(result.w), 0.4, label="logistic loss")
plt.bar(np.arange(8) + 0.2, hinge.coef_ / np.linalg.norm(hinge.coef_), 0.4, label="squared hinge")
plt.xlabel("feature")
plt.ylabel("weight (length 1)")
plt.legend()
