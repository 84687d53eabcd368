"""
AUC maximization on 200,000 rows
================================

With one query and labels 0 and 1, the share of correctly ordered pairs is the area under the ROC
curve. linrank trains on all pairs without listing them.
"""

from time import perf_counter

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import RocCurveDisplay, roc_auc_score

from linrank import RankSVM

rng = np.random.default_rng(0)
X = rng.standard_normal((220_000, 8)).astype(np.float32)
y = (X @ rng.normal(size=8) + 2.0 * rng.standard_normal(220_000) > 7.0).astype(float)
train, test = slice(0, 200_000), slice(200_000, None)

start = perf_counter()
ranker = RankSVM().fit(X[train], y[train], qid=np.zeros(200_000, dtype=int))
print(f"{ranker.n_pairs_:,} pairs in {perf_counter() - start:.2f} s, {y.mean():.1%} positive")

plain = LogisticRegression().fit(X[train], y[train])
for name, scores in (("RankSVM", ranker.predict(X[test])), ("logistic", X[test] @ plain.coef_[0])):
    print(f"{name:9} AUC {roc_auc_score(y[test], scores):.4f}")

RocCurveDisplay.from_predictions(y[test], ranker.predict(X[test]), name="RankSVM")
plt.plot([0, 1], [0, 1], "k:")
