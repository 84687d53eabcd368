"""How the model was found: the path over C, the choice, the convergence and its certificate."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from linrank.reports import pictures
from linrank.reports.html import absent, columns, details, figure, paragraph, section, table, text
from linrank.reports.pictures import count, power, short, value
from linrank.system.tables import Column, Table

if TYPE_CHECKING:
    from linrank.reports.fits import Training
    from linrank.reports.material import Material


def fitting(material: Material) -> str:
    """The section on training."""
    training = material.training
    if training is None:
        return section("training", "How it was trained", _given(material), _how_to_see())
    chosen, scoring = value(training.model.training["score"]), text(material.scoring)  # type: ignore[arg-type]
    lede = (
        f"Of {count(len(training.path), 'value')} of C, from strong to weak regularisation, "
        f"C = {training.C:.4g} ranks the queries of {text(training.judged_on)} best "
        f"({scoring} {chosen}). {_shape(training)}"
    )
    path, steps = pictures.path(material, training), pictures.convergence(training)
    drawn = columns(
        figure(
            path,
            "The measure on unseen queries, the objective and the norm of the weights, by C; "
            "dashed: the C that was taken.",
        )
        if path
        else "",
        figure(
            steps,
            "How far the objective of the chosen fit is from its minimum at most, step by step: "
            "both curves are proven bounds.",
        )
        + paragraph(_certificate(training))
        if steps
        else "",
    )
    return section(
        "training",
        "How it was trained",
        lede,
        drawn or absent(pictures.MISSING) + paragraph(_certificate(training)),
        details("The path as numbers", table(_path_table(material, training))),
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
    share = result.gap / result.value if result.value > 0 else 0.0
    scaled = "features as they are" if scale == "none" else f"features scaled ({scale})"
    return (
        f"Linear RankSVM, squared hinge on all {training.model.training['n_pairs']:,} pairs, "
        f"{scaled}: objective <span class=num>{result.value:.8g}</span> after "
        f"{count(result.n_iter, 'Newton step')}. The dual problem proves that no weights have an "
        f"objective smaller by more than {power(share)} of it."
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


def _how_to_see() -> str:
    return absent(
        "<code>--train</code> without <code>--model</code> trains a model here, and shows the "
        "regularisation path, the choice of C and the convergence."
    )
