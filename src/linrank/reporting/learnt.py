"""What the model learnt: its weights, comparable between features, with names."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from linrank.kernel_model import KernelModel
from linrank.reporting import pictures
from linrank.reporting.html import absent, clear, details, figure, section, table, text
from linrank.reporting.numbers import count, short
from linrank.reporting.rankings import fitted_to
from linrank.tables import Column, Table

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from linrank.model import LinearModel
    from linrank.reporting.gather import Material

__all__ = ["spread", "weights"]

LISTED = 200  # weights in the table at most
NOISE = 1e-9  # of the largest


def weights(material: Material) -> str:
    """The section on weights."""
    heading, model = "What it learnt", material.ranking.linear
    if model is None:
        return section(
            "weights", heading, "Which features move documents up and down.", _why(material)
        )
    deviation = spread(material, model)
    moved = model.coef * deviation
    order = np.argsort(-np.abs(moved), kind="stable")
    # Rounding leaves traces of weights on features that no pair tells apart.
    order = order[np.abs(moved[order]) > NOISE * np.abs(moved).max()]
    if not order.size:
        lede = "All weights are 0: the model gives every document the same score."
        return section("weights", heading, lede)
    svg = pictures.weights(material, model, deviation, len(order))
    first = text(material.names[int(order[0])])
    verb = "counts" if len(order) == 1 else "count"
    how_many = f"{len(order):,} of {count(model.n_features, 'feature')} {verb}"
    lede = (
        f"{how_many}. The bars are "
        "weight × standard deviation of the feature in the test data, what it typically moves a "
        f"score by; the largest is <strong>{first}</strong>. Among features that say the same, "
        "weights can be split in any way: a small bar does not make a feature useless."
    )
    caption = "To the right: more of the feature moves a document up; to the left: down."
    drawn = figure(svg, caption) if svg else absent(pictures.MISSING)
    return section("weights", heading, lede, drawn, _list(material, model, moved, order))


def _why(material: Material) -> str:
    if isinstance(material.ranking.model, KernelModel):
        kernel = material.ranking.model.kernel.name
        return absent(
            f"A kernel model ({text(kernel)}) has no weights of features: its score is a sum over "
            f"{count(material.ranking.model.coef.size, 'support document')}."
        )
    return absent("Scores were given, not the model behind them; a model file has weights to show.")


def spread(material: Material, model: LinearModel) -> NDArray[np.float64]:
    """The standard deviation of each feature in the test data, as the model scales it."""
    data = fitted_to(material.test, model)
    rows = model.scaling.transform(data.rows, data.queries)
    from linrank import _core

    _, variance, _, _ = _core.summarise_columns(rows.core, None, 1)
    return np.asarray(np.sqrt(np.maximum(variance, 0.0)), dtype=np.float64)


def _list(
    material: Material, model: LinearModel, moved: NDArray[np.float64], order: NDArray[np.int64]
) -> str:
    columns = [Column("feature", "left"), Column("weight"), Column("weight × deviation")]
    rows = [
        [clear(material.names[j]), short(model.coef[j]), short(moved[j])]
        for j in order[:LISTED].tolist()
    ]
    rest = len(order) - len(rows)
    notes = [f"{rest:,} smaller ones are left out."] if rest > 0 else []
    what = (
        ("The weight" if len(rows) == 1 else f"All {len(rows)} weights")
        if rest <= 0
        else f"The {len(rows)} largest weights"
    )
    return details(f"{what} as numbers", table(Table(columns, rows, notes=notes)))
