"""
Reproducing a table of a paper
==============================

Lin et al. (2013) train on the 199 closest of 19,900 pairs of a regression problem and lose nothing
while labels have little noise. ``reproduce/`` measures their tables and those of four other papers.
"""

import matplotlib.pyplot as plt
import numpy as np

from linrank import RankSVM, pairs


def problem(noise, seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(1200, 11))
    return X, X @ rng.uniform(-1, 1, 11) + noise * rng.normal(size=1200)


noises, results = [0.0, 0.3, 1.0, 2.0], {"all pairs": [], "199 closest": [], "199 random": []}
for noise in noises:
    runs = []
    for seed in range(5):
        X, y = problem(noise, seed)
        train, test = slice(0, 200), slice(200, None)
        close, drawn = pairs.closest(y[train], n=199), pairs.random(y[train], n=199)
        rankers = [RankSVM().fit(X[train], y[train], qid=np.zeros(200, dtype=int))]
        rankers += [RankSVM().fit_pairs(X[train], chosen) for chosen in (close, drawn)]
        runs.append([r.score(X[test], y[test], qid=np.zeros(1000, dtype=int)) for r in rankers])
    for name, value in zip(results, np.mean(runs, axis=0), strict=True):
        results[name].append(value)
    print(f"noise {noise}:", *(f"{name} {values[-1]:.3f}" for name, values in results.items()))
for name, values in results.items():
    plt.plot(noises, values, "o-", label=name)
plt.xlabel("noise of the labels")
plt.ylabel("unseen pairs in order")
plt.legend()
