"""Who takes part in a contest: linrank's own methods, from their registry, and the rivals.

A contestant is a function from a `Trial` and a point of its grid to a model. It is named and not
passed, because it runs in a separate process.

Among the candidates of each rival are its plain defaults, what a library gives without settings,
and a regularized setting for few data. Trees are blind to the scale of a feature and get the
features as they are. Rounds that are best on validation are so by the measure of the contest, not
by one of the library's own: all methods are chosen by the same number.
"""

from __future__ import annotations

import pickle
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cache, partial
from importlib.util import find_spec
from itertools import accumulate, product
from typing import Any

import numpy as np

from linrank.choices import AUTO, N_FOLDS, PAPERS
from linrank.data import Array, Dataset, Scaling, as_rows
from linrank.errors import did_you_mean
from linrank.judging.inspect import best_feature, signed_measure, unit_model
from linrank.methods.base import METHODS, Later, Task
from linrank.methods.ground import Ground, choose_scale, settle
from linrank.methods.kernel import kernel_unit
from linrank.methods.parameters import DominationPath
from linrank.methods.ranksvm import unit_in_memory
from linrank.metrics import Convention, convention
from linrank.models.kernel import KernelModel
from linrank.models.linear import LinearModel
from linrank.ranksvm.path import as_Cs
from linrank.search.folds import deal
from linrank.system.resources import check_fits, short_text

BASELINE = "ranksvm"
BEST = "best"  # in a grid: as many rounds as are best on validation; left out where there is none


def fair_convention(name: str | Convention) -> Convention:
    """The convention with equal scores averaged over their orders where it takes input order.

    Trees and single features tie many rows. In a file sorted by label, input order would rank
    tied rows perfectly.
    """
    chosen = convention(name)
    return convention(chosen, ties="average") if chosen.ties == "stable" else chosen


@dataclass(frozen=True, eq=False)
class Trial:
    """The data and the rules of one fold, as a contestant sees them.

    Attributes
    ----------
    train : Dataset
        The rows of a query come together.
    valid : Dataset or None
        The rows that candidates are judged on; None where cross-validation over the training
        queries chooses, so that nothing is there to stop a training by.
    scoring : str
        The measure that candidates are chosen by.
    convention : Convention
        Its rules.
    scale : {"auto", "standard", "minmax", "none"}
        Scaling of the features for methods that depend on it, to be fitted on ``train``.
    seed : int
        Of everything random.
    n_folds : int
        Of cross-validation.
    last : dict
        What a candidate leaves for the next one.
    """

    train: Dataset
    valid: Dataset | None
    scoring: str
    convention: Convention
    scale: str = AUTO
    seed: int = 0
    n_folds: int = N_FOLDS
    last: dict[str, Any] = field(default_factory=dict, repr=False)

    def judge(self, scores: Any) -> float:
        """The measure of scores of the validation rows, signed so that higher is better.

        In cross-validation, of the training rows, each scored by a model that has not seen it.
        Scores that it cannot judge, as equal ones by Kendall's τ, are worse than all others.
        """
        data = self.train if self.valid is None else self.valid
        scores = np.asarray(scores, dtype=np.float64)
        return signed_measure(data, scores, self.scoring, self.convention, n_jobs=1)

    def parts(self) -> Sequence[tuple[Trial, Dataset, Any]]:
        """What candidates are trained on, the rows that they score, and which of the judged ones.

        The folds depend on the sizes of the training queries alone: they are the same for all.
        """
        if self.valid is not None:
            return [(self, self.valid, slice(None))]
        parts = []
        for fold in deal(self.train, self.n_folds):
            trial = replace(self, train=self.train.select(fold.train), last={})
            parts.append((trial, self.train.select(fold.valid), np.asarray(fold.valid)))
        return parts


@dataclass(frozen=True)
class Size:
    """How large a model is: bytes of its saved form, and what it is made of."""

    n_bytes: int
    n_parts: int = 0
    part: str = "weights"


