"""
linrank in a PyTerrier pipeline
===============================

A linrank estimator is the learned model of a pipeline. The features are generated instead of
retrieved, so that no index is needed.
"""

import matplotlib.pyplot as plt
import pandas as pd
import pyterrier as pt

from linrank import RankSVM, evaluate, make_ranking

data = make_ranking(n_queries=80, n_features=6, n_levels=3, noise=0.5, random_state=0)
results = pd.DataFrame({"qid": [f"q{q}" for q in data.qid], "query": "words"})
results["docno"] = [f"d{i}" for i in range(len(results))]
results["score"], results["rank"] = data.X[:, 0], 0
results["features"] = list(data.X)
qrels = results[["qid", "docno"]].assign(label=data.y.astype(int))
train, test = results[data.qid < 60], results[data.qid >= 60]

learned = pt.ltr.apply_learned_model(RankSVM(), form="ltr")
learned.fit(train, qrels, test, qrels)
before = test.merge(qrels)
after = learned.transform(test).merge(qrels)
values = [
    evaluate(found["label"], found["score"], qid=found["qid"], metrics="ndcg@10")["ndcg@10"]
    for found in (before, after)
]
print("NDCG@10: first stage {:.3f}, re-ranked {:.3f}".format(*values))
plt.bar(["first stage", "re-ranked by RankSVM"], values)
plt.ylabel("NDCG@10 on other queries")
