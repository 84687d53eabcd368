"""
Tuning several parameters with Optuna
=====================================

For ``C`` alone ``RankSVMCV`` is cheaper. Optuna pays off for several parameters at once.
"""

import matplotlib.pyplot as plt
import numpy as np
import optuna

from linrank import QueryKFold, RankSVM, evaluate, make_ranking

optuna.logging.set_verbosity(optuna.logging.WARNING)
data = make_ranking(n_queries=120, rows_per_query=10, n_features=30, noise=1.5, random_state=3)
folds = list(QueryKFold(3).split(data.X, data.y, data.qid))


def objective(trial):
    ranker = RankSVM(
        C=trial.suggest_float("C", 1e-6, 1.0, log=True),
        pair_weighting=trial.suggest_categorical("pair_weighting", ["uniform", "ndcg@20"]),
        query_normalization=trial.suggest_categorical("query_normalization", [None, "pairs"]),
    )
    values = []
    for train, test in folds:
        ranker.fit(data.X[train], data.y[train], qid=data.qid[train])
        scores = ranker.predict(data.X[test])
        values.append(evaluate(data.y[test], scores, qid=data.qid[test])["ndcg@10"])
    return np.mean(values)


study = optuna.create_study(direction="maximize", sampler=optuna.samplers.TPESampler(seed=0))
study.optimize(objective, n_trials=20)
print(f"NDCG@10 {study.best_value:.3f} over the folds with {study.best_params}")

for weighting, mark in (("uniform", "o"), ("ndcg@20", "s")):
    trials = [t for t in study.trials if t.params["pair_weighting"] == weighting]
    plt.semilogx([t.params["C"] for t in trials], [t.value for t in trials], mark, label=weighting)
plt.xlabel("C")
plt.ylabel("NDCG@10 over the folds")
plt.legend(title="pair_weighting")
