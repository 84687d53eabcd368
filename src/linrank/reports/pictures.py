"""The pictures of a page, as displays draw them; none without Matplotlib."""

from __future__ import annotations

import importlib.util
import math
from typing import TYPE_CHECKING

import numpy as np

from linrank.displays import (
    ConvergenceDisplay,
    CurvesDisplay,
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
    from linrank.models.additive import AdditiveModel
    from linrank.models.linear import LinearModel
    from linrank.reports.fits import Training
    from linrank.reports.material import Material

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


def curves(material: Material, model: AdditiveModel) -> str:
    """The curves of the largest span."""
    return _drawn(CurvesDisplay.from_estimator(model, names=material.names[: model.n_features]))


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


ROUNDING = 1e-15  # shares below it are the rounding of the sums they come from


def value(number: float) -> str:
    """A measure: four digits, or a dash for what is undefined."""
    return "–" if math.isnan(number) else f"{number:.4f}"


def signed(number: float) -> str:
    """A difference, with its sign."""
    return "–" if math.isnan(number) else f"{number:+.4f}".replace("-", "−")


def interval(low: float, high: float, *, difference: bool = False) -> str:
    """Both ends; a dash where there is none, as of a single query."""
    if math.isnan(low) or math.isnan(high):
        return "–"
    show = signed if difference else value
    return f"{show(low)} to {show(high)}"


def p_value(p: float) -> str:
    """``p = 0.013``, with two digits; nothing below 0.0001 is told apart."""
    if math.isnan(p):
        return "p undefined"
    if p < 1e-4:
        return "p < 0.0001"
    return f"p = {p:.2g}" if p < 0.0995 else f"p = {p:.2f}"


def power(number: float) -> str:
    """A tiny share as HTML: ``2.1 × 10⁻⁷``; never less than rounding lets anyone know."""
    number = max(number, ROUNDING)
    exponent = math.floor(math.log10(number))
    mantissa = number / 10.0**exponent
    if round(mantissa, 1) >= 10.0:
        mantissa, exponent = 1.0, exponent + 1
    sign = "−" if exponent < 0 else ""
    return f'<span class="num">{mantissa:.1f} × 10<sup>{sign}{abs(exponent)}</sup></span>'


def count(number: int, thing: str, plural: str | None = None) -> str:
    """``count(1234, "row")`` is ``1,234 rows``."""
    return f"{number:,} {thing if number == 1 else plural or thing + 's'}"


def percent(part: float, whole: float) -> str:
    """A share, without decimals unless it is small."""
    if not whole:
        return "–"
    share = 100.0 * part / whole
    return f"{share:.1f} %" if share < 10 else f"{share:.0f} %"


def short(number: float) -> str:
    """A value of a feature or a score: up to four digits that count."""
    shown = f"{number:,.0f}" if 1e4 <= abs(number) < 1e9 else f"{number:.4g}"
    return shown.replace("-", "−")


def decimals(largest: float) -> int | None:
    """Digits after the point that give the largest of a column three that count.

    None where no such number is readable: then each value has an exponent.
    """
    if not largest > 0:
        return 2
    exponent = math.floor(math.log10(largest))
    return max(0, 2 - exponent) if -6 <= exponent < 9 else None


def push(number: float, largest: float | None = None) -> str:
    """A part of a difference of scores, with its sign.

    Three digits that count, or as many decimals as the largest of the column has.
    """
    digits = decimals(abs(number) if largest is None else largest)
    shown = f"{number:+.2e}" if digits is None else f"{number:+,.{digits}f}"
    return shown.replace("-", "−")
