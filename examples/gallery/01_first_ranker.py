"""
A first ranker
==============

Train on judged queries, measure on others, and look at the weights.
"""

import numpy as np
import pandas as pd

import linrank

rng = np.random.default_rng(0)
shop = pd.DataFrame(
    {
        "bm25_title": rng.gamma(2.0, 2.0, 3000),
        "bm25_body": rng.gamma(4.0, 2.0, 3000),
        "clicks": rng.poisson(3.0, 3000),
        "age_days": rng.gamma(1.5, 30.0, 3000),
        "rating": rng.uniform(1.0, 5.0, 3000),
    }
)
utility = shop @ [0.4, 0.2, 0.3, -0.01, 0.5] + rng.normal(0.0, 0.7, 3000)
grade = np.digitize(utility, np.quantile(utility, [0.5, 0.8, 0.95]))
query = np.repeat([f"query {k}" for k in range(200)], 15)

X, X_test, y, y_test, qid, qid_test = linrank.train_test_split(
    shop, grade, qid=query, random_state=0
)
ranker = linrank.RankSVM().fit(X, y, qid=qid)

metrics = ["ndcg@10", "map"]
print(linrank.evaluate(y_test, ranker.predict(X_test), qid=qid_test, metrics=metrics).means)
print(linrank.evaluate(y_test, X_test["bm25_body"], qid=qid_test, metrics=metrics).means, "BM25")
print(
    f"{ranker.n_pairs_:,} pairs; the objective is within {ranker.duality_gap_:.1e} of its minimum"
)

linrank.WeightsDisplay.from_estimator(ranker, spread=X.std()).plot()
