"""What is judged: scores of the test rows, with a name and, if there is one, the model behind."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from linrank.data.frames import as_array
from linrank.data.rows import resized
from linrank.judging.inspect import Profile
from linrank.metrics import parse
from linrank.metrics.evaluate import evaluate_queries
from linrank.models.additive import AdditiveModel
from linrank.models.kernel import KernelModel
from linrank.models.linear import LinearModel

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from linrank.data.dataset import Dataset
    from linrank.models.linear import Model

Array = Any

CANDIDATES = 200  # features that are tried as rankers; of more, those that agree most with labels


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
    """The feature that alone, up or down, ranks the training queries best by ``scoring``.

    Of more than 200 features, those are tried that order most of 20,000 sampled pairs as the labels
    do, or fewest. Equal values are averaged over their orders: rows that a file lists by label must
    not help.
    """
    share, _ = Profile(train).agreement()
    candidates = np.argsort(-np.abs(share - 0.5), kind="stable")[:CANDIDATES]
    better = 1.0 if parse(scoring).higher_is_better else -1.0
    best, best_value = (int(candidates[0]), 1.0), -np.inf
    for j in candidates.tolist():
        for sign in (1.0, -1.0):
            value = _alone(train, _unit(train, j, sign), scoring, convention, n_jobs)
            if better * value > best_value:
                best, best_value = (j, sign), better * value
    model = _unit(train, *best)
    name = f"{names[best[0]]} alone" + (", lowest first" if best[1] < 0 else "")
    about = "the one feature that ranks the training queries best without learning"
    return Ranking(name, model.predict(fitted_to(test, model), n_jobs=n_jobs), model, about)


def _unit(train: Dataset, j: int, sign: float) -> LinearModel:
    coef = np.zeros(train.n_features)
    coef[j] = sign
    return LinearModel(coef)


def _alone(
    train: Dataset, model: LinearModel, scoring: str, convention: str, n_jobs: int | None
) -> float:
    from linrank.metrics import convention as named_convention

    rules = named_convention(convention)
    rules = rules if rules.ties == "average" else replace(rules, ties="average")
    scores = model.predict(replace(train, feature_names=None), n_jobs=n_jobs)
    result = evaluate_queries(
        train.queries, train.labels, scores, metrics=scoring, convention=rules, n_jobs=n_jobs
    )
    return next(iter(result.values()))
