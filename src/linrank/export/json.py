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
from linrank.export.artefact import Artefact
from linrank.export.form import Form

_SCORER = """import json

with open("model.json", encoding="utf-8") as file:
    features = json.load(file)["features"]

def score(row):  # a dict of values by feature name
    values = ((f, row.get(f["name"])) for f in features)
    return sum(f["missing"] if x is None else f["weight"] * x for f, x in values)
"""


_ABOUT_CURVES = """\
model.json has the curve of every feature that counts: with p the number of its knots below the
value x, it adds values[p] + slopes[p] * (x - knots[max(p - 1, 0)]), the knot being 0 where there is
none, or `missing` where the row has no value. In Python:

    import bisect

    def curve(f, x):
        p = bisect.bisect_left(f["knots"], x)
        return f["values"][p] + f["slopes"][p] * (x - (f["knots"] or [0.0])[max(p - 1, 0)])

Higher is better. `interactions`, where there are any, add the sum over m of coef[m] *
exp(-gamma * |landmarks[m] - q|^2), with q the curves `quantiles` of the values in their columns;
missing values are filled in before.
"""


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
    return Artefact("json", {"model.json": text.encode()}, _instructions(form))


def _curve(function: Function) -> dict[str, list[float]]:
    _, *parts = function
    return {key: a.tolist() for key, a in zip(("knots", "values", "slopes"), parts, strict=True)}


def _interactions(term: Any) -> dict[str, Any]:
    quantiles = [{"column": function[0], **_curve(function)} for function in term.quantiles]
    arrays = {"landmarks": term.landmarks.tolist(), "coef": term.coef.tolist()}
    return {"gamma": term.gamma, "quantiles": quantiles, **arrays}


def _instructions(form: Form) -> str:
    if form.curves is not None:
        return _ABOUT_CURVES
    scorer = "    " + _SCORER.strip().replace("\n", "\n    ")
    missing = (
        "A feature that the row lacks, or has as None, counts as missing."
        if form.missing != "error"
        else "The model refuses missing values: so does this function, with a TypeError."
    )
    return (
        "model.json has a name, a weight and a value for what is missing for every feature that "
        f"counts. In Python:\n\n{scorer}\n\nHigher is better; sort by it. {missing}\n"
    )
