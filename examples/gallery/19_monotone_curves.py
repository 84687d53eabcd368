"""
Monotone curves
===============

More clicks should never lower a score, and more age should never raise it. ``increasing`` and
``decreasing`` guarantee that, even where data are few and noisy.
"""

import matplotlib.pyplot as plt
import numpy as np

from linrank import RankSVM

rng = np.random.default_rng(1)
X = np.column_stack([rng.gamma(1.0, 4.0, 400), rng.gamma(2.0, 10.0, 400)])  # clicks, age
worth = np.sqrt(X[:, 0]) - 0.05 * X[:, 1] + 2 * rng.normal(size=400)
y, qid = np.digitize(worth, np.quantile(worth, [0.5, 0.8])), np.arange(400) // 10

free = RankSVM(C=1.0, curves="spline", n_knots=12).fit(X, y, qid=qid)
bounds = {"increasing": [0], "decreasing": [1]}
rising = RankSVM(C=1.0, curves="spline", n_knots=12, **bounds).fit(X, y, qid=qid)

figure, panels = plt.subplots(1, 2, figsize=(9, 3.5), layout="constrained")
for j, (panel, name) in enumerate(zip(panels, ("clicks", "age"), strict=True)):
    rows = np.tile(np.median(X, axis=0), (200, 1))
    rows[:, j] = np.linspace(0, np.quantile(X[:, j], 0.98), 200)
    panel.plot(rows[:, j], free.predict(rows), "--", label="free")
    panel.plot(rows[:, j], rising.predict(rows), label="monotone")
    panel.set(xlabel=name, ylabel="score")
    falls = [np.sum(np.diff(r.predict(rows)) * (1 - 2 * j) < -1e-9) for r in (free, rising)]
    print(f"{name}: {falls[0]} steps of 199 against the rule when free, {falls[1]} when monotone")
panels[0].legend()
