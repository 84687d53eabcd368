"""The rivals: scikit-learn's regressors, libraries of gradient boosting, and plain baselines.

Trees are blind to the scale of a feature and get the features as they are. Each library stops by
the measure of the contest on the validation part, not by a measure of its own: all methods are
chosen by the same number.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linrank import _core
from linrank.data.dataset import Dataset
from linrank.data.queries import Queries
from linrank.data.scaling import Scaling
from linrank.judging.contest.methods import Contestant, Model, Size, Trial
from linrank.models.linear import LinearModel

Array = NDArray[Any]

_ROUNDS, _PATIENCE, _FEWER_ROUNDS = 500, 50, 300
_HIGHEST = 31  # XGBoost's gains 2^y - 1 end there


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


def forest(trial: Trial, min_samples_leaf: int, max_features: str) -> Model:
    """Trees on samples of the rows, averaged; on the features as they are."""
    from sklearn.ensemble import RandomForestRegressor

    model = RandomForestRegressor(
        300,
        min_samples_leaf=min_samples_leaf,
        max_features={"sqrt": "sqrt", "third": 1 / 3}[max_features],
        random_state=trial.seed,
        n_jobs=1,
    )
    model.fit(trial.train.X, trial.train.labels)
    return Model.of(
        model, n_leaves=lambda: int(sum(tree.get_n_leaves() for tree in model.estimators_))
    )


def gbdt(trial: Trial, max_leaf_nodes: int, learning_rate: float) -> Model:
    """Boosted trees; the round that is best on validation ends them."""
    from sklearn.ensemble import HistGradientBoostingRegressor

    X, labels = trial.once(_dense_train), trial.train.labels

    def fit(n_rounds: int) -> Any:
        return HistGradientBoostingRegressor(
            learning_rate=learning_rate,
            max_leaf_nodes=max_leaf_nodes,
            max_iter=n_rounds,
            early_stopping=False,
            random_state=trial.seed,
        ).fit(X, labels)

    model = fit(_FEWER_ROUNDS)
    n_rounds = _best_round(trial, model.staged_predict(_dense(trial.valid)))
    del model._predictors[n_rounds:]  # what follows would be scored too
    return Model.of(
        model,
        lambda data: np.asarray(model.predict(_dense(data))),
        lambda: sum(int(tree[0].get_n_leaf_nodes()) for tree in model._predictors),
        found={"rounds": n_rounds},
        again=lambda: fit(n_rounds),
    )


def _best_round(trial: Trial, stages: Any) -> int:
    return int(np.argmax([trial.judge(scores) for scores in stages])) + 1


def _dense_train(trial: Trial) -> Array:
    return _dense(trial.train)


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


# ---- gradient boosting that learns to rank ------------------------------------------------------


def lightgbm(trial: Trial, num_leaves: int, learning_rate: float) -> Model:
    """LightGBM's lambdarank."""
    import lightgbm

    train, valid, gains = trial.once(_lightgbm_data)
    parameters = {
        "objective": "lambdarank",
        "metric": "None",
        "label_gain": gains,
        "num_leaves": num_leaves,
        "learning_rate": learning_rate,
        "num_threads": 1,
        "deterministic": True,
        "seed": trial.seed,
        "verbose": -1,
    }
    booster = lightgbm.train(
        parameters,
        train,
        _ROUNDS,
        valid_sets=[valid],
        feval=lambda scores, _: ("scoring", trial.judge(scores), True),
        callbacks=[lightgbm.early_stopping(_PATIENCE, verbose=False)],
    )
    n_rounds = booster.best_iteration
    model = lightgbm.Booster(model_str=booster.model_to_string(num_iteration=n_rounds))
    return Model.of(
        model,
        lambda data: np.asarray(model.predict(_matrix(data), num_threads=1)),
        lambda: sum(tree["num_leaves"] for tree in model.dump_model()["tree_info"]),
        found={"rounds": n_rounds},
        again=lambda: lightgbm.train(parameters, train, n_rounds),
    )


def _lightgbm_data(trial: Trial) -> tuple[Any, Any, list[float]]:
    """Both parts, and the gain of each grade: 2^y - 1, or y beyond 31, where 2^y is too much."""
    import lightgbm

    both = (trial.train, trial.valid)
    labels = [_grades(data) for data in both]
    sizes = [np.diff(data.queries.offsets) for data in both]
    train, valid = (_matrix(data) for data in both)
    train = lightgbm.Dataset(train, labels[0], group=sizes[0], params={"verbose": -1})
    highest = int(max(map(np.max, labels)))
    gains = [2.0**y - 1.0 if highest <= _HIGHEST else float(y) for y in range(highest + 1)]
    return train, lightgbm.Dataset(valid, labels[1], group=sizes[1], reference=train), gains