@dataclass(frozen=True)
class Model:
    """A trained model, as a contest uses it.

    Attributes
    ----------
    predict : callable
        Scores of the rows of a dataset.
    size : callable
        Its `Size`; called for models that are kept.
    found : mapping of str to str, int or float
        Parameters that its training chose, beside or in place of those of the grid: with them,
        ``fit`` gives the same model and searches no more.
    """

    predict: Callable[[Dataset], Array]
    size: Callable[[], Size]
    found: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        model: Any,
        predict: Callable[[Dataset], Array] | None = None,
        n_leaves: Callable[[], int] | None = None,
        **more: Any,
    ) -> Model:
        """A model of linrank, or anything that predicts the scores of a matrix."""

        def size() -> Size:
            if isinstance(model, KernelModel):
                return Size(len(model.to_json()), model.n_support, "support rows")
            if isinstance(model, LinearModel):
                return Size(len(model.to_json()), int(np.count_nonzero(model.coef)))
            n_bytes = len(pickle.dumps(model))
            return Size(n_bytes) if n_leaves is None else Size(n_bytes, n_leaves(), "leaves")

        if isinstance(model, LinearModel | KernelModel):
            return cls(lambda data: model.predict(data, n_jobs=1), size, **more)
        return cls(predict or (lambda data: model.predict(data.X)), size, **more)


@dataclass(frozen=True)
class Contestant:
    """A way of learning to rank that a contest can train.

    Parameters
    ----------
    name : str
        What tables call it.
    family : str
        Whose it is.
    description : str
        What it minimizes, in a few words.
    fit : str
        ``"module:function"``. The function takes a `Trial` and, by name, a value of each axis of
        the grid, and returns a `Model` or whatever ``predict(X)`` tells the scores of.
    grid : dict
        Values by the name of the parameter, the most regularized first: among equals the first
        is taken. In place of values, ``"module:function"`` of a function that finds them in a
        `Trial`. The value `BEST` is tried where there is a validation part.
    needs : str or None
        A package that must be there.
    settings : dict
        What all candidates have in common, passed to ``fit`` as well.
    note : str
        What to know of the candidates beyond the grid.
    is_usual : bool
        Whether it is one of "all".
    also : sequence of dict
        Further candidates, tried before the grid: ``{}`` for the plain defaults.
    """

    name: str
    family: str
    description: str
    fit: str
    grid: Mapping[str, Sequence[Any] | str] = field(default_factory=dict)
    needs: str | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    note: str = ""
    is_usual: bool = True
    also: Sequence[Mapping[str, Any]] = ()

    @property
    def is_missing(self) -> bool:
        """Whether the package that it needs is absent."""
        return self.needs is not None and find_spec(self.needs) is None

    @property
    def candidates(self) -> str:
        """The candidates in words."""
        axes = " × ".join(_in_words(name, values) for name, values in self.grid.items())
        told = [*map(point_in_words, self.also), axes, self.note]
        return "; ".join(part for part in told if part) or "none"

    def points(self, trial: Trial) -> Sequence[dict[str, Any]]:
        """The parameters of every candidate."""
        axes: dict[str, Sequence[Any]] = {}
        for name, values in self.grid.items():
            if isinstance(values, str):
                values = load_by_name(values)(trial, **self.settings)
            axes[name] = [v for v in values if v != BEST or trial.valid is not None]
        grid = [dict(zip(axes, place, strict=True)) for place in product(*axes.values())]
        also = [dict(point) for point in self.also]
        return also + [point for point in grid if point not in also]

    def model(self, trial: Trial, point: Mapping[str, Any]) -> Model:
        """The candidate, trained."""
        model = load_by_name(self.fit)(trial, **{**self.settings, **point})
        return model if isinstance(model, Model) else Model.of(model)


def point_in_words(point: Mapping[str, Any]) -> str:
    """What a candidate changes.

    Examples
    --------
    >>> point_in_words({"C": 1 / 3, "loss": "hinge"}), point_in_words({})
    ('C 0.333, loss hinge', 'defaults')
    """
    return ", ".join(_in_words(name, [value]) for name, value in point.items()) or "defaults"


