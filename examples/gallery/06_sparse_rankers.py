"""
Sparse rankers
==============

The l1 penalty of the domination loss keeps few features. ``selection="one_se"`` chooses the
smallest model within one standard error of the best one on unseen queries.
"""

import matplotlib.pyplot as plt

from linrank import DominationRankerCV, evaluate, make_ranking, train_test_split

data = make_ranking(n_queries=160, n_features=30, noise=1.0, random_state=0)
train, test = train_test_split(data, random_state=0)

for selection in ("best", "one_se"):
    ranker = DominationRankerCV(n_alphas=30, cv=3, selection=selection).fit(train)
    found = evaluate(test.y, ranker.predict(test), qid=test.qid, metrics="ndcg@10")
    print(f"{selection:7} {ranker.n_nonzero_:2} features, NDCG@10 {found['ndcg@10']:.3f}")

plt.plot(ranker.path_.n_nonzero, ranker.mean_scores_, "o-")
plt.axvline(ranker.n_nonzero_, color="k", linestyle=":", label="chosen")
plt.xlabel("features in the model")
plt.ylabel("mean score over the folds")
plt.legend()