def xgboost(trial: Trial, objective: str, max_depth: int, eta: float) -> Model:
    """XGBoost's LambdaMART: pairs weigh the same, or what they change in NDCG."""
    import xgboost

    train, valid = trial.once(_xgboost_data, objective)
    parameters = {
        "objective": objective,
        "max_depth": max_depth,
        "eta": eta,
        "nthread": 1,
        "seed": trial.seed,
        "tree_method": "hist",
        "disable_default_eval_metric": 1,
        "verbosity": 0,
    }
    if float(max(trial.train.labels.max(), trial.valid.labels.max())) > _HIGHEST:
        parameters["ndcg_exp_gain"] = False
    stop = xgboost.callback.EarlyStopping(rounds=_PATIENCE, maximize=True, save_best=True)
    booster = xgboost.train(
        parameters,
        train,
        _ROUNDS,
        evals=[(valid, "valid")],
        custom_metric=lambda scores, _: ("scoring", trial.judge(scores)),
        callbacks=[stop],
        verbose_eval=False,
    )
    n_rounds = booster.num_boosted_rounds()  # the last is the best: others are not kept
    return Model.of(
        booster,
        lambda data: np.asarray(booster.predict(xgboost.DMatrix(_matrix(data), nthread=1))),
        lambda: sum(tree.count("leaf=") for tree in booster.get_dump()),
        found={"rounds": n_rounds},
        again=lambda: xgboost.train(parameters, train, n_rounds),
    )


def _xgboost_data(trial: Trial, objective: str) -> list[Any]:
    import xgboost

    matrices = []
    for data in (trial.train, trial.valid):
        # Pairs have an order whatever the labels are; gains need grades.
        labels = data.labels if objective == "rank:pairwise" else _grades(data)
        matrices.append(xgboost.DMatrix(_matrix(data), labels, nthread=1))
        matrices[-1].set_group(np.diff(data.queries.offsets))
    return matrices


def catboost(trial: Trial, depth: int, learning_rate: float) -> Model:
    """CatBoost's YetiRank; the round that is best on validation ends it."""
    import catboost

    pool = trial.once(_catboost_data)

    def fit(n_rounds: int) -> Any:
        parameters = {
            "loss_function": "YetiRank",
            "learning_rate": learning_rate,
            "depth": depth,
            "iterations": n_rounds,
            "thread_count": 1,
            "random_seed": trial.seed,
            "verbose": False,
            "allow_writing_files": False,
        }
        return catboost.CatBoost(parameters).fit(pool)

    model = fit(_FEWER_ROUNDS)
    n_rounds = _best_round(trial, model.staged_predict(_matrix(trial.valid), thread_count=1))
    model.shrink(n_rounds)
    return Model.of(
        model,
        lambda data: np.asarray(model.predict(_matrix(data), thread_count=1)),
        lambda: int(np.sum(model.get_tree_leaf_counts())),
        found={"rounds": n_rounds},
        again=lambda: fit(n_rounds),
    )


def _catboost_data(trial: Trial) -> Any:
    import catboost

    queries = trial.train.queries
    group = np.repeat(np.arange(queries.n_queries), np.diff(queries.offsets))
    return catboost.Pool(_matrix(trial.train), trial.train.labels, group_id=group)


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


def best_feature(trial: Trial, feature: int) -> Model:
    """A single feature, ascending or descending as it orders the training pairs."""
    data = trial.train
    place = feature - (0 if data.index_base == 0 else 1)
    coef = np.zeros(data.n_features)
    coef[place] = np.sign(trial.once(_pulls)[place])
    order = "descending" if coef[place] > 0 else "ascending"
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
_SHARES, _RATES, _LEAVES, _DEPTHS = (0.0, 0.1), (0.05, 0.1), (7, 15, 31), (3, 4, 6)
_STOPPED = f"rounds up to {_ROUNDS}, stopped after {_PATIENCE} without gain on validation"
_BEST = f"up to {_FEWER_ROUNDS} rounds, the best on validation"

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
        "RandomForestRegressor on the labels, 300 trees",
        f"{_HERE}:forest",
        {"min_samples_leaf": (20, 5), "max_features": ("sqrt", "third")},
    ),
    Contestant(
        "gbdt",
        _SKLEARN,
        "HistGradientBoostingRegressor on the labels",
        f"{_HERE}:gbdt",
        {"max_leaf_nodes": _LEAVES, "learning_rate": _RATES},
        note=_BEST,
    ),
    Contestant(
        "lightgbm",
        "LightGBM",
        "gradient boosting, lambdarank",
        f"{_HERE}:lightgbm",
        {"num_leaves": _LEAVES, "learning_rate": _RATES},
        "lightgbm",
        note=_STOPPED,
    ),
    *(
        Contestant(
            f"xgboost-{objective}",
            "XGBoost",
            f"gradient boosting, rank:{objective}",
            f"{_HERE}:xgboost",
            {"max_depth": _DEPTHS, "eta": _RATES},
            "xgboost",
            {"objective": f"rank:{objective}"},
            _STOPPED,
        )
        for objective in ("pairwise", "ndcg")
    ),
    Contestant(
        "catboost",
        "CatBoost",
        "gradient boosting, YetiRank",
        f"{_HERE}:catboost",
        {"depth": (4, 6), "learning_rate": _RATES},
        "catboost",
        note=_BEST,
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
