"""The model, its training, its data, and how the page was made."""

from __future__ import annotations

import platform
from typing import TYPE_CHECKING

import numpy as np

from linrank import __version__
from linrank.data.rows import ColumnStatistics
from linrank.displays import (
    ConvergenceDisplay,
    CurvesDisplay,
    LabelsDisplay,
    PathDisplay,
    WeightsDisplay,
)
from linrank.metrics import parse
from linrank.models.additive import AdditiveModel
from linrank.models.kernel import KernelModel
from linrank.reports.html import (
    MISSING,
    absent,
    clear,
    details,
    figure,
    paragraph,
    power,
    short,
    table,
    text,
    typeset,
    value,
)
from linrank.reports.material import WORDS
from linrank.reports.rankings import fitted_to
from linrank.solvers.result import certified_share, distance_text
from linrank.system.resources import count
from linrank.system.tables import Column, Table

if TYPE_CHECKING:
    from linrank.judging.inspect import Profile
    from linrank.reports.material import Material
    from linrank.reports.rankings import Training

DRAWN = 25  # weights in the picture at most
LISTED = 200  # weights in the table at most
NOISE = 1e-9  # of the largest


def weights(material: Material) -> tuple[str, ...]:
    """The section on weights."""
    additive, model = material.ranking.model, material.ranking.linear
    if isinstance(additive, AdditiveModel):
        told = "What the features that matter most add to a score, by their value."
        names = material.names[: additive.n_features]
        return told, figure(CurvesDisplay.from_estimator(additive, names=names), told)
    if model is None:
        return "Which features move documents up and down.", _why(material)
    data = fitted_to(material.test, model)
    rows = model.scaling.transform(data.rows, data.queries)
    deviation = np.sqrt(ColumnStatistics.of(rows).variance)
    moved = model.coef * deviation
    order = np.argsort(-np.abs(moved), kind="stable")
    # Rounding leaves traces of weights on features that no pair tells apart.
    order = order[np.abs(moved[order]) > NOISE * np.abs(moved).max()]
    if not order.size:
        return ("All weights are 0: the model gives every document the same score.",)
    verb = "counts" if len(order) == 1 else "count"
    lede = (
        f"{len(order):,} of {count(model.n_features, 'feature')} {verb}. The bars are "
        "weight × standard deviation of the feature in the test data, what it typically moves a "
        f"score by; the largest is <strong>{text(material.names[int(order[0])])}</strong>. Among "
        "features that say the same, weights can be split in any way: a small bar does not make a "
        "feature useless."
    )
    names, n_drawn = material.names[: model.n_features], min(DRAWN, len(order))
    drawn = figure(
        WeightsDisplay(model.coef, names, n_drawn, deviation),
        "To the right: more of the feature moves a document up; to the left: down.",
        width=6.0,
    )
    listed = [
        [clear(material.names[j]), short(model.coef[j]), short(moved[j])]
        for j in order[:LISTED].tolist()
    ]
    return lede, drawn or MISSING, _list(listed, len(order) - len(listed))


def _why(material: Material) -> str:
    if isinstance(material.ranking.model, KernelModel):
        kernel = material.ranking.model.kernel.name
        return absent(
            f"A kernel model ({text(kernel)}) has no weights of features: its score is a sum over "
            f"{count(material.ranking.model.coef.size, 'support document')}."
        )
    return absent("Scores were given, not the model behind them; a model file has weights to show.")


def _list(rows: list[list[str]], n_left: int) -> str:
    """The weights in a table that folds."""
    headings = [Column("feature", "left"), Column("weight"), Column("weight × deviation")]
    notes = [f"{n_left:,} smaller ones are left out."] if n_left else []
    what = "The weight" if len(rows) == 1 else f"All {len(rows)} weights"
    what = f"The {len(rows)} largest weights" if n_left else what
    return details(f"{what} as numbers", table(Table(headings, rows, notes=notes)))


def fitting(material: Material) -> tuple[str, ...]:
    """The section on training."""
    training, scoring = material.training, material.scoring
    if training is None:
        how = (
            "<code>--train</code> without <code>--model</code> trains a model here, and shows the "
            "regularization path, the choice of C and the convergence."
        )
        return _given(material), absent(how)
    tuning = training.tuning
    lede = (
        f"Of {count(len(training.path), 'value')} of C, from strong to weak regularization, "
        f"C = {training.C:.4g} ranks the queries of {text(training.judged_on)} best "
        f"({text(scoring)} {value(float(tuning.mean_scores[tuning.chosen]))}). {_shape(training)}"
    )
    sign = 1.0 if parse(scoring).higher_is_better else -1.0
    band = ", with one standard error over the folds" if len(tuning.scores) > 1 else ""
    path = figure(
        PathDisplay(training.path, sign * tuning.scores, training.C, scoring),
        f"{text(scoring)} on unseen queries by C{band}. Dashed: the C that was taken.",
        width=6.0,
    )
    steps = figure(
        ConvergenceDisplay(training.result.history),
        "How far the objective of the chosen fit is from its minimum at most, step by step: "
        "both curves are proven bounds.",
    )
    return (
        lede,
        path or MISSING,
        paragraph(_certificate(training)),
        details("The path as numbers", table(_path_table(material, training))),
        details("How the fit converged", steps) if steps else "",
    )