def _in_words(name: str, values: Sequence[Any] | str) -> str:
    if isinstance(values, str):
        return f"values of {name} that suit the data"
    told = list(map(short_text, values))
    if len(told) > 3:
        return f"{len(told)} values of {name}, {told[0]} to {told[-1]}"
    if len(told) > 1:
        told = [f"{', '.join(told[:-1])} or {told[-1]}"]
    return f"{name} {''.join(told)}"


def load_by_name(where: str) -> Any:
    try:
        return Later(where).load()
    except AttributeError:
        raise ImportError(
            f"a process of its own cannot import {where}; put it at the top level of a module"
        ) from None


# ---- linrank's own methods ----------------------------------------------------------------------


# What a registered method is tried with, where its own grid and defaults do not suit a contest: by
# name of the contestant, changes of the parameters, and the grid, which may be empty. The changes
# alone are a candidate too.
_HERE = __name__
_C, _WARM = f"{_HERE}:usual_Cs", {"warm_start": True}
_ALPHAS = tuple(10.0**k for k in range(3, -8, -1))
# All pairs alike, beside a contestant whose pairs a measure weighs.
_UNIFORM = {"pair_weighting": "uniform", "query_normalization": None}
_BY_NDCG = {"pair_weighting": "ndcg@20", "C": "auto"}
_PER_QUERY = {"C": f"{_HERE}:weights_per_query"}
_TRIED: dict[str, dict[str, tuple[dict[str, Any], dict[str, Any]]]] = {
    "ranksvm": {
        "ranksvm": ({**_WARM, **_UNIFORM}, {"C": _C}),
        "ranksvm-hinge": ({**_WARM, **_UNIFORM, "loss": "hinge"}, {"C": _C}),
        "ranksvm-closest": ({**_WARM, **_UNIFORM, "pairs": "closest"}, {"C": _C}),
        "ranksvm-ndcg": (_BY_NDCG, _PER_QUERY),
        "curves": ({**_BY_NDCG, "curves": "quantile"}, _PER_QUERY),
        "interactions": ({**_BY_NDCG, "curves": "quantile", "interactions": 300}, _PER_QUERY),
    },
    "sgd": {"sgd": ({"algorithm": "hybrid", "average": "weighted"}, {"alpha": _ALPHAS})},
    "domination": {
        f"domination-{penalty}": (
            {**_WARM, "penalty": penalty},
            {"alpha": f"{_HERE}:path_of_alphas"},
        )
        for penalty in ("l1", "l2")
    },
    "factorized": {"factorized": ({"tol": 1e-5}, {"C": _C, "n_components": (1, 5)})},
    "kernel": {
        "kernel": ({"approximation": "nystroem"}, {"gamma": f"{_HERE}:usual_gammas", "C": _C})
    },
}


def own_contestants() -> Iterator[Contestant]:
    """Of every registered method; one without a grid takes part if it is named."""
    for method in METHODS.values():
        named = {"train": _where(method.train), "parameters": _where(method.parameters)}
        tried = _TRIED.get(method.name, {method.name: ({}, dict(method.grid))})
        for name, (changes, grid) in tried.items():
            told = ", ".join(f"{key} {v}" for key, v in changes.items() if v is not True)
            yield Contestant(
                name,
                "linrank",
                f"{method.summary} ({told})" if told else method.summary,
                f"{_HERE}:train_own",
                grid,
                settings={**named, **changes},
                is_usual=bool(grid) or method.name in _TRIED,
                also=[{}],
            )


def _where(thing: Any) -> str:
    return str(thing.where) if isinstance(thing, Later) else f"{thing.__module__}:{thing.__name__}"


