"""
Additive rankers with one curve per feature
===========================================

``curves`` learns a curve per feature instead of a weight, for effects that saturate or reverse. The
model is still a sum over features, and its optimum is certified.
"""

import numpy as np
import pandas as pd

from linrank import CurvesDisplay, RankSVM

rng = np.random.default_rng(0)
shop = pd.DataFrame(
    {
        "clicks": rng.gamma(1.0, 3.0, 4000),
        "price": rng.gamma(4.0, 5.0, 4000),
        "age": rng.gamma(2.0, 10.0, 4000),
    }
)
worth = 2 * np.log1p(shop["clicks"]) - np.abs(shop["price"] - 20) / 8 - 0.03 * shop["age"]
grade = np.digitize(worth + 0.4 * rng.normal(size=4000), worth.quantile([0.4, 0.7, 0.9]))
qid = np.arange(4000) // 20
train, test = qid < 150, qid >= 150

for curves in (None, "quantile", "spline"):
    ranker = RankSVM(curves=curves).fit(shop[train], grade[train], qid=qid[train])
    accuracy = ranker.score(shop[test], grade[test], qid=qid[test])
    print(f"curves={curves!s:9} {accuracy:.3f} of unseen pairs in order")

CurvesDisplay.from_estimator(ranker, n=3).plot()