def _shape(training: Training) -> str:
    """Whether the choice matters, in a sentence."""
    means = training.tuning.mean_scores
    near = training.tuning.Cs[means >= means.max() - 0.005]
    if len(near) == len(means):
        return "All are within 0.005 of each other: the choice hardly matters."
    if training.tuning.edge is not None:
        return "The best value is at the end of the grid: a wider one may do better."
    if near.max() >= 8 * near.min():
        return (
            f"From C = {near.min():.4g} to {near.max():.4g} there are values within 0.005 of it: "
            "the choice is not a delicate one."
        )
    if len(near) > 1:
        return (
            f"Only values from {near.min():.4g} to {near.max():.4g} come within 0.005 of it: the "
            "choice matters, or the queries it was made on are few."
        )
    return "No other value of the grid comes within 0.005 of it: a finer grid may do better."


def _certificate(training: Training) -> str:
    result, scale = training.result, training.model.scaling.kind
    share = certified_share(result.value, result.gap)
    proven = (
        f"Of it, {distance_text(result.value, result.gap, result.converged)}."
        if share is None
        else "The dual problem proves that no weights have an objective smaller by more than "
        f"{power(share)} of it."
    )
    scaled = "features as they are" if scale == "none" else f"features scaled ({scale})"
    return (
        f"Linear RankSVM, squared hinge on all {training.model.training['n_pairs']:,} pairs, "
        f"{scaled}: objective <span class=num>{result.value:.8g}</span> after "
        f"{count(result.n_iter, 'Newton step')}. {proven}"
    )


def _path_table(material: Material, training: Training) -> Table:
    tuning, path = training.tuning, training.path
    many = len(tuning.scores) > 1
    headings = ["C", material.scoring, *(["deviation"] if many else [])]
    headings += ["objective", "gap / objective", "norm", ""]
    deviation = tuning.scores.std(axis=0, ddof=1) if many else np.zeros(len(path))
    rows = [
        [
            f"{C:.6g}",
            value(abs(mean)),
            *([value(deviation[k])] if many else []),
            f"{path.objectives[k]:.6g}",
            f"{path.gaps[k] / path.objectives[k]:.1e}",
            short(path.norms[k]),
            "← taken" if k == tuning.chosen else "",
        ]
        for k, (C, mean) in enumerate(
            zip(tuning.Cs.tolist(), tuning.mean_scores.tolist(), strict=True)
        )
    ]
    where = "over folds" if many else "on the validation data"
    return Table([*map(Column, headings)], rows, notes=[f"{material.scoring} {where}."])


def _given(material: Material) -> str:
    model = material.ranking.model
    if model is None:
        return "Scores were given: how they came to be is not known here."
    known = {key: item for key, item in model.training.items() if item is not None}
    words = {
        "C": "C = {}",
        "loss": "loss {}",
        "solver": "solver {}",
        "n_rows": "{:,} training documents",
        "n_queries": "{:,} queries",
        "n_pairs": "{:,} pairs",
    }
    told = [words[key].format(known[key]) for key in words if key in known]
    return "The model was given. Its file says: " + (text(", ".join(told)) or "nothing") + "."


SHOWN_LABELS = 8  # more distinct labels than this are summarized


def data(material: Material) -> tuple[str, ...]:
    """The section on data."""
    parts = material.parts
    headings = [Column("", "left"), *(Column(WORDS[name], "left") for name in parts)]
    by_part = [_facts(profile) for profile in material.profiles.values()]
    rows = [[fact, *(facts[fact] for facts in by_part)] for fact in by_part[0]]
    drawn = figure(
        LabelsDisplay.from_dataset(material.test),
        "Test data. How many documents have each label, and how many documents a query has.",
    )
    return _lede(material), table(Table(headings, rows)), drawn or MISSING


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
    return ", ".join(f"{v:g}: {share:.0f}%" for v, share in zip(values, shares, strict=True))


def method(material: Material) -> tuple[str, ...]:
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
        f"<strong>Measures:</strong> {text(typeset(comparison.convention.describe()))}.",
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
    return lede, *map(paragraph, words)


def footer(material: Material, date: str) -> str:
    """Version, date, size."""
    n_queries = count(material.test.queries.n_queries, "test query", "test queries")
    return (
        f"Made by linrank {text(__version__)} with Python {platform.python_version()} on "
        f"{text(date)} from {n_queries}. This file is complete: it loads nothing, runs no script."
    )