def train_own(trial: Trial, train: str, parameters: str, **given: Any) -> LinearModel | KernelModel:
    """A model of one of linrank's methods, by the names of what was registered.

    With ``warm_start`` it begins where the last candidate ended.
    """
    declared = load_by_name(parameters)
    shared = {"scale": trial.scale, "random_state": trial.seed, "n_jobs": 1}
    shared = {each.name: shared[each.name] for each in fields(declared) if each.name in shared}
    start = trial.last.get("model") if given.get("warm_start") else None
    data = trial.train
    if "curves" in given and data.rows.is_sparse:
        data = replace(data, rows=as_rows(dense(data)))
    task = Task(data, declared(**shared, **given), start=start)
    model: LinearModel | KernelModel = load_by_name(train)(task).model
    trial.last["model"] = model
    return model


def usual_Cs(trial: Trial, parameters: str, train: str, **given: Any) -> list[float]:
    """The default grid of C; a part of it where every C is dear."""
    asked = load_by_name(parameters)(scale=trial.scale, n_jobs=1, **given)
    task, facts = settle(Task(trial.train, asked))
    p = task.parameters
    named = ("scale", "pairs", "n_closest", "n_random", "pair_weighting", "query_normalization")
    found = {name: getattr(p, name) for name in named if hasattr(p, name)}
    options: dict[str, Any] = {**PAPERS, **found}
    if hasattr(p, "kernel"):
        unit = kernel_unit(task, facts, options)
    else:
        unit = unit_in_memory(task.data, facts, options)
    # A path is cheap; other methods train every C by itself.
    return [float(C) for C in as_Cs(AUTO, lambda: unit, step=1 if hasattr(p, "n_rounds") else 3)]


def scale_of(trial: Trial) -> str:
    """The scaling of the training part."""
    return choose_scale(trial.scale, trial.train.rows, 1)


def weights_per_query(trial: Trial, **_: Any) -> list[float]:
    """C where the weights of all pairs sum to the number of queries that have any."""
    n_queries = max(1, int((trial.train.queries.n_levels > 1).sum()))
    return [weight / n_queries for weight in (0.1, 0.3, 1.0, 3.0, 10.0, 30.0)]


def path_of_alphas(trial: Trial, penalty: str, **_: Any) -> list[float]:
    """From the α that leaves no weight down to where the penalty hardly matters."""
    from linrank.methods.domination import grid_of

    asked = DominationPath(
        penalty=penalty, scale=scale_of(trial), random_state=trial.seed, n_jobs=1
    )
    return [float(alpha) for alpha in grid_of(Ground.of(Task(trial.train, asked)))]


def usual_gammas(trial: Trial, **_: Any) -> list[float]:
    """Relative to 1/(features·variance)."""
    from linrank.kernels.functions import Kernel

    scaling = Scaling.fit(scale_of(trial), trial.train.rows, n_jobs=1)
    rows = scaling.rows(trial.train.rows, n_jobs=1)
    usual = Kernel.of("rbf", gamma="scale", rows=rows).gamma
    return [share * float(usual) for share in (0.1, 0.3, 1.0)]


_ROUNDS = 500
_HIGHEST = 30  # LightGBM's gains 2^y - 1 end there, XGBoost's one later


# ---- regressors, which take labels for numbers and see no queries -------------------------------


def svr(trial: Trial, loss: str, C: float, epsilon: float) -> LinearModel:
    """Errors beyond ε: squared, or absolute, for which liblinear has the dual only."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.svm import LinearSVR

    X, scaling = scale_rows(trial)
    is_dual = loss == "epsilon_insensitive"
    model = LinearSVR(
        C=C, epsilon=epsilon, loss=loss, dual=is_dual, max_iter=1000, random_state=trial.seed
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # a candidate like any other
        model.fit(X, trial.train.labels)
    return LinearModel(scaling.fold(model.coef_))  # an intercept changes no order


@cache
def scale_rows(trial: Trial) -> tuple[Any, Scaling]:
    """The rows, scaled, and how.

    A regression has an intercept, which liblinear penalizes: centering dense rows makes it small.
    """
    scaling = Scaling.fit(scale_of(trial), trial.train.rows, n_jobs=1)
    X = scaling.applied(trial.train, n_jobs=1).X.astype(np.float64)
    return X - X.mean(axis=0) if isinstance(X, np.ndarray) else X, scaling


# ---- trees, on the labels or on pairs -----------------------------------------------------------


@cache
def dense(data: Dataset) -> Array:
    """The rows as an array; scikit-learn's histograms take no sparse ones."""
    X = data.X
    if isinstance(X, np.ndarray):
        return X
    what = f"{data.n_rows} sparse rows made dense, as some methods need them,"
    check_fits(data.n_rows * data.n_features * 8, what, "leave it out")
    return np.asarray(X.toarray())


