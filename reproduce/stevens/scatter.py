"""Figures 11 and 18: two models, one point per query."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from domination import TIES
from linrank.data.dataset import Dataset
from linrank.displays import QueryScatterDisplay
from linrank.metrics import evaluate
from reproduce.stevens.sparsity import Fits

Array = NDArray[np.float64]
Fit = Callable[[Dataset], Fits]
Model = tuple[Dataset, Dataset, Dataset]  # train, validate, test

EQUAL = 0.02  # of average precision
FAR = 0.2


@dataclass(frozen=True)
class Points:
    """Average precision of the same queries by two methods."""

    domination: Array
    pamir: Array

    @property
    def difference(self) -> Array:
        return self.domination - self.pamir

    def count(self, is_there: Array) -> str:
        """``"12 of 18"``."""
        return f"{int(np.count_nonzero(is_there))} of {len(self.pamir)}"


def precision(data: Dataset, w: Array) -> Array:
    """Average precision by query; ties as what they come to on average, empty queries are NaN."""
    found = evaluate(data.labels, data.X @ w, qid=data.qid, metrics=["map"], convention=TIES)
    return np.asarray(found.per_query["map"])


def evaluate_models(fit: Fit, models: Sequence[Model]) -> list[Array]:
    """Average precision of the test queries of each model.

    The parameter has the best mean over the validation parts of all models.
    """
    validation, test = [], []
    for data, vali, held in models:
        fits = fit(data)
        validation.append([float(np.nanmean(precision(vali, w))) for _, w in fits])
        test.append([precision(held, w) for _, w in fits])
    best = int(np.argmax(np.mean(validation, axis=0)))
    return [of_model[best] for of_model in test]


def draw_panels(panels: Sequence[tuple[str, Callable[[Any], None]]]) -> Figure:
    figure = Figure(figsize=(4.2 * len(panels), 3.9), layout="constrained")
    for ax, (title, draw) in zip(
        np.atleast_1d(figure.subplots(1, len(panels))), panels, strict=True
    ):
        draw(ax)
        ax.set_title(title, fontsize=10)
    return figure


def against_each_other(points: Points) -> Callable[[Any], None]:
    """Domination Rank over PAMIR, with the line where they are equal."""

    def draw(ax: Any) -> None:
        names = ("Domination Rank", "PAMIR")
        QueryScatterDisplay(points.domination, points.pamir, names, "average precision").plot(ax)

    return draw
