"""
Comparing two rankers
=====================

A difference of two means may be chance. ``compare`` reports its confidence interval over the
queries and a significance test.
"""

import linrank

data = linrank.make_ranking(n_queries=240, n_features=15, noise=0.7, random_state=1)
train, test = linrank.train_test_split(data, random_state=0)
rankers = {
    "pairs alike": linrank.RankSVM(pair_weighting="uniform"),
    "pairs by NDCG": linrank.RankSVM(pair_weighting="ndcg@20"),
    "domination": linrank.DominationRanker(alpha=20),
}
scores = {name: ranker.fit(train).predict(test) for name, ranker in rankers.items()}
comparison = linrank.compare(test.y, scores, qid=test.qid, metrics="ndcg@10")
print(comparison)

first, second = (
    linrank.evaluate(test.y, scores[name], qid=test.qid, metrics="ndcg@10")
    for name in ("pairs alike", "domination")
)
linrank.QueryScatterDisplay.from_evaluations(
    first, second, "ndcg@10", names=("pairs alike", "domination")
).plot()