def _matrix(data: Dataset) -> Any:
    """The rows as the libraries take them: an array, or scipy's older sparse class."""
    from scipy.sparse import csr_matrix

    # A copy: the arrays are maps of files that cannot be written, which CatBoost does not take.
    return data.X if isinstance(data.X, np.ndarray) else csr_matrix(data.X, copy=True)


@dataclass(frozen=True)
class _Library:
    """What makes trees, and how it is asked.

    Attributes
    ----------
    where : str
        ``"module:class"`` of an estimator like those of scikit-learn.
    n_leaves : callable
        Leaves of a model.
    fixed : dict
        What all candidates have: what a worker needs and what changes no model.
    stages : callable
        Scores of rows by a model after each of its rounds.
    groups : callable
        The arguments of ``fit`` about queries, from their sizes.
    rows : callable
        The rows of a dataset as the library takes them.
    rounds : callable
        Parameters for a number of rounds.
    high : callable
        Parameters for labels that are too high for gains of 2^y - 1.
    needs_grades : bool
        Whether labels must be grades: gains need them, while pairs have an order in any case.
    seed : str
        The name of that parameter.
    """

    where: str
    n_leaves: Callable[[Any], int]
    fixed: Mapping[str, Any] = field(default_factory=dict)
    stages: Callable[[Any, Any], Iterable[Array]] = lambda model, X: model.staged_predict(X)
    groups: Callable[[Array], dict[str, Any]] = lambda sizes: {}
    rows: Callable[[Dataset], Any] = _matrix
    rounds: Callable[[int], dict[str, Any]] = lambda n: {"n_estimators": n}
    high: Callable[[Array], dict[str, Any]] = lambda labels: {}
    needs_grades: bool = False
    seed: str = "random_state"


_LIBRARIES = {
    "forest": _Library(
        "sklearn.ensemble:RandomForestRegressor",
        lambda model: int(sum(tree.get_n_leaves() for tree in model.estimators_)),
        {"n_jobs": 1},
    ),
    "gbdt": _Library(
        "sklearn.ensemble:HistGradientBoostingRegressor",
        lambda model: sum(int(tree[0].get_n_leaf_nodes()) for tree in model._predictors),
        rows=dense,
        rounds=lambda n: {"max_iter": n, "early_stopping": False},
    ),
    "lightgbm": _Library(
        "lightgbm:LGBMRanker",
        lambda model: sum(tree["num_leaves"] for tree in model.dump_model()["tree_info"]),
        {"n_jobs": 1, "deterministic": True, "verbose": -1},
        lambda model, X: accumulate(
            model.predict(X, num_iteration=1, start_iteration=k) for k in range(_ROUNDS)
        ),
        lambda sizes: {"group": sizes},
        high=lambda labels: {"label_gain": np.arange(labels.max() + 1.0).tolist()},
        needs_grades=True,
    ),
    **{
        f"xgboost-{pairs}": _Library(
            "xgboost:XGBRanker",
            lambda model: sum(tree.count("leaf=") for tree in model.get_booster().get_dump()),
            {"objective": f"rank:{pairs}", "n_jobs": 1, "verbosity": 0},
            lambda model, X: accumulate(
                model.predict(X, iteration_range=(k, k + 1)) for k in range(_ROUNDS)
            ),
            lambda sizes: {"group": sizes},
            high=lambda labels: {"ndcg_exp_gain": False},
            needs_grades=pairs == "ndcg",
        )
        for pairs in ("pairwise", "ndcg")
    },
    "catboost": _Library(
        "catboost:CatBoostRanker",
        lambda model: int(np.sum(model.get_tree_leaf_counts())),
        {"thread_count": 1, "allow_writing_files": False, "verbose": False},
        lambda model, X: model.staged_predict(X, thread_count=1),
        lambda sizes: {"group_id": np.repeat(np.arange(len(sizes)), sizes)},
        seed="random_seed",
    ),
}


