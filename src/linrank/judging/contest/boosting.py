"""The grids of the libraries of gradient boosting that learn to rank.

Trees are blind to the scale of a feature and get the features as they are. Each library stops by
the measure of the contest on the validation part, not by a measure of its own: all methods are
chosen by the same number.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linrank.data.dataset import Dataset
from linrank.judging.contest.methods import Candidate, Size, Task

Array = NDArray[Any]

_ROUNDS, _PATIENCE, _FEWER_ROUNDS = 500, 50, 300
_RATES = (0.05, 0.1)
_HIGHEST = 31  # XGBoost's gains 2^y - 1 end there


def lightgbm_lambdarank(task: Task) -> Iterator[Candidate]:
    """LightGBM's lambdarank."""
    import lightgbm

    sizes = [np.diff(data.queries.offsets) for data in (task.train, task.valid)]
    quiet = {"verbose": -1}
    labels = _grades(task.train), _grades(task.valid)
    train = lightgbm.Dataset(_matrix(task.train), labels[0], group=sizes[0], params=quiet)
    valid = lightgbm.Dataset(_matrix(task.valid), labels[1], group=sizes[1], reference=train)
    gains = _gains(int(max(map(np.max, labels))))
    for n_leaves, rate in product((7, 15, 31), _RATES):
        parameters = {
            "objective": "lambdarank",
            "metric": "None",
            "label_gain": gains,
            "num_leaves": n_leaves,
            "learning_rate": rate,
            "num_threads": 1,
            "deterministic": True,
            "seed": task.seed,
            **quiet,
        }
        start = time.process_time()
        booster = lightgbm.train(
            parameters,
            train,
            _ROUNDS,
            valid_sets=[valid],
            feval=lambda scores, _: ("scoring", task.judge(scores), True),
            callbacks=[lightgbm.early_stopping(_PATIENCE, verbose=False)],
        )
        seconds = time.process_time() - start

        def fit(parameters: Any = parameters, n_rounds: int = booster.best_iteration) -> object:
            return lightgbm.train(parameters, train, n_rounds)

        yield replace(_lightgbm_candidate(booster, n_leaves, rate, seconds), fit=fit)


def _gains(highest: int) -> list[float]:
    """The gain of each grade: 2^y - 1, or y beyond 31 as for XGBoost, where 2^y is too much."""
    grades = range(highest + 1)
    return [2.0**grade - 1.0 if highest <= _HIGHEST else float(grade) for grade in grades]


def _lightgbm_candidate(booster: Any, n_leaves: int, rate: float, seconds: float) -> Candidate:
    n_rounds = booster.best_iteration

    def predict(data: Dataset) -> Array:
        scores: Array = booster.predict(_matrix(data), num_iteration=n_rounds, num_threads=1)
        return scores

    def size() -> Size:
        text = booster.model_to_string(num_iteration=n_rounds)
        leaves = [line for line in text.splitlines() if line.startswith("num_leaves=")]
        total = sum(int(line.partition("=")[2]) for line in leaves)
        return Size(len(text.encode()), total, "leaves")

    parameters = {"num_leaves": n_leaves, "learning_rate": rate, "rounds": n_rounds}
    return Candidate(parameters, predict, size, seconds)


def xgboost_pairwise(task: Task) -> Iterator[Candidate]:
    """XGBoost's LambdaMART on pairs that all weigh the same."""
    return _xgboost(task, "rank:pairwise")


def xgboost_ndcg(task: Task) -> Iterator[Candidate]:
    """XGBoost's LambdaMART on pairs that weigh what they change in NDCG."""
    return _xgboost(task, "rank:ndcg")


def _xgboost(task: Task, objective: str) -> Iterator[Candidate]:
    import xgboost

    # Pairs have an order whatever the labels are; gains need grades.
    labels = [
        data.labels if objective == "rank:pairwise" else _grades(data)
        for data in (task.train, task.valid)
    ]
    train, valid = map(_xgboost_data, (task.train, task.valid), labels)
    for depth, rate in product((3, 4, 6), _RATES):
        parameters = {
            "objective": objective,
            "max_depth": depth,
            "eta": rate,
            "nthread": 1,
            "seed": task.seed,
            "tree_method": "hist",
            "disable_default_eval_metric": 1,
            "verbosity": 0,
        }
        if float(max(task.train.labels.max(), task.valid.labels.max())) > _HIGHEST:
            parameters["ndcg_exp_gain"] = False
        stop = xgboost.callback.EarlyStopping(rounds=_PATIENCE, maximize=True, save_best=True)
        start = time.process_time()
        booster = xgboost.train(
            parameters,
            train,
            _ROUNDS,
            evals=[(valid, "valid")],
            custom_metric=lambda scores, _: ("scoring", task.judge(scores)),
            callbacks=[stop],
            verbose_eval=False,
        )
        seconds = time.process_time() - start

        def fit(
            parameters: Any = parameters, n_rounds: int = booster.num_boosted_rounds()
        ) -> object:
            return xgboost.train(parameters, train, n_rounds)

        yield replace(_xgboost_candidate(booster, depth, rate, seconds), fit=fit)


