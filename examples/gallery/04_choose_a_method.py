"""
Choosing a method
=================

``compare_methods`` trains several methods on the same queries and shows which differences are
significant. ``linrank compare`` does the same for files, including LightGBM, XGBoost and others.
"""

import linrank

data = linrank.make_ranking(n_queries=90, n_features=12, noise=0.5, random_state=0)
train, test = linrank.train_test_split(data, test_size=0.5, random_state=0)

contest = linrank.compare_methods(
    train, test=test, methods=["ranksvm", "best-feature"], metrics="ndcg@10"
)
print(contest)
print(contest.comparison.verdict("best-feature", "ndcg@10"))

linrank.ComparisonDisplay.from_comparison(contest.comparison, "ndcg@10").plot()
