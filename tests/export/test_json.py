"""Export to plain JSON: the scorer of its instructions scores as the model does."""

import json

import numpy as np
import pytest
from portable_models import KINDS, NAMES, assert_scores, code_in, model_of, rows_of

from linrank import LinearModel

DOUBLE = 2.0**-53


def records(X, names):
    """Rows as a program has them: a missing value is None, or is not there at all."""
    for i, row in enumerate(X.tolist()):
        known = {name: x for name, x in zip(names, row, strict=True) if x == x}
        yield known if i % 2 else {name: known.get(name) for name in names}


@pytest.mark.parametrize("kind", KINDS)
def test_the_scorer_of_the_instructions_scores_as_the_model(kind, tmp_path, monkeypatch):
    model, X = model_of(kind), rows_of(2_000, len(NAMES), missing=kind != "error")
    artefact = model.export("json")
    artefact.save(tmp_path / "model.json")
    monkeypatch.chdir(tmp_path)
    told = {}
    exec(code_in(artefact.instructions), told)
    scores = [told["score"](record) for record in records(X, NAMES)]
    assert_scores(scores, model, X, DOUBLE)
    np.testing.assert_allclose(scores, model.predict(X), rtol=1e-9, atol=1e-300)


@pytest.mark.parametrize("kind", KINDS)
def test_a_hundred_thousand_rows_are_in_the_order_of_the_model(kind):
    """The same sum, over columns."""
    model, X = model_of(kind), rows_of(100_000, len(NAMES), missing=kind != "error")
    content = json.loads(model.export("json").text)
    scores = np.zeros(len(X))
    for feature in content["features"]:
        x = X[:, feature["column"]]
        missing = 0.0 if feature["missing"] is None else feature["missing"]
        scores += np.where(np.isnan(x), missing, feature["weight"] * x)
    assert_scores(scores, model, X, DOUBLE, content["factor"])


def test_the_scorer_refuses_missing_values_where_the_model_does(tmp_path, monkeypatch):
    artefact = LinearModel([1.0], ["a"]).export("json")
    artefact.save(tmp_path / "model.json")
    monkeypatch.chdir(tmp_path)
    told = {}
    exec(code_in(artefact.instructions), told)
    with pytest.raises(TypeError):
        told["score"]({"b": 1.0})


def test_what_the_document_says():
    content = json.loads(model_of("mean").export("json", name="größe").text)
    features = content.pop("features")
    assert content == {
        "format": "linrank-weights",
        "version": 1,
        "name": "größe",
        "linrank": content["linrank"],
        "factor": 1.0,
        "missing": "mean",
        "scaling": "none",
    }
    assert [f["column"] for f in features] == [0, 1, 3, 4, 5, 6, 7]  # the third has no weight
    assert [f["name"] for f in features] == [n for j, n in enumerate(NAMES) if j != 2]
    model = model_of("mean")
    assert [f["weight"] for f in features] == model.coef[model.coef != 0].tolist()


def test_weights_near_the_ends_of_the_doubles_are_multiplied_by_a_power_of_two():
    model = LinearModel([3e-310, 1e-300], ["a", "b"])
    content = json.loads(model.export("json").text)
    exponent = np.log2(content["factor"])
    assert exponent == round(exponent) != 0
    weights = [feature["weight"] for feature in content["features"]]
    np.testing.assert_array_equal(weights, model.coef * content["factor"])
