"""
Survival analysis with concordance
==================================

Of two patients, the one known to live longer ranks higher. A censored patient is known to outlive
those whose event came earlier, and is never the loser of a pair. ``fit_pairs`` takes these pairs.
"""

import matplotlib.pyplot as plt
import numpy as np

import linrank

rng = np.random.default_rng(0)
X = rng.normal(size=(600, 5))
life = rng.exponential(np.exp(X @ [0.8, -0.6, 0.4, 0.0, 0.0]))
censoring = rng.exponential(np.exp(1.5 * X[:, 3]))  # feature 3: drop-out from the study
time, event = np.minimum(life, censoring), life <= censoring
train, test = slice(0, 400), slice(400, 600)

outlives = np.argwhere(event[train] & (time[train][:, None] > time[train]))  # (winner, loser)
ranker = linrank.RankSVM().fit_pairs(X[train], outlives)
naive = linrank.RankSVM().fit(X[train], time[train], qid=np.zeros(400, dtype=int))

for name, model in (("comparable pairs", ranker), ("censoring ignored", naive)):
    risk = -model.predict(X[test])
    c = linrank.concordance_index(event[test], time[test], risk).value
    print(f"{name:18} concordance {c:.3f}")

long = ranker.predict(X[test]) > np.median(ranker.predict(X[test]))
for part, name in ((long, "upper half of the scores"), (~long, "lower half")):
    t, d = time[test][part], event[test][part]
    order = np.argsort(t)
    alive = np.cumprod(1.0 - d[order] / np.arange(len(t), 0, -1))  # Kaplan and Meier
    plt.step(t[order], alive, where="post", label=name)
plt.xlabel("time")
plt.ylabel("share alive")
plt.legend()