def trees(trial: Trial, library: str, **given: Any) -> Model:
    """Trees of a library with the parameters given.

    If these leave the rounds to validation, with those whose scores are the best there.
    """
    one, data = _LIBRARIES[library], trial.train
    labels = _grades(data) if one.needs_grades else data.labels
    fixed = {**one.fixed, **(one.high(labels) if labels.max() > _HIGHEST else {})}

    def train(n_estimators: int | None = None, **more: Any) -> Any:
        rounds = {} if n_estimators is None else one.rounds(n_estimators)
        made = load_by_name(one.where)(**{one.seed: trial.seed}, **fixed, **rounds, **more)
        groups = one.groups(np.diff(data.queries.offsets))
        model = made.fit(one.rows(data), labels, **groups)
        return getattr(model, "booster_", model)  # LightGBM's own, without that of scikit-learn

    found = {}
    if given.get("n_estimators") == BEST:
        assert trial.valid is not None
        longest = train(**{**given, "n_estimators": _ROUNDS})
        judged = [trial.judge(scores) for scores in one.stages(longest, one.rows(trial.valid))]
        found = {"n_estimators": int(np.argmax(judged)) + 1}
    model = train(**{**given, **found})
    predict, n_leaves = lambda rows: np.asarray(model.predict(one.rows(rows))), one.n_leaves
    return Model.of(model, predict, partial(n_leaves, model), found=found)


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


def single_feature(
    trial: Trial, feature: int | str | None = None, order: str = "descending"
) -> Model:
    """The given feature, or the one that alone ranks the training queries best, up or down."""
    data = trial.train
    first = 0 if data.index_base == 0 else 1
    known = data.feature_names or range(first, first + data.n_features)
    if feature is None:
        place, sign = best_feature(data, trial.scoring, trial.convention, n_jobs=1)
        feature, order = known[place], "descending" if sign > 0 else "ascending"
    sign = 1.0 if order == "descending" else -1.0
    model = unit_model(data.n_features, list(known).index(feature), sign)
    return Model.of(model, found={"feature": feature, "order": order})


def random_order(trial: Trial) -> Model:
    """Scores drawn at random: what a measure is worth by chance."""
    return Model(
        lambda data: np.random.default_rng(trial.seed).random(data.n_rows), lambda: Size(0)
    )


# ---- the table ----------------------------------------------------------------------------------


_SKLEARN = "scikit-learn"
_SLOWLY = {"learning_rate": (0.05,), "n_estimators": (100, 300, BEST)}
# For few data: many small steps, each by a small tree that sees half of the features and some of
# the rows, with many rows to a leaf where a library counts them.
_GENTLE: dict[str, Any] = {"n_estimators": 300, "learning_rate": 0.02}


_HALF: dict[str, Any] = {"colsample_bytree": 0.5, "subsample": 0.7}


def _boosted(
    name: str, family: str, description: str, sizes: dict[str, Any], gentle: dict[str, Any]
) -> Contestant:
    """Boosted trees of some sizes, grown slowly; a gentle setting, and the plain defaults."""
    return Contestant(
        name,
        family,
        description,
        f"{_HERE}:trees",
        {**sizes, **_SLOWLY},
        None if family == _SKLEARN else family.lower(),
        {"library": name},
        f"{BEST}: of {_ROUNDS} rounds on a validation part, where there is one to choose by",
        also=[{**_GENTLE, **gentle}, {}],
    )


