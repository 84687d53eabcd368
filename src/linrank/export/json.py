"""A linear model as plain JSON, for a program of one's own.

    {"format": "linrank-weights", "version": 1, "name": ..., "linrank": "0.1.0",
     "factor": 1.0, "missing": "mean", "scaling": "standard",
     "features": [{"name": "bm25", "column": 0, "weight": 0.5, "missing": 1.25}, ...]}

The score of a row is the sum over ``features`` of ``weight`` times the value, or of ``missing``
where there is no value; ``missing`` is null in a model that refuses missing values. ``column`` is
the place of the feature in the rows that the model was trained on, from 0. Scores are those of the
model times ``factor``. Where ``scaling`` is "query", values are to be divided by their range
within the query first.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from linrank import __version__
from linrank.export.artefact import Artefact

if TYPE_CHECKING:
    from linrank.export.linear_form import LinearForm

PRECISION = "float64"

_SCORER = """import json

with open("model.json", encoding="utf-8") as file:
    features = json.load(file)["features"]

def score(row):  # a dict of values by feature name
    values = ((f, row.get(f["name"])) for f in features)
    return sum(f["missing"] if x is None else f["weight"] * x for f, x in values)
"""


def write(form: LinearForm, name: str, normalizers: str) -> Artefact:
    """The weights by name, with what a missing value adds.

    Parameters
    ----------
    form : LinearForm
        The weights.
    name : str
        Name of the model and of the file.
    normalizers : str
        ``folded``: the weights are those of raw values.
    """
    added = form.contributions.tolist() if form.missing != "error" else [None] * len(form.names)
    columns, weights = form.columns.tolist(), form.weights.tolist()
    features = [
        {"name": feature, "column": column, "weight": weight, "missing": missing}
        for feature, column, weight, missing in zip(
            form.names, columns, weights, added, strict=True
        )
    ]
    head = {
        "format": "linrank-weights",
        "version": 1,
        "name": name,
        "linrank": __version__,
        "factor": form.factor,
        "missing": form.missing,
        "scaling": form.scale,
    }
    # One feature a line: readable, and a change of one weight is a change of one line.
    lines = ",\n    ".join(json.dumps(feature, ensure_ascii=False) for feature in features)
    opening = json.dumps(head, ensure_ascii=False, indent=2)[:-2]
    text = f'{opening},\n  "features": [\n    {lines}\n  ]\n}}\n'
    return Artefact("json", {"model.json": text.encode()}, _instructions(form))


def _instructions(form: LinearForm) -> str:
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
