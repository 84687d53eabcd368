"""The rivals: scikit-learn's regressors, libraries of gradient boosting, and plain baselines.

Among the candidates of each are its plain defaults, what a library gives without settings, and a
regularised setting for few data. Trees are blind to the scale of a feature and get the features as
they are. Rounds that are best on validation are so by the measure of the contest, not by one of
the library's own: all methods are chosen by the same number.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from functools import partial
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linrank import _core
from linrank.data.dataset import Dataset
from linrank.data.queries import Queries
from linrank.data.scaling import Scaling
from linrank.judging.contest.methods import BEST, Contestant, Model, Size, Trial
from linrank.models.linear import LinearModel

Array = NDArray[Any]

_ROUNDS = 500
_HIGHEST = 30  # LightGBM's gains 2^y - 1 end there, XGBoost's one later


# ---- regressors, which take labels for numbers and see no queries -------------------------------


def svr(trial: Trial, loss: str, C: float, epsilon: float) -> LinearModel:
    """Errors beyond ε: squared, or absolute, for which liblinear has the dual only."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.svm import LinearSVR

    X, scaling = trial.once(_scaled)
    is_dual = loss == "epsilon_insensitive"
    model = LinearSVR(
        C=C, epsilon=epsilon, loss=loss, dual=is_dual, max_iter=1000, random_state=trial.seed
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # a candidate like any other
        model.fit(X, trial.train.labels)
    return LinearModel(scaling.fold(model.coef_))  # an intercept changes no order


def _scaled(trial: Trial) -> tuple[Any, Scaling]:
    """The rows, scaled, and how.

    A regression has an intercept, which liblinear penalises: centring dense rows makes it small.
    """
    scaling = Scaling.fit(trial.scale, trial.train.rows, n_jobs=1)
    X = scaling.applied(trial.train, n_jobs=1).X.astype(np.float64)
    return X - X.mean(axis=0) if isinstance(X, np.ndarray) else X, scaling


def forest(trial: Trial, **given: Any) -> Model:
    """Trees on samples of the rows, averaged; on the features as they are."""
    from sklearn.ensemble import RandomForestRegressor

    model = RandomForestRegressor(random_state=trial.seed, n_jobs=1, **given)
    model.fit(trial.train.X, trial.train.labels)
    return Model.of(
        model, n_leaves=lambda: int(sum(tree.get_n_leaves() for tree in model.estimators_))
    )


# ---- gradient boosting, on the labels or on pairs -----------------------------------------------


def _boosted(
    trial: Trial,
    given: dict[str, Any],
    train: Callable[..., Any],
    predict: Callable[[Any, Dataset], Array],
    stages: Callable[[Any, Dataset], Iterable[Array]],
    n_leaves: Callable[[Any], int],
) -> Model:
    """The booster that ``train`` makes with the parameters given.

    If these leave the rounds to validation, with those whose scores, the sums that ``stages``
    yields, are the best there.
    """
    found = {}
    if given.get("n_estimators") == BEST:
        assert trial.valid is not None
        longest = train(**{**given, "n_estimators": _ROUNDS})
        judged = [trial.judge(scores) for scores in stages(longest, trial.valid)]
        found = {"n_estimators": int(np.argmax(judged)) + 1}
    model = train(**{**given, **found})
    return Model.of(model, partial(predict, model), partial(n_leaves, model), found=found)


def gbdt(trial: Trial, **given: Any) -> Model:
    """Boosted trees on the labels."""
    from sklearn.ensemble import HistGradientBoostingRegressor

    def train(n_estimators: int | None = None, **more: Any) -> Any:
        if n_estimators is not None:
            more |= {"max_iter": n_estimators, "early_stopping": False}
        model = HistGradientBoostingRegressor(random_state=trial.seed, **more)
        return model.fit(trial.once(_dense_train), trial.train.labels)

    return _boosted(
        trial,
        given,
        train,
        lambda model, data: np.asarray(model.predict(dense(data))),
        lambda model, data: model.staged_predict(dense(data)),
        lambda model: sum(int(tree[0].get_n_leaf_nodes()) for tree in model._predictors),
    )


def _dense_train(trial: Trial) -> Array:
    return dense(trial.train)


def dense(data: Dataset) -> Array:
    """The rows as an array; scikit-learn's histograms take no sparse ones."""
    X = data.X
    if isinstance(X, np.ndarray):
        return X
    from linrank.system.resources import check_fits

    check_fits(
        data.n_rows * data.n_features * 8,
        f"{data.n_rows} sparse rows made dense, as some methods need them,",
        "leave it out",
    )
    rows: Array = X.toarray()
    return rows


def lightgbm(trial: Trial, **given: Any) -> Model:
    """LightGBM's lambdarank."""
    import lightgbm

    X, labels = _matrix(trial.train), _grades(trial.train)
    fixed: dict[str, Any] = {
        "n_jobs": 1,
        "deterministic": True,
        "random_state": trial.seed,
        "verbose": -1,
    }
    if labels.max() > _HIGHEST:
        fixed["label_gain"] = np.arange(labels.max() + 1.0).tolist()

    def train(**more: Any) -> Any:
        ranker = lightgbm.LGBMRanker(**fixed, **more)
        return ranker.fit(X, labels, group=_sizes(trial.train)).booster_

    def predict(model: Any, data: Dataset, **rounds: int) -> Array:
        return np.asarray(model.predict(_matrix(data), num_threads=1, **rounds))

    return _boosted(
        trial,
        given,
        train,
        predict,
        lambda model, data: accumulate(
            predict(model, data, start_iteration=k, num_iteration=1) for k in range(_ROUNDS)
        ),
        lambda model: sum(tree["num_leaves"] for tree in model.dump_model()["tree_info"]),
    )


def xgboost(trial: Trial, objective: str, **given: Any) -> Model:
    """XGBoost's LambdaMART: pairs weigh the same, or what they change in NDCG."""
    import xgboost

    data = trial.train
    # Pairs have an order whatever the labels are; gains need grades.
    labels = data.labels if objective == "rank:pairwise" else _grades(data)
    fixed: dict[str, Any] = {
        "objective": objective,
        "n_jobs": 1,
        "random_state": trial.seed,
        "verbosity": 0,
    }
    if labels.max() > _HIGHEST:
        fixed["ndcg_exp_gain"] = False

    def train(**more: Any) -> Any:
        ranker = xgboost.XGBRanker(**fixed, **more)
        return ranker.fit(_matrix(data), labels, group=_sizes(data))

    def predict(model: Any, data: Dataset, **rounds: Any) -> Array:
        return np.asarray(model.predict(_matrix(data), **rounds))

    return _boosted(
        trial,
        given,
        train,
        predict,
        lambda model, data: accumulate(
            predict(model, data, iteration_range=(k, k + 1)) for k in range(_ROUNDS)
        ),
        lambda model: sum(tree.count("leaf=") for tree in model.get_booster().get_dump()),
    )


def catboost(trial: Trial, **given: Any) -> Model:
    """CatBoost's YetiRank."""
    import catboost

    group = np.repeat(np.arange(trial.train.queries.n_queries), _sizes(trial.train))
    fixed = {"thread_count": 1, "random_seed": trial.seed, "allow_writing_files": False}

    def train(**more: Any) -> Any:
        ranker = catboost.CatBoostRanker(verbose=False, **fixed, **more)
        return ranker.fit(_matrix(trial.train), trial.train.labels, group_id=group)

    return _boosted(
        trial,
        given,
        train,
        lambda model, data: np.asarray(model.predict(_matrix(data))),
        lambda model, data: model.staged_predict(_matrix(data), thread_count=1),
        lambda model: int(np.sum(model.get_tree_leaf_counts())),
    )


def _sizes(data: Dataset) -> Array:
    return np.diff(data.queries.offsets)


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
    is_bad = (labels < 0) | (labels != np.floor(labels))
    if is_bad.any():
        raise ValueError(
            f"needs grades 0, 1, 2, ... for labels, and {labels[is_bad][0]:g} occurs; shift or "
            "round the labels, or leave the method out"
        )
    return labels


# ---- baselines ----------------------------------------------------------------------------------

_MOST = 20  # features that are tried on validation


def best_feature(trial: Trial, feature: int, order: str | None = None) -> Model:
    """A single feature, ascending or descending as it orders the training pairs."""
    data = trial.train
    place = feature - (0 if data.index_base == 0 else 1)
    order = order or ("descending" if trial.once(_pulls)[place] > 0 else "ascending")
    coef = np.zeros(data.n_features)
    coef[place] = 1.0 if order == "descending" else -1.0
    return Model.of(LinearModel(coef), found={"order": order})


def strongest(trial: Trial) -> list[int]:
    """The features that order the training pairs best, in deviations of the feature."""
    data, pulls = trial.train, trial.once(_pulls)
    strength = np.abs(Scaling.fit("standard", data.rows, n_jobs=1).fold(pulls))
    best = np.argsort(-strength, kind="stable")[:_MOST]
    first = 0 if data.index_base == 0 else 1
    return [int(feature) + first for feature in best if strength[feature] > 0.0]


def _pulls(trial: Trial) -> Array:
    """Of each feature, the sum over the pairs (i above j) of ``x_i - x_j``."""
    queries = trial.train.queries
    pulls: Array = _core.gradient(trial.train.rows.core, pair_balance(queries), queries.order, 1)
    return pulls


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


def random_order(trial: Trial) -> Model:
    """Scores drawn at random: what a measure is worth by chance."""
    return Model(
        lambda data: np.random.default_rng(trial.seed).random(data.n_rows), lambda: Size(0)
    )


# ---- the table ----------------------------------------------------------------------------------


_HERE, _SKLEARN = __name__, "scikit-learn"
_ABSOLUTE, _SQUARED = "epsilon_insensitive", "squared_epsilon_insensitive"
_SHARES, _LEAVES, _DEPTHS = (0.0, 0.1), (7, 15, 31), (3, 4, 6)
_SLOWLY = {"learning_rate": (0.05,), "n_estimators": (100, 300, BEST)}
_STOPPED = f"{BEST}: of {_ROUNDS} rounds on a validation part, where there is one to choose by"
# For few data: many small steps, each by a small tree that sees half of the features and some of
# the rows, with many rows to a leaf where a library counts them.
_GENTLE: dict[str, Any] = {"n_estimators": 300, "learning_rate": 0.02}

RIVALS: tuple[Contestant, ...] = (
    Contestant(
        "svr-l1",
        _SKLEARN,
        "LinearSVR on the labels, absolute errors",
        f"{_HERE}:svr",
        {"C": tuple(10.0**k for k in range(-6, 1)), "epsilon": _SHARES},
        settings={"loss": _ABSOLUTE},
    ),
    Contestant(
        "svr-l2",
        _SKLEARN,
        "LinearSVR on the labels, squared errors",
        f"{_HERE}:svr",
        {"C": tuple(10.0**k for k in range(-7, 3)), "epsilon": _SHARES},
        settings={"loss": _SQUARED},
    ),
    Contestant(
        "forest",
        _SKLEARN,
        "RandomForestRegressor on the labels",
        f"{_HERE}:forest",
        {"n_estimators": (300,), "min_samples_leaf": (20, 5), "max_features": ("sqrt", 1 / 3)},
        also=[{}],
    ),
    Contestant(
        "gbdt",
        _SKLEARN,
        "HistGradientBoostingRegressor on the labels",
        f"{_HERE}:gbdt",
        {"max_leaf_nodes": _LEAVES, **_SLOWLY},
        note=_STOPPED,
        also=[{**_GENTLE, "max_leaf_nodes": 7, "min_samples_leaf": 100, "max_features": 0.5}, {}],
    ),
    Contestant(
        "lightgbm",
        "LightGBM",
        "gradient boosting, lambdarank",
        f"{_HERE}:lightgbm",
        {"num_leaves": _LEAVES, **_SLOWLY},
        "lightgbm",
        note=_STOPPED,
        also=[
            {
                **_GENTLE,
                "num_leaves": 7,
                "min_child_samples": 100,
                "colsample_bytree": 0.5,
                "subsample": 0.7,
                "subsample_freq": 1,
            },
            {},
        ],
    ),
    *(
        Contestant(
            f"xgboost-{objective}",
            "XGBoost",
            f"gradient boosting, rank:{objective}",
            f"{_HERE}:xgboost",
            {"max_depth": _DEPTHS, **_SLOWLY},
            "xgboost",
            {"objective": f"rank:{objective}"},
            _STOPPED,
            also=[
                {
                    **_GENTLE,
                    "max_depth": 3,
                    "colsample_bytree": 0.5,
                    "subsample": 0.7,
                },
                {},
            ],
        )
        for objective in ("pairwise", "ndcg")
    ),
    Contestant(
        "catboost",
        "CatBoost",
        "gradient boosting, YetiRank",
        f"{_HERE}:catboost",
        {"depth": (4, 6), **_SLOWLY},
        "catboost",
        note=_STOPPED,
        also=[
            {
                **_GENTLE,
                "depth": 3,
                "rsm": 0.5,
                "bootstrap_type": "Bernoulli",
                "subsample": 0.7,
            },
            {},
        ],
    ),
    Contestant(
        "best-feature",
        "baseline",
        "the best single feature, up or down",
        f"{_HERE}:best_feature",
        {"feature": f"{_HERE}:strongest"},
        note=f"the {_MOST} that order the training pairs best",
    ),
    Contestant("random", "baseline", "a random order", f"{_HERE}:random_order"),
)