def _xgboost(objective: str) -> Contestant:
    name, description = f"xgboost-{objective}", f"gradient boosting, rank:{objective}"
    sizes, gentle = {"max_depth": (3, 4, 6)}, {"max_depth": 3, **_HALF}
    return _boosted(name, "XGBoost", description, sizes, gentle)


RIVALS: tuple[Contestant, ...] = (
    *(
        Contestant(
            f"svr-{norm}",
            _SKLEARN,
            f"LinearSVR on the labels, {errors} errors",
            f"{_HERE}:svr",
            {"C": tuple(10.0**k for k in powers), "epsilon": (0.0, 0.1)},
            settings={"loss": loss},
        )
        for norm, errors, powers, loss in (
            ("l1", "absolute", range(-6, 1), "epsilon_insensitive"),
            ("l2", "squared", range(-7, 3), "squared_epsilon_insensitive"),
        )
    ),
    Contestant(
        "forest",
        _SKLEARN,
        "RandomForestRegressor on the labels",
        f"{_HERE}:trees",
        {"n_estimators": (300,), "min_samples_leaf": (20, 5), "max_features": ("sqrt", 1 / 3)},
        settings={"library": "forest"},
        also=[{}],
    ),
    _boosted(
        "gbdt",
        _SKLEARN,
        "HistGradientBoostingRegressor on the labels",
        sizes={"max_leaf_nodes": (7, 15, 31)},
        gentle={"max_leaf_nodes": 7, "min_samples_leaf": 100, "max_features": 0.5},
    ),
    _boosted(
        "lightgbm",
        "LightGBM",
        "gradient boosting, lambdarank",
        sizes={"num_leaves": (7, 15, 31)},
        gentle={"num_leaves": 7, "min_child_samples": 100, **_HALF, "subsample_freq": 1},
    ),
    _xgboost("pairwise"),
    _xgboost("ndcg"),
    _boosted(
        "catboost",
        "CatBoost",
        "gradient boosting, YetiRank",
        sizes={"depth": (4, 6)},
        gentle={"depth": 3, "rsm": 0.5, "bootstrap_type": "Bernoulli", "subsample": 0.7},
    ),
    Contestant(
        "best-feature", "baseline", "the best single feature, up or down", f"{_HERE}:single_feature"
    ),
    Contestant("random", "baseline", "a random order", f"{_HERE}:random_order"),
)


# ---- the choice ---------------------------------------------------------------------------------


def contestants() -> dict[str, Contestant]:
    """All that are known, by name."""
    return {one.name: one for one in (*own_contestants(), *RIVALS)}


def chosen_methods(
    methods: str | Iterable[str | Contestant] = "all",
    without: Iterable[str] = (),
    baseline: str | None = None,
) -> Sequence[Contestant]:
    """The methods asked for, in their order, each once, and the baseline among them.

    Raises ValueError for an unknown name, for two methods of one name, and if none is named or
    left.
    """
    known = contestants()

    def named(name: str) -> Contestant:
        if name not in known:
            hint = did_you_mean(name, known, 0.5)
            raise ValueError(f"unknown method {name!r}{hint} (known: {', '.join(known)})")
        return known[name]

    if methods == "all":
        methods = [one for one in known.values() if one.is_usual]
    given = [methods] if isinstance(methods, str) else list(methods)
    if not given:
        raise ValueError(f"methods is empty; name some of {', '.join(known)}, or 'all'")
    left_out = [without] if isinstance(without, str) else list(without)
    kept: dict[str, Contestant] = {}
    for one in given:
        asked = one if isinstance(one, Contestant) else named(one)
        if kept.setdefault(asked.name, asked) != asked:
            raise ValueError(f"two methods are called {asked.name!r}; names must differ")
    for name in left_out:
        if kept.pop(name, None) is None:
            named(name)
    if baseline is not None and baseline not in kept:
        if baseline in left_out:
            raise ValueError(f"{baseline!r} is the baseline and is left out; name another")
        kept = {baseline: named(baseline), **kept}
    if not kept:
        raise ValueError("no method is left; name at least one that is not left out")
    return list(kept.values())
