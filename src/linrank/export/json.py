"""A linear model as plain JSON, for a program of one's own.

    {"format": "linrank-weights", "version": 1, "name": ..., "linrank": "0.1.0",
     "factor": 1.0, "missing": "mean", "scaling": "standard",
     "features": [{"name": "bm25", "column": 0, "weight": 0.5, "missing": 1.25}, ...]}

The score of a row is the sum over ``features`` of ``weight`` times the value, or of ``missing``
where there is no value; ``missing`` is null in a model that refuses missing values. ``column`` is
the place of the feature in the rows that the model was trained on, from 0. Scores are those of the
model times ``factor``. Where ``scaling`` is "query", values are to be divided by their range
within the query first.

An additive model has the format "linrank-curves". In place of ``weight`` its features have lists
``knots``, ``values`` and ``slopes``: with p the number of knots below the value x, the feature adds
``values[p] + slopes[p]·(x - knots[max(p - 1, 0)])``, the knot being 0 where there is none. Where
there are ``interactions``, the score has one more term, ``Σ_m coef[m]·exp(-gamma·‖landmarks[m] -
q‖²)``; q are the functions ``quantiles`` of the features ``column``.
"""

from __future__ import annotations

import json
from typing import Any

from linrank import __version__
from linrank.data.curves import Function
from linrank.export.artefact import Artefact, fill_text
from linrank.export.form import Form


def write(form: Form, name: str) -> Artefact:
    """The weights by name, with what a missing value adds.

    Parameters
    ----------
    form : Form
        The weights.
    name : str
        Name of the model and of the file.
    """
    own: Any = ({"weight": weight} for weight in form.weights.tolist())
    if form.curves is not None:
        own = map(_curve, form.curves)
    features = [
        {"name": feature, "column": column, **each, "missing": missing}
        for feature, column, each, missing in zip(
            form.names, form.columns.tolist(), own, form.added, strict=True
        )
    ]
    head: dict[str, Any] = {
        "format": "linrank-curves" if form.curves is not None else "linrank-weights",
        "version": 1,
        "name": name,
        "linrank": __version__,
        "factor": form.factor,
        "missing": form.missing,
        "scaling": form.scale,
    }
    if form.interactions is not None:
        head["interactions"] = _interactions(form.interactions)
    # One feature a line: readable, and a change of one weight is a change of one line.
    lines = ",\n    ".join(json.dumps(feature, ensure_ascii=False) for feature in features)
    opening = json.dumps(head, ensure_ascii=False, indent=2)[:-2]
    text = f'{opening},\n  "features": [\n    {lines}\n  ]\n}}\n'
    told = ["text", "refused" if form.missing == "error" else "filled"]
    if form.curves is not None:
        told = ["curves"]
    return Artefact("json", {"model.json": text.encode()}, fill_text("json", *told))


def _curve(function: Function) -> dict[str, list[float]]:
    _, *parts = function
    return {key: a.tolist() for key, a in zip(("knots", "values", "slopes"), parts, strict=True)}


def _interactions(term: Any) -> dict[str, Any]:
    quantiles = [{"column": function[0], **_curve(function)} for function in term.quantiles]
    arrays = {"landmarks": term.landmarks.tolist(), "coef": term.coef.tolist()}
    return {"gamma": term.gamma, "quantiles": quantiles, **arrays}
