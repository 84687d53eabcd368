"""The grids of scikit-learn's regressors, which take labels for numbers and see no queries."""

from __future__ import annotations

import pickle
import time
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linrank import _core
from linrank.data.dataset import Dataset
from linrank.data.queries import Queries
from linrank.data.scaling import Scaling
from linrank.judging.contest.methods import Candidate, Size, Task, Value
from linrank.judging.contest.own import linear_candidate

Array = NDArray[Any]

_ROUNDS = 300


def svr_l1(task: Task) -> Iterator[Candidate]:
    """Absolute errors beyond ε; liblinear's dual, the only one it has for them."""
    return _svr(task, "epsilon_insensitive", 10.0 ** np.arange(-6, 1), dual=True)


def svr_l2(task: Task) -> Iterator[Candidate]:
    """Squared errors beyond ε, by Newton's method on the primal."""
    return _svr(task, "squared_epsilon_insensitive", 10.0 ** np.arange(-7, 3), dual=False)


def _svr(task: Task, loss: str, Cs: Array, *, dual: bool) -> Iterator[Candidate]:
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.svm import LinearSVR

    X, factors = _scaled(task)
    for C, epsilon in product(Cs.tolist(), (0.0, 0.1)):
        svr = LinearSVR(
            C=C, epsilon=epsilon, loss=loss, dual=dual, max_iter=1000, random_state=task.seed
        )
        start = time.process_time()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # a candidate like any other
            svr.fit(X, task.train.labels)
        seconds = time.process_time() - start
        # Shift and intercept are the same for all rows and change no order.
        yield linear_candidate(factors * svr.coef_, {"C": C, "epsilon": epsilon}, seconds)


def _scaled(task: Task) -> tuple[Any, Array]:
    """Rows scaled as the task says, and the factors; dense ones are centred too.

    A regression has an intercept, which liblinear penalises: centring makes it small.
    """
    from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, StandardScaler

    X = task.train.X.astype(np.float64)
    is_dense = isinstance(X, np.ndarray)
    if task.scale == "none":
        return X, np.ones(task.train.n_features)
    if task.scale == "standard":
        scaler = StandardScaler(with_mean=is_dense).fit(X)
        return scaler.transform(X), 1.0 / scaler.scale_
    if is_dense:
        scaler = MinMaxScaler().fit(X)
        return scaler.transform(X), scaler.scale_
    scaler = MaxAbsScaler().fit(X)
    return scaler.transform(X), 1.0 / scaler.scale_


def forest(task: Task) -> Iterator[Candidate]:
    """Trees on samples of the rows, averaged; on the features as they are."""
    from sklearn.ensemble import RandomForestRegressor

    shares: dict[str, Any] = {"sqrt": "sqrt", "third": 1 / 3}
    for leaf, share in product((20, 5), shares):
        model = RandomForestRegressor(
            300,
            min_samples_leaf=leaf,
            max_features=shares[share],
            random_state=task.seed,
            n_jobs=1,
        )
        start = time.process_time()
        model.fit(task.train.X, task.train.labels)
        seconds = time.process_time() - start
        n_leaves = sum(tree.get_n_leaves() for tree in model.estimators_)
        yield _fitted(
            model, {"min_samples_leaf": leaf, "max_features": share}, seconds, int(n_leaves)
        )


def _fitted(
    model: Any, parameters: Mapping[str, Value], seconds: float, n_leaves: int
) -> Candidate:
    def predict(data: Dataset) -> Array:
        scores: Array = model.predict(data.X)
        return scores

    def size() -> Size:
        return Size(len(pickle.dumps(model)), n_leaves, "leaves")

    return Candidate(parameters, predict, size, seconds)


