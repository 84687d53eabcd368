"""
Kernels for nonlinear scores
============================

The best items lie on a ring, so no linear function of the features ranks them first.
"""

import matplotlib.pyplot as plt
import numpy as np

from linrank import KernelRankSVM, RankSVM

rng = np.random.default_rng(0)
X = rng.uniform(-2.0, 2.0, size=(600, 2))
worth = -np.abs(np.hypot(*X.T) - 1.2) + 0.05 * rng.normal(size=600)
y, qid = np.digitize(worth, np.quantile(worth, [0.25, 0.5, 0.75])), np.arange(600) // 20
train, test = slice(0, 400), slice(400, 600)

grid = np.stack(np.meshgrid(*[np.linspace(-2, 2, 80)] * 2), axis=-1)
figure, panels = plt.subplots(1, 2, figsize=(9, 4), layout="constrained")
for panel, ranker in zip(panels, (RankSVM(), KernelRankSVM("rbf", gamma=1.0)), strict=True):
    ranker.fit(X[train], y[train], qid=qid[train])
    panel.contourf(*grid.T, ranker.predict(grid.reshape(-1, 2)).reshape(80, 80).T, 20)
    panel.scatter(*X[test].T, c=y[test], cmap="Greys", s=12, edgecolors="w", linewidths=0.3)
    accuracy = ranker.score(X[test], y[test], qid=qid[test])
    panel.set_title(f"{type(ranker).__name__}: {accuracy:.2f} of pairs in order")
