"""
Regularization paths over C
===========================

``ranksvm_path`` trains a whole grid of ``C``, starting each model from the previous one.
``RankSVMCV`` does so in every fold and chooses the ``C`` that ranks unseen queries best.
"""

import matplotlib.pyplot as plt

import linrank

data = linrank.make_ranking(n_queries=120, n_features=10, noise=0.5, random_state=0)
path = linrank.ranksvm_path(data.X, data.y, data.qid, scale="standard")
print(path.coefs.shape, "coefficients;", path.n_iter.sum(), "Newton steps for all of them")
print("largest gap / objective:", (path.gaps / path.objectives).max())

ranker = linrank.RankSVMCV(scoring="ndcg@10").fit(data)
print(f"chosen: C = {ranker.C_:.2g}, NDCG@10 {ranker.best_score_:.3f} over the folds")

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.5), layout="constrained")
left.semilogx(path.Cs, path.coefs)
left.set(xlabel="C", ylabel="coefficients (scaled features)")
right.semilogx(ranker.Cs_, ranker.mean_scores_)
right.axvline(ranker.C_, color="k", linestyle=":")
right.set(xlabel="C", ylabel="NDCG@10 over the folds")