def _xgboost_data(data: Dataset, labels: Array) -> Any:
    import xgboost

    matrix = xgboost.DMatrix(_matrix(data), labels, nthread=1)
    matrix.set_group(np.diff(data.queries.offsets))
    return matrix


def _xgboost_candidate(booster: Any, depth: int, rate: float, seconds: float) -> Candidate:
    import xgboost

    def predict(data: Dataset) -> Array:
        return np.asarray(booster.predict(xgboost.DMatrix(_matrix(data), nthread=1)))

    def size() -> Size:
        trees = booster.get_dump()
        n_leaves = sum(tree.count("leaf=") for tree in trees)
        return Size(len(booster.save_raw("ubj")), n_leaves, "leaves")

    n_rounds = booster.num_boosted_rounds()  # the last is the best: others are not kept
    return Candidate({"max_depth": depth, "eta": rate, "rounds": n_rounds}, predict, size, seconds)


def catboost_yetirank(task: Task) -> Iterator[Candidate]:
    """CatBoost's YetiRank; the round that is best on validation ends it."""
    import catboost

    queries = task.train.queries
    group = np.repeat(np.arange(queries.n_queries), np.diff(queries.offsets))
    train = catboost.Pool(_matrix(task.train), task.train.labels, group_id=group)
    valid = _matrix(task.valid)
    for depth, rate in product((4, 6), _RATES):
        parameters = {
            "loss_function": "YetiRank",
            "learning_rate": rate,
            "depth": depth,
            "thread_count": 1,
            "random_seed": task.seed,
            "verbose": False,
            "allow_writing_files": False,
        }
        model = catboost.CatBoost({**parameters, "iterations": _FEWER_ROUNDS})
        start = time.process_time()
        model.fit(train)
        values = [task.judge(scores) for scores in model.staged_predict(valid, thread_count=1)]
        seconds = time.process_time() - start
        n_rounds = int(np.argmax(values)) + 1
        model.shrink(n_rounds)

        def fit(parameters: Any = parameters, n_rounds: int = n_rounds) -> object:
            return catboost.CatBoost({**parameters, "iterations": n_rounds}).fit(train)

        yield replace(_catboost_candidate(model, depth, rate, seconds), fit=fit)


def _catboost_candidate(model: Any, depth: int, rate: float, seconds: float) -> Candidate:
    def predict(data: Dataset) -> Array:
        return np.asarray(model.predict(_matrix(data), thread_count=1))

    def size() -> Size:
        with TemporaryDirectory() as folder:
            path = os.path.join(folder, "model.cbm")
            model.save_model(path)
            n_bytes = os.path.getsize(path)
        return Size(n_bytes, int(np.sum(model.get_tree_leaf_counts())), "leaves")

    parameters = {"depth": depth, "learning_rate": rate, "rounds": int(model.tree_count_)}
    return Candidate(parameters, predict, size, seconds)


def _matrix(data: Dataset) -> Any:
    """The rows as the libraries take them: an array, or scipy's older sparse class."""
    X = data.X
    if isinstance(X, np.ndarray):
        return X
    from scipy.sparse import csr_matrix

    # A copy: the arrays are maps of files that cannot be written, which CatBoost does not take.
    return csr_matrix(X, copy=True)


def _grades(data: Dataset) -> Array:
    """The labels, if they are grades as lambdarank needs them."""
    labels = data.labels
    if labels.min() < 0 or (labels != np.floor(labels)).any():
        bad = labels[(labels < 0) | (labels != np.floor(labels))][0]
        raise ValueError(
            f"needs grades 0, 1, 2, ... for labels, and {bad:g} occurs; shift or round the labels, "
            "or leave the method out"
        )
    return labels
