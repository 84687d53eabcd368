"""
Preferences instead of labels
=============================

``fit_pairs`` learns from pairs of a winner and a loser, such as comparisons, votes or games.
"""

import matplotlib.pyplot as plt
import numpy as np

from linrank import RankSVM

rng = np.random.default_rng(0)
wines = rng.normal(size=(300, 4))  # sweetness, acidity, tannin, body
taste = wines @ [0.2, 0.9, -0.5, 0.6]


def tasting(n):
    """Pairs (winner, loser) of wines; tasters agree with the taste most of the time."""
    pairs = rng.integers(0, 300, size=(n, 2))
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    wins = rng.random(len(pairs)) < 1 / (1 + np.exp(-np.subtract(*taste[pairs].T)))
    return np.where(wins[:, None], pairs, pairs[:, ::-1])


sizes, right = [20, 50, 100, 300, 1000, 3000], []
better, worse = np.nonzero(taste[:, None] > taste)
for n in sizes:
    scores = RankSVM().fit_pairs(wines, tasting(n)).predict(wines)
    right.append(np.mean(scores[better] > scores[worse]))
    print(f"{n:5} tastings: {right[-1]:.3f} of all pairs in order")

plt.semilogx(sizes, right, "o-")
plt.xlabel("tastings")
plt.ylabel("pairs in order")
