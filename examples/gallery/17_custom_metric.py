"""
Custom metrics
==============

A function of the labels and scores of one query works wherever a metric name does: to evaluate, to
choose ``C``, to compare. Here a click earns the margin of a product, and lower positions get fewer
views.
"""

import matplotlib.pyplot as plt
import numpy as np

from linrank import RankSVMCV, evaluate, make_ranking, train_test_split

MARGIN = np.array([0.0, 0.1, 1.0, 4.0, 5.0])  # by grade


def revenue(y, scores):
    """What the first five rows earn, as a share of the best possible."""
    seen = 0.7 ** np.arange(5)
    earned = MARGIN[y.astype(int)]
    best = np.sort(earned)[::-1][:5] @ seen[: len(y)]
    return earned[np.argsort(-scores)][:5] @ seen[: len(y)] / best if best else np.nan


data = make_ranking(n_queries=200, n_features=12, noise=0.7, random_state=0)
train, test = train_test_split(data, random_state=0)
curves = {}
for metric in (revenue, "pairwise_accuracy"):
    ranker = RankSVMCV(scoring=metric, cv=3).fit(train)
    found = evaluate(test.y, ranker.predict(test), qid=test.qid, metrics=[revenue, "ndcg@10"])
    name = getattr(metric, "__name__", metric)
    print(f"C by {name:18} {ranker.C_:.1e}: revenue {found['revenue']:.4f} of the best")
    plt.semilogx(ranker.Cs_, ranker.mean_scores_ / ranker.mean_scores_.max(), label=name)
plt.xlabel("C")
plt.ylabel("mean over the folds, best = 1")
plt.legend()
