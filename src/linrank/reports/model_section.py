"""What the model learnt: its weights, comparable between features, with names."""

from __future__ import annotations

import platform
from typing import TYPE_CHECKING

import numpy as np

from linrank import __version__
from linrank.models.additive import AdditiveModel
from linrank.models.kernel import KernelModel
from linrank.reports import pictures
from linrank.reports.html import absent, clear, details, figure, paragraph, section, table, text
from linrank.reports.pictures import count, short
from linrank.reports.rankings import fitted_to
from linrank.system.tables import Column, Table

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from linrank.judging.inspect import Profile
    from linrank.models.linear import LinearModel
    from linrank.reports.material import Material

LISTED = 200  # weights in the table at most
NOISE = 1e-9  # of the largest


def weights(material: Material) -> str:
    """The section on weights."""
    heading, model = "What it learnt", material.ranking.linear
    if isinstance(material.ranking.model, AdditiveModel):
        svg = pictures.curves(material, material.ranking.model)
        lede = "What the features that matter most add to a score, by their value."
        return section("weights", heading, lede, figure(svg, lede) if svg else "")
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


SHOWN_LABELS = 8  # more distinct labels than this are summarised
_WORDS = {"train": "training", "valid": "validation", "test": "test"}


def data(material: Material) -> str:
    """The section on data."""
    parts = material.parts
    columns = [Column("", "left"), *(Column(_WORDS[name], "left") for name in parts)]
    by_part = [_facts(profile) for profile in material.profiles.values()]
    rows = [[fact, *(facts[fact] for facts in by_part)] for fact in by_part[0]]
    svg = pictures.labels(material)
    caption = "How many documents have each label, and how many documents a query has."
    drawn = figure(svg, f"Test data. {caption}") if svg else absent(pictures.MISSING)
    return section("data", "The data", _lede(material), table(Table(columns, rows)), drawn)


def _lede(material: Material) -> str:
    if "train" not in material.parts:
        return (
            "What the numbers rest on. <code>--train</code> adds the training data, and looks for "
            "test queries among them."
        )
    overlap = material.overlaps.get(("test", "train"))
    if overlap is None:
        return (
            "What the numbers rest on. No test query is among the training queries, neither by its "
            "id nor by its rows."
        )
    if overlap.n_rows:
        found = "<strong>Test queries are among the training queries.</strong>"
        return f"What the numbers rest on. {found}"
    return "What the numbers rest on. Test and training queries share ids, but no rows."


def _facts(profile: Profile) -> dict[str, str]:
    data, sizes = profile.data, profile.rows_per_query
    queries, n_useless = data.queries, int(np.count_nonzero(~profile.columns.varies_in_query))
    return {
        "source": clear(data.source),
        "queries": f"{queries.n_queries:,}" + ("" if data.qid is not None else " (no qid)"),
        "documents": f"{data.n_rows:,}",
        "documents per query": f"{sizes.min():,} to {sizes.max():,}, median {np.median(sizes):,g}",
        "features": f"{data.n_features:,}",
        "features without use": f"{n_useless:,}",
        "pairs of different labels": f"{queries.n_pairs:,}",
        "queries without a pair": f"{int(np.count_nonzero(queries.n_levels == 1)):,}",
        "labels": _labels(profile),
    }


def _labels(profile: Profile) -> str:
    values, counts = profile.labels
    if len(values) > SHOWN_LABELS:
        return f"{len(values):,} distinct, {values[0]:g} to {values[-1]:g}"
    shares = 100.0 * counts / counts.sum()
    return ", ".join(f"{v:g}: {share:.0f} %" for v, share in zip(values, shares, strict=True))


def method(material: Material) -> str:
    """The section that says how to read and repeat the page."""
    options, comparison = material.options, material.comparison
    words = [
        f"<strong>Judged:</strong> {text(material.ranking.name)}, {text(material.ranking.about)}."
    ]
    if material.against is not None:
        words.append(
            f"<strong>Against:</strong> {text(material.against.name)}, "
            f"{text(material.against.about)}."
        )
    words += [
        f"<strong>Measures:</strong> {text(comparison.convention.describe())}.",
        "<strong>Worst queries:</strong> by the first measure, then by wrong pairs. The wrong "
        "pairs shown cost most DCG, (2<sup>y</sup> − 1 of one less that of the other) × (discount "
        "of one place less that of the other), no document twice; labels below 0 or above 30 count "
        "as y itself. The score of a linear model is a "
        "sum over features, so the difference of two scores is the sum of weight × "
        "difference of values.",
        f"<strong>Seeds:</strong> resampling {options.seed}. The same files and options give the "
        "same numbers.",
    ]
    lede = "What was computed, so that it can be checked and repeated."
    return section("method", "How this page was made", lede, *map(paragraph, words))


def footer(material: Material, date: str) -> str:
    """Version, date, size."""
    n_queries = count(material.test.queries.n_queries, "test query", "test queries")
    return (
        f"Made by linrank {text(__version__)} with Python {platform.python_version()} on "
        f"{text(date)} from {n_queries}. This file is complete: it loads nothing, runs no script."
    )
