"""The pictures of a page, as displays draw them; none without Matplotlib."""

from __future__ import annotations

import importlib.util
from typing import TYPE_CHECKING

import numpy as np

from linrank.displays import (
    ConvergenceDisplay,
    LabelsDisplay,
    PathDisplay,
    QueryHistogramDisplay,
    QueryScatterDisplay,
    WeightsDisplay,
)
from linrank.metrics import parse

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from linrank.displays import Display
    from linrank.model import LinearModel
    from linrank.reporting.gather import Material
    from linrank.reporting.training import Training

__all__ = ["MISSING", "convergence", "histogram", "labels", "path", "scatter", "weights"]

MISSING = "No picture: they need Matplotlib, <code>pip install linrank[plot]</code>."

SHOWN_WEIGHTS = 25


def _drawn(display: Display, width: float = 5.0) -> str:
    """The picture as SVG, or nothing where it cannot be drawn."""
    if importlib.util.find_spec("matplotlib") is None:
        return ""
    return display.to_svg(width=width)


def scatter(material: Material) -> str:
    """Two rankings, query by query."""
    if material.against is None:
        return ""
    own = material.evaluation.per_query[material.scoring]
    other = material.evaluations[material.against.name].per_query[material.scoring]
    if np.isnan(own + other).all():
        return ""
    names = (material.ranking.name, material.against.name)
    return _drawn(
        QueryScatterDisplay(own, other, names, material.scoring, material.test.queries.ids)
    )


def histogram(material: Material) -> str:
    """One ranking, spread over queries."""
    values = material.evaluation.per_query[material.scoring]
    return "" if np.isnan(values).all() else _drawn(QueryHistogramDisplay(values, material.scoring))


def weights(
    material: Material, model: LinearModel, spread: NDArray[np.float64], n_weights: int
) -> str:
    """The largest weights, of so many that count."""
    names = material.names[: model.n_features]
    n_shown = min(SHOWN_WEIGHTS, n_weights)
    return _drawn(WeightsDisplay(model.coef, names, n_shown, spread), width=6.0)


def path(material: Material, training: Training) -> str:
    """The models of all C."""
    sign = 1.0 if parse(material.scoring).higher_is_better else -1.0
    scores = sign * training.tuning.scores
    return _drawn(PathDisplay(training.path, scores, training.C, material.scoring))


def convergence(training: Training) -> str:
    """The chosen fit, step by step."""
    return _drawn(ConvergenceDisplay(training.result.history))


def labels(material: Material) -> str:
    """Labels of the documents and sizes of the queries of the test data."""
    return _drawn(LabelsDisplay.from_dataset(material.test))
