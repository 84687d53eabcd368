"""Tune RankSVM with Optuna over folds of whole queries, pruning bad trials.

    python examples/optuna_search/run.py [--trials N]

Needs Optuna: pip install optuna. For C alone, RankSVMCV is cheaper: one path per fold gives the
models of the whole grid. Optuna pays off for several parameters at once, as here.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np
import optuna

from linrank import Dataset, QueryKFold, RankSVM, evaluate, make_ranking

METRIC = "ndcg@10"


WEIGHTINGS = ["uniform", "grade_diff", "ndcg@20"]


def suggest(trial: optuna.Trial) -> dict[str, Any]:
    """A point of the search space: C, the scaling, and how pairs and queries are weighted."""
    return {
        "C": trial.suggest_float("C", 1e-7, 1e1, log=True),
        "scale": trial.suggest_categorical("scale", ["none", "standard", "minmax", "query"]),
        "pair_weighting": trial.suggest_categorical("pair_weighting", WEIGHTINGS),
        "query_normalization": trial.suggest_categorical("query_normalization", [None, "pairs"]),
    }


def judge(ranker: RankSVM, data: Dataset, train: Any, test: Any) -> float:
    """The metric on queries that the ranker has not seen."""
    X, y, qid = data.X, data.y, data.qid
    ranker.fit(X[train], y[train], qid=qid[train])
    scores = ranker.predict(X[test], qid=qid[test])
    return float(evaluate(y[test], scores, qid=qid[test], metrics=[METRIC])[METRIC])


def search(data: Dataset, n_trials: int, seed: int = 0) -> optuna.Study:
    """Maximize the mean over folds; a trial below the median after a fold is abandoned."""
    folds = list(QueryKFold(4, shuffle=True, random_state=seed).split(data.X, data.y, data.qid))

    def objective(trial: optuna.Trial) -> float:
        ranker = RankSVM(**suggest(trial))
        values: list[float] = []
        for k, (train, test) in enumerate(folds):
            values.append(judge(ranker, data, train, test))
            trial.report(float(np.mean(values)), step=k)
            if trial.should_prune():
                raise optuna.TrialPruned
        return float(np.mean(values))

    study = optuna.create_study(
        direction="maximize",
        sampler=optuna.samplers.TPESampler(seed=seed),
        pruner=optuna.pruners.MedianPruner(n_startup_trials=5),
    )
    defaults = RankSVM().fit(data.X, data.y, qid=data.qid).settings_
    study.enqueue_trial(defaults)  # so the result is never worse than the defaults over these folds
    study.optimize(objective, n_trials=n_trials)
    return study


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--trials", type=int, default=25)
    arguments = parser.parse_args()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    data = make_ranking(n_queries=320, rows_per_query=10, n_features=60, noise=1.5, random_state=3)
    queries = np.unique(data.qid)
    is_test = np.isin(data.qid, queries[::2])
    known, unseen = np.flatnonzero(~is_test), np.flatnonzero(is_test)
    study = search(data.select(known), arguments.trials)
    n_pruned = sum(t.state == optuna.trial.TrialState.PRUNED for t in study.trials)
    print(f"{len(study.trials)} trials, {n_pruned} of them cut short")
    print(f"{METRIC} over folds, default  {study.trials[0].value:.4f}")
    print(f"{METRIC} over folds, chosen   {study.best_value:.4f}", study.best_params)
    for name, ranker in (("default", RankSVM()), ("chosen", RankSVM(**study.best_params))):
        print(f"{METRIC} on other queries, {name:<7}  {judge(ranker, data, known, unseen):.4f}")


if __name__ == "__main__":
    main()
