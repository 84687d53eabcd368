"""
Choosing a model automatically
==============================

``AutoRanker`` tries a linear ranker, pairs weighted by NDCG, curves and interactions on folds of
your queries, and keeps what ranks unseen queries best, within your time limit.
"""

import matplotlib.pyplot as plt
import numpy as np

from linrank import AutoRanker, RankSVM, evaluate

rng = np.random.default_rng(0)
X = rng.gamma(2.0, 1.0, size=(450, 4))
worth = np.log(X[:, 0]) - np.abs(X[:, 1] - 2) + 0.3 * X[:, 2] + 0.4 * rng.normal(size=450)
y, qid = np.digitize(worth, np.quantile(worth, [0.5, 0.8, 0.95])), np.arange(450) // 15
train, test = qid < 18, qid >= 18

auto = AutoRanker(metric="ndcg@10", cv=3, time_limit=2, random_state=0)
auto.fit(X[train], y[train], qid=qid[train])
print(auto.summary())

linear = RankSVM().fit(X[train], y[train], qid=qid[train])
values = [
    evaluate(y[test], model.predict(X[test]), qid=qid[test], metrics="ndcg@10").per_query["ndcg@10"]
    for model in (linear, auto)
]
print("NDCG@10 on other queries: linear {:.3f}, AutoRanker {:.3f}".format(*map(np.mean, values)))
plt.plot(*values, "o")
plt.axline((0.6, 0.6), slope=1, color="k", linestyle=":")
plt.xlabel("NDCG@10 of a query, linear")
plt.ylabel("NDCG@10 of a query, AutoRanker")