def gbdt(task: Task) -> Iterator[Candidate]:
    """Boosted trees; the round that is best on validation ends them."""
    from sklearn.base import clone
    from sklearn.ensemble import HistGradientBoostingRegressor

    X, valid = _dense(task.train), _dense(task.valid)
    for n_leaves, rate in product((7, 15, 31), (0.05, 0.1)):
        model = HistGradientBoostingRegressor(
            learning_rate=rate,
            max_leaf_nodes=n_leaves,
            max_iter=_ROUNDS,
            early_stopping=False,
            random_state=task.seed,
        )
        fresh = clone(model)
        start = time.process_time()
        model.fit(X, task.train.labels)
        values = [task.judge(scores) for scores in model.staged_predict(valid)]
        seconds = time.process_time() - start
        n_rounds = int(np.argmax(values)) + 1
        parameters = {"max_leaf_nodes": n_leaves, "learning_rate": rate, "rounds": n_rounds}

        def fit(fresh: Any = fresh, n_rounds: int = n_rounds) -> object:
            return fresh.set_params(max_iter=n_rounds).fit(X, task.train.labels)

        yield replace(_cut(model, parameters, seconds, n_rounds), fit=fit)


def _cut(model: Any, parameters: Mapping[str, Value], seconds: float, n_rounds: int) -> Candidate:
    """The model of the first rounds."""
    del model._predictors[n_rounds:]  # what follows would be scored too
    n_leaves = sum(int(tree[0].get_n_leaf_nodes()) for tree in model._predictors)

    def predict(data: Dataset) -> Array:
        scores: Array = model.predict(_dense(data))
        return scores

    def size() -> Size:
        return Size(len(pickle.dumps(model)), n_leaves, "leaves")

    return Candidate(parameters, predict, size, seconds)


def _dense(data: Dataset) -> Array:
    """The rows as an array; scikit-learn's histograms take no sparse ones."""
    X = data.X
    if isinstance(X, np.ndarray):
        return X
    from linrank.system.resources import check_fits

    check_fits(
        data.n_rows * data.n_features * 8,
        f"{data.n_rows} sparse rows made dense, as gbdt needs them,",
        "leave it out",
    )
    dense: Array = X.toarray()
    return dense


_MOST = 20  # features that are tried on validation


def best_feature(task: Task) -> Iterator[Candidate]:
    """Single features, ascending or descending as they order the training pairs.

    The sum over the pairs (i above j) of ``x_i - x_j``, in deviations of the feature, says which
    way a feature goes and how well; validation chooses among the best of them.
    """
    data = task.train
    pull = _core.gradient(data.rows.core, pair_balance(data.queries), data.queries.order, 1)
    strength = np.abs(Scaling.fit("standard", data.rows, n_jobs=1).fold(pull))
    for feature in np.argsort(-strength, kind="stable")[:_MOST].tolist():
        if strength[feature] == 0.0:
            return
        coef = np.zeros(data.n_features)
        coef[feature] = np.sign(pull[feature])
        number = feature + (0 if data.index_base == 0 else 1)
        way = "descending" if coef[feature] > 0 else "ascending"
        yield linear_candidate(coef, {"feature": number, "order": way}, seconds=0.0)


def pair_balance(queries: Queries) -> Array:
    """Of each row, rows of its query below it less rows above it, by position.

    ``Σ_i balance_i x_i`` is the sum of ``x_i - x_j`` over all pairs (i above j).
    """
    balance = np.empty(queries.n_rows)
    for begin, end in zip(queries.offsets[:-1], queries.offsets[1:], strict=True):
        counts = np.bincount(queries.levels[begin:end])
        below = np.cumsum(counts) - counts
        above = counts.sum() - counts - below
        balance[begin:end] = (below - above)[queries.levels[begin:end]]
    return balance


def random_order(task: Task) -> Iterator[Candidate]:
    """Scores drawn at random: what a measure is worth by chance."""

    def predict(data: Dataset) -> Array:
        return np.random.default_rng(task.seed).random(data.n_rows)

    yield Candidate({}, predict, lambda: Size(0, 0, "weights"), 0.0)
