"""What is judged: scores of the test rows, and the model behind them, given or trained here."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from linrank.data.frames import as_array
from linrank.data.missing import Filling, Missing
from linrank.data.rows import CsrRows, resized
from linrank.judging.inspect import best_feature, unit_model
from linrank.methods.base import Task, Trained, method_named
from linrank.models.additive import AdditiveModel
from linrank.models.kernel import KernelModel
from linrank.models.linear import LinearModel
from linrank.search.folds import Fold, deal

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

    from linrank.data.dataset import Dataset
    from linrank.models.linear import Model
    from linrank.ranksvm.path import PathResult
    from linrank.reports.material import Options
    from linrank.search.tuning import Tuning
    from linrank.solvers.result import Result


@dataclass(frozen=True, eq=False)
class Ranking:
    """Scores of the test rows.

    Attributes
    ----------
    name : str
        What tables and pictures call it.
    scores : float64 array (n_rows,)
        Higher is better.
    model : LinearModel, AdditiveModel, KernelModel or None
        What computed them; None for scores that were given.
    about : str
        Where it comes from, in a sentence without a full stop.
    """

    name: str
    scores: NDArray[np.float64]
    model: Model | None
    about: str

    @property
    def linear(self) -> LinearModel | None:
        """The model if it has weights of features."""
        return self.model if isinstance(self.model, LinearModel) else None

    @property
    def explained(self) -> LinearModel | AdditiveModel | None:
        """The model if it shares a score out among features."""
        return self.model if isinstance(self.model, (LinearModel, AdditiveModel)) else None


def ranking_of(source: Any, data: Dataset, name: str, about: str, n_jobs: int | None) -> Ranking:
    """The ranking of a model, a fitted estimator or scores, one a row."""
    model = getattr(source, "model_", source)
    if isinstance(model, (LinearModel, AdditiveModel, KernelModel)):
        scores = model.predict(fitted_to(data, model), n_jobs=n_jobs)
        return Ranking(name, scores, model, about)
    if hasattr(model, "predict"):
        raise TypeError(
            f"cannot ask a {type(source).__name__} for its scores without knowing how; compute "
            "them and pass the array, one score for each test row"
        )
    given = as_array(source, name)
    try:
        scores = given.astype(np.float64, copy=False)
    except (TypeError, ValueError):
        raise TypeError(
            f"{name} must be a model, a fitted estimator or scores, got {type(source).__name__}"
        ) from None
    if scores.shape != (data.n_rows,):
        raise ValueError(
            f"{name} has scores of shape {scores.shape}, the test data {data.n_rows:,} rows; one "
            "score per row is needed, in the same order"
        )
    if np.isnan(scores).any():
        row = int(np.argmax(np.isnan(scores)))
        raise ValueError(f"the score of row {row} of {name} is NaN, which cannot be ranked")
    return Ranking(name, scores, None, about)


def fitted_to(data: Dataset, model: Model) -> Dataset:
    """The data with as many features as the model: files may lack some, others count nothing."""
    if isinstance(model, KernelModel) and model.kernel.name == "precomputed":
        return data
    rows = resized(data.rows, model.n_features)
    names = data.feature_names if rows is data.rows else None
    return data if rows is data.rows else replace(data, rows=rows, feature_names=names)


def best_single_feature(
    train: Dataset,
    test: Dataset,
    names: Sequence[str],
    scoring: str,
    convention: str,
    n_jobs: int | None,
) -> Ranking:
    """The ranking of the feature that alone ranks the training queries best."""
    place, sign = best_feature(train, scoring, convention, n_jobs)
    model = unit_model(train.n_features, place, sign)
    name = f"{names[place]} alone" + (", lowest first" if sign < 0 else "")
    about = "the one feature that ranks the training queries best without learning"
    return Ranking(name, model.predict(fitted_to(test, model), n_jobs=n_jobs), model, about)


# ---- a model that is trained here ---------------------------------------------------------------


METHOD = "ranksvm"  # of those that are registered, one with a path over C

# Of the chosen model: its certificate is shown. The solver stops by an estimate, which the bound
# that is proven may lag behind: then it goes on to the next tolerance, a step or two further.
TOLERANCES = (1e-6, 1e-9, 1e-12)


@dataclass(frozen=True, eq=False)
class Training:
    """How the model came to be.

    Attributes
    ----------
    model : LinearModel
        Trained on all training data with the chosen C.
    tuning : Tuning
        The measure of every C on unseen queries.
    path : PathResult
        The models of all C on all training data.
    result : Result
        The fit of the chosen C from zero: its history is the convergence that is shown.
    C : float
        The chosen one.
    judged_on : str
        What C was chosen on, in words.
    """

    model: LinearModel
    tuning: Tuning
    path: PathResult
    result: Result
    C: float
    judged_on: str


def train(parts: Mapping[str, Dataset], options: Options) -> Training:
    """Train a linear RankSVM (squared hinge, all pairs) for every C and take the best one."""
    if "train" not in parts:
        raise ValueError("give a model, or training data to learn one from")
    data, valid, scale, tell = parts["train"], parts.get("valid"), options.scale, options.tell
    n_folds, scoring, n_jobs = options.n_folds, str(options.scoring), options.n_jobs
    method = method_named(METHOD)
    assert method.search is not None
    assert method.path is not None
    folds = deal(data, n_folds) if valid is None else [Fold(None, valid)]
    search = method.search(Cs=options.Cs, scale=scale, scoring=scoring, n_jobs=n_jobs)
    found = method.path(
        Task(data, search),
        folds,
        convention=options.convention,
        progress=lambda state: tell(
            f"training: {state['n_done']} of {state['n_total']} models, C {state['C']:.6g}"
        ),
    )
    tell("training: the chosen model")

    def fit(tol: float) -> Trained:
        chosen = method.parameters(**found.best_params, tol=tol, scale=scale, n_jobs=n_jobs)
        return method.train(Task(data, chosen))

    trained = _certified(fit)
    known = {**trained.model.training, "scoring": scoring, "score": found.score}
    model: Any = replace(trained.model, training=known)
    where = f"{n_folds} folds of the training queries" if valid is None else "the validation data"
    return Training(model, found, found.path, trained.result, found.C, where)


def _certified(fit: Callable[[float], Trained]) -> Trained:
    """The fit from zero, until its bound is as tight as the first tolerance."""
    found = fit(TOLERANCES[0])
    for tol in TOLERANCES[1:]:
        result = found.result
        if result.gap <= TOLERANCES[0] * result.value or not result.converged:
            break
        further = fit(tol)
        found = further if further.is_done else found
    return found


# ---- missing values -----------------------------------------------------------------------------


def filled_in(parts: dict[str, Dataset], model: Any) -> tuple[dict[str, Dataset], Any]:
    """The parts with their missing values filled in, and the model of the filled columns.

    They are filled in as the model does it or, where one is to be trained, as those of the training
    data were. An indicator is a column like any other then, with a weight of its own.
    """
    linear = getattr(model, "model_", model)
    filling: Filling | None
    if isinstance(linear, LinearModel) and linear.missing.is_filled:
        filling = _filling(linear.missing, linear.n_features)
        parts = {name: fitted_to(data, linear) for name, data in parts.items()}
        model = _plain(linear, filling)
    else:
        filling = parts.get("train", parts["test"]).filling
    if filling is None:
        return parts, model
    return {name: _filled(data, filling) for name, data in parts.items()}, model


def _filling(missing: Missing, n_features: int) -> Filling:
    weights = np.zeros(n_features) if missing.weights is None else missing.weights
    return Filling(missing.kind, n_features, missing.values, np.flatnonzero(weights))


def _plain(model: LinearModel, filling: Filling) -> LinearModel:
    """The model as one of the filled columns, of which nothing is missing."""
    scaling, names = model.scaling, model.feature_names
    n_added = len(filling.columns)
    if scaling.factors is not None:
        factors = np.pad(scaling.factors, (0, n_added), constant_values=1.0)
        scaling = replace(scaling, factors=factors)
    return replace(
        model,
        coef=model.missing.joined(model.coef, filling),
        feature_names=None if names is None else filling.names(names),
        scaling=scaling,
        missing=Missing(),
        statistics=None if n_added else model.statistics,
    )


def _filled(data: Dataset, filling: Filling) -> Dataset:
    if data.filling is None and isinstance(data.rows, CsrRows):
        # Text leaves zeros out, and so the last features.
        data = replace(data, rows=resized(data.rows, filling.n_features))
    data = filling.dataset(data)
    plain = replace(data, filling=None)
    if "queries" in data.__dict__:  # which the rows have no part in
        plain.__dict__["queries"] = data.queries
    return plain
